#include "stacks.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "farside/base/verdict.hpp"
#include "support.hpp"

namespace far::app {

namespace {

/// A part of a file that a process has mapped.
struct mapping {
  std::uint64_t begin, end, offset;
  std::string file;
};

std::vector<mapping> mappings_of(pid_t pid) {
  std::vector<mapping> result;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    mapping one{};
    char dash = 0;
    std::string rights, device, inode;
    std::istringstream in(line);
    in >> std::hex >> one.begin >> dash >> one.end >> rights >> one.offset >> device >> inode;
    in >> std::ws;
    std::getline(in, one.file);
    if (!one.file.empty() && one.file[0] == '/') result.push_back(one);
  }
  return result;
}

/// Where a frame lies: a file, and the address by which that file's symbols know it.
struct place {
  std::string file;
  std::uint64_t address = 0;
};

/// Programs at a fixed address (ELF type 2) name their functions by where they lie.
bool is_fixed(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  char head[18] = {};
  return in.read(head, sizeof head) && head[16] == 2;
}

place find(const std::vector<mapping>& mappings, std::uint64_t address) {
  for (const mapping& one : mappings) {
    if (address < one.begin || address >= one.end) continue;
    if (is_fixed(one.file)) return {one.file, address};
    std::uint64_t base = one.begin;  // of the whole file, whose first part begins it
    for (const mapping& other : mappings)
      if (other.file == one.file) base = std::min(base, other.begin);
    return {one.file, address - base};
  }
  return {"", address};
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string hexadecimal(std::uint64_t n) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(n));
  return text;
}

/// `function at file.cpp:12`, shortened: names of templates may fill pages.
std::string shortened(std::string line) {
  constexpr std::size_t most = 160;
  std::size_t at = line.rfind(" at ");
  if (at == std::string::npos) return line.substr(0, most);
  std::string where = line.substr(at + 4), function = line.substr(0, at);
  if (std::size_t more = where.find(" (discriminator"); more != std::string::npos)
    where.resize(more);
  if (function.size() > most) function = function.substr(0, most - 4) + " ...";
  if (where.starts_with("??")) return function;
  bool known = !where.ends_with(":?");
  return function + (known ? " at " + where : " in " + where.substr(0, where.size() - 2));
}

/// The lines of each address, inlined functions included, by addr2line; empty where it fails.
std::map<std::uint64_t, std::vector<std::string>> ask(const std::string& file,
                                                      const std::vector<std::uint64_t>& addresses) {
  arguments command = {find_in_path("addr2line"), "-a", "-C", "-f", "-i", "-p", "-e", file};
  if (command[0].empty()) return {};
  for (std::uint64_t address : addresses) command.push_back(hexadecimal(address));
  captured answer = capture(command, 20);
  std::map<std::uint64_t, std::vector<std::string>> result;
  std::istringstream in(answer.text);
  std::vector<std::string>* now = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("0x")) {
      std::size_t colon = line.find(": ");
      if (colon == std::string::npos) continue;
      now = &result[std::strtoull(line.c_str(), nullptr, 16)];
      now->clear();
      line = line.substr(colon + 2);
    }
    if (now == nullptr || line.starts_with("??")) continue;
    std::size_t by = line.find("(inlined by) ");
    now->push_back(shortened(by == std::string::npos ? line : line.substr(by + 13)));
  }
  return result;
}

/// Names and lines of many addresses: one question for each file.
class resolver {
 public:
  void want(const place& at) {
    if (!at.file.empty()) wanted_[at.file].push_back(at.address);
  }
  std::vector<std::string> lines_of(const place& at) {
    if (at.file.empty()) return {"at " + hexadecimal(at.address)};
    auto known = known_.find(at.file);
    if (known == known_.end())
      known = known_.emplace(at.file, ask(at.file, wanted_[at.file])).first;
    auto lines = known->second.find(at.address);
    if (lines != known->second.end() && !lines->second.empty()) {
      std::vector<std::string> result = lines->second;
      for (std::string& line : result)
        if (line.find(" at ") == std::string::npos && line.find(" in ") == std::string::npos)
          line += " in " + file_name(at.file);
      return result;
    }
    return {file_name(at.file) + "+" + hexadecimal(at.address)};
  }

 private:
  std::map<std::string, std::vector<std::uint64_t>> wanted_;
  std::map<std::string, std::map<std::uint64_t, std::vector<std::string>>> known_;
};

/// The frames without the two of the signal handler. All but the first are where a call returns to:
/// the call itself lies before.
std::vector<place> places_of(const far::job_board::slot& slot, pid_t pid) {
  std::vector<place> result;
  if (!slot.frames_ready.load(std::memory_order_acquire)) return result;
  std::vector<mapping> mappings = mappings_of(pid);
  for (std::size_t i = 2; i < std::size(slot.frames) && slot.frames[i] != 0; ++i)
    result.push_back(find(mappings, slot.frames[i] - (i > 2 ? 1 : 0)));
  return result;
}

/// Without the namespace of the back end, which tells a reader nothing.
std::string without_namespace(std::string line) {
  for (const char* name : {"far::smp::", "far::mpi::", "far::shmem::", "far::sim::", "far::any::"})
    for (std::size_t at; (at = line.find(name)) != std::string::npos;)
      line.replace(at, strlen(name), "far::");
  return line;
}

enum class whose { program, library, machine };

whose owner_of(const std::string& line) {
  for (const char* folder : {"core", "detail", "backend", "containers", "algorithms"})
    if (line.find("/farside/" + std::string(folder) + "/") != std::string::npos)
      return whose::library;
  if (line.starts_with("far::detail::") && line.find(" at ") == std::string::npos)
    return whose::library;
  if (line.starts_with("__libc_start") || line.starts_with("_start ")) return whose::machine;
  return whose::program;
}

/// What the program does and which functions of the library it calls, but not how those work: a
/// line of the library is shown if the program has called it. `all`: everything.
std::string text_of(const std::vector<place>& places, resolver& names, bool all) {
  std::vector<std::string> lines;
  for (const place& at : places)
    for (const std::string& line : names.lines_of(at)) lines.push_back(without_namespace(line));
  // Before the first line of the library come those of what it calls to wait.
  auto library = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return owner_of(line) == whose::library;
  });
  bool waits =
      library != lines.end() && std::none_of(lines.begin(), library, [](const std::string& line) {
        return line.find(".cpp:") != std::string::npos;
      });
  std::size_t first = waits ? static_cast<std::size_t>(library - lines.begin()) : 0;
  std::string text;
  for (std::size_t i = all ? 0 : first; i < lines.size(); ++i) {
    whose now = owner_of(lines[i]);
    bool last = i + 1 == lines.size() || owner_of(lines[i + 1]) != whose::library;
    if (all || now == whose::program || (now == whose::library && last))
      text += "    " + lines[i] + "\n";
  }
  return text;
}

}  // namespace

std::string stack_text(const far::job_board::slot& slot, pid_t pid, bool all) {
  resolver names;
  std::vector<place> places = places_of(slot, pid);
  for (const place& at : places) names.want(at);
  return text_of(places, names, all);
}

std::string stacks_report(const job_state& job) {
  resolver names;
  std::map<std::size_t, std::vector<place>> stacks;  // by rank
  for (std::size_t i = 0; i < job.options.ranks; ++i) {
    far::job_board::slot& slot = (*job.book.board)[i];
    if (job.remote.knows(i)) continue;  // its supervisor tells
    std::vector<place> places = places_of(slot, static_cast<pid_t>(slot.pid.load()));
    for (const place& at : places) names.want(at);
    if (!places.empty()) stacks[slot.rank] = places;
  }
  std::map<std::string, std::vector<std::size_t>> ranks_with;
  std::vector<std::string> order;
  for (const auto& [rank, places] : stacks) {
    std::string text = text_of(places, names, job.options.verbose);
    auto& ranks = ranks_with[text];
    if (ranks.empty()) order.push_back(text);
    ranks.push_back(rank);
  }
  std::string report;
  for (const std::string& text : order)
    report += "  stack of " + far::job_board::names_of(ranks_with[text]) + ":\n" + text;
  if (!report.empty() && !job.options.verbose)
    report += "  (without what goes on inside the library, which --verbose shows)\n";
  if (!report.empty() && find_in_path("addr2line").empty())
    report += "  (addr2line, of the package binutils, would add functions and lines)\n";
  return report;
}

}  // namespace far::app

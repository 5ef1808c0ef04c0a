// `farside bench core` and `farside bench containers`: the same measurement on each back end that
// was built.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "run.hpp"
#include "support.hpp"

namespace far::app {

namespace {

constexpr const char* usage =
    R"(usage: farside bench core|containers [--backend smp|mpi|shmem|all] [-n N] [--json FILE] [options...]

Runs the benchmark programs bench_core_smp, bench_core_openmpi, bench_core_mpich and
bench_core_shmem (or bench_containers_smp and so on), those that were built, and prints what each
measures, beside its floor.

      --backend NAME   only these; all by default
  -n, --ranks N        how many ranks; 2 by default
      --json FILE      writes the measurements of all of them as one JSON list
  Everything else goes to the benchmark programs.
)";

struct bench_options {
  std::string backend = "all", json;
  std::uint32_t ranks = 2;
  arguments rest;
};

bench_options parse(const arguments& words) {
  bench_options result;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    auto value = [&](const char* name) -> const std::string* {
      static std::string text;
      std::string with_equals = std::string(name) + "=";
      if (word.starts_with("--") && word.starts_with(with_equals))
        return &(text = word.substr(with_equals.size()));
      if (word != name) return nullptr;
      if (i + 1 == words.size()) throw error(usage_error, word + " needs a value behind it");
      return &(text = words[++i]);
    };
    if (const std::string* name = value("--backend"))
      result.backend = *name;
    else if (const std::string* n = value("-n"))
      result.ranks = parse_ranks(*n);
    else if (const std::string* ranks = value("--ranks"))
      result.ranks = parse_ranks(*ranks);
    else if (const std::string* file = value("--json"))
      result.json = *file;
    else
      result.rest.push_back(word);
  }
  return result;
}

/// Names of the programs that `--backend` stands for.
arguments programs_of(const std::string& benchmark, const std::string& backend) {
  arguments names;
  auto add = [&](const char* name) { names.push_back("bench_" + benchmark + "_" + name); };
  bool all = backend == "all";
  if (all || backend == "smp") add("smp");
  if (all || backend == "mpi" || backend == "openmpi") add("openmpi");
  if (all || backend == "mpi" || backend == "mpich") add("mpich");
  if (all || backend == "shmem") add("shmem");
  if (names.empty())
    throw error(usage_error, "--backend " + backend +
                                 ": there is no such back end; it is one of smp, mpi, shmem, all");
  return names;
}

/// The inside of a JSON list, to be joined with others; nothing if the file holds no list.
std::string elements_of(const std::string& path) {
  std::ifstream file(path);
  std::string text = trimmed(std::string(std::istreambuf_iterator<char>(file), {}));
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return "";
  return trimmed(text.substr(1, text.size() - 2));
}

}  // namespace

int bench_command(const arguments& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" ||
      std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::fputs(usage, words.empty() ? stderr : stdout);
    return words.empty() ? usage_error : success;
  }
  if (words[0] != "core" && words[0] != "containers")
    throw error(usage_error,
                "there is no benchmark '" + words[0] + "'; there are: core, containers");
  bench_options options = parse(words);

  arguments names = programs_of(words[0], options.backend), found;
  for (const std::string& name : names)
    if (std::string path = find_companion(name); !path.empty()) found.push_back(path);
  if (found.empty())
    throw error(not_found, "none of " + quoted(names) + " is in " + self_directory() + " or " +
                               self_directory() +
                               "/../libexec/farside; build or install farside with its benchmarks");
  std::ofstream json;
  if (!options.json.empty()) {
    json.open(options.json);  // now, not after minutes of measuring
    if (!json)
      throw error(failure, "--json " + options.json +
                               ": cannot write that file; check the folder and its rights");
  }

  int worst = success;
  std::string joined;
  for (const std::string& program : found) {
    temporary_file measured("farside-bench");
    run_options run;
    run.ranks = options.ranks;
    run.command = {program};
    run.command.insert(run.command.end(), options.rest.begin(), options.rest.end());
    if (json.is_open()) run.command.insert(run.command.end(), {"--json", measured.path});
    std::fflush(stdout);
    int status = run_job(std::move(run));
    if (status != success) worst = status;
    if (status == signal_base + 2 || status == signal_base + 15)
      return status;  // the user has had enough
    std::string part = json.is_open() ? elements_of(measured.path) : "";
    if (!part.empty()) joined += (joined.empty() ? "" : ",\n") + part;
  }
  if (json.is_open() && !(json << "[\n" << joined << "\n]\n" << std::flush))
    throw error(failure,
                "--json " + options.json + ": could not be written to the end; is the disk full?");
  return worst;
}

}  // namespace far::app

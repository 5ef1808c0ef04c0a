#include "memory_events.hpp"

#include <fstream>

#include "support.hpp"

namespace far::app {

namespace {

constexpr const char* whole_machine = "/proc/vmstat";

/// The line `oom_kill N` of a file that has many such lines.
void read_counter(const std::string& path, std::map<std::string, std::uint64_t>& into) {
  std::ifstream file(path);
  std::string name;
  for (std::uint64_t value = 0; file >> name >> value;)
    if (name == "oom_kill") into[path] = value;
}

}  // namespace

std::map<std::string, std::uint64_t> memory_events::counters() {
  std::map<std::string, std::uint64_t> result;
  read_counter(whole_machine, result);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == "memory")  // version 1
      read_counter("/sys/fs/cgroup/memory" + group + "/memory.oom_control", result);
    if (controllers.empty())  // version 2; its root has no such file
      read_counter("/sys/fs/cgroup" + group + "/memory.events", result);
  }
  return result;
}

std::string memory_events::since_begin() const {
  std::string on_the_machine;
  for (const auto& [path, count] : counters()) {
    auto before = before_.find(path);
    if (before == before_.end() || count <= before->second) continue;
    std::string killed = std::to_string(count - before->second) + " killed (oom_kill of " + path;
    if (path != whole_machine) return "by the kernel: memory ran out, " + killed + ")";
    on_the_machine = "probably by the kernel: memory ran out on this machine, " + killed + ")";
  }
  return on_the_machine;
}

}  // namespace far::app

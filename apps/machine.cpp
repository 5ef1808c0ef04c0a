#include "machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "support.hpp"

namespace far::app {

namespace {

/// Our folder in the version 2 hierarchy, '' at its root. A limit may be set on any level above.
std::string own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(3) == "/" ? "" : line.substr(3);
  return "";
}

/// Calls `use` with the first line of `name` in each cgroup from ours up to the root.
template <typename Use>
void for_each_cgroup(const std::string& name, Use use) {
  for (std::string group = own_cgroup();; group.resize(group.rfind('/'))) {
    std::string line = first_line_of_file("/sys/fs/cgroup" + group + "/" + name);
    if (!line.empty()) use(line);
    if (group.empty()) return;
  }
}

}  // namespace

cores count_cores() {
  cores result;
  result.online = static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  result.allowed = result.online;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    result.allowed = static_cast<unsigned>(CPU_COUNT(&set));
  for_each_cgroup("cpu.max", [&](const std::string& line) {
    double quota = 0, period = 0;
    if (std::istringstream(line) >> quota >> period && period > 0)
      result.quota = std::min(result.quota.value_or(1e9), quota / period);
  });
  return result;
}

memory measure_memory() {
  memory result;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") result.total = kib << 10;
    if (name == "MemAvailable:") result.available = kib << 10;
  }
  for_each_cgroup("memory.max", [&](const std::string& line) {
    if (auto bytes = parse_number(line))
      result.limit = std::min(result.limit.value_or(~std::uint64_t{0}), *bytes);
  });
  auto used = parse_number(first_line_of_file("/sys/fs/cgroup" + own_cgroup() + "/memory.current"));
  if (result.limit && used)
    result.available = std::min(result.available, *result.limit - std::min(*used, *result.limit));
  return result;
}

}  // namespace far::app

// Processes that the kernel has killed because memory ran out: its counters, before and after.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace far::app {

class memory_events {
 public:
  /// Reads the counters, of this process's control groups and of the whole machine.
  memory_events() : before_(counters()) {}

  /// `by the kernel: memory ran out (...)` if it has killed a process since; otherwise empty.
  std::string since_begin() const;

 private:
  static std::map<std::string, std::uint64_t> counters();  ///< by file

  std::map<std::string, std::uint64_t> before_;
};

}  // namespace far::app

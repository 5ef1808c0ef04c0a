// What this machine lets us use, cgroup limits included.
#pragma once

#include <cstdint>
#include <optional>

namespace far::app {

struct cores {
  unsigned online = 0;
  unsigned allowed = 0;           ///< by the affinity mask we were started with
  std::optional<double> quota{};  ///< cores' worth of time that the cgroup grants
};
cores count_cores();

struct memory {
  std::uint64_t total = 0, available = 0;
  std::optional<std::uint64_t> limit{};  ///< of the cgroup
};
memory measure_memory();

}  // namespace far::app

// far::container_options: what every container can be told when it is made.
//
//   far::hash_map<int, int> map(1000, {.name = "words", .over = node});
//
// Containers are made collectively, by all members of the team `over`. The options are local, and
// communicate nothing.
#pragma once

#include <farside/core/engine.hpp>
#include <farside/core/team.hpp>

#include <chrono>
#include <source_location>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// The name of a container in errors and statistics, its members, and how they reach it.
struct container_options {
  std::string name{};  ///< "hash_map 3" and the like, if it is empty
  team over{};         ///< the world, if it is empty
  /// How operations of maps and queues reach their owners; FARSIDE_ENGINE, if it is set. All
  /// members say the same.
  far::engine engine = far::engine::rma;
  /// For engine::automatic: how long members compute between two calls of the library that serve.
  /// Messages wait for half of that on average, unless a thread serves (far::attention).
  std::chrono::nanoseconds computes{0};
  /// Where the container is made, for reports of programs that hang. Leave it as it is.
#if defined(__CUDACC__)
  std::source_location made_at{};  // nvcc 13.0 aborts on a place that is the default of a default
#else
  std::source_location made_at = std::source_location::current();
#endif
};

}  // namespace far::inline FARSIDE_BACKEND

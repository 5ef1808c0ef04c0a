// far::global_array_options: what a far::global_array can be told when it is made.
//
//   far::global_array<double, 2> f({n, n}, {.distribution = far::cyclic({8, 8}), .name = "f"});
//
// All members of the team say the same. The options are local, and communicate nothing.
#pragma once

#include <farside/containers/array_distribution.hpp>
#include <farside/containers/array_index.hpp>
#include <farside/core/team.hpp>

#include <source_location>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// How an array is divided, how many ghosts it has, its name in errors, and its members.
template <std::size_t N>
struct global_array_options {
  array_distribution distribution{};  ///< far::blocks(), unless another one is given
  array_index<N> ghosts{};            ///< how many elements of neighbours each side shows
  std::string name{};                 ///< "global_array 3" and the like, if it is empty
  team over{};                        ///< the world, if it is empty
  /// Where the array is made, for reports of programs that hang. Leave it as it is.
  std::source_location made_at = std::source_location::current();
};

}  // namespace far::inline FARSIDE_BACKEND

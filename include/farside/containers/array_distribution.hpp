// How a far::global_array is divided among the members of its team.
//
//   far::blocks()                       // a block for each member, as near to a cube as may be
//   far::blocks({0, 1})                 // ... but not cut in the second dimension
//   far::cyclic({8, 8})                 // blocks of 8 x 8, dealt out in turns
//   far::irregular({{0, 10, 50}, {0}})  // blocks that begin where it says
//
// Members form a grid with as many dimensions as the array: member 0 stands at its beginning, and
// the last coordinate changes first. A descriptor is small: no rank keeps more than a few numbers
// for each member. Everything is local.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What the functions below make. Local; no communication.
struct array_distribution {
  enum class kind { blocks, cyclic, irregular };
  kind how = kind::blocks;
  std::vector<std::size_t> grid{};   ///< members in each dimension; 0 or nothing: as suits
  std::vector<std::size_t> chunk{};  ///< cyclic: how large a block is
  std::vector<std::vector<std::size_t>> starts{};  ///< irregular: where blocks begin
};

/// One block for each member, which differ by one in each dimension at most. `grid` says how many
/// members there are in each dimension; for those that are 0, or if it is left out, they are chosen
/// so that blocks have little surface. Local; no communication.
inline array_distribution blocks(std::vector<std::size_t> grid = {}) {
  return {array_distribution::kind::blocks, std::move(grid), {}, {}};
}

/// Blocks of one shape, which members get in turns in each dimension. Such arrays have no ghosts.
/// Local; no communication.
inline array_distribution cyclic(std::vector<std::size_t> chunk,
                                 std::vector<std::size_t> grid = {}) {
  return {array_distribution::kind::cyclic, std::move(grid), std::move(chunk), {}};
}

/// One block for each member of a grid: in each dimension a list of the indices with which blocks
/// begin, the first of which is 0. They may not descend; a block that ends where it begins holds
/// nothing. Local; no communication.
inline array_distribution irregular(std::vector<std::vector<std::size_t>> starts) {
  return {array_distribution::kind::irregular, {}, {}, std::move(starts)};
}

}  // namespace far::inline FARSIDE_BACKEND

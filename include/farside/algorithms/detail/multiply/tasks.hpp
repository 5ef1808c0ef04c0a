// Which member multiplies which tiles, in which order.
//
// A product of tiles, a piece, is C(i, j) += A(i, k) B(k, j). A task is some pieces of one tile of C.
// What a member has to do is a sequence of tasks; algorithms differ in which ones.
//
//   stationary C    for each own tile (i, j) of C: all k, beginning with i + j
//   stationary A    for each own tile (i, k) of A: all j, beginning with i + k
//   stationary B    for each own tile (k, j) of B: all i, beginning with k + j
//   2.5-D           members stand in layers; each layer has a part of the k, and in a layer C is
//                   divided as if its members were all there are
//
// Members of a row or column of the grid begin with different tiles, so that not all of them fetch
// the same tile at the same time, and the first one is most often their own.
#pragma once

#include <farside/algorithms/multiply_options.hpp>
#include <farside/base/mutants.hpp>
#include <farside/containers/matrix_layout.hpp>

#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Some pieces of a tile of C, in the order in which they are multiplied.
struct multiply_task {
  matrix_index c;
  std::vector<std::size_t> ks;
  std::size_t part = 0;  ///< the number of their sum among those of the tile, in ordered mode
  bool stolen = false;
  bool whole = false;  ///< these are all pieces of the tile
};

/// 0 .. count - 1, begun in another place: number n is first + step * ((n + offset) mod count).
inline std::vector<std::size_t> turned(std::size_t first, std::size_t step, std::size_t count,
                                       std::size_t offset) {
  std::vector<std::size_t> numbers(count);
  for (std::size_t n = 0; n < count; ++n) numbers[n] = first + step * ((n + offset) % count);
  return numbers;
}

/// Gives tasks one after another, and then none.
using task_source = std::function<std::optional<multiply_task>()>;

/// How many tiles there are: of C in rows and columns, and of A in columns.
struct tile_counts {
  std::size_t m, n, k;
};

/// A source of the results of make(x) for x = 0 .. count - 1.
template <class Make>
task_source sequence(std::size_t count, Make make) {
  return [at = std::size_t{0}, count,
          make = std::move(make)]() mutable -> std::optional<multiply_task> {
    if (at == count) return std::nullopt;
    return make(at++);
  };
}

inline task_source stationary_c_tasks(std::vector<matrix_index> own, tile_counts tiles) {
  const std::size_t count = tiles.k == 0 ? 0 : own.size();
  return sequence(count, [own = std::move(own), tiles](std::size_t at) {
    const matrix_index c = own[at];
    return multiply_task{c, turned(0, 1, tiles.k, c.row + c.column), 0, false, true};
  });
}
inline task_source stationary_a_tasks(std::vector<matrix_index> own, tile_counts tiles) {
  const std::size_t count = own.size() * tiles.n;
  return sequence(count, [own = std::move(own), tiles](std::size_t at) {
    const matrix_index a = own[at / tiles.n];
    return multiply_task{{a.row, (at + a.row + a.column) % tiles.n}, {a.column}, a.column};
  });
}
inline task_source stationary_b_tasks(std::vector<matrix_index> own, tile_counts tiles) {
  const std::size_t count = own.size() * tiles.m;
  return sequence(count, [own = std::move(own), tiles](std::size_t at) {
    const matrix_index b = own[at / tiles.m];
    return multiply_task{{(at + b.row + b.column) % tiles.m, b.column}, {b.row}, b.row};
  });
}

/// How many layers 2.5-D makes of so many members: as many as leave each layer at least as many
/// members as there are layers, and divide them evenly. 4 members: 2 layers of 2 x 1; 8: 2 of 2 x 2.
inline std::size_t layers_for(rank_t members, std::size_t k_tiles) {
  std::size_t best = 1;
  for (std::size_t layers = 2; layers * layers <= members && layers <= k_tiles; ++layers)
    if (members % layers == 0) best = layers;
  return best;
}

inline task_source layered_tasks(rank_t me, rank_t members, matrix_shape c_shape,
                                 tile_counts tiles) {
  const std::size_t layers = layers_for(members, tiles.k), width = members / layers;
  const std::size_t layer = me / width, place = me % width;
  const matrix_shape grid = squarest_grid(c_shape, static_cast<rank_t>(width));
  std::vector<matrix_index> own;
  for (std::size_t i = place / grid.columns; i < tiles.m; i += grid.rows)
    for (std::size_t j = place % grid.columns; j < tiles.n; j += grid.columns)
      own.push_back({i, j});
  const std::size_t mine = tiles.k <= layer ? 0 : (tiles.k - layer - 1) / layers + 1;
  const std::size_t count = mine == 0 ? 0 : own.size();
  return sequence(count, [own = std::move(own), layer, layers, mine](std::size_t at) {
    const matrix_index c = own[at];
    return multiply_task{c, turned(layer, layers, mine, c.row + c.column), layer};
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail

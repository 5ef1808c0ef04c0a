// How a distributed matrix is cut into tiles, and which member of its team has which tile.
//
// Block-cyclic, as in ScaLAPACK. All tiles have one shape, but for those at the lower and the right edge, which are
// cut off. Members stand in a grid of pm x pn, row by row. The grid is laid over the tiles again and again: tile
// (i, j) lies on the member at (i mod pm, j mod pn), which is number (i mod pm) * pn + (j mod pn) of the team.
//
//   a matrix of 5 x 5 in tiles of 2 x 2, on a grid of 2 x 2 members      member of each tile
//     a a | b b | c                                                         0 1 0
//     a a | b b | c                                                         2 3 2
//     ----+-----+--                                                         0 1 0
//     d d | e e | f
//     ...
//
// A block descriptor says how: block_rect, block_square, block_row, block_column, block_opt, block_custom, or a
// function of your own which is called with the shape of a matrix and the number of members, the same on all of them:
//
//   auto tall = [](far::matrix_shape shape, far::rank_t members) {
//     return far::matrix_blocks{{64, shape.columns}, {members, 1}};
//   };
//   far::matrix<double> a({m, n}, tall);
//
// All of it is local: no communication.
#pragma once

#include <farside/base/types.hpp>
#include <farside/containers/matrix_shape.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>

namespace far::inline FARSIDE_BACKEND {

/// Stands for "as many as divide the dimension evenly among the members in that direction".
inline constexpr std::size_t div = std::numeric_limits<std::size_t>::max();

/// What a block descriptor says: the shape of a tile, and how many members stand in each direction. Members that are
/// more than the grid has places hold no tile.
struct matrix_blocks {
  matrix_shape tile;
  matrix_shape grid;
};

/// What says how a matrix is cut. Called with the same arguments on all members, it gives the same on all.
template <class D>
concept block_descriptor = requires(const D& d, matrix_shape shape, rank_t members) {
  { d(shape, members) } -> std::convertible_to<matrix_blocks>;
};

namespace detail {

constexpr std::size_t divided_up(std::size_t n, std::size_t by) { return n / by + (n % by != 0); }

/// A dimension of tiles: `wanted`, or an even division of `extent` among `places`. Never zero.
constexpr std::size_t tile_extent(std::size_t wanted, std::size_t extent, std::size_t places) {
  if (wanted == div) wanted = divided_up(extent, places);
  return std::max<std::size_t>(1, std::min(wanted, std::max<std::size_t>(1, extent)));
}

}  // namespace detail

/// The grid of all members whose even tiles are closest to squares, which is what multiplications move least data
/// with. Of 6 members and a square matrix: 2 x 3. Prime numbers give a row or a column of members.
constexpr matrix_shape squarest_grid(matrix_shape shape, rank_t members) {
  matrix_shape best{members, 1};
  auto edge = [&](matrix_shape grid) {
    return static_cast<double>(shape.rows) / static_cast<double>(grid.rows) +
           static_cast<double>(shape.columns) / static_cast<double>(grid.columns);
  };
  for (std::size_t rows = members; rows >= 1; --rows)
    if (members % rows == 0 && edge({rows, members / rows}) < edge(best))
      best = {rows, members / rows};
  return best;
}

/// One tile a member, as close to squares as the number of members allows. What matrices have unless told otherwise.
struct block_rect {
  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    matrix_shape grid = squarest_grid(shape, members);
    return {{detail::tile_extent(div, shape.rows, grid.rows),
             detail::tile_extent(div, shape.columns, grid.columns)},
            grid};
  }
};

/// A square grid of members, the largest there is: 7 members stand as 2 x 2, and three have no tile. `tile` is the
/// edge of tiles.
struct block_square {
  std::size_t tile = div;

  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    std::size_t edge = 1;
    while ((edge + 1) * (edge + 1) <= members) ++edge;
    return {{detail::tile_extent(tile, shape.rows, edge),
             detail::tile_extent(tile, shape.columns, edge)},
            {edge, edge}};
  }
};

/// Tiles are whole rows, `rows` of them each; members take turns where there are more tiles than members.
struct block_row {
  std::size_t rows = div;

  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    return {
        {detail::tile_extent(rows, shape.rows, members), std::max<std::size_t>(1, shape.columns)},
        {members, 1}};
  }
};

/// Tiles are whole columns, `columns` of them each.
struct block_column {
  std::size_t columns = div;

  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    return {{std::max<std::size_t>(1, shape.rows),
             detail::tile_extent(columns, shape.columns, members)},
            {1, members}};
  }
};

/// Block-cyclic: the grid of block_rect, and twice as many tiles in each direction as it has members, so that what is
/// dense in one place of a matrix is spread over several members. Tiles are not made smaller than `least` for that.
struct block_opt {
  std::size_t least = 256;

  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    matrix_shape grid = squarest_grid(shape, members);
    auto extent = [&](std::size_t of, std::size_t places) {
      std::size_t even = detail::tile_extent(div, of, places);
      return std::min(even, std::max(least, detail::tile_extent(div, of, 2 * places)));
    };
    return {{extent(shape.rows, grid.rows), extent(shape.columns, grid.columns)}, grid};
  }
};

/// Tiles of `tile`, on a grid of `grid` members. Either may have far::div in a direction: of a tile it divides the
/// matrix evenly, of the grid it stands for as many members as are left over by the other direction.
struct block_custom {
  matrix_shape tile{div, div};
  matrix_shape grid{div, div};

  constexpr matrix_blocks operator()(matrix_shape shape, rank_t members) const {
    matrix_shape places = grid;
    if (places.rows == div && places.columns == div) places = squarest_grid(shape, members);
    if (places.rows == div)
      places.rows = std::max<std::size_t>(1, members / std::max<std::size_t>(1, places.columns));
    if (places.columns == div)
      places.columns = std::max<std::size_t>(1, members / std::max<std::size_t>(1, places.rows));
    auto extent = [](std::size_t wanted, std::size_t of, std::size_t over) {
      return wanted == 0 || over == 0 ? wanted : detail::tile_extent(wanted, of, over);
    };
    return {{extent(tile.rows, shape.rows, places.rows),
             extent(tile.columns, shape.columns, places.columns)},
            places};
  }
};

/// Descriptors of three matrices that are multiplied, c (m x n) = a (m x k) * b (k x n), whose tiles fit each other.
struct multiply_blocks {
  block_custom a, b, c;
};

/// Tiles of c are those of block_rect; k is cut as often as the longer side of the grid, so that what a member fetches
/// at a time is about as large as what it holds.
constexpr multiply_blocks block_matmul(std::size_t m, std::size_t n, std::size_t k,
                                       rank_t members) {
  matrix_blocks c = block_rect()({m, n}, members);
  std::size_t depth = detail::tile_extent(div, k, std::max(c.grid.rows, c.grid.columns));
  return {{{c.tile.rows, depth}, c.grid}, {{depth, c.tile.columns}, c.grid}, {c.tile, c.grid}};
}

/// The tiles of a matrix of some shape: where they lie, and who has them.
class matrix_layout {
 public:
  /// Of nothing.
  matrix_layout() = default;

  /// Throws a usage_error if what the descriptor says is not possible. `name` is how the matrix is called in it.
  matrix_layout(const std::string& name, matrix_shape shape, matrix_blocks blocks, rank_t members);

  /// Of the matrix. Local; no communication.
  matrix_shape shape() const { return shape_; }
  /// How many tiles there are in each direction: none, if the matrix has no rows or no columns.
  matrix_shape grid_shape() const { return tiles_; }
  /// How many members there are in each direction.
  matrix_shape process_grid() const { return blocks_.grid; }
  /// Of all tiles but those at the edges.
  matrix_shape tile_shape() const { return blocks_.tile; }
  /// Of one tile.
  matrix_shape tile_shape(matrix_index tile) const {
    return {std::min(blocks_.tile.rows, shape_.rows - tile.row * blocks_.tile.rows),
            std::min(blocks_.tile.columns, shape_.columns - tile.column * blocks_.tile.columns)};
  }
  /// Where a tile begins in the matrix.
  matrix_index first_of(matrix_index tile) const {
    return {tile.row * blocks_.tile.rows, tile.column * blocks_.tile.columns};
  }
  /// In which tile an element is.
  matrix_index tile_of(matrix_index element) const {
    return {element.row / blocks_.tile.rows, element.column / blocks_.tile.columns};
  }
  /// The member that has a tile: a position in the team.
  rank_t owner(matrix_index tile) const {
    return static_cast<rank_t>((tile.row % blocks_.grid.rows) * blocks_.grid.columns +
                               tile.column % blocks_.grid.columns);
  }
  /// How many members have tiles, at most.
  rank_t holders() const { return static_cast<rank_t>(blocks_.grid.size()); }

  /// How many tiles a member has, and which tile its n-th is: row by row.
  std::size_t tiles_of(rank_t member) const {
    return member < holders() ? rows_of(member) * columns_of(member) : 0;
  }
  matrix_index tile_number(rank_t member, std::size_t n) const {
    std::size_t wide = columns_of(member);
    return {member / blocks_.grid.columns + n / wide * blocks_.grid.rows,
            member % blocks_.grid.columns + n % wide * blocks_.grid.columns};
  }
  /// The other way round: which of its owner's tiles a tile is.
  std::size_t number_of(matrix_index tile) const {
    return tile.row / blocks_.grid.rows * columns_of(owner(tile)) +
           tile.column / blocks_.grid.columns;
  }

  /// Calls work(tile) for each tile of a member.
  template <class Work>
  void for_each_tile(rank_t member, Work work) const {
    for (std::size_t n = 0, all = tiles_of(member); n < all; ++n) work(tile_number(member, n));
  }

  /// Whether matrices so laid out have the same tiles on the same members.
  bool operator==(const matrix_layout& other) const {
    return shape_ == other.shape_ && blocks_.tile == other.blocks_.tile &&
           blocks_.grid == other.blocks_.grid;
  }

 private:
  std::size_t rows_of(rank_t member) const {
    return tiles_before(tiles_.rows, member / blocks_.grid.columns, blocks_.grid.rows);
  }
  std::size_t columns_of(rank_t member) const {
    return tiles_before(tiles_.columns, member % blocks_.grid.columns, blocks_.grid.columns);
  }
  /// How many of 0 .. n - 1 leave the rest `place` when divided by `places`.
  static std::size_t tiles_before(std::size_t n, std::size_t place, std::size_t places) {
    return n <= place ? 0 : (n - place - 1) / places + 1;
  }

  matrix_shape shape_;
  matrix_blocks blocks_{{1, 1}, {1, 1}};
  matrix_shape tiles_;
};

inline matrix_layout::matrix_layout(const std::string& name, matrix_shape shape,
                                    matrix_blocks blocks, rank_t members)
    : shape_(shape), blocks_(blocks) {
  if (blocks.tile.rows == 0 || blocks.tile.columns == 0)
    detail::raise(name, ": tiles of ", blocks.tile,
                  " hold nothing. Give them a row and a column at least, or far::div.");
  if (blocks.grid.rows == 0 || blocks.grid.columns == 0 || blocks.grid.rows > members ||
      blocks.grid.columns > members / blocks.grid.rows)
    detail::raise(name, ": a grid of ", blocks.grid, " members cannot be made of a team of ",
                  members,
                  ". Give a grid that is not empty and has no more places than the team has "
                  "members, or far::div.");
  if (shape.rows != 0 && shape.columns > std::numeric_limits<std::size_t>::max() / 2 / shape.rows)
    detail::raise(name, ": a matrix of ", shape,
                  " has more elements than 64 bits count. Has a negative number become ",
                  "such a large one?");
  if (shape.size() != 0)
    tiles_ = {detail::divided_up(shape.rows, blocks.tile.rows),
              detail::divided_up(shape.columns, blocks.tile.columns)};
}

}  // namespace far::inline FARSIDE_BACKEND

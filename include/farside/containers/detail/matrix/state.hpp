// What dense and sparse distributed matrices have in common: a layout, and words for errors.
#pragma once

#include <farside/containers/matrix_layout.hpp>
#include <farside/containers/matrix_part.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/rma.hpp>

#include <string>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// Calls work(tile, rows in the tile, columns in the tile, where that begins in the slice) for
/// the part of each tile that a slice covers.
template <class Work>
void for_each_part(const matrix_layout& layout, index_range rows, index_range columns, Work work) {
  if (rows.size() == 0 || columns.size() == 0) return;
  const matrix_index first = layout.tile_of({rows.first, columns.first}),
                     last = layout.tile_of({rows.last - 1, columns.last - 1});
  for (std::size_t i = first.row; i <= last.row; ++i) {
    for (std::size_t j = first.column; j <= last.column; ++j) {
      const matrix_index begin = layout.first_of({i, j});
      const matrix_shape of = layout.tile_shape({i, j});
      auto cut = [](index_range wanted, std::size_t from, std::size_t n) {
        return index_range{std::max(wanted.first, from) - from,
                           std::min(wanted.last, from + n) - from};
      };
      index_range in_rows = cut(rows, begin.row, of.rows),
                  in_columns = cut(columns, begin.column, of.columns);
      work(matrix_index{i, j}, in_rows, in_columns,
           matrix_index{begin.row + in_rows.first - rows.first,
                        begin.column + in_columns.first - columns.first});
    }
  }
}

struct matrix_state : shared_state {
  template <class Descriptor>
  matrix_state(const char* kind, matrix_shape shape, const Descriptor& blocks,
               const container_options& with)
      : shared_state(kind, with),
        layout(full_name(), shape, blocks(shape, members.size()), members.size()) {}

  void require_element(const char* what, matrix_index at) const {
    if (!contains(layout.shape(), at)) [[unlikely]]
      raise(full_name(), ": ", what, " of element ", at, ", but it is ", layout.shape(),
            ". Rows and columns are counted from zero.");
  }
  void require_tile(const char* what, matrix_index tile) const {
    if (!contains(layout.grid_shape(), tile)) [[unlikely]]
      raise(full_name(), ": ", what, " of tile ", tile, ", but it has ", layout.grid_shape(),
            " tiles, counted from zero.");
  }
  void require_slice(const char* what, index_range rows, index_range columns) const {
    if (rows.first > rows.last || rows.last > layout.shape().rows || columns.first > columns.last ||
        columns.last > layout.shape().columns) [[unlikely]]
      raise(full_name(), ": ", what, " of rows ", rows.first, " to ", rows.last, " and columns ",
            columns.first, " to ", columns.last, ", but it is ", layout.shape(),
            ". A slice begins at its first row and column, and ends before its last ones.");
  }
  void require_mine(const char* what, matrix_index tile) const {
    require_tile(what, tile);
    if (layout.owner(tile) != members.rank()) [[unlikely]]
      raise(full_name(), ": ", what, " of tile ", tile, " on member ", members.rank(),
            " of its team, but member ", layout.owner(tile),
            " has it. Only the owner of a tile does that: see owner() and my_tiles().");
  }

  /// See detail::for_each_part.
  template <class Work>
  void for_each_part(index_range rows, index_range columns, Work work) const {
    detail::for_each_part(layout, rows, columns, work);
  }

  const matrix_layout layout;
};

/// Says that `bytes` of a tile of another rank were read through a view of it.
inline void note_viewed(rank_t owner, std::size_t bytes) {
  context& c = here();
  if (owner != c.link.rank()) note(c, operation::get, owner, bytes, false);
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

// Distributed matrices from files and generators, and into files, by one call.
//
//   using graph = far::sparse_matrix<double>;
//   auto a = far::load_matrix<graph>("graph.mtx", far::block_opt());              // collective
//   auto b = far::make_matrix<graph>(far::rmat({.scale = 14}), far::block_opt());
//   auto c = far::make_matrix<far::matrix<double>>(far::dense_random{512, 64});
//   far::save_matrix("graph.fsm", a);
//
// Each member reads its share of the file, or makes its share of the entries, and sends entries to the
// owners of their tiles. The matrix is the same for any number of members.
#pragma once

#include <farside/algorithms/detail/multiply/operand.hpp>
#include <farside/algorithms/matrix_files.hpp>
#include <farside/algorithms/matrix_generators.hpp>
#include <farside/core/detail/together.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

inline team members_of(const container_options& with) { return with.over ? with.over : world(); }

/// Which member has which element, of a matrix of this shape.
template <class Descriptor>
auto owners_in(const matrix_shape& shape, const Descriptor& blocks, const container_options& with) {
  const rank_t members = members_of(with).size();
  const matrix_layout layout("a matrix", shape, blocks(shape, members), members);
  return [layout](std::size_t row, std::size_t column) {
    return layout.owner(layout.tile_of({row, column}));
  };
}

/// Collective: a matrix without entries becomes that of these entries, which each member owns.
template <class M, class T>
void fill_with(M& m, std::vector<triplet<T>> mine, const std::string& what) {
  do_together(
      m.members(), what,
      [&] {
        if constexpr (is_dense_matrix<M>) {
          for (const triplet<T>& e : mine) *m.element_ptr({e.row, e.column}).local() = e.value;
        } else {
          const matrix_layout& layout = m.layout();
          std::vector<std::vector<triplet<T>>> of_tile(layout.tiles_of(m.members().rank()));
          std::vector<std::size_t> count(of_tile.size());
          for (const triplet<T>& e : mine)
            ++count[layout.number_of(layout.tile_of(matrix_index{e.row, e.column}))];
          for (std::size_t n = 0; n < count.size(); ++n) of_tile[n].reserve(count[n]);
          for (const triplet<T>& e : mine) {
            const matrix_index tile = layout.tile_of(matrix_index{e.row, e.column}),
                               first = layout.first_of(tile);
            of_tile[layout.number_of(tile)].push_back(
                {e.row - first.row, e.column - first.column, e.value});
          }
          mine = {};
          for (std::size_t n = 0; n < of_tile.size(); ++n) {
            if (of_tile[n].empty()) continue;
            const matrix_index tile = layout.tile_number(m.members().rank(), n);
            const auto entries = std::exchange(of_tile[n], {});
            m.set_tile(tile, csr<T, typename M::index_type>::from_triplets(layout.tile_shape(tile),
                                                                           entries));
          }
        }
      },
      [] {});
  if constexpr (is_dense_matrix<M>)
    barrier(m.members());
  else
    m.publish();
}

}  // namespace detail

/// Collective. A far::matrix or far::sparse_matrix of what a file holds; elements that a dense matrix
/// has and the file has not are zero. Costs what read_matrix does, and a pass over the entries;
/// memory three times for the entries owned, meanwhile. Throws matrix_file_error on all members if
/// the file is not what it should be, far::allocation_error if a member has no room.
template <detail::distributed_matrix M, block_descriptor Descriptor = block_rect>
M load_matrix(const std::string& path, const Descriptor& blocks = {},
              const container_options& with = {}, const matrix_read_options& options = {},
              std::optional<matrix_format> format = std::nullopt) {
  auto read = read_matrix<typename M::value_type>(
      path, [&](const matrix_shape& shape) { return detail::owners_in(shape, blocks, with); },
      options, detail::members_of(with), format);
  M result(read.shape, blocks, with);
  detail::fill_with(result, std::move(read.entries), path);
  return result;
}

/// Collective. A far::matrix or far::sparse_matrix of what a generator makes; elements that a dense
/// matrix has and the generator has not are zero. Costs what generate does, and a pass over the
/// entries. Throws far::allocation_error on all members if one has no room.
template <detail::distributed_matrix M, matrix_generator G,
          block_descriptor Descriptor = block_rect>
M make_matrix(const G& generator, const Descriptor& blocks = {},
              const container_options& with = {}) {
  using T = typename M::value_type;
  const matrix_shape shape = generator.shape();
  M result(shape, blocks, with);
  detail::fill_with(
      result, generate<T>(generator, detail::owners_in(shape, blocks, with), result.members()),
      "a matrix that is made");
  return result;
}

/// Collective. Writes a matrix in the format that the name ends in: the same file for any number of
/// members and any layout. A dense matrix becomes Matrix Market's array form, or, where the name says
/// another format or .gz, all of its elements are entries. Each member fetches an even part of the
/// rows, as a slice, and writes it: memory for that, three times of a sparse matrix. Throws
/// matrix_file_error on all members.
template <detail::distributed_matrix M>
void save_matrix(const std::string& path, const M& m, const matrix_write_options& options = {},
                 std::optional<matrix_format> format = std::nullopt) {
  using T = typename M::value_type;
  const team& over = m.members();
  const matrix_format as = detail::require_format(path, format);
  const matrix_shape shape = m.shape();
  const index_range rows = even_part(shape.rows, over.rank(), over.size()),
                    columns{0, shape.columns};
  barrier(over);
  std::vector<triplet<T>> mine;
  if constexpr (detail::is_dense_matrix<M>) {
    dense<T> part;
    detail::throw_together(detail::problem_of([&] {
                             part = m.slice(rows, columns);
                             return std::string();
                           }),
                           over);
    if (as == matrix_format::market && !path.ends_with(".gz"))
      return write_matrix_array<T>(path, shape, {rows, columns}, part.view(), options, over);
    mine.reserve(rows.size() * shape.columns);
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t j = 0; j < shape.columns; ++j)
        mine.push_back({rows.first + i, j, part[{i, j}]});
  } else {
    detail::throw_together(detail::problem_of([&] {
                             const auto part = m.slice(rows, columns);
                             mine.reserve(part.nnz());
                             for (auto [at, value] : part.view())
                               mine.push_back({rows.first + at.row, at.column, value});
                             return std::string();
                           }),
                           over);
  }
  write_matrix<T>(path, shape, rows, mine, options, over, as);
}

}  // namespace far::inline FARSIDE_BACKEND

// What `farside matrix show` says of a matrix.
#pragma once

#include <farside/algorithms/matrix_files.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace matrix_program {

/// How many entries there are in the cells of a grid that is laid over a matrix.
struct raster {
  std::size_t rows = 0, columns = 0;
  std::vector<std::uint64_t> counts;

  /// Of even parts; no more of them than the matrix has rows and columns.
  raster(const far::matrix_shape& shape, std::size_t most_rows, std::size_t most_columns)
      : rows(std::min(shape.rows, most_rows)),
        columns(std::min(shape.columns, most_columns)),
        counts(rows * columns),
        shape_(shape) {}

  void add(std::size_t row, std::size_t column) {
    ++counts[far::even_part_of(shape_.rows, row, rows) * columns +
             far::even_part_of(shape_.columns, column, columns)];
  }
  /// Collective.
  void finish() {
    if (!counts.empty()) far::all_reduce(std::span(counts), std::plus<>());
  }
  std::uint64_t at(std::size_t row, std::size_t column) const {
    return counts[row * columns + column];
  }
  /// How many places of the matrix a cell has.
  double places(std::size_t row, std::size_t column) const {
    return static_cast<double>(far::even_part(shape_.rows, row, rows).size()) *
           static_cast<double>(far::even_part(shape_.columns, column, columns).size());
  }
  const far::matrix_shape& shape() const { return shape_; }

 private:
  far::matrix_shape shape_;
};

struct matrix_figures {
  std::uint64_t entries = 0, on_diagonal = 0, zeros = 0, not_finite = 0;
  std::uint64_t least = 0, most = 0;        ///< entries of a row
  std::array<std::uint64_t, 65> degrees{};  ///< [i]: rows with 2^(i - 1) entries up to 2^i - 1
  std::uint64_t below = 0, above = 0;       ///< how far from the diagonal
  bool symmetric = false, pattern_symmetric = false, skew_symmetric = false, hermitian = false;
  double low = INFINITY, high = -INFINITY;  ///< of values that can be compared
};

/// Collective. Of entries in the order of rows; `rows` are those that this rank has.
template <class T>
matrix_figures figures_of(const far::matrix_shape& shape, const far::index_range& rows,
                          std::span<const far::triplet<T>> mine) {
  matrix_figures f;
  std::uint64_t least = shape.rows == 0 ? 0 : ~std::uint64_t{0}, seen = 0;
  auto row_ends = [&](std::uint64_t degree) {
    ++f.degrees[static_cast<std::size_t>(std::bit_width(degree))];
    least = std::min(least, degree);
    f.most = std::max(f.most, degree);
    ++seen;
  };
  std::vector<far::triplet<bool>> places;
  places.reserve(mine.size());
  std::uint64_t degree = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto& [row, column, value] = mine[i];
    ++degree;
    if (i + 1 == mine.size() || mine[i + 1].row != row) row_ends(std::exchange(degree, 0));
    if (row == column) ++f.on_diagonal;
    if (row > column) f.below = std::max<std::uint64_t>(f.below, row - column);
    if (column > row) f.above = std::max<std::uint64_t>(f.above, column - row);
    if (value == T{}) ++f.zeros;
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) ++f.not_finite;
    }
    if constexpr (far::is_complex<T>) {
      if (!std::isfinite(value.real()) || !std::isfinite(value.imag())) ++f.not_finite;
    } else {
      f.low = std::min(f.low, static_cast<double>(value));
      f.high = std::max(f.high, static_cast<double>(value));
    }
    places.push_back({row, column, true});
  }
  const std::uint64_t empty = rows.size() - seen;
  if (empty != 0) least = 0, f.degrees[0] = empty;
  for (auto* sum : {&f.on_diagonal, &f.zeros, &f.not_finite}) *sum = far::all_reduce(*sum);
  for (auto* most : {&f.most, &f.below, &f.above}) *most = far::all_reduce(*most, far::maximum());
  f.entries = far::all_reduce(std::uint64_t{mine.size()});
  f.least = far::all_reduce(least, far::minimum());
  far::all_reduce(std::span<std::uint64_t>(f.degrees), std::plus<>());
  f.low = far::all_reduce(f.low, far::minimum());
  f.high = far::all_reduce(f.high, far::maximum());
  if (shape.rows != shape.columns) return f;
  using far::matrix_symmetry;
  const far::team& all = far::world();
  f.pattern_symmetric = far::has_symmetry<bool>(places, matrix_symmetry::symmetric, all);
  if (!f.pattern_symmetric) return f;
  f.symmetric = far::has_symmetry<T>(mine, matrix_symmetry::symmetric, all);
  if constexpr (!std::is_same_v<T, bool>)
    f.skew_symmetric =
        f.on_diagonal == 0 && far::has_symmetry<T>(mine, matrix_symmetry::skew_symmetric, all);
  if constexpr (far::is_complex<T>)
    f.hermitian = far::has_symmetry<T>(mine, matrix_symmetry::hermitian, all);
  return f;
}

}  // namespace matrix_program

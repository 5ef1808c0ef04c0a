// Matrices that are made row by row: a row depends on its number and the seed alone. A rank makes
// its own rows, and nobody communicates.
//
//   far::laplacian_2d grid{.nx = 1024, .ny = 1024};
//   grid.row<double>(r, [&](std::size_t column, double value) { ... });  // by increasing columns
//
// Each has shape(); row<T>(r, emit); and row_bound(), which no row has more entries than.
#pragma once

#include <farside/algorithms/matrix_generators/values.hpp>
#include <farside/containers/matrix_shape.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// G(n, p): each of the n x n places has an entry with the same probability, degree / n. A row
/// takes time for its entries only: it jumps from one to the next.
struct erdos_renyi {
  std::size_t n = 0;
  double degree = 0;  ///< how many entries a row has on average
  std::uint64_t seed = 1;
  entry_values values{};

  /// Local; no communication.
  matrix_shape shape() const { return {n, n}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return n; }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    if (degree <= 0) return;
    const double all = static_cast<double>(n);
    if (degree >= all) {
      for (std::size_t c = 0; c < n; ++c) emit(c, values.at<T>(r, c));
      return;
    }
    const double scale = 1 / std::log1p(-degree / all);
    detail::numbered_random random(seed, r);
    for (std::size_t next = 0;;) {
      double gap = std::floor(std::log1p(-random.unit()) * scale);
      if (gap >= static_cast<double>(n - next)) return;
      std::size_t c = next + static_cast<std::size_t>(gap);
      emit(c, values.at<T>(r, c));
      next = c + 1;
    }
  }
};

/// Each row has `per_row` entries at different columns, all choices being equally likely; or all
/// columns, if there are not so many.
struct random_rows {
  std::size_t rows = 0, columns = 0, per_row = 0;
  std::uint64_t seed = 1;
  entry_values values{};

  /// Local; no communication.
  matrix_shape shape() const { return {rows, columns}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return std::min(per_row, columns); }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    const std::size_t count = row_bound();
    detail::permutation shuffled(columns, detail::hash_append(detail::mix(seed), r));
    std::vector<std::size_t> chosen(count);
    for (std::size_t i = 0; i < count; ++i) chosen[i] = shuffled(i);
    std::sort(chosen.begin(), chosen.end());
    for (std::size_t c : chosen) emit(c, values.at<T>(r, c));
  }
};

/// All places from `lower` below the diagonal to `upper` above it have an entry.
struct banded {
  std::size_t rows = 0, columns = 0, lower = 0, upper = 0;
  entry_values values{};

  /// Local; no communication.
  matrix_shape shape() const { return {rows, columns}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const {
    return std::min(columns, std::min(columns, lower) + std::min(columns, upper) + 1);
  }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    std::size_t first = r > lower ? r - lower : 0;
    std::size_t last = upper < columns ? std::min(columns, r + upper + 1) : columns;
    for (std::size_t c = first; c < last; ++c) emit(c, values.at<T>(r, c));
  }
};

/// The n x n matrix with `value` on its diagonal: of 1, the identity.
struct diagonal {
  std::size_t n = 0;
  double value = 1;

  /// Local; no communication.
  matrix_shape shape() const { return {n, n}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return 1; }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    emit(r, T(value));
  }
};

/// Every place has an entry.
struct dense_random {
  std::size_t rows = 0, columns = 0;
  /// From 0 to 1, unless told otherwise. Local; no communication.
  entry_values values{entry_values::uniform()};

  /// Local; no communication.
  matrix_shape shape() const { return {rows, columns}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return columns; }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    for (std::size_t c = 0; c < columns; ++c) emit(c, values.at<T>(r, c));
  }
};

/// The five-point Laplacian of a grid of nx x ny points, with zeros around it: 4 on the diagonal,
/// -1 for each neighbour. Point (x, y) has number x + nx y.
struct laplacian_2d {
  std::size_t nx = 0, ny = 0;

  /// Local; no communication.
  matrix_shape shape() const { return {nx * ny, nx * ny}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return 5; }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    const std::size_t x = r % nx, y = r / nx;
    if (y > 0) emit(r - nx, T(-1));
    if (x > 0) emit(r - 1, T(-1));
    emit(r, T(4));
    if (x + 1 < nx) emit(r + 1, T(-1));
    if (y + 1 < ny) emit(r + nx, T(-1));
  }
};

/// The seven-point Laplacian of a grid of nx x ny x nz points, with zeros around it: 6 on the
/// diagonal, -1 for each neighbour. Point (x, y, z) has number x + nx (y + ny z).
struct laplacian_3d {
  std::size_t nx = 0, ny = 0, nz = 0;

  /// Local; no communication.
  matrix_shape shape() const { return {nx * ny * nz, nx * ny * nz}; }
  /// No row has more entries. Local; no communication.
  std::size_t row_bound() const { return 7; }

  /// Calls `emit(column, value)` for each entry of row r, by increasing columns. Local; no
  /// communication.
  template <class T, class Emit>
  void row(std::size_t r, Emit&& emit) const {
    const std::size_t x = r % nx, y = r / nx % ny, z = r / nx / ny, layer = nx * ny;
    if (z > 0) emit(r - layer, T(-1));
    if (y > 0) emit(r - nx, T(-1));
    if (x > 0) emit(r - 1, T(-1));
    emit(r, T(6));
    if (x + 1 < nx) emit(r + 1, T(-1));
    if (y + 1 < ny) emit(r + nx, T(-1));
    if (z + 1 < nz) emit(r + layer, T(-1));
  }
};

}  // namespace far::inline FARSIDE_BACKEND

// Parts of matrices: ranges of rows or columns, and rectangles.
#pragma once

#include <farside/containers/matrix_shape.hpp>

#include <cstddef>

namespace far::inline FARSIDE_BACKEND {

/// Numbers from `first` up to, but without, `last`.
struct index_range {
  std::size_t first = 0, last = 0;

  /// Local; no communication.
  constexpr std::size_t size() const { return last - first; }
  /// Local; no communication.
  constexpr bool contains(std::size_t i) const { return i >= first && i < last; }
  bool operator==(const index_range&) const = default;
};

/// The `part`-th of `parts` pieces of 0 .. n - 1, whose sizes differ by one at most. Local; no
/// communication.
constexpr index_range even_part(std::size_t n, std::size_t part, std::size_t parts) {
  __extension__ using wide = unsigned __int128;
  auto cut = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<wide>(n) * i / parts);
  };
  return {cut(part), cut(part + 1)};
}

/// Which of the `parts` even parts of 0 .. n - 1 has number i. Local; no communication.
constexpr std::size_t even_part_of(std::size_t n, std::size_t i, std::size_t parts) {
  // The last part that begins at i or before: floor(n p / parts) <= i is n p < (i + 1) parts.
  std::size_t product;
  if (!__builtin_mul_overflow(i + 1, parts, &product)) return (product - 1) / n;
  __extension__ using wide = unsigned __int128;  // whose division takes long
  return static_cast<std::size_t>(((static_cast<wide>(i) + 1) * parts - 1) / n);
}

/// A rectangle of a matrix.
struct matrix_part {
  index_range rows, columns;

  /// Local; no communication.
  constexpr bool contains(const matrix_index& at) const {
    return rows.contains(at.row) && columns.contains(at.column);
  }
  bool operator==(const matrix_part&) const = default;
};

/// All of it. Local; no communication.
constexpr matrix_part whole_of(const matrix_shape& shape) {
  return {{0, shape.rows}, {0, shape.columns}};
}

}  // namespace far::inline FARSIDE_BACKEND

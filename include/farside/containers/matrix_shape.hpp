// far::matrix_shape and far::matrix_index: how large a matrix is, and a place in it.
//
// Both are 64 bits wide in each direction, whatever a matrix stores its column indices in: a tile
// of 2^31 columns at most may stand at any place of a matrix of any size.
#pragma once

#include <farside/base/error.hpp>

#include <compare>
#include <cstddef>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// Rows and columns of a matrix, a tile or a grid. Local; no communication.
struct matrix_shape {
  std::size_t rows = 0, columns = 0;

  /// How many elements a dense matrix of this shape has. Local; no communication.
  constexpr std::size_t size() const { return rows * columns; }
  bool operator==(const matrix_shape&) const = default;
};

/// A place in a matrix, counted from zero. Ordered by rows, then by columns. Local; no
/// communication.
struct matrix_index {
  std::size_t row = 0, column = 0;

  auto operator<=>(const matrix_index&) const = default;
};

/// Whether the place lies in a matrix of this shape. Local; no communication.
constexpr bool contains(const matrix_shape& shape, const matrix_index& at) {
  return at.row < shape.rows && at.column < shape.columns;
}

/// As in messages: "3 x 4". Local; no communication.
inline std::string to_text(const matrix_shape& shape) {
  return text(shape.rows, " x ", shape.columns);
}
/// As in messages: "(3, 4)". Local; no communication.
inline std::string to_text(const matrix_index& at) {
  return text("(", at.row, ", ", at.column, ")");
}

}  // namespace far::inline FARSIDE_BACKEND

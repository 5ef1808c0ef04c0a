// What a dense product reads: a matrix_view, or the transpose of one.
#pragma once

#include <farside/containers/matrix_view.hpp>

namespace far::inline FARSIDE_BACKEND {

/// A dense matrix whose rows are to be read as columns. Only a view: nothing moves. Local; no
/// communication.
template <class T>
struct transposed_view {
  matrix_view<T> of;

  /// Rows and columns of the transpose. Local; no communication.
  matrix_shape shape() const { return {of.columns(), of.rows()}; }
};

/// The transpose of a dense matrix, as an operand of gemm. Local; no communication.
template <class T>
transposed_view<const T> transpose(matrix_view<T> of) {
  return {of};
}

namespace detail {

/// A matrix that is only read: element (i, j) lies at data[i * row_step + j * column_step].
template <class T>
struct strided_operand {
  const T* data;
  std::size_t row_step, column_step;

  strided_operand(matrix_view<const T> m)
      : data(m.data()), row_step(m.leading_dimension()), column_step(1) {}
  strided_operand(transposed_view<const T> m)
      : data(m.of.data()), row_step(1), column_step(m.of.leading_dimension()) {}

  const T* at(std::size_t i, std::size_t j) const { return data + i * row_step + j * column_step; }
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

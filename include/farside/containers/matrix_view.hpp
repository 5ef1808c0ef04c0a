// far::matrix_view<T>: a dense matrix, or a part of one, that lies in memory which this process can
// load.
//
//   far::matrix_view<double> c(memory, {rows, columns});
//   c[{i, j}] = 1;
//   auto corner = c.submatrix({0, 0}, {2, 2});        // elements of c, not copies
//
// Rows lie one after another. The leading dimension is how many elements lie between the beginnings
// of two rows: the number of columns, or more in a part of a wider matrix.
//
//   row 0   e e e e - - -      shape {2, 4}, leading dimension 7
//   row 1   e e e e - - -
//
// A view owns nothing and is as cheap to copy as a pointer. T may be const. Everything is local.
#pragma once

#include <farside/containers/matrix_shape.hpp>

#include <span>
#include <type_traits>
#include <version>
#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

namespace far::inline FARSIDE_BACKEND {

template <class T>
class matrix_view {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  /// Of no elements. Local; no communication.
  matrix_view() = default;

  /// Of elements that lie without gaps. Local; no communication.
  matrix_view(T* data, matrix_shape shape) : matrix_view(data, shape, shape.columns) {}

  /// With `leading_dimension` elements from the beginning of a row to that of the next. Local; no
  /// communication.
  matrix_view(T* data, matrix_shape shape, std::size_t leading_dimension)
      : data_(data), shape_(shape), leading_dimension_(leading_dimension) {
    if (leading_dimension < shape.columns)
      detail::raise("a matrix_view of ", shape, " was given the leading dimension ",
                    leading_dimension,
                    ", so that its rows would overlap. It is the number of elements from the "
                    "beginning of a row to that of the next: give ",
                    shape.columns, " or more.");
  }

  /// A view of const elements. Local; no communication.
  operator matrix_view<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data_, shape_, leading_dimension_};
  }

  /// The first element. Local; no communication.
  T* data() const { return data_; }
  /// How large it is. Local; no communication.
  matrix_shape shape() const { return shape_; }
  std::size_t rows() const { return shape_.rows; }
  std::size_t columns() const { return shape_.columns; }
  std::size_t leading_dimension() const { return leading_dimension_; }
  /// Whether no gaps lie between rows. Local; no communication.
  bool contiguous() const { return leading_dimension_ == shape_.columns || shape_.rows <= 1; }

  /// An element. Its place must lie in the matrix; checked builds verify it. Local; no
  /// communication.
  T& operator[](matrix_index at) const {
    if (FARSIDE_CHECKED && !contains(shape_, at))
      detail::raise("element ", at, " of a matrix_view of ", shape_,
                    " was accessed. Rows and columns are counted from zero.");
    return data_[at.row * leading_dimension_ + at.column];
  }

  /// The elements of a row, which lie side by side. Local; no communication.
  std::span<T> row(std::size_t i) const {
    if (FARSIDE_CHECKED && i >= shape_.rows)
      detail::raise("row ", i, " of a matrix_view of ", shape_,
                    " was accessed. Rows are counted from zero.");
    return {data_ + i * leading_dimension_, shape_.columns};
  }

  /// The part of this shape whose first element lies at `first`. Local; no communication.
  matrix_view submatrix(matrix_index first, matrix_shape shape) const {
    if (first.row > shape_.rows || shape.rows > shape_.rows - first.row ||
        first.column > shape_.columns || shape.columns > shape_.columns - first.column)
      detail::raise("a submatrix of ", shape, " at ", first, " does not lie in a matrix_view of ",
                    shape_, ". Take less of it, or begin further up or left.");
    if (shape.size() == 0) return {data_, shape, leading_dimension_};
    return {&(*this)[first], shape, leading_dimension_};
  }

#if defined(__cpp_lib_mdspan)
  /// The same elements as a view of the standard library. Local; no communication.
  operator std::mdspan<T, std::dextents<std::size_t, 2>, std::layout_stride>() const {
    std::dextents<std::size_t, 2> extents(shape_.rows, shape_.columns);
    std::array<std::size_t, 2> strides{leading_dimension_, 1};
    return {data_, {extents, strides}};
  }
#endif

 private:
  T* data_ = nullptr;
  matrix_shape shape_;
  std::size_t leading_dimension_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND

// far::dense<T>: a dense matrix that owns its memory, on one rank.
//
//   far::dense<double> block({3, 4}, 0.0);
//   block[{1, 2}] = 5;
//   far::matrix_view<double> view = block;
//
// Rows lie one after another without gaps. What far::matrix::slice gives is one, and what
// far::matrix::put_slice takes is a view of one.
//
// Everything is local. Any number of threads may read one at the same time.
#pragma once

#include <farside/containers/detail/plain_array.hpp>
#include <farside/containers/matrix_view.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class dense {
 public:
  using value_type = T;

  /// Of no elements. Local; no communication.
  dense() = default;
  /// Elements have no values yet. Local; no communication.
  explicit dense(matrix_shape shape) : shape_(shape), elements_(shape.size()) {}
  /// All elements are `value`. Local; no communication.
  dense(matrix_shape shape, const T& value) : dense(shape) {
    std::fill(elements_.begin(), elements_.end(), value);
  }
  /// A copy of what a view shows. Local; no communication.
  explicit dense(matrix_view<const T> of) : dense(of.shape()) {
    for (std::size_t i = 0; i < shape_.rows; ++i)
      std::ranges::copy(of.row(i), elements_.data() + i * shape_.columns);
  }

  /// Rows and columns, and where the elements begin. Local; no communication.
  matrix_shape shape() const { return shape_; }
  std::size_t rows() const { return shape_.rows; }
  std::size_t columns() const { return shape_.columns; }
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }

  /// Views are valid as long as the matrix, also when that is moved. Local; no communication.
  matrix_view<T> view() & { return {elements_.data(), shape_}; }
  matrix_view<const T> view() const& { return {elements_.data(), shape_}; }
  void view() const&& = delete;  ///< of a temporary: it would end before the view. Name it first
  operator matrix_view<T>() { return view(); }
  operator matrix_view<const T>() const { return view(); }

  /// An element. Checked builds verify that it is there. Local; no communication.
  T& operator[](matrix_index at) { return view()[at]; }
  const T& operator[](matrix_index at) const { return view()[at]; }
  std::span<T> row(std::size_t i) { return view().row(i); }
  std::span<const T> row(std::size_t i) const { return view().row(i); }

  /// Rows become columns. Local; no communication.
  dense transposed() const {
    dense result({shape_.columns, shape_.rows});
    constexpr std::size_t block = 16;  // both sides of it stay in the first cache
    for (std::size_t i = 0; i < shape_.rows; i += block)
      for (std::size_t j = 0; j < shape_.columns; j += block)
        for (std::size_t r = i; r < std::min(i + block, shape_.rows); ++r)
          for (std::size_t c = j; c < std::min(j + block, shape_.columns); ++c)
            result.data()[c * shape_.rows + r] = data()[r * shape_.columns + c];
    return result;
  }

  /// Whether shapes and all elements are equal. Local; no communication.
  friend bool operator==(const dense& a, const dense& b) {
    return a.shape_ == b.shape_ && std::ranges::equal(a.elements_, b.elements_);
  }

 private:
  matrix_shape shape_;
  detail::plain_array<T> elements_;
};

}  // namespace far::inline FARSIDE_BACKEND

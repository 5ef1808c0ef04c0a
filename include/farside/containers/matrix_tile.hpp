// far::matrix_tile<T>: a tile of a far::matrix, to be read: a view of it where this process can load
// the memory that it lies in, else a copy of it.
#pragma once

#include <farside/containers/dense.hpp>

#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class matrix_tile {
 public:
  using value_type = T;

  /// Of no elements. Local; no communication.
  matrix_tile() = default;
  /// For the library: a view of the tile itself, or a copy. Local; no communication.
  explicit matrix_tile(matrix_view<const T> of) : view_(of) {}
  explicit matrix_tile(dense<T> copy)
      : copy_(std::make_unique<dense<T>>(std::move(copy))), view_(std::as_const(*copy_)) {}

  /// What to read. Valid as long as this object; of a view, as long as the tile is not changed.
  /// Local; no communication.
  matrix_view<const T> view() const& { return view_; }
  void view() const&& = delete;  ///< of a temporary: it would end before the view. Name it first
  operator matrix_view<const T>() const { return view_; }
  matrix_shape shape() const { return view_.shape(); }
  const T& operator[](matrix_index at) const { return view_[at]; }
  std::span<const T> row(std::size_t i) const { return view_.row(i); }
  /// Whether it was copied here. Local; no communication.
  bool is_copy() const { return copy_ != nullptr; }

 private:
  std::unique_ptr<dense<T>> copy_;  // in memory that stays where it is when this object is moved
  matrix_view<const T> view_;
};

}  // namespace far::inline FARSIDE_BACKEND

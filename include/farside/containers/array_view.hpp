// far::array_view<T, N>: a block of a far::global_array that lies in memory which this process can
// load, with the ghosts around it.
//
//   auto mine = f.local();
//   for (std::ptrdiff_t i = 0; i < mine.extent(0); ++i)
//     for (std::ptrdiff_t j = 0; j < mine.extent(1); ++j)
//       sum += mine[{i - 1, j}] + mine[{i + 1, j}];       // with ghosts, also at the edges
//
// Indices are counted from the first element of the block; ghosts are below zero, and at the extent
// and above. A view owns nothing and is as cheap to copy as a few numbers. Everything is local.
#pragma once

#include <farside/containers/array_index.hpp>

#include <span>

namespace far::inline FARSIDE_BACKEND {

template <class T, std::size_t N>
class array_view {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  /// Of no elements. Local; no communication.
  array_view() = default;
  /// Of a block whose first element lies at `data`, in memory that is wider by `ghosts` on both
  /// sides in each dimension. Local; no communication.
  array_view(T* data, const patch<N>& block, const array_index<N>& ghosts)
      : data_(data), block_(block), ghosts_(ghosts) {
    std::ptrdiff_t stride = 1;
    for (std::size_t d = N; d-- > 0;) {
      strides_[d] = stride;
      stride *= static_cast<std::ptrdiff_t>(block.extent(d)) + 2 * ghosts[d];
    }
  }

  /// The first element that is no ghost. Local; no communication.
  T* data() const { return data_; }
  /// Which places of the array these are. Local; no communication.
  const patch<N>& block() const { return block_; }
  std::ptrdiff_t extent(std::size_t dimension) const {
    return static_cast<std::ptrdiff_t>(block_.extent(dimension));
  }
  std::size_t size() const { return block_.size(); }
  bool empty() const { return block_.empty(); }
  /// How many ghosts there are on each side, in each dimension. Local; no communication.
  const array_index<N>& ghosts() const { return ghosts_; }
  /// From an element to its next one in a dimension, counted in elements. Local; no communication.
  std::ptrdiff_t stride(std::size_t dimension) const { return strides_[dimension]; }

  /// An element, or a ghost. It must be there; checked builds verify it. Local; no communication.
  T& operator[](const array_index<N>& at) const {
    std::ptrdiff_t place = 0;
    for (std::size_t d = 0; d < N; ++d) {
      if (FARSIDE_CHECKED && (at[d] < -ghosts_[d] || at[d] >= extent(d) + ghosts_[d]))
        detail::raise("element ", at, " of a view of ", block_, " with ", ghosts_,
                      " ghosts was accessed. Indices are counted from the first element of the "
                      "block.");
      place += at[d] * strides_[d];
    }
    return data_[place];
  }
  /// The element at a place of the array. Local; no communication.
  T& at(const array_index<N>& place) const {
    array_index<N> here = place;
    for (std::size_t d = 0; d < N; ++d) here[d] -= block_.first[d];
    return (*this)[here];
  }
  /// Calls f(place in the array, element) for each element that is no ghost. Local; no
  /// communication.
  template <class F>
  void for_each(F f) const {
    for_each_index(block_, [&](const array_index<N>& place) { f(place, at(place)); });
  }
  /// Calls f(place in the array, elements) for each row: those that lie side by side. Local; no
  /// communication.
  template <class F>
  void for_each_row(const patch<N>& of, F f) const {
    patch<N> part = intersection(of, block_);
    if (part.empty()) return;
    const std::size_t wide = part.extent(N - 1);
    part.last[N - 1] = part.first[N - 1] + 1;
    for_each_index(part,
                   [&](const array_index<N>& place) { f(place, std::span<T>(&at(place), wide)); });
  }

 private:
  T* data_ = nullptr;
  patch<N> block_{};
  array_index<N> ghosts_{}, strides_{};
};

}  // namespace far::inline FARSIDE_BACKEND

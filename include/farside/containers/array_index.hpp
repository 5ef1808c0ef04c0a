// far::array_index<N> and far::patch<N>: a place in a far::global_array, and a box of places.
//
//   far::patch<2> top{{0, 0}, {1, n}};            // the first row: from its first place on, up to
//                                                 // its last one, which does not belong to it
//   top.size();                                   // n
//
// The last index is the one whose neighbours lie side by side in memory. Indices may be negative:
// far::global_array::periodic_get takes them, and views of ghosts do. Everything is local.
#pragma once

#include <farside/base/error.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// A place in an array of N dimensions, or how large it is in each of them. Local; no communication.
template <std::size_t N>
struct array_index {
  static_assert(N >= 1 && N <= 8, "far::global_array has 1 to 8 dimensions");

  /// All zero. Local; no communication.
  constexpr array_index() = default;
  /// Of N integers of any types. Local; no communication.
  template <std::integral... Integers>
    requires(sizeof...(Integers) == N)
  constexpr array_index(Integers... values) : at{static_cast<std::ptrdiff_t>(values)...} {}

  constexpr std::ptrdiff_t& operator[](std::size_t dimension) { return at[dimension]; }
  constexpr std::ptrdiff_t operator[](std::size_t dimension) const { return at[dimension]; }
  auto operator<=>(const array_index&) const = default;

  std::array<std::ptrdiff_t, N> at{};
};

/// As in messages: "(3, 4)". Local; no communication.
template <std::size_t N>
std::string to_text(const array_index<N>& index) {
  std::string result;
  for (std::ptrdiff_t i : index.at) result += (result.empty() ? "(" : ", ") + std::to_string(i);
  return result + ")";
}

/// The places from `first` up to `last`, which is outside in each dimension. Local; no
/// communication.
template <std::size_t N>
struct patch {
  array_index<N> first, last;

  /// How far it reaches in one dimension. Local; no communication.
  constexpr std::size_t extent(std::size_t dimension) const {
    return last[dimension] > first[dimension]
               ? static_cast<std::size_t>(last[dimension] - first[dimension])
               : 0;
  }
  /// Likewise, in all. Local; no communication.
  constexpr array_index<N> extents() const {
    array_index<N> result;
    for (std::size_t d = 0; d < N; ++d) result[d] = static_cast<std::ptrdiff_t>(extent(d));
    return result;
  }
  /// How many places it has. Local; no communication.
  constexpr std::size_t size() const {
    std::size_t result = 1;
    for (std::size_t d = 0; d < N; ++d) result *= extent(d);
    return result;
  }
  /// Whether it has none. Local; no communication.
  constexpr bool empty() const { return size() == 0; }
  /// Whether all places of `other` are in it. Local; no communication.
  constexpr bool contains(const patch& other) const {
    for (std::size_t d = 0; d < N; ++d)
      if (other.first[d] < first[d] || other.last[d] > last[d] || other.first[d] > other.last[d])
        return false;
    return true;
  }
  constexpr bool contains(const array_index<N>& place) const {
    for (std::size_t d = 0; d < N; ++d)
      if (place[d] < first[d] || place[d] >= last[d]) return false;
    return true;
  }
  bool operator==(const patch&) const = default;
};

/// The places that are in both. Local; no communication.
template <std::size_t N>
constexpr patch<N> intersection(const patch<N>& a, const patch<N>& b) {
  patch<N> result;
  for (std::size_t d = 0; d < N; ++d) {
    result.first[d] = std::max(a.first[d], b.first[d]);
    result.last[d] = std::max(result.first[d], std::min(a.last[d], b.last[d]));
  }
  return result;
}

/// The same box elsewhere: `by` further on in each dimension. Local; no communication.
template <std::size_t N>
constexpr patch<N> shifted(patch<N> p, const array_index<N>& by) {
  for (std::size_t d = 0; d < N; ++d) p.first[d] += by[d], p.last[d] += by[d];
  return p;
}

/// Calls work(index) for each place of it, the last index changing first. Local; no communication.
template <std::size_t N, class Work>
void for_each_index(const patch<N>& p, Work work) {
  if (p.empty()) return;
  array_index<N> at = p.first;
  for (;;) {
    work(std::as_const(at));
    std::size_t d = N;
    while (d-- > 0) {
      if (++at[d] < p.last[d]) break;
      at[d] = p.first[d];
      if (d == 0) return;
    }
  }
}

/// As in messages: "[0, 3) x [2, 7)". Local; no communication.
template <std::size_t N>
std::string to_text(const patch<N>& p) {
  std::string result;
  for (std::size_t d = 0; d < N; ++d)
    result += text(d == 0 ? "[" : " x [", p.first[d], ", ", p.last[d], ")");
  return result;
}

/// How wide memory is into which a patch is copied, or from which it comes: in each dimension but
/// the first, the number of elements that it has room for there. None are given where a patch lies
/// densely.
template <std::size_t N>
class leading_dimensions {
 public:
  /// Dense. Local; no communication.
  constexpr leading_dimensions() = default;
  /// Of N - 1 integers. Local; no communication.
  template <std::integral... Integers>
    requires(sizeof...(Integers) == N - 1 && N > 1)
  constexpr leading_dimensions(Integers... widths)
      : widths_{0, static_cast<std::ptrdiff_t>(widths)...}, given_(true) {}

  /// Whether they are not left out. Local; no communication.
  constexpr bool given() const { return given_; }
  /// Of one dimension but the first. Local; no communication.
  constexpr std::ptrdiff_t operator[](std::size_t dimension) const { return widths_[dimension]; }

 private:
  std::array<std::ptrdiff_t, N> widths_{};
  bool given_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND

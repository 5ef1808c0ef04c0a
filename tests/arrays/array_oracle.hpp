// A far::global_array beside an array in the memory of each rank, which all ranks change alike.
#pragma once

#include "harness.hpp"

#include <farside/algorithms/array_operations.hpp>

#include <vector>

namespace array_tests {

using far::array_index;
using far::patch;

template <class T, std::size_t N>
struct serial_array {
  explicit serial_array(const array_index<N>& of) : shape(of), values(all().size()) {}

  patch<N> all() const { return {{}, shape}; }
  T& at(const array_index<N>& i) {
    std::ptrdiff_t place = 0;
    for (std::size_t d = 0; d < N; ++d) place = place * shape[d] + i[d];
    return values[static_cast<std::size_t>(place)];
  }
  /// As if it repeated itself.
  T& around(array_index<N> i) {
    for (std::size_t d = 0; d < N; ++d) i[d] = ((i[d] % shape[d]) + shape[d]) % shape[d];
    return at(i);
  }
  std::vector<T> get(const patch<N>& p) {
    std::vector<T> result;
    far::for_each_index(p, [&](const array_index<N>& i) { result.push_back(at(i)); });
    return result;
  }

  array_index<N> shape;
  std::vector<T> values;
};

/// Memory for a patch, wider than it by up to two in each dimension but the first.
template <class T, std::size_t N>
struct wide_memory {
  wide_memory(const patch<N>& of, std::mt19937_64& random) : p(of), shape(of.extents()) {
    for (std::size_t d = 1; d < N; ++d) shape[d] += static_cast<std::ptrdiff_t>(random() % 3);
    values.assign(patch<N>{{}, shape}.size(), T(-1));
    if constexpr (N == 2)
      ld = far::leading_dimensions<N>(shape[1]);
    else if constexpr (N == 3)
      ld = far::leading_dimensions<N>(shape[1], shape[2]);
  }
  /// The element that stands for a place of the patch.
  T& at(const array_index<N>& i) {
    std::ptrdiff_t place = 0;
    for (std::size_t d = 0; d < N; ++d) place = place * shape[d] + i[d] - p.first[d];
    return values[static_cast<std::size_t>(place)];
  }

  patch<N> p;
  array_index<N> shape;
  std::vector<T> values;
  far::leading_dimensions<N> ld{};
};

inline std::ptrdiff_t below(std::mt19937_64& random, std::ptrdiff_t n) {
  return n <= 0 ? 0 : static_cast<std::ptrdiff_t>(random() % static_cast<std::uint64_t>(n));
}

/// Some box of an array; sometimes all of it, sometimes nothing.
template <std::size_t N>
patch<N> some_patch(const array_index<N>& shape, std::mt19937_64& random) {
  if (random() % 8 == 0) return {{}, shape};
  patch<N> p;
  for (std::size_t d = 0; d < N; ++d) {
    p.first[d] = below(random, shape[d] + 1);
    p.last[d] = p.first[d] + below(random, shape[d] - p.first[d] + 1);
  }
  return p;
}

/// Calls work(options) with arrays divided in several ways; these want the shape.
template <std::size_t N, class Work>
void in_many_ways(const array_index<N>& shape, Work work) {
  using lists = std::vector<std::vector<std::size_t>>;
  work(far::global_array_options<N>{});
  array_index<N> ghosts;
  for (std::size_t d = 0; d < N; ++d) ghosts[d] = static_cast<std::ptrdiff_t>((d + 1) % 3);
  work(far::global_array_options<N>{.ghosts = ghosts});
  std::vector<std::size_t> grid(N, 0);
  grid[N - 1] = 1;
  if (N > 1) work(far::global_array_options<N>{.distribution = far::blocks(grid)});
  std::vector<std::size_t> chunk;
  for (std::size_t d = 0; d < N; ++d) chunk.push_back(d + 2);
  work(far::global_array_options<N>{.distribution = far::cyclic(chunk)});
  lists starts(N, {0});
  const auto n = static_cast<std::size_t>(shape[0]);
  for (far::rank_t m = 1; m < far::nprocs(); ++m) starts[0].push_back(m == 1 ? n / 4 : n / 2);
  work(far::global_array_options<N>{.distribution = far::irregular(starts), .ghosts = ghosts});
}

}  // namespace array_tests

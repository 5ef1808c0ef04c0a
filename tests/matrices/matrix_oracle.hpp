// Matrices of random integers, and their products by three loops.
#pragma once

#include "harness.hpp"

#include <farside/algorithms/multiply.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace matrix_tests {

/// A number that depends on its arguments alone: the same on all ranks.
inline std::uint64_t scramble(std::uint64_t seed, std::uint64_t i, std::uint64_t j) {
  std::uint64_t x = seed * 0x9e37'79b9'7f4a'7c15 + i * 0xbf58'476d'1ce4'e5b9 + j;
  x = (x ^ x >> 31) * 0x94d0'49bb'1331'11eb;
  x = (x ^ x >> 29) * 0xbf58'476d'1ce4'e5b9;
  return x ^ x >> 32;
}

template <class M>
inline constexpr bool is_sparse = requires { typename M::index_type; };

/// The value at a place, and whether a sparse matrix has an entry there: of a thousand places
/// `density`, and all of row `full`.
struct contents {
  std::uint64_t seed;
  unsigned density = 150;
  std::size_t full = ~std::size_t{0};

  bool has(std::size_t i, std::size_t j) const {
    return i == full || scramble(seed, i, j) % 1000 < density;
  }
  template <class T>
  T value(std::size_t i, std::size_t j) const {
    return static_cast<T>(static_cast<long>(scramble(seed + 1, i, j) % 19) - 9);
  }
};

/// Collective.
template <class M>
void fill(M& m, const contents& with) {
  using T = typename M::value_type;
  if constexpr (is_sparse<M>) {
    for (std::size_t i = m.members().rank(); i < m.shape().rows; i += m.members().size())
      for (std::size_t j = 0; j < m.shape().columns; ++j)
        if (with.has(i, j)) m.insert({i, j}, with.template value<T>(i, j));
    m.assemble();
  } else {
    m.apply([&](far::matrix_index at, T& x) { x = with.template value<T>(at.row, at.column); });
  }
}

/// What it holds, on one rank; places without an entry hold `absent`.
template <class M, class T = typename M::value_type>
std::vector<T> everything(const M& m, T absent = T{}) {
  std::vector<T> all(m.shape().size(), absent);
  const std::size_t wide = m.shape().columns;
  if constexpr (is_sparse<M>) {
    auto local = m.to_local();
    local.view().check();
    for (auto [at, value] : local.view()) all[at.row * wide + at.column] = value;
  } else {
    auto local = m.to_local();
    for (std::size_t i = 0; i < m.shape().rows; ++i)
      for (std::size_t j = 0; j < wide; ++j) all[i * wide + j] = local[{i, j}];
  }
  return all;
}

/// A * B of m x k and k x n.
template <class T, class Over>
std::vector<T> product_of(const std::vector<T>& a, const std::vector<T>& b, std::size_t m,
                          std::size_t k, std::size_t n, const Over& over) {
  std::vector<T> c(m * n, over.zero());
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t x = 0; x < k; ++x)
      for (std::size_t j = 0; j < n; ++j)
        c[i * n + j] = over.add(c[i * n + j], over.multiply(a[i * k + x], b[x * n + j]));
  return c;
}

}  // namespace matrix_tests

// What the tests of local matrices share: random matrices, products by definition, comparisons.
#pragma once

#include <farside/algorithms/semiring.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/matrix_view.hpp>

#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

namespace oracle {

/// Exact for integers; 1e-12 of the size of what was added up otherwise.
template <class T>
bool near(const T& x, const T& y, double size = 1) {
  if constexpr (std::is_integral_v<T>) {
    return x == y;
  } else {
    constexpr bool is_single = std::is_same_v<T, float> || std::is_same_v<T, std::complex<float>>;
    const double limit = is_single ? 1e-5 : 1e-12;
    return x == y || std::abs(x - y) <= limit * std::max<double>(size, std::abs(y));
  }
}

/// Small values: of integers, so that nothing overflows; never negative, as max_times asks for.
template <class T>
T value(std::mt19937_64& random) {
  auto number = [&] { return static_cast<double>(random() % 1000) / 100; };
  if constexpr (std::is_same_v<T, bool>)
    return random() % 4 != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random() % 5);
  else if constexpr (far::is_complex<T>)
    return T(static_cast<typename T::value_type>(number()),
             static_cast<typename T::value_type>(number() - 5));
  else
    return static_cast<T>(number());
}

/// About `per_row` entries in a row; every third row is empty; row 1 has an entry in each of the
/// first 200 columns.
template <class T, class I>
far::csr<T, I> sparse(std::mt19937_64& random, far::matrix_shape shape, std::size_t per_row,
                      bool sorted) {
  std::vector<far::triplet<T>> entries;
  for (std::size_t i = 0; i < shape.rows && shape.columns != 0; ++i) {
    if (i == 1)
      for (std::size_t j = 0; j < std::min<std::size_t>(shape.columns, 200); ++j)
        entries.push_back({i, j, value<T>(random)});
    else if (i % 3 != 2)
      for (std::size_t e = 0; e < per_row; ++e)
        entries.push_back({i, random() % shape.columns, value<T>(random)});
  }
  auto keep_first = [](const T& x, const T&) { return x; };
  auto result = far::csr<T, I>::from_triplets(shape, entries, keep_first);
  if (sorted) return result;
  for (std::size_t i = 0; i < shape.rows; ++i) {
    auto first = static_cast<std::size_t>(result.row_begin()[i]);
    for (std::size_t e = result.row(i).size(); e > 1; --e) {
      std::size_t other = random() % e;
      std::swap(result.columns()[first + e - 1], result.columns()[first + other]);
      std::swap(result.values()[first + e - 1], result.values()[first + other]);
    }
  }
  result.set_sorted(false);
  return result;
}

template <class T>
std::vector<T> dense(std::mt19937_64& random, std::size_t size) {
  std::vector<T> result(size);
  for (T& x : result) x = value<T>(random);
  return result;
}

/// The entries of a sparse matrix by their places.
template <class T>
using entries = std::map<far::matrix_index, T>;

template <class T, class I>
entries<T> entries_of(const far::csr_view<T, I>& m) {
  entries<T> result;
  for (auto [index, value] : m) result.emplace(index, value);
  return result;
}

/// A B by definition: over all pairs of entries that meet.
template <class T, class I, class S>
entries<T> product(const far::csr_view<T, I>& a, const far::csr_view<T, I>& b, const S& over) {
  entries<T> result;
  for (auto [at, x] : a) {
    for (auto [column, y] : b.row(at.column)) {
      far::matrix_index place{at.row, static_cast<std::size_t>(column)};
      auto [found, is_new] = result.try_emplace(place, over.multiply(x, y));
      if (!is_new) found->second = over.add(found->second, over.multiply(x, y));
    }
  }
  return result;
}

/// Whether a result is a well-formed matrix with exactly these entries, those that hold zero too.
template <class T, class I>
bool same(const far::csr_view<T, I>& m, const entries<T>& expected, double size = 1000) {
  m.check();
  if (m.nnz() != expected.size()) return false;
  auto found = entries_of(m);
  if (found.size() != expected.size()) return false;  // a column twice in a row
  for (const auto& [place, value] : expected) {
    auto at = found.find(place);
    if (at == found.end() || !near(at->second, value, size)) return false;
  }
  return true;
}

/// The path whose narrowest edge is the widest, of edges that count as `scale` times what they
/// hold: a semiring of a user's own, with state.
template <class T>
struct widest_path {
  T scale = T(2);

  T add(const T& x, const T& y) const { return std::max(x, y); }
  T multiply(const T& x, const T& y) const { return std::min<T>(x * scale, y * scale); }
  T zero() const { return T{}; }
  static constexpr bool zero_is_default = true;
};

}  // namespace oracle

// Random numbers that depend on a seed and a number alone, so that every rank can make those that
// it needs, and a permutation that takes no memory.
#pragma once

#include <farside/detail/hashing.hpp>

#include <cstddef>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// 0 <= x < 1, in steps of 2^-53.
constexpr double unit_interval(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1p-53;
}

/// The random numbers of one thing, which has a number of its own: an edge, a row.
class numbered_random {
 public:
  constexpr numbered_random(std::uint64_t seed, std::uint64_t number)
      : state_(hash_append(mix(seed), number)) {}

  constexpr std::uint64_t next() {
    state_ += mix_offset;  // two things' numbers coincide only where hashes of 64 bits nearly do
    return mix(state_);
  }
  /// 0 .. n - 1, evenly.
  constexpr std::size_t below(std::size_t n) { return reduce_hash(next(), n); }
  constexpr double unit() { return unit_interval(next()); }

 private:
  std::uint64_t state_;
};

/// A permutation of the places of a matrix, chosen by a seed: a Feistel network whose halves are
/// added within 0 .. rows - 1 and 0 .. columns - 1. Each round changes one half by a function of
/// the other one, which can be undone, so all rounds together are a bijection.
class place_permutation {
 public:
  constexpr place_permutation(std::size_t rows, std::size_t columns, std::uint64_t seed)
      : rows_(rows),
        columns_(columns),
        key_(mix(seed)),
        rounds_(rows < few || columns < few ? 8 : 3) {}

  constexpr void apply(std::size_t& row, std::size_t& column) const {
    std::uint64_t key = key_;
    for (int round = 0; round < rounds_; ++round) {
      key += mix_offset;
      row = sum(row, reduce_hash(mix(key ^ mix(column)), rows_), rows_);
      key += mix_offset;
      column = sum(column, reduce_hash(mix(key ^ mix(row)), columns_), columns_);
    }
  }

 private:
  static constexpr std::size_t sum(std::size_t a, std::size_t b, std::size_t n) {
    std::size_t s = a + b;  // both are below n, and n is below 2^63
    return s >= n ? s - n : s;
  }

  /// Small halves mix slowly: with 3 rounds of 6 numbers, some pairs come a fifth too often.
  static constexpr std::size_t few = 64;

  std::size_t rows_, columns_;
  std::uint64_t key_;
  int rounds_;  ///< each of both halves
};

/// A permutation of 0 .. n - 1, chosen by a seed. It permutes the cells of the smallest rectangle
/// that is nearly square and holds n; what comes out at a cell beyond n goes through once more,
/// which stays a bijection, and is rare: fewer than sqrt(n) cells lie there.
class permutation {
 public:
  constexpr permutation(std::size_t n, std::uint64_t seed)
      : n_(n), columns_(root(n)), cells_((n + columns_ - 1) / columns_, columns_, seed) {}

  constexpr std::size_t operator()(std::size_t i) const {
    do {
      std::size_t row = i / columns_, column = i % columns_;
      cells_.apply(row, column);
      i = row * columns_ + column;
    } while (i >= n_);
    return i;
  }

 private:
  /// The square root, rounded up; 1 at least.
  static constexpr std::size_t root(std::size_t n) {
    std::size_t low = 1, high = std::size_t{1} << 31;
    while (low < high) {
      std::size_t middle = (low + high) / 2;
      if (middle * middle >= n)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  std::size_t n_, columns_;
  place_permutation cells_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

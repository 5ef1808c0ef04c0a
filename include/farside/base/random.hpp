// Pseudo-random numbers that are the same on every machine: for simulations, for tests, and for benchmarks.
//
//   far::random_stream random(seed, far::rank());   // each rank a stream of its own
//   if (random.below(6) == 0) ...
#pragma once

#include <farside/base/mixing.hpp>

#include <cstdint>
#include <limits>

namespace far::inline FARSIDE_BACKEND {

/// A stream of uniform 64-bit numbers (splitmix64), from which the distributions of the standard library can draw. Not
/// for secrets. Local; no communication: a number costs a nanosecond.
class random_stream {
 public:
  using result_type = std::uint64_t;

  /// The stream of a seed: the same numbers for the same seed, on every machine. Local; no communication.
  explicit constexpr random_stream(std::uint64_t seed) : state_(seed) {}
  /// The stream number `stream` of a seed. Streams of different numbers have nothing to do with each other, so that
  /// each rank, or each record of a file, can have one. Local; no communication.
  constexpr random_stream(std::uint64_t seed, std::uint64_t stream)
      : state_((mix(seed) ^ mix(~stream)) + detail::mix_offset) {}

  /// The next number. Local; no communication.
  constexpr std::uint64_t operator()() {
    std::uint64_t number = mix(state_);
    state_ += detail::mix_offset;
    return number;
  }
  /// A number from 0 to n - 1. Local; no communication.
  constexpr std::uint64_t below(std::uint64_t n) { return reduce_hash((*this)(), n); }
  /// A number from 0 up to, but not including, 1. Local; no communication.
  constexpr double real() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  /// The least number that there can be, and the largest. Local; no communication.
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }

 private:
  std::uint64_t state_;
};

}  // namespace far::inline FARSIDE_BACKEND

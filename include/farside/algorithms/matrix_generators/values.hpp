// What generated matrices hold: a value depends on its place and a seed alone.
#pragma once

#include <farside/algorithms/matrix_generators/random.hpp>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// The values of a generated matrix: the same ones for any number of ranks.
class entry_values {
 public:
  /// All are 1. Local; no communication.
  constexpr entry_values() = default;
  /// All are 1. Local; no communication.
  static constexpr entry_values ones() { return {kind::ones, 1, 1, 0}; }
  /// Evenly from `low` to `high`; of integral types, whole numbers. Local; no
  /// communication.
  static constexpr entry_values uniform(double low = 0, double high = 1, std::uint64_t seed = 1) {
    return {kind::uniform, low, high, seed};
  }
  /// Whole numbers from `least` to `most`, also of floating-point types: sums of them are exact.
  /// Local; no communication.
  static constexpr entry_values whole(std::int64_t least = 1, std::int64_t most = 9,
                                      std::uint64_t seed = 1) {
    return {kind::whole, static_cast<double>(least), static_cast<double>(most), seed};
  }

  /// The value of an entry; real and imaginary part of a complex one. Local, some nanoseconds.
  template <class T>
  T at(std::size_t row, std::size_t column) const {
    if (kind_ == kind::ones) return T(1);
    std::uint64_t random = detail::hash_append(detail::hash_append(mix(seed_), row), column);
    return from<T>(random);
  }

 private:
  enum class kind { ones, uniform, whole };

  constexpr entry_values(kind of, double low, double high, std::uint64_t seed)
      : kind_(of), low_(low), high_(high), seed_(seed) {}

  template <class T>
  struct part_of_complex : std::false_type {};
  template <class T>
  struct part_of_complex<std::complex<T>> : std::true_type {};

  template <class T>
  T from(std::uint64_t random) const {
    if constexpr (part_of_complex<T>::value) {
      using part = typename T::value_type;
      return T(from<part>(random), from<part>(mix(random)));
    } else {
      double unit = detail::unit_interval(random);
      if (kind_ == kind::whole || std::is_integral_v<T>) {
        // By way of 64 bits, so that negative numbers wrap around where T has no sign.
        const double number = low_ + std::floor(unit * (high_ - low_ + 1));
        return static_cast<T>(static_cast<std::int64_t>(std::clamp(number, -0x1p62, 0x1p62)));
      }
      return static_cast<T>(low_ + unit * (high_ - low_));
    }
  }

  kind kind_ = kind::ones;
  double low_ = 1, high_ = 1;
  std::uint64_t seed_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND

// Semirings: what "add" and "multiply" mean in a product of matrices.
//
//   C(i, j) = add over k of multiply(A(i, k), B(k, j))
//
//   | semiring   | add | multiply | zero                          | a product finds               |
//   |------------|-----|----------|-------------------------------|-------------------------------|
//   | plus_times | +   | *        | 0                             | the usual one                 |
//   | min_plus   | min | +        | infinity, or the largest int  | shortest paths                |
//   | max_times  | max | *        | 0; values must not be negative| the most probable path        |
//   | or_and     | or  | and      | false                         | what can be reached           |
//   | plus_first | +   | x of x, y| 0                             | sums of A over what B has     |
//
// `zero` is what an entry that is absent stands for. Kernels begin sums with it, and pad with it,
// so it must be the identity of add: add(zero, x) == x for every value x in use. Where a matrix is
// dense all its elements are present, also those that hold zero.
//
// A semiring of your own is a struct with these four members (semiring_over). It may have state:
// kernels call a const object, which they copy. `add` should be associative and commutative:
// kernels add in an order of their own, though always in the same one for the same matrices.
//
//   struct widest_path {          // of all paths, the one whose narrowest edge is the widest
//     double add(double x, double y) const { return std::max(x, y); }
//     double multiply(double x, double y) const { return std::min(x, y); }
//     double zero() const { return 0; }
//     static constexpr bool zero_is_default = true;      // zero() == double{}
//   };
//
// A semiring may offer more: `template <class V, class X> void add_product(V& sum, const X& x,
// const V& y)`, which sets sum = add(sum, multiply(x, y)) for V = T, and for V = a vector of T of
// the compiler's (`vector_size`) with x of type T. Dense kernels use the processor's vectors then.
// The result must be the same.
//
// Everything is local.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/is_complex.hpp>

#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// What kernels ask of a semiring over values of type T; see the header.
template <class S, class T>
concept semiring_over =
    std::copy_constructible<S> && requires(const S& over, const T& x, const T& y) {
      { over.add(x, y) } -> std::convertible_to<T>;
      { over.multiply(x, y) } -> std::convertible_to<T>;
      { over.zero() } -> std::convertible_to<T>;
      { S::zero_is_default } -> std::convertible_to<bool>;
    };

namespace detail {

/// Whether a semiring has `add_product` for this type, a value or a vector of values.
template <class S, class T, class V>
concept adds_products_of =
    requires(const S& over, V& sum, const T& x, const V& y) { over.add_product(sum, x, y); };

}  // namespace detail

/// The usual sum of products. Over bool it is or_and. Products of complex numbers are those of the
/// schoolbook, without the standard's extra care for infinities, as in BLAS. Local; no
/// communication.
template <class T = double>
struct plus_times {
  /// x + y and x y. Local; no communication.
  constexpr T add(const T& x, const T& y) const { return static_cast<T>(x + y); }
  constexpr T multiply(const T& x, const T& y) const {
    if constexpr (is_complex<T>)
      return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
    else
      return static_cast<T>(x * y);
  }
  /// 0. Local; no communication.
  constexpr T zero() const { return T{}; }
  static constexpr bool zero_is_default = true;

  /// sum = add(sum, multiply(x, y)), also for vectors. Local; no communication.
  template <class V, class X>
    requires std::is_arithmetic_v<T>
  [[gnu::always_inline]] void add_product(V& sum, const X& x, const V& y) const {
    sum += x * y;
  }
};

/// Shortest paths. Zero, no path at all, is infinity, or for integers their largest value: it stays
/// what it is, whatever is added to it, and sums of integers end at the limits of T instead of
/// wrapping around. Local; no communication.
template <class T = double>
struct min_plus {
  static_assert(std::is_arithmetic_v<T>, "min_plus needs numbers that are ordered");

  /// The lesser of both, and their sum. Local; no communication.
  constexpr T add(const T& x, const T& y) const { return y < x ? y : x; }
  constexpr T multiply(const T& x, const T& y) const {
    if (x == zero() || y == zero()) return zero();
    if constexpr (std::is_integral_v<T>) {
      T sum;
      if (!__builtin_add_overflow(x, y, &sum)) return sum;
      return x < 0 ? std::numeric_limits<T>::lowest() : zero();
    } else {
      return x + y;
    }
  }
  /// Infinity, or the largest integer. Local; no communication.
  constexpr T zero() const {
    if constexpr (std::numeric_limits<T>::has_infinity)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
  static constexpr bool zero_is_default = false;

  /// sum = add(sum, multiply(x, y)), also for vectors: infinity and minus infinity add up to what is
  /// not less than anything, so that the sum stays as it is. Local; no communication.
  template <class V, class X>
    requires std::is_floating_point_v<T>
  [[gnu::always_inline]] void add_product(V& sum, const X& x, const V& y) const {
    V path = x + y;
    sum = path < sum ? path : sum;
  }
};

/// The most probable path. Values must not be negative. Local; no communication.
template <class T = double>
struct max_times {
  static_assert(std::is_arithmetic_v<T>, "max_times needs numbers that are ordered");

  /// The greater of both, and their product. Local; no communication.
  constexpr T add(const T& x, const T& y) const { return x < y ? y : x; }
  constexpr T multiply(const T& x, const T& y) const { return static_cast<T>(x * y); }
  /// 0. Local; no communication.
  constexpr T zero() const { return T{}; }
  static constexpr bool zero_is_default = true;

  /// sum = add(sum, multiply(x, y)), also for vectors. Local; no communication.
  template <class V, class X>
    requires std::is_floating_point_v<T>
  [[gnu::always_inline]] void add_product(V& sum, const X& x, const V& y) const {
    V path = x * y;
    sum = sum < path ? path : sum;
  }
};

/// What can be reached. Numbers count as true unless they are 0; results are 0 and 1. Local; no
/// communication.
template <class T = bool>
struct or_and {
  /// Whether either is true, and whether both are. Local; no communication.
  constexpr T add(const T& x, const T& y) const { return static_cast<T>(x != T{} || y != T{}); }
  constexpr T multiply(const T& x, const T& y) const {
    return static_cast<T>(x != T{} && y != T{});
  }
  /// False. Local; no communication.
  constexpr T zero() const { return T{}; }
  static constexpr bool zero_is_default = true;
};

/// Sums of A's values, each counted once for every entry of B that it meets. Local; no
/// communication.
template <class T = double>
struct plus_first {
  /// x + y, and x whatever y is. Local; no communication.
  constexpr T add(const T& x, const T& y) const { return static_cast<T>(x + y); }
  constexpr T multiply(const T& x, const T&) const { return x; }
  /// 0. Local; no communication.
  constexpr T zero() const { return T{}; }
  static constexpr bool zero_is_default = true;

  /// sum = add(sum, multiply(x, y)), also for vectors. Local; no communication.
  template <class V, class X>
    requires std::is_arithmetic_v<T>
  [[gnu::always_inline]] void add_product(V& sum, const X& x, const V&) const {
    sum += x;
  }
};

}  // namespace far::inline FARSIDE_BACKEND

// Far atomics. All act on integers of 32 or 64 bits (compare_swap, swap, atomic_load and
// atomic_store also on any trivially copyable type of that size: a far::ptr, an enum), return the
// old value and are complete on return. They have one order among all ranks on each word, and are
// not ordered with this rank's puts: flush first if an atomic shall announce a put.
// A word is changed either by atomics or by puts while both could run, never by both, and always
// with the same width. Each is 1 atomic.
// All are one-sided; async_ forms are complete when their future is ready.
#pragma once

#include <farside/core/access.hpp>
#include <farside/core/future.hpp>

#include <bit>
#include <concepts>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

template <class T>
concept word_sized = std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
using word_of =
    std::conditional_t<atomic_word<T>, T,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

template <class T>
constexpr void require_atomic_integer() {
  static_assert(atomic_word<T>,
                "far arithmetic atomics work on integers of 32 or 64 bits (int32_t, uint32_t, "
                "int64_t, uint64_t and their aliases). Add to float, double and complex numbers "
                "with far::accumulate, which returns nothing; for all else of 4 or 8 bytes use "
                "far::compare_swap or far::swap.");
}

template <class T>
constexpr void require_word() {
  static_assert(word_sized<T>,
                "far atomics work on trivially copyable types of exactly 4 or 8 bytes. Keep larger "
                "objects behind a far::ptr and swap that.");
}

template <atomic_op Op, class T>
[[gnu::always_inline]] inline T fetch_op(ptr<T> at, T value) {
  return access(operation::atomic, at.rank(), sizeof(T),
                [at, value](auto& link) __attribute__((always_inline)) {
                  check_access(link, "atomic", at, 1);
                  return std::bit_cast<T>(link.template fetch_op<Op>(
                      at.rank(), at.offset(), std::bit_cast<word_of<T>>(value)));
                });
}

/// Whether each atomic ends with a fence of the CPU, as far as this thread's fast links know.
[[gnu::always_inline]] inline bool atomics_are_fences() {
  return with_fast_link([](const auto& link) {
    if constexpr (knows_its_fences<std::remove_cvref_t<decltype(link)>>)
      return link.flush_is_a_fence();
    else
      return false;
  });
}

/// A back end may have a cheaper way than flush to do what settling an atomic asks for.
template <class Link>
[[gnu::always_inline]] inline void settle_atomics(Link& link, rank_t rank) {
  if (atomics_are_fences()) return;
  if constexpr (settles_atomics<Link>)
    link.settle(rank);
  else
    link.flush(rank);
}

/// A future of a word as a future of the type that was asked for.
template <class T>
future<T> as_type(future<word_of<T>> word) {
  if constexpr (std::same_as<T, word_of<T>>)
    return word;
  else
    return std::move(word).then([](word_of<T> bits) { return std::bit_cast<T>(bits); });
}

template <atomic_op Op, class T>
future<T> async_fetch_op(ptr<T> at, T value) {
  using word = word_of<T>;
  return as_type<T>(perform(operation::atomic, at.rank(), sizeof(T), [&](context& c) {
    check_access(c.link, "atomic", at, 1);
    return in_flight<word>(c, [&](word& old) {
      return c.link.template async_fetch_op<Op>(at.rank(), at.offset(), std::bit_cast<word>(value),
                                                old);
    });
  }));
}

}  // namespace detail

// Each use defines two functions: the blocking form and its async_ twin.
#define FARSIDE_FETCH_OP(name, op, require)                                        \
  template <class T>                                                               \
  [[gnu::always_inline]] inline T name(ptr<T> at, std::type_identity_t<T> value) { \
    detail::require<T>();                                                          \
    return detail::fetch_op<detail::atomic_op::op>(at, value);                     \
  }                                                                                \
  template <class T>                                                               \
  inline future<T> async_##name(ptr<T> at, std::type_identity_t<T> value) {        \
    detail::require<T>();                                                          \
    return detail::async_fetch_op<detail::atomic_op::op>(at, value);               \
  }

/// Adds `value`, wraps around, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_add, add, require_atomic_integer)
/// Keeps the bits that are set in `value`, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_and, bit_and, require_atomic_integer)
/// Sets the bits that are set in `value`, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_or, bit_or, require_atomic_integer)
/// Flips the bits that are set in `value`, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_xor, bit_xor, require_atomic_integer)
/// Stores `value` if it is less, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_min, min, require_atomic_integer)
/// Stores `value` if it is more, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(fetch_max, max, require_atomic_integer)
/// Stores `value`, and returns what was there before. One-sided. 1 atomic.
FARSIDE_FETCH_OP(swap, swap, require_word)
#undef FARSIDE_FETCH_OP

/// Subtracts `value`, wraps around, and returns what was there before. One-sided. 1 atomic.
template <class T>
[[gnu::always_inline]] inline T fetch_sub(ptr<T> at, std::type_identity_t<T> value) {
  detail::require_atomic_integer<T>();
  return fetch_add(at, static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(value)));
}

/// Begins a fetch_sub. One-sided. 1 atomic, not waited for.
template <class T>
inline future<T> async_fetch_sub(ptr<T> at, std::type_identity_t<T> value) {
  detail::require_atomic_integer<T>();
  return async_fetch_add(at, static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(value)));
}

/// Writes `desired` if the word holds `expected` (compared by its bytes). Returns what it held:
/// it has been written exactly if that is `expected`.
template <class T>
[[gnu::always_inline]] inline T compare_swap(ptr<T> at, std::type_identity_t<T> expected,
                                             std::type_identity_t<T> desired) {
  detail::require_word<T>();
  using word = detail::word_of<T>;
  return detail::access(
      operation::atomic, at.rank(), sizeof(T),
      [at, expected, desired](auto& link) __attribute__((always_inline)) {
        detail::check_access(link, "compare_swap", at, 1);
        return std::bit_cast<T>(link.compare_swap(
            at.rank(), at.offset(), std::bit_cast<word>(expected), std::bit_cast<word>(desired)));
      });
}

/// Begins a compare_swap. One-sided. 1 atomic, not waited for.
template <class T>
inline future<T> async_compare_swap(ptr<T> at, std::type_identity_t<T> expected,
                                    std::type_identity_t<T> desired) {
  detail::require_word<T>();
  using word = detail::word_of<T>;
  return detail::as_type<T>(
      detail::perform(operation::atomic, at.rank(), sizeof(T), [&](detail::context& c) {
        detail::check_access(c.link, "compare_swap", at, 1);
        return detail::in_flight<word>(c, [&](word& old) {
          return c.link.async_compare_swap(at.rank(), at.offset(), std::bit_cast<word>(expected),
                                           std::bit_cast<word>(desired), old);
        });
      }));
}

/// Reads a word that others change by atomics. Operations that follow do not run ahead of it.
/// One-sided. 1 atomic.
template <class T>
[[gnu::always_inline]] inline std::remove_const_t<T> atomic_load(ptr<T> at) {
  using value = std::remove_const_t<T>;
  detail::require_word<value>();
  return detail::access(
      operation::atomic, at.rank(), sizeof(T), [at](auto& link) __attribute__((always_inline)) {
        detail::check_access(link, "atomic_load", at, 1);
        return std::bit_cast<value>(
            link.template atomic_load<detail::word_of<value>>(at.rank(), at.offset()));
      });
}

/// Writes a word that others read or change by atomics. One-sided. 1 atomic.
template <class T>
inline void atomic_store(ptr<T> at, std::type_identity_t<T> value) {
  swap(at, value);
}

}  // namespace far::inline FARSIDE_BACKEND

// Atomics for which a transport has no call of its own, or none that works.
#pragma once

#include <farside/backend/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

/// What an atomic leaves behind.
template <atomic_op Op, atomic_word T>
constexpr T changed(T old, T value) {
  using bits = std::make_unsigned_t<T>;
  if constexpr (Op == atomic_op::add)
    return static_cast<T>(static_cast<bits>(old) + static_cast<bits>(value));
  if constexpr (Op == atomic_op::bit_and) return static_cast<T>(old & value);
  if constexpr (Op == atomic_op::bit_or) return static_cast<T>(old | value);
  if constexpr (Op == atomic_op::bit_xor) return static_cast<T>(old ^ value);
  if constexpr (Op == atomic_op::min) return std::min(old, value);
  if constexpr (Op == atomic_op::max) return std::max(old, value);
  if constexpr (Op == atomic_op::swap) return value;
}

/// A load, and a compare-and-swap if that changes anything, as often as others were faster.
template <atomic_op Op, class Link, atomic_word T>
T fetch_by_swaps(Link& link, rank_t rank, std::size_t offset, T value) {
  T old = link.template atomic_load<T>(rank, offset);
  for (;;) {
    T fresh = changed<Op>(old, value);
    if (fresh == old) return old;
    T seen = link.compare_swap(rank, offset, old, fresh);
    if (seen == old) return old;
    old = seen;
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail

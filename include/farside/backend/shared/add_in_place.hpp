// What an accumulate adds, and additions of integers to memory that other CPUs add to at the same
// time: one atomic an element, relaxed. Like a put, an accumulate is ordered by flush alone.
// Floating point is added under locks (stripe_locks.hpp).
#pragma once

#include <farside/backend/concept.hpp>

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

/// What an accumulate adds: an element is one of these, or two if it is complex. Signed integers
/// are added as unsigned ones.
template <class C>
concept component = std::same_as<C, std::uint32_t> || std::same_as<C, std::uint64_t> ||
                    std::same_as<C, float> || std::same_as<C, double>;

/// An unsigned integer as wide as a component.
template <component C>
using word_for = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;

/// What a word holds after `addend` was added to the component in it.
template <component C>
constexpr word_for<C> added(word_for<C> word, C addend) {
  return std::bit_cast<word_for<C>>(static_cast<C>(std::bit_cast<C>(word) + addend));
}

/// How much of an accumulate was done. Less than all of it: somebody else was adding to the next
/// element's block. What is left can be tried again.
struct accumulated {
  static constexpr rank_t unknown = ~rank_t{0};
  std::size_t elements = 0;
  rank_t holder = unknown;  ///< who that was, if it is known; a server has a number after the ranks
};

template <component C>
  requires std::integral<C>
void add_atomically(void* at, const C* from, std::size_t n) {
  auto* words = static_cast<C*>(at);
  for (std::size_t i = 0; i < n; ++i)
    std::atomic_ref<C>(words[i]).fetch_add(from[i], std::memory_order_relaxed);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

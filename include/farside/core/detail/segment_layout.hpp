// What lies where in a segment, below the memory that far::alloc gives out.
//
//   | null_guard | words of the library | locks of sums | words of messages | block of the world
//   team | words of the heaps | memory |
//
// The memory is shared by far::alloc, from its beginning on, and far::alloc_on, from its end on.
#pragma once

#include <farside/backend/shared/stripe_locks.hpp>

#include <algorithm>
#include <cstddef>

namespace far::inline FARSIDE_BACKEND::detail {

/// Where the head of the list of blocks that other ranks have freed lies in each segment.
inline constexpr std::size_t freed_list = null_guard + 64;
/// Where the words by which members make a team alone lie (core/make_team.hpp): 64 bytes.
inline constexpr std::size_t introductions = null_guard + 128;
/// Where the words of messages lie (core/detail/messages/wire.hpp): 128 bytes, and 16 for each
/// rank.
inline constexpr std::size_t message_words = stripe_locks + stripe_lock_bytes;
/// Where the world team's block begins; before it the library keeps words of its own.
inline constexpr std::size_t world_block(rank_t nprocs) {
  std::size_t words = message_words + 128 + 16 * std::size_t{nprocs};
  return std::max<std::size_t>(null_guard + 8192, (words + 63) & ~std::size_t{63});
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// How a ring lies in the memory of its host.
//
//     0  tail         tickets of pushes taken so far
//   128  ready_tail   two_atomics alone: pushes complete up to here
//   256  ready_head   two_atomics alone: pops complete up to here
//   504  head         tickets of pops taken so far
//   512  popped[]     one word for each block of slots: pops complete in that block, ever
//   ...  slots[]      from the next multiple of 128 on
//
// Tail and head are far apart, so that pushers and poppers do not share a cache line. Head ends one
// and the counters begin the next: one get reads both, and yet poppers that take tickets do not
// disturb those that mark slots as free.
//
// A ring for `capacity` elements that counts its pops by blocks has some slots more than that. A
// ticket t has room when a pop has taken t - capacity. Its slot was last used by t - slots, and is
// free when the whole block has been popped, whose last ticket was at most
// t - slots + block - 1 <= t - capacity. All of these have been taken by pops. So a push that has
// room, and waits for the block, waits only for pops that are under way.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/ptr.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// What rings are allocated in: cache lines.
struct alignas(64) ring_line {
  std::byte bytes[64];
};

/// The words of a ring that are changed by atomics, by their place.
enum class ring_word : std::size_t { tail = 0, ready_tail = 128, ready_head = 256, head = 504 };

struct ring_layout {
  static constexpr std::size_t counters_at = 512;
  static constexpr std::uint64_t most_blocks = 32;  ///< one get reads all their counters

  ring_layout() = default;

  /// `stride` bytes for a slot. Without counters (phases, two_atomics) a slot for each element.
  ring_layout(std::uint64_t elements, std::size_t slot_bytes, bool with_counters)
      : capacity(elements), stride(slot_bytes), slots(elements) {
    if (with_counters) {
      std::uint64_t least = (elements - 1 + most_blocks - 2) / (most_blocks - 1);
      block_shift = static_cast<unsigned>(std::countr_zero(std::bit_ceil(std::max(least, one))));
      std::uint64_t block = one << block_shift;
      std::uint64_t spare = FARSIDE_MUTANT(ring_without_spare_slots) ? 0 : block - 1;
      blocks = (elements + spare + block - 1) / block;
      slots = blocks * block;
    }
    slots_at = (counters_at + blocks * 8 + 127) / 128 * 128;
  }

  /// The lines to allocate; so many that no segment has them, if that is more than can be counted.
  std::size_t lines() const {
    if (slots > max_segment / stride) return max_segment / sizeof(ring_line);
    return (slots_at + slots * stride + sizeof(ring_line) - 1) / sizeof(ring_line);
  }

  std::uint64_t block_of(std::uint64_t slot) const { return slot >> block_shift; }

  static constexpr std::uint64_t one = 1;
  std::uint64_t capacity = 0;
  std::size_t stride = 0;
  std::uint64_t slots = 0;
  std::uint64_t blocks = 0;
  unsigned block_shift = 0;
  std::size_t slots_at = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

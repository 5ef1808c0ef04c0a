// The allocator of a region that any rank may allocate from, by far atomics alone: the owner's
// CPU takes no part. Blocks come in size classes, four to each doubling.
//
//   region:  | top | free list of class 0 | class 1 | ... | block | block | ... | untouched |
//   block:   | next (8 bytes) | class (8 bytes) | payload, aligned to 16 ... |
//
// `top` is where the untouched part begins, moved by compare-and-swap. A free list is a stack of
// blocks; its head is {tag : 24, block / 16 : 40}. The tag counts every change of the head, so
// that a pop whose `next` is stale fails its compare-and-swap (ABA). `next` and `class` are
// touched by atomics only, never by puts, so that no put races an atomic on a word.
//
//   allocate:    1 atomic load of the head, then
//                pop:    1 atomic load of `next`, 1 compare-and-swap (repeated under contention)
//                fresh:  1 atomic load and 1 compare-and-swap of `top`
//                and 1 swap to write the class
//   deallocate:  1 swap of the class, 1 load of the head, 1 swap of `next`, 1 compare-and-swap
//
// When nothing is untouched any more, a block of a larger class is cut: what is left of it goes to
// the lists of the largest classes that fit, 1 atomic load, 1 swap and 1 compare-and-swap a piece.
// Blocks are never joined again.
//
// Invariant: a block is in at most one of: a free list, a user's hands, the untouched part.
#pragma once

#include <farside/backend/backend.hpp>
#include <farside/detail/mutants.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail {

class remote_heap {
 public:
  static constexpr unsigned classes = 160;
  static constexpr std::size_t header = 16;

  remote_heap() = default;
  /// The region [begin, end) of every rank's segment; both multiples of 64. Zeroed memory is an
  /// empty heap, so nothing needs to be initialised.
  remote_heap(std::size_t begin, std::size_t end) : begin_(begin), end_(end) {}

  bool contains(std::size_t offset) const { return offset >= first_block() && offset < end_; }
  std::size_t capacity() const { return end_ - first_block(); }

  /// Offset of a payload of `bytes` on `rank`, or nothing if that rank's region is full.
  std::optional<std::size_t> allocate(transport& link, rank_t rank, std::size_t bytes) const {
    if (bytes > capacity()) return std::nullopt;
    unsigned wanted = class_of(bytes + header);
    if (auto block = pop(link, rank, wanted)) return *block + header;
    if (auto block = take_fresh(link, rank, wanted)) return *block + header;
    for (unsigned larger = wanted + 1; larger < classes; ++larger)
      if (auto block = pop(link, rank, larger)) {
        if (!FARSIDE_MUTANT(cut_block_keeps_its_class)) mark_allocated(link, rank, *block, wanted);
        give_rest(link, rank, *block + class_size(wanted), class_size(larger) - class_size(wanted));
        return *block + header;
      }
    return std::nullopt;
  }

  /// False if the block is not allocated (freed twice, or never a block). Any rank may call it.
  bool deallocate(transport& link, rank_t rank, std::size_t payload) const {
    std::size_t block = payload - header;
    std::uint64_t mark = FARSIDE_MUTANT(mark_not_cleared)
                             ? link.atomic_load<std::uint64_t>(rank, block + 8)
                             : link.fetch_op<atomic_op::swap>(rank, block + 8, std::uint64_t{0});
    if (mark >> 8 != allocated) return false;
    push(link, rank, static_cast<unsigned>(mark & 0xff), block);
    return true;
  }

  /// Bytes of the region that no block has ever used.
  std::size_t untouched(transport& link, rank_t rank) const {
    return end_ - first_block() - link.atomic_load<std::uint64_t>(rank, begin_);
  }

  /// Class sizes: 2^e * {4, 5, 6, 7} / 4 from 32 on, rounded up to multiples of 16.
  static constexpr std::size_t class_size(unsigned index) {
    std::size_t size = (std::size_t{4} + index % 4) << (index / 4 + 3);
    return (size + 15) & ~std::size_t{15};
  }
  static constexpr unsigned class_of(std::size_t size) {
    if (size <= 32) return 0;
    auto exponent = static_cast<unsigned>(std::bit_width(size - 1)) - 1;  // 2^e < size <= 2^(e+1)
    unsigned quarter = static_cast<unsigned>((size - 1) >> (exponent - 2)) & 3;
    return (exponent - 5) * 4 + quarter + 1;
  }

 private:
  static constexpr std::uint64_t allocated = 0x66'61'72'62'6c'6b;  // "farblk"
  static constexpr unsigned tag_shift = 40;
  static constexpr std::uint64_t block_mask = (std::uint64_t{1} << tag_shift) - 1;

  std::size_t head(unsigned index) const { return begin_ + 8 + std::size_t{8} * index; }
  std::size_t first_block() const {
    return (begin_ + 8 + std::size_t{8} * classes + 63) & ~std::size_t{63};
  }

  /// The tag of a head that replaces `old`.
  static std::uint64_t next_tag(std::uint64_t old) {
    return ((old >> tag_shift) + (FARSIDE_MUTANT(tag_not_counted) ? 0 : 1)) << tag_shift;
  }

  std::optional<std::size_t> pop(transport& link, rank_t rank, unsigned index) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, head(index));
    while ((old & block_mask) != 0) {
      std::size_t block = (old & block_mask) * 16;
      std::uint64_t next = link.atomic_load<std::uint64_t>(rank, block);
      std::uint64_t fresh = next_tag(old) | (next & block_mask);
      std::uint64_t seen = link.compare_swap(rank, head(index), old, fresh);
      if (seen == old) {
        mark_allocated(link, rank, block, index);
        return block;
      }
      old = seen;
    }
    return std::nullopt;
  }

  void push(transport& link, rank_t rank, unsigned index, std::size_t block) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, head(index));
    for (;;) {
      if (!FARSIDE_MUTANT(pushed_before_linked))
        link.fetch_op<atomic_op::swap>(rank, block, old & block_mask);
      std::uint64_t fresh = next_tag(old) | block / 16;
      std::uint64_t seen = link.compare_swap(rank, head(index), old, fresh);
      if (FARSIDE_MUTANT(pushed_before_linked) && seen == old)
        link.fetch_op<atomic_op::swap>(rank, block, old & block_mask);
      if (seen == old) return;
      old = seen;
    }
  }

  /// Makes free blocks of [begin, begin + bytes), which nobody else knows of; 16 bytes may be lost.
  void give_rest(transport& link, rank_t rank, std::size_t begin, std::size_t bytes) const {
    while (bytes >= class_size(0)) {
      unsigned index = class_of(bytes);
      if (class_size(index) > bytes) --index;
      push(link, rank, index, begin);
      if (!FARSIDE_MUTANT(cut_rests_overlap)) begin += class_size(index);
      bytes -= class_size(index);
    }
  }

  std::optional<std::size_t> take_fresh(transport& link, rank_t rank, unsigned index) const {
    std::size_t size = class_size(index);
    std::uint64_t used = link.atomic_load<std::uint64_t>(rank, begin_);
    while (size <= capacity() - used) {
      std::uint64_t seen = link.compare_swap(rank, begin_, used, used + size);
      if (seen == used || FARSIDE_MUTANT(lost_race_taken_for_won)) {
        std::size_t block = first_block() + used;
        mark_allocated(link, rank, block, index);
        return block;
      }
      used = seen;
    }
    return std::nullopt;
  }

  static void mark_allocated(transport& link, rank_t rank, std::size_t block, unsigned index) {
    link.fetch_op<atomic_op::swap>(rank, block + 8, allocated << 8 | index);
  }

  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

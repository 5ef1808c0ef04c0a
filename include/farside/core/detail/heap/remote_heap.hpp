// The allocator of far::alloc_on: any rank allocates and frees in any rank's segment, by far
// atomics alone; the owner's CPU takes no part.
//
//   region:  | words of the heaps | far::alloc, up ... untouched ... down, far::alloc_on |
//   words:   | boundary | lock | head of the free list of class 0 | class 1 | ... |
//   block:   | link (8 bytes) | mark (8 bytes) | payload, aligned to 16 ... |
//
// A free list is a stack of blocks of one class (size_classes.hpp); its head is
// {tag : 24, block / 16 : 40}. The link of a free block is {size beyond the class's, in granules :
// 24, next block / 16 : 40}. The mark of an allocated block is {'far' : 24, size / 16 : 40}, of a
// free one 0. All of these are written by atomics only.
//
//                 fresh                      pushed
//   untouched  ---------->  in one's hands  -------->  on a free list
//              <----------                  <--------
//              the lowest                    popped
//
// One's hands are a user's, or those of a call in the midst of its work, which may cut and join
// what it has there. Invariant: every block is in one of the three places, and every byte above the
// bottom (boundary.hpp) belongs to one block.
//
// The tag counts every change of the head, so that a pop whose link is stale fails its
// compare-and-swap (ABA). Such a link is read from a block that another rank has popped, and may be
// anything, even what a user now writes there: it is read by a get, which may overlap that, and
// what it was does not matter. A link that counts was written, by an atomic, before the head named
// its block, and stays until the head changes.
//
//   allocate:    1 atomic load of the head, then
//                pop:    1 get of the link, 1 compare-and-swap (repeated under contention)
//                fresh:  1 atomic load and 1 compare-and-swap of the boundary
//                and 1 swap to write the mark.
//                From 64 KiB on, if the first free block of the class is too small: 5
//   deallocate:  1 swap of the mark, 1 load of the head, 1 swap of the link, 1 compare-and-swap.
//                From 64 KiB on: 1 swap, 1 load of the boundary, and 1 compare-and-swap if the
//                block is the lowest, which makes it untouched, or else the last three as well: 5
//
// When nothing is untouched any more, one rank at a time, under the segment's lock, looks further:
// 1 get of all heads (or 1 atomic load each, without racy_get), and the first block of a larger
// class is cut; what is left of it goes back to the lists, 3 atomics a piece. If there is none, all
// free blocks are taken off their lists, 1 get each, and joined with their neighbours; the lowest
// becomes untouched memory, for either heap, if it can, the others go back to the lists, 3 atomics
// a piece. Only if that leaves no room either there is none. As a rank that holds more than it was
// asked for holds the lock, that is so at that moment, but for blocks on their way back to a list.
#pragma once

#include <farside/backend/backend.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/detail/heap/boundary.hpp>
#include <farside/core/detail/heap/size_classes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class remote_heap {
 public:
  static constexpr std::size_t header = 16;

  remote_heap() = default;
  /// The region [begin, end) of every rank's segment; both multiples of 64. Zeroed memory is an
  /// empty heap, so nothing needs to be initialised.
  remote_heap(std::size_t begin, std::size_t end) : lock_(begin + 8), heads_(begin + 16) {
    split_ = boundary(begin, (head(size_classes::count) + 63) & ~std::size_t{63}, end);
  }

  const boundary& split() const { return split_; }

  /// Payloads lie in the midst between multiples of 32, and blocks of far::alloc at those: whose a
  /// block is can be told from its address.
  static bool is_payload(std::size_t offset) { return offset % size_classes::step == header; }

  /// Offset of a payload of `bytes` on `rank`, or nothing if that segment is full. Calls `wait()`
  /// while it is full and another rank looks for room.
  template <class Wait>
  std::optional<std::size_t> allocate(transport& link, rank_t rank, std::size_t bytes,
                                      Wait&& wait) const {
    if (bytes > split_.capacity() - header) return std::nullopt;
    std::size_t wanted = size_classes::round_up(bytes + header);
    auto found = quickly(link, rank, wanted);
    if (!found) {
      locked during_search(*this, link, rank, wait);
      found = quickly(link, rank, wanted);
      if (!found) found = from_larger(link, rank, wanted);
      if (!found) found = join_all(link, rank, wanted);
      if (!found) found = fresh(link, rank, wanted);
      if (found) *found = cut(link, rank, *found, wanted);
    }
    if (!found) return std::nullopt;
    heap_access mark(link);
    link.fetch_op<atomic_op::swap>(rank, found->begin + 8, allocated | found->bytes / 16);
    return found->begin + header;
  }

  /// False if the block is not allocated (freed twice, or never a block). Any rank may call it.
  bool deallocate(transport& link, rank_t rank, std::size_t payload) const {
    if (payload < split_.begin() + header || payload >= split_.end()) return false;
    if (FARSIDE_CHECKED && payload < split_.bottom(link, rank)) return false;
    std::size_t begin = payload - header;
    std::uint64_t mark = take_mark(link, rank, begin);
    std::size_t bytes = (mark & block_mask) * 16;
    if ((mark & ~block_mask) != allocated || bytes > split_.end() - begin) {
      heap_access to_mark(link);
      if (mark != 0) link.fetch_op<atomic_op::swap>(rank, begin + 8, mark);  // somebody's data
      return false;
    }
    if (bytes < size_classes::large || !split_.raise_bottom(link, rank, begin, bytes))
      push(link, rank, {begin, bytes});
    return true;
  }

  /// Joins all blocks that are free, so that the lowest may become untouched again.
  template <class Wait>
  void join(transport& link, rank_t rank, Wait&& wait) const {
    locked during_work(*this, link, rank, wait);
    join_all(link, rank, never);
  }

  /// The largest payload there is room for now, or nearly: of a list only the first block counts.
  std::size_t largest(transport& link, rank_t rank) const {
    std::size_t most = split_.untouched(link, rank);
    most = most < size_classes::step ? 0 : size_classes::round_down(most);
    auto heads = all_heads(link, rank);
    unsigned index = size_classes::count;
    while (index > 0 && (heads[index - 1] & block_mask) == 0) --index;
    if (index-- > 0)
      most = std::max(most, size_in(index, link_of(link, rank, (heads[index] & block_mask) * 16)));
    return most < header ? 0 : most - header;
  }

 private:
  struct block {
    std::size_t begin, bytes;
  };

  static constexpr std::uint64_t allocated = std::uint64_t{0x66'61'72} << 40;  // "far"
  static constexpr unsigned tag_shift = 40;
  static constexpr std::uint64_t block_mask = (std::uint64_t{1} << tag_shift) - 1;
  static constexpr std::size_t never = ~std::size_t{0};  ///< no block is as large

  /// Holds a segment's lock. A rank that waits for it stops waiting if its holder has died.
  struct locked {
    template <class Wait>
    locked(const remote_heap& h, transport& l, rank_t r, Wait&& wait) : heap(h), link(l), rank(r) {
      while (link.compare_swap(rank, heap.lock_, std::uint64_t{0}, std::uint64_t{1}) != 0 &&
             !FARSIDE_MUTANT(full_segment_searched_unlocked))
        wait();
    }
    ~locked() { link.fetch_op<atomic_op::swap>(rank, heap.lock_, std::uint64_t{0}); }
    locked(const locked&) = delete;
    const remote_heap& heap;
    transport& link;
    rank_t rank;
  };

  std::size_t head(unsigned index) const { return heads_ + std::size_t{8} * index; }
  static std::uint64_t take_mark(transport& link, rank_t rank, std::size_t begin) {
    heap_access to_mark(link);
    if (FARSIDE_MUTANT(mark_not_cleared)) return link.atomic_load<std::uint64_t>(rank, begin + 8);
    return link.fetch_op<atomic_op::swap>(rank, begin + 8, std::uint64_t{0});
  }
  static void write_link(transport& link, rank_t rank, std::size_t begin, std::uint64_t value) {
    heap_access to_link(link);
    link.fetch_op<atomic_op::swap>(rank, begin, value);
  }
  static std::uint64_t link_of(transport& link, rank_t rank, std::size_t begin) {
    heap_access to_link(link);
    std::uint64_t result;
    link.get(rank, begin, &result, sizeof result);
    return result;
  }
  static std::size_t size_in(unsigned index, std::uint64_t link) {
    return size_classes::size_of(index) + (link >> tag_shift) * size_classes::granule_of(index);
  }

  /// The tag of a head that replaces `old`.
  static std::uint64_t next_tag(std::uint64_t old) {
    return ((old >> tag_shift) + (FARSIDE_MUTANT(tag_not_counted) ? 0 : 1)) << tag_shift;
  }

  std::optional<block> quickly(transport& link, rank_t rank, std::size_t wanted) const {
    if (auto found = pop(link, rank, size_classes::class_of(wanted), wanted)) return found;
    return fresh(link, rank, wanted);
  }

  std::optional<block> fresh(transport& link, rank_t rank, std::size_t wanted) const {
    auto begin = split_.lower_bottom(link, rank, wanted);
    if (!begin) return std::nullopt;
    return block{*begin, wanted};
  }

  /// The first block of a class, if it has `least` bytes.
  std::optional<block> pop(transport& link, rank_t rank, unsigned index, std::size_t least) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, head(index));
    while ((old & block_mask) != 0) {
      std::size_t begin = (old & block_mask) * 16;
      std::uint64_t next = link_of(link, rank, begin);
      if (size_in(index, next) < least) return std::nullopt;
      std::uint64_t seen =
          link.compare_swap(rank, head(index), old, next_tag(old) | (next & block_mask));
      if (seen == old) return block{begin, size_in(index, next)};
      old = seen;
    }
    return std::nullopt;
  }

  void push(transport& link, rank_t rank, block b) const {
    unsigned index = size_classes::class_of(b.bytes);
    std::uint64_t more = (b.bytes - size_classes::size_of(index)) / size_classes::granule_of(index)
                         << tag_shift;
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, head(index));
    for (;;) {
      if (!FARSIDE_MUTANT(pushed_before_linked))
        write_link(link, rank, b.begin, more | (old & block_mask));
      std::uint64_t seen = link.compare_swap(rank, head(index), old, next_tag(old) | b.begin / 16);
      if (FARSIDE_MUTANT(pushed_before_linked) && seen == old)
        write_link(link, rank, b.begin, more | (old & block_mask));
      if (seen == old) return;
      old = seen;
    }
  }

  /// Makes free blocks of a piece of any size; less than 32 bytes may be lost.
  void push_all(transport& link, rank_t rank, block piece) const {
    while (piece.bytes >= size_classes::step) {
      std::size_t bytes = size_classes::round_down(piece.bytes);
      push(link, rank, {piece.begin, bytes});
      if (!FARSIDE_MUTANT(cut_rests_overlap)) piece.begin += bytes;
      piece.bytes -= bytes;
    }
  }

  /// The upper end of a larger block, whose rest goes to the lists: `wanted` bytes, or all of it if
  /// the rest would be less than an eighth. The upper end, so that the lower one may become
  /// untouched again.
  block cut(transport& link, rank_t rank, block larger, std::size_t wanted) const {
    std::size_t rest = larger.bytes - wanted;
    if (rest < std::max(size_classes::step, wanted / 8) &&
        larger.bytes == size_classes::round_down(larger.bytes))
      return larger;
    push_all(link, rank, {larger.begin, rest});
    return {larger.begin + rest, FARSIDE_MUTANT(cut_block_keeps_its_size) ? larger.bytes : wanted};
  }

  std::vector<std::uint64_t> all_heads(transport& link, rank_t rank) const {
    std::vector<std::uint64_t> heads(size_classes::count);
    if (link.racy_get())
      link.get(rank, heads_, heads.data(), heads.size() * 8);
    else
      for (unsigned i = 0; i < heads.size(); ++i)
        heads[i] = link.atomic_load<std::uint64_t>(rank, head(i));
    return heads;
  }

  std::optional<block> from_larger(transport& link, rank_t rank, std::size_t wanted) const {
    auto heads = all_heads(link, rank);
    for (unsigned index = size_classes::class_of(wanted) + 1; index < heads.size(); ++index)
      if ((heads[index] & block_mask) != 0)
        if (auto found = pop(link, rank, index, wanted)) return found;
    return std::nullopt;
  }

  std::optional<block> join_all(transport& link, rank_t rank, std::size_t wanted) const;

  std::size_t lock_ = 0;
  std::size_t heads_ = 0;
  boundary split_;
};

/// The smallest that holds `wanted`, as it is, of what comes of joining; the caller has the lock.
inline std::optional<remote_heap::block> remote_heap::join_all(transport& link, rank_t rank,
                                                               std::size_t wanted) const {
  std::vector<block> all;
  auto heads = all_heads(link, rank);
  for (unsigned index = 0; index < heads.size(); ++index) {
    if ((heads[index] & block_mask) == 0) continue;
    // A list is taken as a whole: nobody else has its blocks then.
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, head(index)), seen = old;
    while ((seen = link.compare_swap(rank, head(index), old, next_tag(old))) != old) old = seen;
    while (std::size_t begin = (old & block_mask) * 16) {
      old = link_of(link, rank, begin);
      all.push_back({begin, size_in(index, old)});
    }
  }
  std::ranges::sort(all, {}, &block::begin);
  std::vector<block> joined;
  for (block b : all) {
    if (!joined.empty() && (joined.back().begin + joined.back().bytes == b.begin ||
                            FARSIDE_MUTANT(joined_across_a_gap)))
      joined.back().bytes = b.begin + b.bytes - joined.back().begin;
    else
      joined.push_back(b);
  }
  std::optional<block> best;
  for (block b : joined)
    if (b.bytes >= wanted && (!best || b.bytes < best->bytes)) best = b;
  bool lowest = true;
  for (block b : joined) {
    bool taken = best && b.begin == best->begin;
    if (!taken && !(lowest && split_.raise_bottom(link, rank, b.begin, b.bytes)))
      push_all(link, rank, b);
    lowest = false;
  }
  return best;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

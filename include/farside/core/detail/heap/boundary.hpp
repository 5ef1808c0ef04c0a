// Where the two heaps of a segment end. Both take from the untouched memory between them: the
// owner's heap (far::alloc) from below, that of all ranks (far::alloc_on) from above.
//
//   begin                                                                             end
//     | far::alloc, `local` units | untouched                | far::alloc_on, `remote` x 16 bytes |
//
// Both counts are one word, {local : 24, remote : 40}, zero at first and changed by
// compare-and-swap only. The word is all there is to know, so a rank that changes it from a value
// that leaves room has that room, whatever happened since it was read: there is no ABA.
//
// Invariant: local * unit + remote * 16 <= end - begin. Only the owner changes `local`. Anyone
// raises `remote`, and the rank that holds the lowest block lowers it by that block.
//
// A small remote block takes what it needs and no more; 40 bits of 16 bytes are the largest segment
// (2^44), so 24 bits are left for `local`: its unit is 4 KiB up to 64 GiB, and larger in larger
// segments (1 MiB in the largest).
//
// Memory order. Memory that goes from one heap to the other changes hands through this word, by
// atomics, which are complete on return. A rank that gives memory has completed what it wrote there
// before (flush); far::dealloc does so for its caller.
#pragma once

#include <farside/backend/backend.hpp>
#include <farside/base/mutants.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail {

class boundary {
 public:
  boundary() = default;
  /// Of [begin, end) of every segment, both multiples of 32; the word lies at `word`, and is zero.
  boundary(std::size_t word, std::size_t begin, std::size_t end)
      : word_(word), begin_(begin), end_(end) {
    while ((end_ - begin_) / unit_ >= std::size_t{1} << (64 - local_shift)) unit_ *= 2;
  }

  std::size_t begin() const { return begin_; }
  std::size_t end() const { return end_; }
  std::size_t capacity() const { return end_ - begin_; }
  std::size_t unit() const { return unit_; }

  /// Bytes of `rank` that neither heap has. 1 atomic load.
  std::size_t untouched(transport& link, rank_t rank) const {
    return room(link.atomic_load<std::uint64_t>(rank, word_));
  }
  /// Where the remote heap of `rank` begins now. 1 atomic load.
  std::size_t bottom(transport& link, rank_t rank) const {
    return bottom_of(link.atomic_load<std::uint64_t>(rank, word_));
  }

  /// The owner's heap gets `least` bytes more, or up to `welcome` if there is plenty: at most a
  /// sixteenth of what is untouched. How many it got, whole units; 0 if there is no room. 1 atomic
  /// load and 1 compare-and-swap, repeated if another rank was faster.
  std::size_t raise_top(transport& link, std::size_t least, std::size_t welcome) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(link.rank(), word_);
    for (;;) {
      std::size_t free = FARSIDE_MUTANT(top_ignores_bottom) ? capacity() : room(old);
      if (least > free / unit_ * unit_) return 0;
      std::size_t units = (least + unit_ - 1) / unit_;
      units = std::max(units, std::min(welcome, free / 16) / unit_);
      std::uint64_t seen =
          link.compare_swap(link.rank(), word_, old, old + (std::uint64_t{units} << local_shift));
      if (seen == old) return units * unit_;
      old = seen;
    }
  }

  /// The owner's heap gives back its last `bytes`, whole units.
  void lower_top(transport& link, std::size_t bytes) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(link.rank(), word_);
    for (;;) {
      std::uint64_t fresh = old - (std::uint64_t{bytes / unit_} << local_shift);
      std::uint64_t seen = link.compare_swap(link.rank(), word_, old, fresh);
      if (seen == old) return;
      old = seen;
    }
  }

  /// A block of `bytes` (a multiple of 32) at the bottom of the remote heap of `rank`, from any
  /// rank; nothing if there is no room. 1 atomic load, 1 compare-and-swap.
  std::optional<std::size_t> lower_bottom(transport& link, rank_t rank, std::size_t bytes) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, word_);
    while (bytes <= (FARSIDE_MUTANT(bottom_ignores_top) ? bottom_of(old) - begin_ : room(old))) {
      std::uint64_t seen = link.compare_swap(rank, word_, old, old + bytes / 16);
      if (seen == old || FARSIDE_MUTANT(lost_race_taken_for_won)) return bottom_of(old) - bytes;
      old = seen;
    }
    return std::nullopt;
  }

  /// Makes [block, block + bytes), which the caller has for itself, untouched again, if it is the
  /// lowest of the remote heap; false if it is not. 1 atomic load, and 1 compare-and-swap if it is.
  bool raise_bottom(transport& link, rank_t rank, std::size_t block, std::size_t bytes) const {
    std::uint64_t old = link.atomic_load<std::uint64_t>(rank, word_);
    while (bottom_of(old) == block || FARSIDE_MUTANT(given_back_from_the_middle)) {
      std::uint64_t seen = link.compare_swap(rank, word_, old, old - bytes / 16);
      if (seen == old) return true;
      old = seen;
    }
    return false;
  }

 private:
  static constexpr unsigned local_shift = 40;
  static constexpr std::uint64_t remote_mask = (std::uint64_t{1} << local_shift) - 1;

  std::size_t bottom_of(std::uint64_t word) const { return end_ - (word & remote_mask) * 16; }
  std::size_t room(std::uint64_t word) const {
    return bottom_of(word) - begin_ - (word >> local_shift) * unit_;
  }

  std::size_t word_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t unit_ = 4096;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

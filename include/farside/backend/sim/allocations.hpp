// Which parts of the simulated segments are allocated, and by which rank: every access to memory
// that is freed, that was never allocated, or that belongs to another block meanwhile ends the run.
//
// The heaps say what they give out and take back (watches_memory in backend/concept.hpp). Each
// aligned word of a segment has one byte of shadow: 0 where nothing is allocated, otherwise the
// generation of its block. Generations are counted from 1 to 255 and then again, so that blocks
// that follow each other in time or in space differ. An access is good if all of its bytes of
// shadow are the same and not 0, and, for what is in flight, the same as when it began: a put that
// lands late in memory that was freed and allocated again is found, too.
//
// What lies before the heaps (the library's own words) is not watched. The heaps' own words inside
// of blocks are exempt by the rank that touches them: it says so, for each such access.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/error.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// Which rank did something to a block, and at which step of the run.
struct deed {
  rank_t by = 0;
  std::uint64_t at = 0;
};

inline std::string hexadecimal(std::size_t offset) {
  char text[24];
  std::snprintf(text, sizeof text, "+0x%zx", offset);
  return text;
}

class allocated_blocks {
 public:
  using generation = std::uint8_t;  ///< 0: of nothing

  allocated_blocks(rank_t nprocs, std::size_t stride)
      : blocks_(nprocs), words_(stride / word), bytes_(nprocs * words_) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      raise("cannot map ", bytes_, " bytes to watch the segments of ", nprocs,
            " ranks: ", std::strerror(errno), ". Ask for smaller ones: FARSIDE_SEGMENT=1M.");
    shadow_ = static_cast<generation*>(at);
  }
  ~allocated_blocks() { munmap(shadow_, bytes_); }
  allocated_blocks(const allocated_blocks&) = delete;

  /// As if nothing had ever been allocated.
  void reset() {
    madvise(shadow_, bytes_, MADV_DONTNEED);
    for (auto& of_rank : blocks_) of_rank.clear();
    begin_ = end_ = count_ = 0;
  }

  /// The heaps are in [begin, end) of every segment. Until this is said, nothing is watched.
  void watch(std::size_t begin, std::size_t end) { begin_ = begin, end_ = end; }

  bool watches(std::size_t offset, std::size_t bytes) const {
    return offset + bytes > begin_ && offset < end_;
  }

  /// The generation of the block there.
  generation at(rank_t rank, std::size_t offset) const { return *shadow_of(rank, offset); }

  /// Whether all of these bytes belong to one block, which is of generation `g`.
  bool good(rank_t rank, std::size_t offset, std::size_t bytes, generation g) const {
    const generation* first = shadow_of(rank, offset);
    std::size_t more = (offset + bytes - 1) / word - offset / word;
    if (*first == 0 || *first != g) return false;
    return more == 0 || (offset + bytes <= end_ && std::memcmp(first, first + 1, more) == 0);
  }

  /// Nothing, or why these bytes could not be given out: they belong to a block already.
  std::string allocate(rank_t rank, std::size_t offset, std::size_t bytes, deed who) {
    bytes = std::max<std::size_t>(bytes, 1);
    block made{bytes, who};
    auto& all = blocks_[rank];
    for (auto it = first_overlap(rank, offset); it != all.end() && it->first < offset + bytes;) {
      auto [begin, old] = *it;
      if (!old.free)
        return text("the heap of rank ", rank, " gives rank ", who.by, " ", bytes, " B at ",
                    hexadecimal(offset), ", but they belong to ", described(begin, old),
                    " already.");
      made.before = old.freed;
      made.reused = true;
      it = all.erase(it);
      if (begin < offset) keep_part(rank, begin, offset, old);
      if (begin + old.bytes > offset + bytes)
        it = keep_part(rank, offset + bytes, begin + old.bytes, old);
    }
    made.number = static_cast<generation>(count_++ % 255 + 1);
    std::memset(shadow_of(rank, offset), made.number, (bytes + word - 1) / word);
    all.emplace(offset, made);
    return "";
  }

  /// How large the block is that begins there; 0 if there is none.
  std::size_t size_of(rank_t rank, std::size_t offset) const {
    auto found = blocks_[rank].find(offset);
    return found == blocks_[rank].end() || found->second.free ? 0 : found->second.bytes;
  }

  /// The block that begins there is free. Nothing, or why it could not be freed.
  std::string free(rank_t rank, std::size_t offset, deed who) {
    auto found = blocks_[rank].find(offset);
    if (found == blocks_[rank].end()) return "nobody has allocated it";
    block& b = found->second;
    if (b.free)
      return text("rank ", b.freed.by, " freed it at step ", b.freed.at, " (", described(offset, b),
                  ")");
    b.free = true;
    b.freed = who;
    std::memset(shadow_of(rank, offset), 0, (b.bytes + word - 1) / word);
    return "";
  }

  /// What is wrong with an access that is not good. `began`: the generation that it began with.
  std::string complaint(rank_t rank, std::size_t offset, std::size_t bytes,
                        generation began) const {
    std::size_t end = offset + bytes;
    auto it = first_overlap(rank, offset);
    const auto& all = blocks_[rank];
    if (it != all.end() && it->first < end && it->second.free)
      return text("which rank ", it->second.freed.by, " freed at step ", it->second.freed.at, " (",
                  described(it->first, it->second), ")");
    if (it == all.end() || it->first >= end) return "where nothing is allocated";
    auto [begin, b] = *it;
    if (begin <= offset && began != 0 && b.number != began && b.reused)
      return text("which rank ", b.before.by, " freed at step ", b.before.at,
                  "; meanwhile it is part of ", described(begin, b));
    if (begin > offset)
      return text("which begins ", begin - offset, " B before ", described(begin, b));
    return text("which runs ", end - begin - b.bytes, " B beyond the end of ", described(begin, b));
  }

 private:
  static constexpr std::size_t word = 8;

  struct block {
    std::size_t bytes = 0;
    deed allocated{}, freed{};
    deed before{};  ///< which rank freed what lay there, if `reused`
    bool free = false, reused = false;
    generation number = 0;
  };
  using map = std::map<std::size_t, block>;

  generation* shadow_of(rank_t rank, std::size_t offset) const {
    return shadow_ + rank * words_ + offset / word;
  }

  /// The first block that ends behind `offset`.
  map::const_iterator first_overlap(rank_t rank, std::size_t offset) const {
    const map& all = blocks_[rank];
    auto it = all.upper_bound(offset);
    if (it != all.begin()) {
      auto before = std::prev(it);
      if (before->first + before->second.bytes > offset) return before;
    }
    return it;
  }

  /// What is left of a free block when a part of it is given out.
  map::const_iterator keep_part(rank_t rank, std::size_t begin, std::size_t end, block of) {
    of.bytes = end - begin;
    return blocks_[rank].emplace(begin, of).first;
  }

  static std::string described(std::size_t begin, const block& b) {
    return text("a block of ", b.bytes, " B at ", hexadecimal(begin), ", which rank ",
                b.allocated.by, " allocated at step ", b.allocated.at);
  }

  std::vector<map> blocks_;  ///< by offset, none of which overlap; freed ones until they are reused
  std::size_t words_, bytes_;
  generation* shadow_ = nullptr;
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

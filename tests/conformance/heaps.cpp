// The two heaps of a segment, far::alloc's and far::alloc_on's, and the boundary between them: in
// a small segment of the test's own, so that it is full soon.
#include "harness.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace heaps_tests {

namespace {

using far::rank_t;
using far::detail::remote_heap;

/// While it lives, far::alloc on rank 0 and far::alloc_on(0) have a segment of `bytes` for
/// themselves, empty at first. No other rank may call far::alloc, and none a collective but
/// barrier. Collective.
class small_segment {
 public:
  explicit small_segment(std::size_t bytes) : c_(far::detail::here()) {
    bytes_ = bytes + 64;
    if (far::rank() == 0) memory_ = far::alloc<std::byte>(bytes_);
    memory_ = far::broadcast(memory_, 0);
    std::size_t begin = (memory_.offset() + 63) & ~std::size_t{63};
    if (far::rank() == 0) {
      // Where memory is watched: of this block only the words of its heaps are in use now.
      std::size_t words = remote_heap(begin, begin + bytes).split().begin() - memory_.offset();
      far::detail::note_freed(c_.link, 0, memory_.offset());
      far::detail::note_allocated(c_.link, 0, memory_.offset(), words);
      std::vector<std::byte> zeros(words);
      far::put(memory_, zeros.data(), zeros.size());
    }
    far::barrier();
    usual_far_heap_ = std::exchange(c_.far_heap, remote_heap(begin, begin + bytes));
    std::size_t first = c_.far_heap.split().begin();
    if (far::rank() == 0)
      usual_heap_ = std::exchange(c_.heap, far::detail::local_heap(first, first));
    far::barrier();
  }
  ~small_segment() {
    far::barrier();
    if (far::rank() == 0) {
      far::detail::collect_freed(c_);
      CHECK_EQ(c_.heap.in_use(), 0);  // a test leaves nothing behind
      c_.heap = std::move(usual_heap_);
    }
    c_.far_heap = usual_far_heap_;
    if (far::rank() == 0) {
      far::detail::note_freed(c_.link, 0, memory_.offset());
      far::detail::note_allocated(c_.link, 0, memory_.offset(), bytes_);
      far::dealloc(memory_);
    }
    far::barrier();
  }
  small_segment(const small_segment&) = delete;

  std::size_t begin() const { return split().begin(); }
  std::size_t end() const { return split().end(); }
  std::size_t capacity() const { return split().capacity(); }
  std::size_t untouched() { return split().untouched(c_.link, 0); }

 private:
  const far::detail::boundary& split() const { return c_.far_heap.split(); }

  far::detail::context& c_;
  far::ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
  far::detail::local_heap usual_heap_;
  remote_heap usual_far_heap_;
};

/// A block as the oracle keeps it: [begin, end) of rank 0, with what belongs to it.
struct block {
  std::uint64_t payload, bytes, tag;
  std::uint64_t remote;

  far::ptr<unsigned char> at() const { return far::ptr<unsigned char>(0, payload); }
  std::uint64_t begin() const { return remote ? payload - remote_heap::header : payload; }
  std::uint64_t end() const { return payload + bytes; }
};

unsigned char pattern(std::uint64_t tag, std::size_t i) {
  return static_cast<unsigned char>(tag * 131 + i * 7 + (tag >> 8));
}

std::optional<block> take_once(bool remote, std::size_t bytes, std::uint64_t tag) {
  try {
    auto p = remote ? far::alloc_on<unsigned char>(0, bytes) : far::alloc<unsigned char>(bytes);
    std::vector<unsigned char> fill(bytes);
    for (std::size_t i = 0; i < bytes; ++i) fill[i] = pattern(tag, i);
    far::put(p, fill.data(), bytes);
    return block{p.offset(), bytes, tag, remote};
  } catch (const far::allocation_error&) {
    return std::nullopt;
  }
}

/// None if there is no room. A simulation may refuse one allocation, whatever room there is.
std::optional<block> take(bool remote, std::size_t bytes, std::uint64_t tag) {
  auto taken = take_once(remote, bytes, tag);
  if (!taken && far::detail::setting("FARSIDE_SIM_FAIL_ALLOCATION"))
    taken = take_once(remote, bytes, tag);
  return taken;
}

bool intact(const block& b) {
  auto bytes = far::get(b.at(), b.bytes);
  for (std::size_t i = 0; i < b.bytes; ++i)
    if (bytes[i] != pattern(b.tag, i)) return false;
  return true;
}

/// Intervals that do not overlap and lie in [begin, end).
bool disjoint(std::vector<block> blocks, std::size_t begin, std::size_t end) {
  std::ranges::sort(blocks, {}, &block::payload);
  for (const block& b : blocks) {
    if (b.begin() < begin || b.end() > end) return false;
    begin = b.end();
  }
  return true;
}

/// Takes blocks of `bytes` until there is no room; what they have together.
std::size_t fill_up(bool remote, std::size_t bytes, std::vector<block>& taken) {
  std::size_t sum = 0;
  while (auto b = take(remote, bytes, taken.size())) {
    taken.push_back(*b);
    sum += bytes;
  }
  return sum;
}

void free_all(std::vector<block>& blocks) {
  for (const block& b : blocks) {
    CHECK(intact(b));
    far::dealloc(b.at());
  }
  blocks.clear();
}

constexpr std::size_t header = remote_heap::header;

}  // namespace

// Either kind of allocation can have all of the memory, again and again, whatever was there before.
FAR_TEST(either_kind_has_all_the_memory) {
  small_segment segment(std::size_t{1} << 19);
  rank_t other = far::nprocs() - 1;
  std::vector<block> taken;
  struct round {
    bool remote;
    std::size_t bytes, with_header;
  };
  const round rounds[] = {{true, 65536 + 4096 - header, 65536 + 4096},
                          {false, 4096, 4096},
                          {true, 2048 - header, 2048},
                          {true, 100'000, 102'400},
                          {false, 40'000, 40'000},
                          {true, 496, 512},
                          {false, 300'000, 300'000}};
  for (const round& r : rounds) {
    far::barrier();
    if (far::rank() != (r.remote ? other : 0)) continue;
    std::size_t sum = fill_up(r.remote, r.bytes, taken);
    CHECK(disjoint(taken, segment.begin(), segment.end()));
    // No more is left than one block and a page.
    CHECK(taken.size() * r.with_header + r.with_header + 4096 > segment.capacity());
    CHECK(sum <= segment.capacity());
    free_all(taken);
  }
}

FAR_TEST(a_segment_that_is_full) {
  small_segment segment(std::size_t{1} << 18);
  rank_t other = far::nprocs() - 1;
  std::vector<block> own, remote;
  // Full by far::alloc: far::alloc_on finds nothing, and then what was freed.
  if (far::rank() == 0) {
    fill_up(false, 20'000, own);
    fill_up(false, 32, own);
    CHECK_THROWS(far::alloc<char>(), "far::alloc finds at most 0 bytes");
  }
  far::barrier();
  if (far::rank() == other) CHECK_THROWS(far::alloc_on<char>(0, 5000), "no room for 5000 bytes");
  far::barrier();
  if (far::rank() == 0) free_all(own);
  far::barrier();
  if (far::rank() == other) {
    // Full by far::alloc_on: the other way round.
    CHECK(fill_up(true, 20'000, remote) > segment.capacity() / 4 * 3);
    fill_up(true, 16, remote);
    CHECK_THROWS(far::alloc_on<char>(0), "far::alloc_on finds at most 0 bytes");
    CHECK_EQ(segment.untouched(), 0);
  }
  far::barrier();
  if (far::rank() == 0)
    CHECK_THROWS(far::alloc<char>(),
                 far::text("no room for 1 bytes (1 B) in the segment of rank 0: far::alloc "
                           "finds at most 0 bytes"));
  far::barrier();
  // What is on free lists is told: one block, and joined ones.
  if (far::rank() == other) {
    auto lowest = std::ranges::min_element(remote, {}, &block::payload);
    CHECK_EQ(lowest->bytes, 16);
    far::dealloc(remote[1].at());
    CHECK_THROWS(far::alloc_on<char>(0, 100'000), far::text("at most ", 20'480 - header, " bytes"));
    remote.erase(remote.begin() + 1);
    free_all(remote);
  }
  far::barrier();
  if (far::rank() == 0) {
    auto all = take(false, segment.capacity() - 4096, 5);
    CHECK(all.has_value());
    if (all) CHECK(intact(*all));
    if (all) far::dealloc(all->at());
  }
}

// Blocks of both kinds side by side, where the heaps meet; each is given back by another rank.
FAR_TEST(any_rank_frees_either_kind) {
  small_segment segment(std::size_t{1} << 17);
  rank_t me = far::rank(), n = far::nprocs();
  for (int round = 0; round < 3; ++round) {
    std::vector<block> taken;
    if (me == 0) {
      // Until both have met; small pieces last.
      for (std::size_t bytes = 16384; bytes >= 8; bytes /= 2)
        for (bool more = true; more;) {
          more = false;
          for (bool remote : {false, true})
            if (auto b = take(remote, bytes, taken.size())) {
              taken.push_back(*b);
              more = true;
            }
        }
      CHECK(disjoint(taken, segment.begin(), segment.end()));
      CHECK(segment.untouched() < 4096);
      auto highest_own = std::uint64_t{0}, lowest_remote = segment.end();
      for (const block& b : taken)
        if (b.remote)
          lowest_remote = std::min<std::uint64_t>(lowest_remote, b.begin());
        else
          highest_own = std::max(highest_own, b.end());
      CHECK(highest_own <= lowest_remote && lowest_remote - highest_own < 8192);
    }
    auto blocks = far::broadcast(taken, 0);
    far::barrier();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if ((i + static_cast<std::size_t>(round)) % n == me) {
        CHECK(intact(blocks[i]));
        far::dealloc(blocks[i].at());
      }
    far::barrier();
    if (me == 0) {
      far::detail::collect_freed(far::detail::here());
      CHECK_EQ(far::detail::here().heap.in_use(), 0);
      auto all = take(false, segment.capacity() - 4096, 9);  // nothing is lost
      CHECK(all.has_value());
      if (all) far::dealloc(all->at());
    }
    far::barrier();
  }
}

// All ranks allocate and free, and the owner in both ways, in a segment that is nearly full all the
// time; blocks go from rank to rank. Nothing ever overlaps, and in the end nothing is lost.
FAR_TEST(both_kinds_from_all_ranks) {
  constexpr std::size_t size = std::size_t{1} << 18;
  small_segment segment(size);
  auto random = far_test::random_engine();
  rank_t me = far::rank(), n = far::nprocs();
  const std::size_t share = size / n, largest = std::max<std::size_t>(share / 2, 64);
  std::vector<block> live;
  std::size_t held = 0, refused = 0;
  std::uint64_t tag = me * 100'000;
  auto drop = [&](std::size_t which) {
    CHECK(intact(live[which]));
    held -= live[which].bytes;
    far::dealloc(live[which].at());
    live[which] = live.back();
    live.pop_back();
  };
  const int steps = n > 8 ? 15 : 60;
  for (int round = 0; round < 4; ++round) {
    for (int step = 0; step < steps; ++step) {
      if (!live.empty() && (held > share || random() % 5 < 2)) {
        drop(random() % live.size());
        continue;
      }
      std::size_t bytes = random() % 4 == 0 ? random() % largest : random() % 2000;
      if (auto b = take(me != 0 || random() % 2 == 0, bytes, ++tag)) {
        live.push_back(*b);
        held += bytes;
      } else {
        ++refused;
      }
    }
    if (refused > 20)  // let others have something
      while (held > share / 2) drop(live.size() - 1);
    far::barrier();
    auto all = far::all_gather(live);
    std::vector<block> everything;
    for (const auto& of_one : all)
      everything.insert(everything.end(), of_one.begin(), of_one.end());
    CHECK(disjoint(everything, segment.begin(), segment.end()));
    live = all[(me + 1) % n];
    held = 0;
    for (const block& b : live) held += b.bytes;
    far::barrier();
  }
  free_all(live);
  far::barrier();
  if (me == 0) {
    auto all = take(false, segment.capacity() - 4096, 9);
    CHECK(all.has_value());
    if (all) far::dealloc(all->at());
  }
  far::barrier();
  if (me == n - 1) {
    auto all = take(true, segment.capacity() - 8192, 9);
    CHECK(all.has_value());
    if (all) far::dealloc(all->at());
  }
}

// Ranks that find the segment full at one time wait for each other, and nobody is refused what is
// there. All want blocks of one size, of which each holds its share; however those lie, they spoil
// less than twice their size each, and there is more than that.
FAR_TEST(nobody_is_refused_what_is_there) {
  rank_t n = far::nprocs(), me = far::rank();
  constexpr std::size_t share = 8 * 4096;
  small_segment segment(4096 + (2 * n + 1) * share);
  auto random = far_test::common_random_engine();
  for (int step = 0; step < 12; ++step) {
    std::size_t pieces = std::size_t{1} << random() % 4;  // another size: blocks are cut or joined
    for (int again = 0; again < 2; ++again) {
      std::vector<block> mine;
      for (std::size_t i = 0; i < pieces; ++i) {
        auto b = take(true, share / pieces - header, me * 1000 + i);
        CHECK(b.has_value());
        if (b) mine.push_back(*b);
      }
      free_all(mine);
    }
    far::barrier();
  }
}

}  // namespace heaps_tests

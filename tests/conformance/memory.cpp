// Segment memory: own, remote, given back by anyone. Blocks never overlap, contents stay, and
// what was freed is used again.
#include "harness.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <span>

namespace memory_tests {

using far_test::release;
using far_test::shared_objects;

namespace {

struct alignas(64) line {
  std::uint64_t words[8];
};

struct point {
  int x, y;
  point(int a, int b) : x(a), y(b) {}
};

/// A block as the oracle keeps it.
struct block {
  std::uint64_t raw;
  std::uint64_t bytes;
};

/// True if no two of the blocks share a byte.
bool disjoint(std::vector<block> blocks) {
  std::sort(blocks.begin(), blocks.end(), [](auto a, auto b) { return a.raw < b.raw; });
  for (std::size_t i = 1; i < blocks.size(); ++i)
    if (blocks[i - 1].raw + blocks[i - 1].bytes > blocks[i].raw) return false;
  return true;
}

unsigned char pattern(std::uint64_t tag, std::size_t i) {
  return static_cast<unsigned char>(tag * 131 + i * 7 + (tag >> 8));
}

void fill(far::ptr<unsigned char> at, std::size_t n, std::uint64_t tag) {
  std::vector<unsigned char> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = pattern(tag, i);
  far::put(at, bytes.data(), n);
}

bool holds(far::ptr<unsigned char> at, std::size_t n, std::uint64_t tag) {
  auto bytes = far::get(at, n);
  for (std::size_t i = 0; i < n; ++i)
    if (bytes[i] != pattern(tag, i)) return false;
  return true;
}

/// Sizes from bytes to pages, mostly small.
std::size_t random_size(std::mt19937_64& random) {
  return 1 + random() % (std::size_t{1} << (random() % 11));
}

/// Where the memory that alloc_on has taken begins.
std::size_t bottom(far::rank_t rank) {
  auto& c = far::detail::here();
  return c.far_heap.split().bottom(c.link, rank);
}

/// Allocates with `allocate(bytes)` until nothing of at least 4 KiB fits; the message of the last
/// refusal.
template <class Allocate>
std::string exhaust(Allocate allocate, std::vector<far::ptr<char>>& taken) {
  std::string message;
  for (std::size_t bytes = far::max_segment; bytes >= 4096;) {
    try {
      taken.push_back(allocate(bytes));
    } catch (const far::allocation_error& e) {
      message = e.what();
      bytes /= 2;
    }
  }
  return message;
}

bool contains(const std::string& text, std::string_view part) {
  bool found = text.find(part) != std::string::npos;
  if (!found)
    std::fprintf(stderr, "not in the message: '%s': %s\n", std::string(part).c_str(), text.c_str());
  return found;
}

}  // namespace

FAR_TEST(make_and_get) {
  auto a = far::make<int>(42);
  auto b = far::make<point>(3, -4);
  auto c = far::make<double>();
  CHECK_EQ(far::get(a), 42);
  CHECK_EQ(far::get(b).x, 3);
  CHECK_EQ(far::get(b).y, -4);
  CHECK_EQ(far::get(c), 0.0);
  CHECK_EQ(a.rank(), far::rank());
  auto all = far::all_gather(a);
  for (auto p : all) CHECK_EQ(far::get(p), 42);
  far::barrier();
  far::dealloc(a);
  far::dealloc(b);
  far::dealloc(c);
  far::dealloc(far::ptr<int>());  // null is allowed
}

FAR_TEST(alignment) {
  std::vector<far::ptr<line>> lines;
  std::vector<far::ptr<char>> chars;
  for (int i = 0; i < 20; ++i) {
    chars.push_back(far::alloc<char>(1 + static_cast<std::size_t>(i) % 5));
    lines.push_back(far::alloc<line>(1 + static_cast<std::size_t>(i) % 3));
    CHECK_EQ(lines.back().offset() % 64, 0u);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(lines.back().local()) % 64, 0u);
    auto remote = far::alloc_on<std::max_align_t>(static_cast<far::rank_t>(i) % far::nprocs());
    CHECK_EQ(remote.offset() % alignof(std::max_align_t), 0u);
    far::dealloc(remote);
  }
  for (auto p : lines) far::dealloc(p);
  for (auto p : chars) far::dealloc(p);
}

FAR_TEST(random_allocations_do_not_overlap) {
  auto random = far_test::random_engine();
  std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> live;  // raw -> bytes, tag
  for (std::uint64_t step = 0; step < 1500; ++step) {
    if (live.empty() || random() % 5 < 3) {
      std::size_t bytes = random_size(random);
      auto p = far::alloc<unsigned char>(bytes);
      CHECK_EQ(p.rank(), far::rank());
      auto after = live.lower_bound(p.raw());
      CHECK(after == live.end() || p.raw() + bytes <= after->first);
      CHECK(after == live.begin() ||
            std::prev(after)->first + std::prev(after)->second.first <= p.raw());
      fill(p, bytes, step);
      live[p.raw()] = {bytes, step};
    } else {
      auto victim = std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      auto p = far::ptr<unsigned char>::from_raw(victim->first);
      CHECK(holds(p, victim->second.first, victim->second.second));
      far::dealloc(p);
      live.erase(victim);
    }
  }
  for (auto [raw, what] : live) {
    auto p = far::ptr<unsigned char>::from_raw(raw);
    CHECK(holds(p, what.first, what.second));
    far::dealloc(p);
  }
}

FAR_TEST(exhaustion_of_own_memory) {
  std::size_t before = far::detail::here().heap.in_use();
  std::vector<far::ptr<char>> taken;
  std::string message = exhaust([](std::size_t n) { return far::alloc<char>(n); }, taken);
  CHECK(contains(message, "no room for 4096 bytes"));  // what was asked
  CHECK(contains(message, "bytes ("));
  CHECK(contains(message, "free in one piece"));                   // what there is
  CHECK(contains(message, "FARSIDE_SEGMENT"));                     // what to do
  CHECK(contains(message, far::text("rank ", far::rank(), ":")));  // and who
  CHECK(!taken.empty());
  for (auto p : taken) far::dealloc(p);
  CHECK_EQ(far::detail::here().heap.in_use(), before);
  auto again = far::alloc<char>(1 << 20);  // usable after
  far::put(again + ((1 << 20) - 1), 'x');
  CHECK_EQ(far::get(again + ((1 << 20) - 1)), 'x');
  far::dealloc(again);
  CHECK_THROWS(far::alloc<line>(~std::size_t{0} / 2), "no room");  // n * sizeof would overflow
}

FAR_TEST(exhaustion_of_remote_memory) {
  far::rank_t target = far::nprocs() - 1;
  if (far::rank() == 0) {
    std::vector<far::ptr<char>> taken;
    std::string message =
        exhaust([&](std::size_t n) { return far::alloc_on<char>(target, n); }, taken);
    CHECK(contains(message, "no room for 4096 bytes"));
    CHECK(contains(message, "far::alloc_on finds at most"));
    CHECK(contains(message, far::text("segment of rank ", target)));
    CHECK(contains(message, "FARSIDE_SEGMENT"));
    CHECK(!taken.empty());
    for (auto p : taken) far::dealloc(p);
    std::vector<block> again;  // what was freed serves all sizes
    for (std::uint64_t i = 0; i < 500; ++i) {
      std::size_t bytes = 1 + i * 7;
      auto p = far::alloc_on<unsigned char>(target, bytes);
      fill(p, bytes, i);
      again.push_back({p.raw(), bytes});
    }
    CHECK(disjoint(again));
    for (std::uint64_t i = 0; i < 500; ++i) {
      auto p = far::ptr<unsigned char>::from_raw(again[i].raw);
      CHECK(holds(p, again[i].bytes, i));
      far::dealloc(p);
    }
  }
  CHECK_THROWS(far::alloc_on<int>(far::nprocs()), "there are only");
}

FAR_TEST(standard_allocator) {
  std::vector<long, far::allocator<long>> v;
  for (long i = 0; i < 1000; ++i) v.push_back(i * i);
  auto p = far::to_far(v.data());
  CHECK(p);
  CHECK_EQ(p.rank(), far::rank());
  CHECK(p.local() == v.data());
  auto all = far::all_gather(p);
  far::barrier();
  auto theirs = far::get(all[(far::rank() + 1) % far::nprocs()], 1000);
  CHECK(std::equal(v.begin(), v.end(), theirs.begin()));
  far::barrier();
  int elsewhere = 0;
  CHECK(!far::to_far(&elsewhere));
  auto own = far::alloc<int>(3);
  CHECK(far::to_far(own.local() + 2) == own + 2);
  far::dealloc(own);
}

FAR_TEST(all_ranks_allocate_on_one) {
  auto random = far_test::random_engine();
  far::rank_t me = far::rank(), target = far::nprocs() / 2;
  constexpr std::size_t each = 120;
  std::vector<block> mine;
  for (std::size_t i = 0; i < each; ++i) {
    std::size_t bytes = random_size(random);
    auto p = far::alloc_on<unsigned char>(target, bytes);
    CHECK_EQ(p.rank(), target);
    fill(p, bytes, me * 1000 + i);
    mine.push_back({p.raw(), bytes});
  }
  far::barrier();
  auto all = far::all_gather(std::span<const block>(mine));
  CHECK(disjoint(all));
  far::rank_t next = (me + 1) % far::nprocs();
  for (std::size_t i = 0; i < each; ++i) {  // each looks after another's blocks, and frees them
    auto [raw, bytes] = all[next * each + i];
    auto p = far::ptr<unsigned char>::from_raw(raw);
    CHECK(holds(p, bytes, next * 1000 + i));
    far::dealloc(p);
  }
}

// Everybody allocates, checks and frees on everybody, without any order.
FAR_TEST(stress_on_remote_heaps) {
  auto random = far_test::random_engine();
  struct held {
    far::ptr<unsigned char> at;
    std::size_t bytes;
    std::uint64_t tag;
  };
  std::vector<held> live;
  std::uint64_t tag = far::rank() * 100'000;
  auto drop = [&](std::size_t which) {
    CHECK(holds(live[which].at, live[which].bytes, live[which].tag));
    far::dealloc(live[which].at);
    live[which] = live.back();
    live.pop_back();
  };
  for (int step = 0; step < 400; ++step) {
    if (live.size() < 4 || (live.size() < 40 && random() % 2 == 0)) {
      std::size_t bytes = random_size(random);
      auto p =
          far::alloc_on<unsigned char>(static_cast<far::rank_t>(random() % far::nprocs()), bytes);
      fill(p, bytes, ++tag);
      live.push_back({p, bytes, tag});
    } else {
      drop(random() % live.size());
    }
  }
  while (!live.empty()) drop(live.size() - 1);
}

FAR_TEST(remote_memory_is_used_again) {
  far::rank_t target = 0;
  auto churn = [&](int times) {
    std::vector<far::ptr<std::uint64_t>> held;
    for (int i = 0; i < times; ++i) {
      for (std::size_t n : {1u, 3u, 10u, 60u})
        held.push_back(far::alloc_on<std::uint64_t>(target, n));
      for (auto p : held) far::dealloc(p);
      held.clear();
    }
  };
  churn(3);
  far::barrier();
  std::size_t before = bottom(target);
  far::barrier();
  churn(40);
  far::barrier();
  std::size_t used = before - bottom(target);
  // All ranks together hold at most one set of blocks each at any time.
  std::size_t one_set = 64 + 64 + 128 + 640;
  CHECK(used <= one_set * far::nprocs());
}

FAR_TEST(own_memory_is_used_again) {
  std::size_t in_use = far::detail::here().heap.in_use();
  auto first = far::alloc<char>(1000);
  far::dealloc(first);
  for (int i = 0; i < 1000; ++i) {
    auto p = far::alloc<char>(1000);
    CHECK(p == first);
    far::dealloc(p);
  }
  CHECK_EQ(far::detail::here().heap.in_use(), in_use);
}

FAR_TEST(others_free_own_memory) {
  far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
  far::dealloc(far::alloc<char>());  // takes back what earlier tests have left
  std::size_t in_use = far::detail::here().heap.in_use();
  for (int round = 0; round < 3; ++round) {
    constexpr std::size_t each = 30;
    std::vector<far::ptr<long>> mine;
    for (std::size_t i = 0; i < each; ++i) mine.push_back(far::alloc<long>(1 + i));
    auto all = far::all_gather(std::span<const far::ptr<long>>(mine));
    for (std::size_t i = 0; i < each; ++i)  // this rank's blocks are freed by two others at once
      far::dealloc(i % 2 == 0 ? all[next * each + i] : all[(me + 2) % far::nprocs() * each + i]);
    far::barrier();
    far::dealloc(far::alloc<char>());  // the owner finds them at its next allocation
    CHECK_EQ(far::detail::here().heap.in_use(), in_use);
    far::barrier();
  }
}

// Blocks come back from all other ranks while their owner allocates: none is lost, none is given
// out before it is free.
FAR_TEST(others_free_while_the_owner_allocates) {
  far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
  far::dealloc(far::alloc<char>());  // takes back what earlier tests have left
  std::size_t in_use = far::detail::here().heap.in_use();
  constexpr std::size_t each = 60;
  std::vector<far::ptr<unsigned char>> mine;
  for (std::size_t i = 0; i < each; ++i) mine.push_back(far::alloc<unsigned char>(8 + i % 50));
  auto all = far::all_gather(std::span<const far::ptr<unsigned char>>(mine));
  far::rank_t after_next = (me + 2) % far::nprocs();
  std::vector<far::ptr<unsigned char>> held;
  for (std::size_t i = 0; i < each; ++i) {
    far::dealloc(all[(i % 2 == 0 ? next : after_next) * each + i]);
    held.push_back(far::alloc<unsigned char>(8 + i % 50));
    fill(held.back(), 8 + i % 50, me * 1000 + i);
  }
  for (std::size_t i = 0; i < each; ++i) {
    CHECK(holds(held[i], 8 + i % 50, me * 1000 + i));
    far::dealloc(held[i]);
  }
  far::barrier();
  far::dealloc(far::alloc<char>());
  CHECK_EQ(far::detail::here().heap.in_use(), in_use);
}

FAR_TEST(double_free_is_told) {
  auto own = far::alloc<int>(4);
  far::dealloc(own);
  CHECK_THROWS(far::dealloc(own), "freed already");
  CHECK_THROWS(far::dealloc(own), far::text("dealloc(", own, ")"));
  auto other = far::alloc<int>(4);
  CHECK_THROWS(far::dealloc(other + 1), "no allocation begins there");  // not the beginning of one
  far::dealloc(other);
  far::rank_t target = (far::rank() + 1) % far::nprocs();
  auto remote = far::alloc_on<int>(target, 4);
  far::dealloc(remote);
  // No other rank may allocate in between, or the block would be somebody's again.
  far::barrier();
  CHECK_THROWS(far::dealloc(remote), "freed already");
  far::barrier();
  auto good = far::alloc_on<int>(target, 4);
  far::put(good, 5);
  CHECK_EQ(far::get(good), 5);
  far::dealloc(good);
}

FAR_TEST(double_free_by_another_rank_is_told_to_the_owner) {
  far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
  auto all = far::all_gather(far::alloc<long>(8));
  far::barrier();
  if (next != me) {
    far::dealloc(all[next]);
    bool told = false;  // at once, where memory is watched
    try {
      far::dealloc(all[next]);
    } catch (const far::error& e) {
      told = true;
      auto who = "rank " + std::to_string(me) + " freed it at step ";
      CHECK(std::string(e.what()).find(who) != std::string::npos);
    }
    far::barrier();
    if (!told) CHECK_THROWS(far::alloc<long>(), "freed twice");
  } else {
    far::dealloc(all[next]);
    CHECK_THROWS(far::dealloc(all[next]), "freed already");
  }
  auto good = far::alloc<long>(8);
  far::put(good, 77L);
  CHECK_EQ(far::get(good), 77);
  far::dealloc(good);
}

/// Of a back end on which ranks may share memory.
template <class Backend>
void check_fixed_place([[maybe_unused]] const Backend& link) {
  if constexpr (far::detail::maps_segments<Backend>) {
    using fixed = far::detail::fixed_segments;
    const auto segments = link.segments();
    if (!segments) return;  // they share none
    const bool fits = link.segment_size() <= fixed::apart && far::nprocs() <= fixed::most_ranks;
    bool taken = false;
    for (far::rank_t rank = 0; rank < far::nprocs(); ++rank) {
      [[maybe_unused]] void* wanted = fixed::address(rank, 0);
      if (segments.is_fixed()) {
        CHECK_EQ(link.address(rank, 64), fixed::address(rank, 64));
      } else if (fits) {
#ifdef FARSIDE_TSAN
        taken = true;  // by the sanitizer
#else
        void* at = mmap(wanted, 4096, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        taken = taken || at != wanted;
        if (at != MAP_FAILED) munmap(at, 4096);
#endif
      }
    }
    CHECK(segments.is_fixed() ? fits : !fits || taken);
  }
}

/// Where ranks share memory: segments are at the place that compilers know, unless they are too
/// large or too many for it, or somebody else is there.
FAR_TEST(segments_are_at_the_fixed_place_if_they_can) {
  auto mine = far::make<long>(0L);
  *mine.local() = 5;
  far::flush();
  CHECK_EQ(far::get(mine), 5);
  far::dealloc(mine);
  check_fixed_place(far::detail::here().link);
}

/// Whether the CPU notices pointers that lead nowhere: tests/errors has those.
template <class Backend>
bool is_mapped([[maybe_unused]] const Backend& link) {
  if constexpr (far::detail::maps_segments<Backend>)
    return static_cast<bool>(link.segments());
  else
    return false;
}

FAR_TEST(pointers_that_lead_nowhere) {
  auto& link = far::detail::here().link;
  if (is_mapped(link)) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    for (far::rank_t rank = 0; rank < far::nprocs(); ++rank)
      for (std::size_t offset : {std::size_t{0}, far::detail::null_guard - 1})
        CHECK(write(ends[1], link.address(rank, offset), 1) < 0 && errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    if (!FARSIDE_CHECKED) return;
  }
  auto good = far::alloc<long>(4);
  std::vector<long> values(4);
  far::ptr<double> nowhere;
  double one = 1;
  const char* null = "the pointer is null";
  far::ptr<long> p;
  CHECK_THROWS(far::get(p), null);
  CHECK_THROWS((void)far::get(p, 4), null);
  CHECK_THROWS(far::get(p, values.data(), 4), null);
  CHECK_THROWS(far::put(p, 1), null);
  CHECK_THROWS(far::put(p, values.data(), 4), null);
  CHECK_THROWS(far::fetch_add(p, 1L), null);
  CHECK_THROWS(far::swap(p, 1L), null);
  CHECK_THROWS(far::compare_swap(p, 1L, 2L), null);
  CHECK_THROWS(far::atomic_load(p), null);
  CHECK_THROWS(far::copy(p, good, 4), null);
  CHECK_THROWS(far::copy(good, p, 4), null);
  CHECK_THROWS(*p = 1, null);
  CHECK_THROWS(far::async_get(p).get(), null);
  CHECK_THROWS(far::async_get(p, values.data(), 4).get(), null);
  CHECK_THROWS(far::async_put(p, values.data(), 4).get(), null);
  CHECK_THROWS(far::async_fetch_add(p, 1L).get(), null);
  CHECK_THROWS(far::async_compare_swap(p, 1L, 2L).get(), null);
  CHECK_THROWS(far::put_strided(p, values.data(), {.counts = {2, 2}, .far_strides = {3}}), null);
  CHECK_THROWS(far::accumulate(nowhere, &one, 1), null);
  for (far::rank_t rank = 0; rank < far::nprocs(); ++rank) {
    CHECK_THROWS(far::get(far::ptr<long>(rank, 8)), rank == 0 ? "nothing lies there" : "never set");
    far::ptr<long> last(rank, link.segment_size() - 8);
    const char* beyond = "beyond the end of that rank's segment";
    CHECK_THROWS(far::get(last + 1), beyond);
    CHECK_THROWS(far::put(last, values.data(), 2), beyond);
    CHECK_THROWS(far::fetch_add(last + 1, 1L), beyond);
    CHECK_THROWS(far::put(last + (std::ptrdiff_t{1} << 32), 1), beyond);
    CHECK_THROWS(far::async_get(last, values.data(), 2).get(), beyond);
  }
  far::ptr<long> no_rank(far::nprocs(), good.offset());
  const char* none = "there is no such rank";
  CHECK_THROWS(far::get(no_rank), none);
  CHECK_THROWS(far::put(no_rank, 1), none);
  CHECK_THROWS(far::put(no_rank, values.data(), 4), none);
  CHECK_THROWS(far::fetch_add(no_rank, 1L), none);
  CHECK_THROWS(far::async_get(no_rank, values.data(), 4).get(), none);
  CHECK_THROWS(far::get_strided(no_rank, values.data(), {.counts = {2, 2}, .far_strides = {3}}),
               none);
  CHECK_THROWS(far::dealloc(no_rank), none);
  CHECK_THROWS(far::flush(far::nprocs()), "there are only");
  far::dealloc(good);
}

}  // namespace memory_tests

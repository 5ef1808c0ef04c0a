// Several threads of a rank use the library at once (thread_level::multiple). Ranks are processes
// here: a rank that is a thread has no further threads.
#include "../conformance/suite.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>

using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

constexpr unsigned threads_per_rank = 3;

/// Runs `work(thread)` on several threads of this rank, whose checks count as the rank's.
template <class Work>
void on_threads(Work work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < threads_per_rank; ++t) threads.emplace_back([&, t] { work(t); });
  for (auto& thread : threads) thread.join();
}

/// A number of its own for each thread of the job.
unsigned global(unsigned thread) { return far::rank() * threads_per_rank + thread; }
unsigned all_threads() { return far::nprocs() * threads_per_rank; }

}  // namespace

FAR_TEST(threads_know_their_rank) {
  far::rank_t me = far::rank();
  on_threads([&](unsigned) {
    CHECK_EQ(far::rank(), me);
    CHECK(far::nprocs() > me);
  });
}

FAR_TEST(puts_and_gets) {
  auto arrays = objects_on_each_rank<std::uint64_t>(all_threads() * 16);
  on_threads([&](unsigned t) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      auto at = arrays[i % far::nprocs()] + global(t) * 16;
      std::vector<std::uint64_t> values(16, i * 1000 + global(t));
      far::put(at, values.data(), 16);
      CHECK_EQ(far::get(at, 16), values);
      if (i % 10 == 0) far::flush();
    }
  });
  far::barrier();
  release(arrays);
}

FAR_TEST(flush_completes_the_puts_of_this_thread) {
  auto boxes = objects_on_each_rank<std::uint64_t>(all_threads() * 2);
  on_threads([&](unsigned t) {
    far::rank_t next = (far::rank() + 1) % far::nprocs();
    auto at = boxes[next] + global(t) * 2;
    far::put(at, 7u);
    far::flush(next);
    far::atomic_store(at + 1, 1u);
  });
  far::rank_t before = (far::rank() + far::nprocs() - 1) % far::nprocs();
  for (unsigned t = 0; t < threads_per_rank; ++t) {
    auto at = boxes[far::rank()] + (before * threads_per_rank + t) * 2;
    while (far::atomic_load(at + 1) == 0) far::progress(), std::this_thread::yield();
    CHECK_EQ(far::get(at), 7u);
  }
  release(boxes);
}

FAR_TEST(atomics) {
  constexpr std::uint64_t each = 100;
  auto counter = shared_objects<std::uint64_t>(0, 2);
  std::vector<std::vector<std::uint64_t>> drawn(threads_per_rank);
  on_threads([&](unsigned t) {
    for (std::uint64_t i = 0; i < each; ++i) {
      drawn[t].push_back(far::fetch_add(counter, 1));
      auto seen = far::atomic_load(counter + 1);
      for (auto was = far::compare_swap(counter + 1, seen, seen + 1); was != seen;) {
        seen = was;
        was = far::compare_swap(counter + 1, seen, seen + 1);
      }
    }
  });
  std::vector<std::uint64_t> mine;
  for (auto& part : drawn) mine.insert(mine.end(), part.begin(), part.end());
  auto all = far::all_gather(std::span<const std::uint64_t>(mine));
  std::sort(all.begin(), all.end());
  std::vector<std::uint64_t> expected(each * all_threads());
  std::iota(expected.begin(), expected.end(), 0u);
  CHECK(all == expected);
  CHECK_EQ(far::atomic_load(counter + 1), each * all_threads());
  release(counter);
}

FAR_TEST(allocation) {
  on_threads([&](unsigned t) {
    std::mt19937_64 random(global(t));
    struct held {
      far::ptr<std::uint64_t> at;
      std::size_t n;
      std::uint64_t tag;
    };
    std::vector<held> live;
    auto drop = [&](std::size_t i) {
      CHECK_EQ(far::get(live[i].at, live[i].n), std::vector<std::uint64_t>(live[i].n, live[i].tag));
      far::dealloc(live[i].at);
      live[i] = live.back();
      live.pop_back();
    };
    for (std::uint64_t i = 0; i < 150; ++i) {
      if (live.size() < 3 || (live.size() < 20 && random() % 2 == 0)) {
        std::size_t n = 1 + random() % 30;
        std::uint64_t tag = i * 1000 + global(t);
        auto at = random() % 2 == 0 ? far::alloc<std::uint64_t>(n)
                                    : far::alloc_on<std::uint64_t>(
                                          static_cast<far::rank_t>(random() % far::nprocs()), n);
        std::vector<std::uint64_t> values(n, tag);
        far::put(at, values.data(), n);
        live.push_back({at, n, tag});
      } else {
        drop(random() % live.size());
      }
    }
    while (!live.empty()) drop(live.size() - 1);
  });
  far::barrier();
}

// Threads of all ranks allocate in segments that are nearly full, in both ways: some are refused,
// none gets what another one has, and nothing is lost.
FAR_TEST(full_segments) {
  auto& c = far::detail::here();
  far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
  auto untouched = [&] { return c.far_heap.split().untouched(c.link, me); };
  constexpr std::size_t left = 1 << 18;
  auto most = far::alloc<char>(untouched() - left);
  CHECK(untouched() <= left);
  far::barrier();
  std::atomic<long> refused = 0;
  on_threads([&](unsigned thread) {
    std::mt19937_64 random(global(thread));
    std::vector<std::pair<far::ptr<std::uint64_t>, std::size_t>> live;
    auto drop = [&](std::size_t i) {
      auto [at, n] = live[i];
      auto values = far::get(at, n);
      CHECK(std::ranges::count(values, at.raw() + thread) == static_cast<std::ptrdiff_t>(n));
      far::dealloc(at);
      live[i] = live.back();
      live.pop_back();
    };
    for (int step = 0; step < 300; ++step) {
      if (!live.empty() && random() % 9 < 4) {
        drop(random() % live.size());
        continue;
      }
      std::size_t n = 1 + random() % (std::size_t{1} << random() % 14);
      try {
        auto at = random() % 2 == 0
                      ? far::alloc<std::uint64_t>(n)
                      : far::alloc_on<std::uint64_t>(random() % 2 == 0 ? me : next, n);
        std::vector<std::uint64_t> values(n, at.raw() + thread);
        far::put(at, values.data(), n);
        live.emplace_back(at, n);
      } catch (const far::allocation_error&) {
        ++refused;
      }
    }
    while (!live.empty()) drop(live.size() - 1);
  });
  CHECK(refused > 0);
  far::barrier();
  far::dealloc(far::alloc<char>());           // takes back what others have freed
  auto rest = far::alloc<char>(left - 8192);  // all of it in one piece again
  far::dealloc(rest);
  far::dealloc(most);
}

// Memory of a rank, freed by threads of another one while its own threads allocate.
FAR_TEST(others_free_while_owners_allocate) {
  constexpr std::size_t each = 60;
  std::vector<far::ptr<long>> mine;
  for (std::size_t i = 0; i < each; ++i) mine.push_back(far::alloc<long>(1 + i % 7));
  auto all = far::all_gather(std::span<const far::ptr<long>>(mine));
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  on_threads([&](unsigned t) {
    for (std::size_t i = t; i < each; i += threads_per_rank) {
      far::dealloc(all[next * each + i]);
      auto p = far::make<long>(static_cast<long>(i));
      CHECK_EQ(far::get(p), static_cast<long>(i));
      far::dealloc(p);
    }
  });
  far::barrier();
}

FAR_TEST(futures) {
  auto arrays = objects_on_each_rank<long>(64, far::rank() + 1L);
  auto counters = objects_on_each_rank<long>(1, 0L);
  on_threads([&](unsigned) {
    for (int round = 0; round < 5; ++round) {
      std::vector<far::future<long>> parts;
      for (far::rank_t of = 0; of < far::nprocs(); ++of)
        for (int i = 0; i < 8; ++i)
          parts.push_back(far::async_get(arrays[of] + i).then([at = counters[of]](long v) {
            return far::async_fetch_add(at, v).then([v](long) { return v; });
          }));
      auto values = far::when_all(std::move(parts)).get();
      long expected = 8L * far::nprocs() * (far::nprocs() + 1L) / 2;
      CHECK_EQ(std::accumulate(values.begin(), values.end(), 0L), expected);
    }
  });
  far::barrier();
  CHECK_EQ(far::atomic_load(counters[far::rank()]), 40L * all_threads() * (far::rank() + 1L));
  release(arrays);
  release(counters);
}

/// Threads of one rank keep apart, as ranks do; and all accumulates are there.
FAR_TEST(mutexes_and_accumulates) {
  far::mutex door(far::nprocs() - 1);
  auto cell = shared_objects<std::uint64_t>(0);
  auto sums = shared_objects<double>(0, 40);
  constexpr unsigned times = 10;
  on_threads([&](unsigned) {
    std::vector<double> ones(40, 1.0);
    for (unsigned i = 0; i < times; ++i) {
      far::accumulate(sums, ones.data(), ones.size());
      std::lock_guard inside(door);
      far::put(cell, far::get(cell) + 1);
    }
    far::flush();
    CHECK_THROWS(door.unlock(), "does not hold");
  });
  far::barrier();
  CHECK_EQ(far::get(cell), times * all_threads());
  CHECK_EQ(far::get(sums, 40), std::vector<double>(40, times * all_threads()));
  release(cell);
  release(sums);
}

FAR_TEST(statistics) {
  far::stats::enable();
  auto word = shared_objects<std::uint64_t>(0);
  auto before = far::stats::snapshot();
  on_threads([&](unsigned) {
    for (int i = 0; i < 100; ++i) far::fetch_add(word, 1);
  });
  auto cost = far::stats::snapshot() - before;
  CHECK_EQ(cost[far::operation::atomic].count, 100u * threads_per_rank);
  release(word);
}

int main(int argc, char** argv) {
  far::runtime world(argc, argv, {.threads = far::thread_level::multiple});
  return far_test::test_main(argc, argv);
}

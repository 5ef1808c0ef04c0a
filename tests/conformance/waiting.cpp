// Waiting: who sleeps is woken by what it waits for. A back end may let sleepers look around every
// now and then, which hides a wake-up that was lost: then all goes on, only far too late.
#include "harness.hpp"
#include "spread_over_cores.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

namespace waiting_tests {

namespace {

using clock = std::chrono::steady_clock;

/// How long the calling thread has been ready to run while others had the cores. Kernels that do not tell
/// say 0.
std::chrono::nanoseconds kept_waiting() {
  std::ifstream told("/proc/thread-self/schedstat");
  long long ran = 0, waited = 0;
  return std::chrono::nanoseconds(told >> ran >> waited ? waited : 0);
}

/// Of the last round.
struct account {
  std::chrono::nanoseconds took{0};    ///< on the rank where it took longest
  std::chrono::nanoseconds waited{0};  ///< for a core, all ranks together
  bool over = false;                   ///< it has taken long enough
};

/// Runs up to `rounds` collectives for a second, before each of which a rank does `delay(round)`,
/// and checks that no more than `most` of them took as long as no wake-up does, not counting that ranks
/// had to wait for a core.
template <class Delay>
void check_wake_ups(int rounds, int most, Delay delay) {
  auto together = [](account a, account b) {
    return account{std::max(a.took, b.took), a.waited + b.waited, a.over || b.over};
  };
  std::chrono::milliseconds late(150 + far::nprocs());
  auto end = clock::now() + std::chrono::seconds(1) + most * late;
  far_test::spread_over_cores apart(far::rank());
  account mine, all;  // `all` is the same everywhere: the ranks end together
  int slow = 0;
  for (int round = 0; round < rounds && slow <= most && !all.over; ++round) {
    auto before = kept_waiting();
    delay(round);
    auto begin = clock::now();
    all = far::all_reduce(mine, together);
    slow += all.took - all.waited > late;
    mine = {clock::now() - begin, kept_waiting() - before, clock::now() > end};
  }
  CHECK(slow <= most);
}

}  // namespace

FAR_TEST(sleepers_are_woken) {
  constexpr int rounds = 20;
  check_wake_ups(rounds, rounds / 2, [](int round) {
    // One rank is late: the others have long gone to sleep.
    if (static_cast<far::rank_t>(round) % far::nprocs() == far::rank())
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
  });
}

// Ranks arrive at moments all around the one at which another goes to sleep.
FAR_TEST(wake_ups_are_not_lost) {
  auto random = far_test::random_engine();
  check_wake_ups(5000, 5, [&](int) {
    auto most = std::uint64_t{1} << random() % 18;
    auto until = clock::now() + std::chrono::nanoseconds(random() % most);
    while (clock::now() < until) {
    }
  });
}

namespace {

/// A rank that does nothing but `look(its word)` still answers the one that it waits for.
template <class Look>
void check_who_polls(Look look) {
  constexpr std::uint64_t rounds = 20;
  auto words = far_test::objects_on_each_rank<std::uint64_t>(2, 0);
  const far::rank_t pollers = std::min<far::rank_t>(far::nprocs() - 1, 2);  // more only take time
  if (far::rank() == 0)
    for (std::uint64_t round = 1; round <= rounds; ++round)
      for (far::rank_t to = 1; to <= pollers; ++to) {
        CHECK_EQ(far::get(words[to] + 1), 0u);
        far::put(words[to], round);
        far::flush(to);
      }
  else if (far::rank() <= pollers)
    while (look(words[far::rank()]) < rounds) {
    }
  const bool polled = far::rank() != 0 && far::rank() <= pollers;
  CHECK_EQ(far::get(words[far::rank()]), polled ? rounds : 0);
  far_test::release(words);
}

}  // namespace

// These call nothing that waits.
FAR_TEST(who_polls_its_own_memory_serves_others) {
  check_who_polls([](far::ptr<std::uint64_t> mine) { return far::get(mine); });
}

FAR_TEST(who_only_flushes_serves_others) {
  check_who_polls([](far::ptr<std::uint64_t> mine) {
    far::flush();
    return std::atomic_ref<std::uint64_t>(*mine.local()).load(std::memory_order_acquire);
  });
}

}  // namespace waiting_tests

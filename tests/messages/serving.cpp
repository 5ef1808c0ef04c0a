// When handlers run.
#include "rank_state.hpp"

#include <farside/core/rpc.hpp>

#include <atomic>

namespace serving_tests {

using namespace messages;

FAR_TEST(progress_serves) {
  on_each_rank<std::atomic<int>> seen;
  far::rpc_ff(next_rank(), [](far::ptr<std::atomic<int>*> at) { ++of(at); }, seen.at(next_rank()));
  while (*seen == 0) far::progress();
  CHECK_EQ(seen->load(), 1);
  far::barrier();
}

FAR_TEST(handlers_run_one_at_a_time) {
  struct room {
    std::atomic<int> inside{0};
    int handled = 0, together = 0;  // no atomics: handlers are ordered with each other
  };
  on_each_rank<room> rooms;
  int n = scaled(400);
  auto enter = [](far::ptr<room*> at) {
    room& r = of(at);
    r.together += r.inside.fetch_add(1) != 0;
    far::progress();  // does not run another one
    ++r.handled;
    r.inside.fetch_sub(1);
  };
  for (int i = 0; i < n; ++i) {
    auto to = static_cast<far::rank_t>(i) % far::nprocs();
    far::rpc_ff(to, enter, rooms.at(to));
  }
  far::quiesce();
  CHECK_EQ(rooms->together, 0);
  CHECK_EQ(far::all_reduce(rooms->handled), n * static_cast<int>(far::nprocs()));
}

FAR_TEST(round_trips) {
  far::rank_t to = next_rank();
  far::rpc(to, [](long x) { return x; }, 1L).get();
  far::barrier();
  auto begin = std::chrono::steady_clock::now();
  int n = 100;
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += far::rpc(to, [](long x) { return x; }, 1L).get();
  auto time = std::chrono::steady_clock::now() - begin;
  far::barrier();
  CHECK_EQ(sum, n);
  far_test::note(std::chrono::duration<double, std::micro>(time).count() / n,
                 " us for an rpc, all ranks calling their next one");
}

}  // namespace serving_tests

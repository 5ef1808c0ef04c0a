// Who serves: with FARSIDE_ATTENTION=thread a rank that computes does, too, and several threads of
// a rank may send.
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>

#include <atomic>
#include <thread>

using namespace messages;

namespace {

bool by_thread() { return far::detail::here().attends == far::attention::thread; }

/// Computes until `ready`, and calls nothing of the library; false after ten seconds.
template <class Ready>
bool compute_until(Ready ready) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!ready())
    if (std::chrono::steady_clock::now() > end) return false;
  return true;
}

}  // namespace

FAR_TEST(progress_serves) {
  on_each_rank<std::atomic<int>> seen;
  far::rpc_ff(next_rank(), [](far::ptr<std::atomic<int>*> at) { ++of(at); }, seen.at(next_rank()));
  while (*seen == 0) far::progress();
  CHECK_EQ(seen->load(), 1);
  far::barrier();
}

FAR_TEST(a_rank_that_computes_serves) {
  if (!by_thread()) SKIP("needs FARSIDE_ATTENTION=thread");
  on_each_rank<std::atomic<int>> seen;
  far::rank_t busy = far::nprocs() - 1;
  int each = 50, all = each * static_cast<int>(far::nprocs());
  std::vector<far::future<int>> answers;
  for (int i = 0; i < each; ++i)
    answers.push_back(
        far::rpc(busy, [](far::ptr<std::atomic<int>*> at) { return ++of(at); }, seen.at(busy)));
  if (far::rank() == busy) CHECK(compute_until([&] { return *seen == all; }));
  // Continuations run on the thread that serves, while this one computes.
  std::atomic<int> arrived{0};
  for (auto& answer : answers) answer.finally([&](far::future<int>) { ++arrived; });
  CHECK(compute_until([&] { return arrived == each; }));
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

FAR_TEST(threads_of_a_rank_send) {
  if (!by_thread()) SKIP("needs FARSIDE_ATTENTION=thread");
  if (far::detail::process_context.load() == nullptr) SKIP("ranks are threads themselves");
  on_each_rank<std::atomic<long>> sums;
  far::visits visits({.batch_bytes = 200});
  long n = 200;
  std::atomic<long> wrong{0};
  auto add = [](far::ptr<std::atomic<long>*> at, long x) { of(at) += x; };
  auto work = [&] {
    for (long i = 0; i < n; ++i) {
      auto to = static_cast<far::rank_t>(i) % far::nprocs();
      far::rpc_ff(to, add, sums.at(to), 1L);
      visits.visit(to, add, sums.at(to), 1000L);
      wrong += far::rpc(to, [](long x) { return 2 * x; }, i).get() != 2 * i;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) threads.emplace_back(work);
  for (auto& thread : threads) thread.join();
  far::quiesce();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(far::all_reduce(sums->load()), 3 * n * 1001L * far::nprocs());
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

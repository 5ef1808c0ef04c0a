// Who serves: with FARSIDE_ATTENTION=thread, which these tests need, a rank that computes does,
// too, and several threads of a rank may send.
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>

#include <atomic>
#include <thread>

namespace attention_tests {

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

FAR_TEST(a_rank_that_computes_serves) {
  CHECK(by_thread());
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

FAR_TEST(threads_of_a_rank_send) {
  CHECK(by_thread());
  const bool process = far::detail::process_context.load() != nullptr;  // or ranks are threads
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
  for (int t = 0; t < (process ? 3 : 0); ++t) threads.emplace_back(work);
  if (!process) work(), work(), work();
  for (auto& thread : threads) thread.join();
  far::quiesce();
  CHECK_EQ(wrong.load(), 0);
  CHECK_EQ(far::all_reduce(sums->load()), 3 * n * 1001L * far::nprocs());
}

}  // namespace attention_tests

// The attentiveness figure: pushes to a queue of a rank that computes between its calls of the
// library, for 0 to 100 microseconds at a time.
#include "rows.hpp"

#include <farside/containers/circular_queue.hpp>

#include <deque>

namespace far::bench {
namespace {

using clock = std::chrono::steady_clock;

/// Rank 0 computes for `pause`, then calls the library once, until all others have done `work` n
/// times.
template <class Work>
auto beside_computation(ptr<word> ended, std::chrono::microseconds pause, Work work) {
  return prepared{std::size_t{1} << 20,
                  [ended] {
                    barrier();
                    if (rank() == 0) atomic_store(ended, word{0});
                    barrier();
                  },
                  [ended, pause, work](std::size_t n) {
                    if (rank() != 0) {
                      for (std::size_t i = 0; i < n; ++i) work(i);
                      fetch_add(ended, word{1});
                      return;
                    }
                    while (atomic_load(ended) != nprocs() - 1) {
                      for (auto end = clock::now() + pause; clock::now() < end;) {
                      }
                      progress();
                    }
                  }};
}

/// Of rank 0; ranks may be threads of one process, so it is behind a far pointer.
using host = ptr<std::deque<word>*>;

void push_there(host at, word x) {
  std::deque<word>& queue = **at.local();
  queue.push_back(x);
  if (queue.size() > 1000) queue.pop_front();
}

}  // namespace

void attention_rows(suite& s) {
  if (nprocs() == 1) return;
  std::deque<word> queue;
  auto mine = alloc<std::deque<word>*>();
  put(mine, &queue);
  auto at = broadcast(mine, 0);
  auto counter = alloc<word>();
  auto ended = broadcast(counter, 0);
  circular_queue<word> ring(0, std::size_t{1} << 20);
  const bool thread = chosen_attention() == attention::thread;
  const std::string figure = "Pushes to the queue of a rank that computes, " + transport_name();
  const char* x_label = "microseconds that it computes between its calls";
  for (int pause : {0, 1, 2, 5, 10, 20, 50, 100}) {
    std::chrono::microseconds time(pause);
    auto title = [&](const char* how) {
      return text("queue push ", how, ", target computes ", pause, " us");
    };
    auto by_message = [at](std::size_t i) { rpc(0, push_there, at, word{i}).get(); };
    auto one_sided = [&ring](std::size_t i) { ring.push(i, concurrency::push); };
    auto with = beside_computation(ended, time, one_sided);
    auto cleared = prepared{std::size_t{1} << 14, [&] { ring.clear(), with.prepare(); },
                            [&](std::size_t n) { with.work(n); }};
    s.measure_alone(
        title(thread ? "by rpc, thread" : "by rpc, poll"), time_of_one(),
        beside_computation(ended, time, by_message),
        {{figure, x_label, thread ? "rpc, served by a thread" : "rpc, polled", 1.0 * pause}});
    if (!thread)
      s.measure_alone(title("one-sided"), time_of_one(), cleared,
                      {{figure, x_label, "one-sided, " + strategy_name(), 1.0 * pause}});
  }
  barrier();
  dealloc(mine);
  dealloc(counter);
}

}  // namespace far::bench

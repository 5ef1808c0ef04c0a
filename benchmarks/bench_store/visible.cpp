// How long it takes until a get sees what was put, or posted, at a rank that computes between its calls
// of the library.
#include "rows.hpp"

namespace far::bench {

void visible_rows(suite& s) {
  if (nprocs() == 1) return;
  using clock = std::chrono::steady_clock;
  constexpr std::size_t most = 4096;
  store<word, block<128>, on_rank> all(most * nprocs());
  auto counter = alloc<word>();
  const auto ended = broadcast(counter, 0);
  // Rank 0 computes for `pause`, then calls the library once, until all others have done `work` n
  // times, with keys of their own.
  auto beside_computation = [&](std::chrono::microseconds pause, auto work) {
    return prepared{most,
                    [&] {
                      all.clear();
                      if (rank() == 0) atomic_store(ended, word{0});
                      barrier();
                    },
                    [&, pause, work](std::size_t n) {
                      if (rank() != 0) {
                        const double took = time_of([&] {
                          for (word i = 0; i < n; ++i) {
                            const word key = rank() * most + i;
                            work(key);
                            while (!all.get(key)) progress();
                          }
                        });
                        fetch_add(ended, word{1});
                        return took;
                      }
                      while (atomic_load(ended) != nprocs() - 1) {
                        for (auto end = clock::now() + pause; clock::now() < end;) {
                        }
                        progress();
                      }
                      return 0.0;
                    }};
  };
  const std::string figure = "Until a get sees a value, " + transport_name();
  const char* x_label = "microseconds that the owner computes between its calls";
  for (int pause : {0, 10, 100, 1000}) {
    const std::chrono::microseconds time(pause);
    auto title = [&](const char* how) {
      return text("visible after ", how, ", owner computes ", pause, " us");
    };
    auto put = [&all](word key) { all.put(key, block_of<128>(key)); };
    auto post = [&all](word key) { all.post(key, block_of<128>(key)); };
    if (!served_by_thread())
      s.measure_alone(title("put"), time_of_one(), beside_computation(time, put),
                      {{figure, x_label, text("put, ", strategy_name()), 1.0 * pause}});
    s.measure_alone(
        title(served_by_thread() ? "post, served by a thread" : "post, polled"), time_of_one(),
        beside_computation(time, post),
        {{figure, x_label, text("post, ", strategy_name(), ", ", served_how()), 1.0 * pause}});
  }
  barrier();
  dealloc(counter);
}

}  // namespace far::bench

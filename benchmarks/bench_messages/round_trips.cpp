// Round trips: R, W and A of one word, and messages with and without an answer. The floor of a
// message is the one-sided operation that takes longest.
#include "rows.hpp"

#include <farside/algorithms/visit.hpp>

namespace far::bench {

void round_trip_rows(suite& s) {
  auto mine = alloc<word>();
  put(mine, word{0});
  auto at = broadcast(mine, 0);
  auto add = clients([at] { keep(fetch_add(at, word{1})); });
  s.measure_alone("round trip, R: get 8B", time_of_one(), clients([at] { keep(get(at)); }));
  s.measure_alone("round trip, W: put 8B + flush", time_of_one(), clients([at] {
                    put(at, word{1});
                    flush(0);
                  }));
  s.measure_alone("round trip, A: fetch_add", time_of_one(), add);
  s.compare("round trip, rpc, nothing", time_of_one(), clients([] { rpc(0, [] {}).get(); }), add);
  s.compare("round trip, rpc, 8B and 8B back", time_of_one(),
            clients([] { keep(rpc(0, [](word x) { return x; }, word{1}).get()); }), add);
  constexpr std::size_t many = 64;
  s.compare("rpc, 8B and 8B back, 64 in flight", time_of_one(), clients([] {
              std::vector<future<word>> answers;
              for (std::size_t i = 0; i < many; ++i)
                answers.push_back(rpc(0, [](word x) { return x; }, word{1}));
              for (auto& answer : answers) keep(answer.get());
            }),
            clients([at] {
              for (std::size_t i = 0; i < many; ++i) keep(fetch_add(at, word{1}));
            }));
  s.compare("rpc_ff, 8B", time_of_one(), clients([] { rpc_ff(0, [](word) {}, word{1}); }), add);
  visits batches;
  s.compare("visit, 8B", time_of_one(), clients([&] { batches.visit(0, [](word) {}, word{1}); }),
            add);
  quiesce();
  dealloc(mine);
}

}  // namespace far::bench

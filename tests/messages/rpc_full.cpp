// far::rpc where there is no room: it throws, nothing was sent, and messages go on when there is.
#include "containers/full_segments.hpp"
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/core/rpc.hpp>

#include <memory>
#include <string>

namespace rpc_full_tests {

using full_segments::ballast;
using full_segments::refused;

FAR_TEST(calls_that_find_no_room) {
  far::quiesce();
  const far::rank_t to = (far::rank() + 1) % far::nprocs();
  {
    ballast full;
    far::barrier();
    // Rings that earlier tests have made are still there: a refusal is not certain, an effect is.
    refused([&] { CHECK_EQ(far::rpc(to, [](int x) { return x + 1; }, 5).get(), 6); });
    refused([&] { far::rpc_ff(to, [] {}); });
    far::visits some;
    refused([&] { some.visit(to, [] {}); });
    // The answer may find no room, either: then the caller is told.
    try {
      auto twice = far::rpc(to, [](std::string s) { return s + s; }, std::string(300, 'x')).get();
      CHECK_EQ(twice.size(), 600U);
    } catch (const far::allocation_error&) {
    } catch (const far::rpc_error& e) {
      std::string said = e.what();
      CHECK(said.find("its result of 608 bytes cannot come back") != std::string::npos);
      CHECK(said.find("which has no room for it") != std::string::npos);
      CHECK(said.find("threw") == std::string::npos);
    }
    far::barrier();
  }
  far::quiesce();
  CHECK_EQ(far::rpc(to, [](int x) { return x + 1; }, 5).get(), 6);
  far::quiesce();
}

// What a queue's host has popped for another rank must reach it.
FAR_TEST(elements_that_find_no_room) {
  far::circular_queue<long> queue(0, 256, {.engine = far::engine::rpc});
  constexpr long n = 200;
  if (far::rank() == 0)
    for (long i = 0; i < n; ++i) queue.push(i);
  far::barrier();
  long sum = 0, count = 0;
  {
    std::unique_ptr<ballast> full;
    if (far::rank() != 0) full = std::make_unique<ballast>();
    far::barrier();
    if (far::rank() == far::nprocs() - 1)
      for (auto some = queue.try_pop(50); !some.empty(); some = queue.try_pop(50))
        for (long x : some) sum += x, ++count;
    far::barrier();
  }
  CHECK_EQ(far::all_reduce(count), n);
  CHECK_EQ(far::all_reduce(sum), n * (n - 1) / 2);
  far::barrier();
}

}  // namespace rpc_full_tests

// What engine::automatic compares: how long gets, puts, atomics and messages take here.
#pragma once

#include <farside/core/atomics.hpp>
#include <farside/core/detail/messages/call.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/engine.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// The median time of `work` in nanoseconds: of 200 times, or of as many as 10 milliseconds allow,
/// but at least 9.
template <class Work>
double median_time(Work work) {
  using clock = std::chrono::steady_clock;
  constexpr std::size_t most = 200, least = 9;
  constexpr auto enough = std::chrono::milliseconds(10);
  work();  // not the first one, which may have to make what the others use
  std::vector<double> taken;
  taken.reserve(most);
  for (auto first = clock::now(); taken.size() < most;) {
    auto begin = clock::now();
    work();
    auto end = clock::now();
    taken.push_back(std::chrono::duration<double, std::nano>(end - begin).count());
    if (taken.size() >= least && end - first > enough) break;
  }
  auto middle = taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2);
  std::nth_element(taken.begin(), middle, taken.end());
  return *middle;
}

/// What a message for the measurement does at its target.
struct echo {
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

/// Collective: each member measures against the next one, all at the same time.
inline engine_costs measure_costs(messenger& messages, const team& over) {
  struct alignas(64) block {
    std::uint64_t words[8];
  };
  // One for puts, one for atomics; and what messages need.
  auto all = alloc_together<block>(over, "engine::automatic", 2);
  auto mine = all[over.rank()], next = all[(over.rank() + 1) % all.size()];
  do_together(
      over, "engine::automatic",
      [&] {
        try {
          messages.prepare_call(next.rank());
        } catch (const allocation_error&) {
          dealloc(mine);
          throw;
        }
      },
      [&] { dealloc(mine); });
  put(mine, std::vector<block>(2));
  flush(mine.rank());
  barrier(over);
  engine_costs result;
  block some{};
  auto phase = [&](double& to, auto work) {
    to = median_time(work);
    barrier(over);
  };
  auto one_sided = [&](ptr<block> at, double& to_get, double& to_put, double& to_atomic) {
    phase(to_get, [&] { get(at, &some, 1); });
    phase(to_put, [&] {
      put(at, some);
      flush(at.rank());
    });
    phase(to_atomic, [&] { fetch_add(pointer_cast<std::uint64_t>(at + 1), 1); });
  };
  one_sided(next, result.get, result.put, result.atomic);
  one_sided(mine, result.own_get, result.own_put, result.own_atomic);
  auto send = [&](rank_t to, const message_header& as, std::vector<std::byte> bytes) {
    messages.send(to, as, std::move(bytes));
  };
  phase(result.rpc, [&] {
    begin_call<decltype(send), echo, std::uint64_t, std::uint64_t>(messages, next.rank(), send,
                                                                   echo{}, 1, 2)
        .get();
  });
  dealloc(mine);
  return result;
}

/// Collective: what all members have measured, now or earlier, on average. All of them get the
/// same.
inline engine_costs agreed_costs(messenger& messages, const team& over) {
  bool known = all_reduce(messages.costs.rpc > 0 ? 1 : 0, minimum(), over) == 1;
  engine_costs mine = known ? messages.costs : measure_costs(messages, over);
  auto add = [](const engine_costs& a, const engine_costs& b) {
    return engine_costs{a.get + b.get,         a.put + b.put,         a.atomic + b.atomic,
                        a.own_get + b.own_get, a.own_put + b.own_put, a.own_atomic + b.own_atomic,
                        a.rpc + b.rpc};
  };
  engine_costs sum = all_reduce(mine, add, over);
  for (double* part :
       {&sum.get, &sum.put, &sum.atomic, &sum.own_get, &sum.own_put, &sum.own_atomic, &sum.rpc})
    *part /= over.size();
  messages.costs = sum;
  return sum;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// Messages: what docs/costs.md says of them, counted.
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace rpc_costs_tests {

using namespace messages;

namespace {

using far::operation;

struct cost {
  std::uint64_t gets, puts, atomics, waits;
  bool operator==(const cost&) const = default;
};

std::ostream& operator<<(std::ostream& out, const cost& c) {
  return out << c.gets << "R " << c.puts << "W " << c.atomics << "A " << c.waits << " waits";
}

template <class Work>
cost count(Work work) {
  auto before = far::stats::snapshot();
  work();
  auto made = far::stats::snapshot() - before;
  return {made[operation::get].count, made[operation::put].count, made[operation::atomic].count,
          made.waits};
}

/// What it costs rank 0 to do `work`, and the last rank to serve it, in one of two barriers. Now
/// and then a message lies across the end of its ring, or a quarter of a ring is given back: of a
/// few times, the cheapest counts.
template <class Work>
void check(Work work, cost at_sender, cost at_target) {
  auto cheaper = [](cost a, cost b) {
    return std::pair(a.waits, a.puts) < std::pair(b.waits, b.puts);
  };
  far::rank_t last = far::nprocs() - 1;
  std::vector<cost> sent, served;
  for (int time = 0; time < 4; ++time) {
    served.push_back(count([&] {
      far::barrier();
      if (far::rank() == 0) sent.push_back(count([&] { work(last); }));
      far::barrier();
    }));
    far::quiesce();
  }
  if (far::rank() == 0) CHECK_EQ(*std::min_element(sent.begin(), sent.end(), cheaper), at_sender);
  if (far::rank() == last)
    CHECK_EQ(*std::min_element(served.begin(), served.end(), cheaper), at_target);
}

}  // namespace

FAR_TEST(costs_of_messages) {
  if (far::nprocs() == 1) SKIP("needs another rank");
  far::stats::enable();
  if (far::rank() == 0) far::rpc(far::nprocs() - 1, [] {}).get();  // makes the ring and a slot
  far::quiesce();
  using text = std::string;
  check([](far::rank_t to) { far::rpc_ff(to, [](int) {}, 1); }, {0, 1, 1, 2}, {0, 0, 0, 0});
  check([](far::rank_t to) { far::rpc_ff(to, [](text) {}, text(4000, 'x')); }, {0, 1, 1, 2},
        {0, 0, 0, 0});
  check([](far::rank_t to) { far::rpc(to, [] {}).get(); }, {0, 1, 1, 3}, {0, 0, 1, 1});
  check([](far::rank_t to) { far::rpc(to, [](int x) { return x; }, 1).get(); }, {0, 1, 1, 3},
        {0, 1, 1, 2});
  check([](far::rank_t to) { far::rpc(to, [](text s) { return s; }, text(104, 'x')).get(); },
        {0, 1, 1, 3}, {0, 1, 1, 2});
  check(
      [](far::rank_t to) {
        auto a = far::rpc(
                 to, [](int x) { return x; }, 1),
             b = far::rpc(to, [](int x) { return x; }, 2);
        far::when_all(std::move(a), std::move(b)).get();
      },
      {0, 2, 2, 5}, {0, 2, 2, 4});
  if (far::rank() == far::nprocs() - 1) far::rpc(0, [] {}).get();  // the ring of long answers
  far::quiesce();
  check([](far::rank_t to) { far::rpc(to, [](text s) { return s + s; }, text(500, 'x')).get(); },
        {0, 1, 1, 3}, {0, 1, 1, 2});
}

FAR_TEST(costs_of_visits) {
  if (far::nprocs() == 1) SKIP("needs another rank");
  far::stats::enable();
  far::visits visits;
  if (far::rank() == 0) far::rpc(far::nprocs() - 1, [] {}).get();
  far::barrier();
  if (far::rank() == 0) {
    far::rank_t to = far::nprocs() - 1;
    CHECK_EQ(count([&] {
               for (int i = 0; i < 100; ++i) visits.visit(to, [](int) {}, i);
             }),
             (cost{0, 0, 0, 0}));
    cost shipped = count([&] { visits.ship(); });
    CHECK(shipped == (cost{0, 1, 1, 2}) || shipped == (cost{0, 2, 1, 2}));  // across the ring's end
  }
  far::quiesce();
}

}  // namespace rpc_costs_tests

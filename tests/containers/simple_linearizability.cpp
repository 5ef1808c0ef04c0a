// Short histories of concurrent operations on a Bloom filter and a counter, each of which must be
// explained by some order of its operations.
#include "harness.hpp"

#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/counter.hpp>

#include "amounts.hpp"
#include "linearizability/checks.hpp"
#include "spread_over_cores.hpp"

#include <chrono>
#include <thread>

namespace simple_linearizability_tests {

namespace lin = linearizability;

namespace {

using amounts::many;
using amounts::simulated;
std::uint64_t histories() { return static_cast<std::uint64_t>(many(300)); }

/// One clock for all ranks of a machine. What a rank did before it looks at the clock is done: a
/// flush is what tells others of it (docs/memory_model.md).
std::uint64_t now() {
  far::flush();
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// All ranks go on together, as well as that can be had.
void start_together() {
  auto start = far::broadcast(now() + 100'000, 0);
  if (simulated()) return;  // the adversary decides
  while (now() < start) std::this_thread::yield();
}

/// Others may run before and after what is timed, so that operations overlap on few cores too.
template <class Work>
auto loosely(std::mt19937_64& random, Work work) {
  if (random() % 8 == 0) std::this_thread::yield();
  auto result = work();
  if (random() % 8 == 0) std::this_thread::yield();
  return result;
}

template <class Spec>
bool overlap(const lin::event<Spec>& a, const lin::event<Spec>& b) {
  return a.client != b.client && !lin::precedes(a, b) && !lin::precedes(b, a);
}

/// Checks on rank 0 what all ranks have logged, history by history.
template <class Spec>
void check_all(const char* name, const std::vector<std::vector<lin::event<Spec>>>& mine) {
  auto logs = far::gather(mine, 0);
  if (far::rank() != 0) return;
  std::size_t operations = 0, overlapping = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<std::vector<lin::event<Spec>>> parts;
    for (const auto& log : logs) parts.push_back(log[i]);
    auto history = lin::merged(parts);
    operations += history.size();
    for (const auto& e : history)
      overlapping += std::any_of(history.begin(), history.end(),
                                 [&](const auto& other) { return overlap(e, other); });
    auto found = lin::check<Spec>(history);
    CHECK(found.good());
    if (!found.good()) std::fprintf(stderr, "history %zu: %s\n", i, found.report.c_str());
  }
  CHECK_EQ(operations, mine.size() * logs.size() * mine[0].size());
  std::printf("linearizability: %s %zu histories, %zu operations, %zu overlapping\n", name,
              mine.size(), operations, overlapping);
}

/// 12 to 20 operations in all, and at least one of each rank.
std::size_t operations_each() { return std::max<std::size_t>(1, 18 / far::nprocs()); }

}  // namespace

FAR_TEST(bloom_filter) {
  using lin::set;
  constexpr std::uint64_t keys = 3;  // of each history
  far::bloom_filter<std::uint64_t> filter(10 * keys * histories(), 1e-8);
  auto random = far_test::random_engine();
  far_test::spread_over_cores apart(far::rank());
  std::vector<std::vector<lin::event<set>>> logs;
  for (std::uint64_t h = 0; h < histories(); ++h) {
    lin::recorder<set> log(far::rank(), now);
    start_together();
    for (std::size_t i = 0; i < operations_each(); ++i) {
      std::uint64_t key = h * keys + random() % keys;
      if (random() % 5 < 3)
        log.run(set::insert(key),
                [&] { return loosely(random, [&] { return filter.insert(key); }); });
      else
        log.run(set::contains(key),
                [&] { return loosely(random, [&] { return filter.find(key); }); });
    }
    logs.push_back(log.events());
  }
  check_all<set>("bloom_filter", logs);
}

FAR_TEST(bloom_filter_async) {
  using lin::set;
  constexpr std::uint64_t keys = 3;
  far::bloom_filter<std::uint64_t> filter(10 * keys * histories(), 1e-8);
  auto random = far_test::random_engine();
  far_test::spread_over_cores apart(far::rank());
  std::vector<std::vector<lin::event<set>>> logs;
  for (std::uint64_t h = 0; h < histories(); ++h) {
    lin::recorder<set> log(far::rank(), now);
    start_together();
    std::vector<std::pair<std::size_t, far::future<bool>>> begun;
    for (std::size_t i = 0; i < operations_each(); ++i) {
      std::uint64_t key = h * keys + random() % keys;
      bool inserts = random() % 5 < 3;
      std::size_t number = log.begin(inserts ? set::insert(key) : set::contains(key));
      begun.emplace_back(number, inserts ? filter.async_insert(key) : filter.async_find(key));
    }
    while (!begun.empty()) {  // in the reverse order: they overlap each other
      auto [number, answer] = std::move(begun.back());
      begun.pop_back();
      bool said = answer.get();
      log.end(number, lin::basic_answer(said));
    }
    logs.push_back(log.events());
  }
  check_all<set>("bloom_filter (async)", logs);
}

FAR_TEST(counter) {
  using lin::counter;
  far::counter tickets(0, far::nprocs() / 2);
  auto random = far_test::random_engine();
  far_test::spread_over_cores apart(far::rank());
  std::vector<std::vector<lin::event<counter>>> logs;
  for (std::uint64_t h = 0; h < histories(); ++h) {
    tickets.reset();
    lin::recorder<counter> log(far::rank(), now);
    start_together();
    for (std::size_t i = 0; i < operations_each(); ++i) {
      std::uint64_t n = 1 + random() % 3;
      if (random() % 3 != 0)
        log.run(counter::fetch_add(0, n),
                [&] { return loosely(random, [&] { return tickets.next(n); }); });
      else
        log.run(counter::read(0), [&] { return loosely(random, [&] { return tickets.value(); }); });
    }
    logs.push_back(log.events());
  }
  check_all<counter>("counter", logs);
}

}  // namespace simple_linearizability_tests

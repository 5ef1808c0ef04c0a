// Recording by threads and across ranks, bounds on the work, reports, and a specification of one's
// own.
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "../unit/check.hpp"
#include "linearizability.hpp"
#include "random_history.hpp"

using namespace linearizability;
using linearizability::map;
using linearizability::queue;
using linearizability::set;

namespace {

// What ranks send each other as it is.
static_assert(std::is_trivially_copyable_v<event<map>>);
static_assert(std::is_trivially_copyable_v<event<set>>);
static_assert(std::is_trivially_copyable_v<event<queue>>);
static_assert(std::is_trivially_copyable_v<event<counter>>);

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void one_client() {
  std::uint64_t now = 0;
  recorder<map> log(3, [&] { return ++now; });
  bool inserted = log.run(map::insert(7, 1), [] { return true; });
  CHECK(inserted);
  log.run(map::insert_or_assign(7, 2), [] {});
  CHECK(log.run(map::find(7), [] { return std::optional<std::uint64_t>(2); }) == 2);
  CHECK_THROWS(log.run(map::erase(7), []() -> bool { throw std::runtime_error("peer died"); }),
               "peer died");

  // Several under way at once, ended in another order.
  std::size_t first = log.begin(map::fetch_add(8, 1));
  std::size_t second = log.begin(map::fetch_add(8, 1));
  log.end(second, 0);
  log.end(first, 1);

  const auto& e = log.events();
  CHECK(e.size() == 6);
  CHECK(e[0].client == 3 && e[0].invocation == 1 && e[0].response == 2);
  CHECK(e[0].answered && e[0].answer == basic_answer(true));
  CHECK(!e[1].answered && !e[1].pending());
  CHECK(e[2].answer == basic_answer(true, 2));
  CHECK(e[3].pending() && !e[3].answered);
  CHECK(!precedes(e[4], e[5]) && !precedes(e[5], e[4]) && precedes(e[0], e[4]));
  CHECK(check<map>(e).good());
  CHECK(text(map(), e[3]) == "client 3 [7, never] erase(7) -> did not return");
}

/// Clients that do things to an object behind a lock, on threads.
template <class Spec, class Body>
std::vector<event<Spec>> on_threads(std::uint32_t clients, Body body) {
  std::atomic<std::uint64_t> clock{0};
  std::vector<std::vector<event<Spec>>> logs(clients);
  std::vector<std::thread> threads;
  for (std::uint32_t c = 0; c < clients; ++c)
    threads.emplace_back([&, c] {
      recorder<Spec> log(c, [&] { return clock.fetch_add(1); });
      body(log, c);
      logs[c] = log.events();
    });
  for (auto& t : threads) t.join();
  return merged(logs);
}

void threads() {
  std::mutex lock;
  std::map<std::uint64_t, std::uint64_t> table;
  auto history = on_threads<map>(4, [&](recorder<map>& log, std::uint32_t client) {
    for (std::uint64_t i = 0; i < 500; ++i) {
      std::uint64_t key = i % 5;
      log.run(map::insert(key, i), [&] {
        std::lock_guard held(lock);
        return table.try_emplace(key, i).second;
      });
      log.run(map::fetch_add(key, client), [&] {
        std::lock_guard held(lock);
        return std::exchange(table[key], table[key] + client);
      });
      log.run(map::erase(key), [&] {
        std::lock_guard held(lock);
        return table.erase(key) != 0;
      });
    }
  });
  result found = check(history);
  CHECK(history.size() == 4 * 1500 && found.partitions == 5);
  CHECK(found.good());
  if (!found.good()) std::puts(found.report.c_str());

  // The same, but one increment went missing.
  std::atomic<std::uint64_t> total{0};
  auto counted = on_threads<counter>(4, [&](recorder<counter>& log, std::uint32_t) {
    for (int i = 0; i < 500; ++i)
      log.run(counter::fetch_add(0, 1), [&] { return total.fetch_add(1); });
  });
  CHECK(check(counted).good());
  for (auto& e : counted)
    if (e.answer.value > 1000) --e.answer.value;
  CHECK(check(counted).verdict == outcome::not_linearizable);
}

void clocks_that_run_backwards() {
  std::uint64_t now = 10;
  recorder<set> log(0, [&] { return --now; });
  log.run(set::insert(1), [] { return true; });
  CHECK_THROWS(check<set>(log.events()), "its clock ran backwards");
}

void giving_up() {
  // Everything at the same time, and one value that nobody pushed between equal ones.
  std::vector<event<queue>> h;
  for (std::uint32_t i = 0; i < 24; ++i) {
    h.push_back({queue::push(i % 12), true, 1, 100, i, true});
    h.push_back({queue::pop(), i == 23 ? 99 : i % 12, 1, 100, i + 24, true});
  }
  result found = check(h, queue(), {.limit = 10000});
  CHECK(found.verdict == outcome::gave_up && !found.good());
  CHECK(found.undecided == 1 && found.failed == 0 && found.steps < 20000);
  CHECK(contains(found.report, "gave up") && contains(found.report, "No order tried so far"));

  // A failure elsewhere is found all the same.
  h.push_back({queue::pop(1), 5, 1, 2, 0, true});
  found = check(h, queue(), {.limit = 10000});
  CHECK(found.verdict == outcome::not_linearizable);
  CHECK(found.undecided == 1 && found.failed == 1);
  CHECK(contains(found.report, "of partition 1") && contains(found.report, "pop() -> 5"));
}

/// The report shows where it went wrong in a long history, and not all of it.
void reports() {
  std::mt19937_64 random(5);
  auto history = make_history(map(), {.clients = 3, .operations = 3000}, random, [](auto& r) {
    return r() % 2 == 0 ? map::insert_or_assign(r() % 4, r() % 100) : map::find(r() % 4);
  });
  CHECK(contains(check(history).report, "of 4 partitions 0 failed"));
  std::uint64_t end = history.back().invocation + 100;
  history.push_back({map::find(2), std::optional<std::uint64_t>(1000), end, end + 1, 9, true});
  std::string report = check(history).report;
  CHECK(contains(report, "not linearizable: of 4 partitions 1 failed"));
  CHECK(contains(report, "of partition 2:\n  * client 9 "));
  CHECK(contains(report, "All before them had ended, last\n"));
  CHECK(contains(report, "find(2) -> 1000 (it would be "));
  CHECK(report.size() < 3000);
}

/// The example of specification.hpp.
struct flag {
  struct call {
    bool raise;
  };
  using answer = bool;
  using state = bool;
  state initial() const { return false; }
  std::optional<answer> apply(state& up, const call& c) const {
    return std::exchange(up, up || c.raise);
  }
  bool reads_only(const call& c, const answer& up) const { return !c.raise || up; }
  std::size_t hash(const state& up) const { return up; }
  std::string text(const call& c) const { return c.raise ? "raise()" : "look()"; }
  std::string text(const call&, const answer& up) const { return up ? "up" : "down"; }
  std::string text_of_state(const state& up) const { return up ? "up" : "down"; }
};
static_assert(specification<flag> && !partitioned<flag> && !weighed<flag>);
static_assert(partitioned<map> && partitioned<set> && partitioned<counter> && weighed<queue>);

void own_specification() {
  std::vector<event<flag>> h = {{{true}, false, 1, 4, 0, true}, {{false}, false, 2, 3, 1, true}};
  CHECK(check<flag>(h).good());
  h.push_back({{true}, false, 5, 6, 1, true});
  CHECK(contains(check<flag>(h).report, "raise() -> down (it would be up)"));
}

}  // namespace

int main() {
  one_client();
  threads();
  clocks_that_run_backwards();
  giving_up();
  reports();
  own_specification();
  return verdict("linearizability.recording");
}

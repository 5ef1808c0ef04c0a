// The checker against the definition, on many small random histories, and against long histories
// that are right by construction.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../unit/check.hpp"
#include "brute_force.hpp"
#include "linearizability.hpp"
#include "random_history.hpp"

using namespace linearizability;
using linearizability::map;
using linearizability::queue;
using linearizability::set;
using generator = std::mt19937_64;

namespace {

// Few keys and few values, so that what goes wrong can go wrong often.
map::call map_call(generator& random) {
  std::uint64_t key = random() % 2;
  std::uint64_t value = random() % 3;
  switch (random() % 5) {
    case 0:
      return map::insert(key, value);
    case 1:
      return map::insert_or_assign(key, value);
    case 2:
      return map::erase(key);
    case 3:
      return map::fetch_add(key, value);
    default:
      return map::find(key);
  }
}

set::call set_call(generator& random) {
  std::uint64_t key = random() % 2;
  if (random() % 3 == 0) return set::contains(key);
  return random() % 2 == 0 ? set::insert(key) : set::erase(key);
}

counter::call counter_call(generator& random) {
  std::uint64_t id = random() % 2;
  return random() % 2 == 0 ? counter::read(id) : counter::fetch_add(id, random() % 3);
}

/// Pushes of different values, or of few that come again and again.
auto queue_calls(bool distinct) {
  return [distinct, last = std::uint64_t(0)](generator& random) mutable {
    std::uint64_t value = distinct ? ++last : random() % 2 + 1;
    switch (random() % 6) {
      case 0:
        return queue::push(value);
      case 1:
      case 2:
        return queue::try_push(value);
      case 3:
        return queue::pop();
      default:
        return queue::try_pop();
    }
  };
}

/// Makes one answer wrong, most of the time: another yes or no, or another's value.
template <class Spec>
void spoil_answer(std::vector<event<Spec>>& history, generator& random) {
  event<Spec>& e = history[random() % history.size()];
  if (!e.answered) return;
  if (random() % 2 == 0) {
    e.answer.yes = !e.answer.yes;
    if (!e.answer.yes) e.answer.value = 0;
  }
  if (e.answer.yes && random() % 2 == 0)
    e.answer.value = history[random() % history.size()].answer.value;
}

/// Moves one operation to another time, or makes it lost.
template <class Spec>
void spoil_time(std::vector<event<Spec>>& history, generator& random) {
  event<Spec>& e = history[random() % history.size()];
  std::uint64_t length = e.pending() ? never : e.response - e.invocation;
  e.invocation = random() % (2 * history.size());
  e.response = length == never ? never : e.invocation + length;
}

/// Stamps of a coarse clock: fewer operations follow each other, more overlap.
template <class Spec>
void coarsen(std::vector<event<Spec>>& history, std::uint64_t unit) {
  for (auto& e : history) {
    e.invocation /= unit;
    if (!e.pending()) e.response /= unit;
  }
}

struct tally {
  int good = 0;
  int bad = 0;
};

template <class Spec>
void compare(const Spec& spec, const std::vector<event<Spec>>& history, tally& seen) {
  bool expected = linearizable_by_brute_force(spec, history);
  ++(expected ? seen.good : seen.bad);
  for (bool shortcuts : {true, false}) {
    result found = check(history, spec, {.shortcuts = shortcuts});
    outcome wanted = expected ? outcome::linearizable : outcome::not_linearizable;
    CHECK(found.verdict == wanted);
    if (found.verdict == wanted) continue;
    std::printf("shortcuts %d, by brute force %s; the checker says %s", shortcuts,
                text(wanted).c_str(), found.report.c_str());
    for (const auto& e : history) std::printf("    %s\n", text(spec, e).c_str());
  }
}

/// The history until some moment. What returned later need not have happened; if it did, it gave
/// the answer that it gave.
template <class Spec>
std::vector<event<Spec>> until(std::vector<event<Spec>> events, std::uint64_t moment,
                               bool strictly) {
  std::erase_if(events, [&](const event<Spec>& e) { return e.invocation > moment; });
  for (event<Spec>& e : events)
    if (e.response > moment || (e.response == moment && strictly)) e.response = never;
  return events;
}

/// The operation that a failed search blames is the first that no order gets past.
template <class Spec>
void blame(const Spec& spec, const std::vector<event<Spec>>& history) {
  for (const auto& part : detail::partitions(spec, history)) {
    search<Spec> all(spec, std::span(part), options().limit);
    if (all.run() != outcome::not_linearizable) continue;
    std::uint64_t end = part[all.culprit()].response;
    CHECK(linearizable_by_brute_force(spec, until(part, end, true)));
    CHECK(!linearizable_by_brute_force(spec, until(part, end, false)));
  }
}

/// `rounds` histories of at most 7 operations, each as it was and spoilt. `make_calls()` gives
/// something that makes calls.
template <class Spec, class MakeCalls>
void small_histories(const char* name, const Spec& spec, int rounds, MakeCalls make_calls) {
  generator random(2024);
  tally made;
  tally spoilt;
  for (int i = 0; i < rounds; ++i) {
    random_options how{.clients = static_cast<std::uint32_t>(2 + random() % 3),
                       .operations = static_cast<std::uint32_t>(1 + random() % 7),
                       .lost = random() % 3 == 0 ? 0.3 : 0,
                       .silent = random() % 4 == 0 ? 0.3 : 0};
    auto history = make_history(spec, how, random, make_calls());
    if (random() % 4 == 0) coarsen(history, 2 + random() % 2);
    compare(spec, history, made);
    for (std::uint64_t spoils = 1 + random() % 2; spoils > 0; --spoils)
      random() % 3 == 0 ? spoil_time(history, random) : spoil_answer(history, random);
    compare(spec, history, spoilt);
    blame(spec, history);
  }
  CHECK(made.bad == 0 && made.good == rounds);
  CHECK(spoilt.good > rounds / 20 && spoilt.bad > rounds / 20);
  std::printf("%-22s %d histories are good; spoilt, %d are good and %d are bad\n", name, made.good,
              spoilt.good, spoilt.bad);
}

/// What is too long for brute force: what is known about queues against the plain search.
template <class MakeCalls>
void longer_queues(const char* name, const queue& spec, int rounds, MakeCalls make_calls) {
  generator random(99);
  tally seen;
  for (int i = 0; i < rounds; ++i) {
    random_options how{.clients = static_cast<std::uint32_t>(2 + random() % 3),
                       .operations = static_cast<std::uint32_t>(8 + random() % 13),
                       .lost = random() % 3 == 0 ? 0.1 : 0,
                       .silent = random() % 4 == 0 ? 0.1 : 0};
    auto history = make_history(spec, how, random, make_calls());
    if (random() % 4 != 0) spoil_answer(history, random);
    if (random() % 4 == 0) spoil_time(history, random);
    outcome quick = check(history, spec).verdict;
    outcome slow = check(history, spec, {.shortcuts = false}).verdict;
    CHECK(quick == slow && quick != outcome::gave_up);
    ++(quick == outcome::linearizable ? seen.good : seen.bad);
    if (quick == slow) continue;
    std::printf("quick %s, slow %s\n", text(quick).c_str(), text(slow).c_str());
    for (const auto& e : history) std::printf("    %s\n", text(spec, e).c_str());
  }
  std::printf("%-22s up to 20 operations: %d are good and %d are bad\n", name, seen.good, seen.bad);
}

/// Long histories are accepted, and never rejected for being long.
template <class Spec, class MakeCalls>
void long_histories(const Spec& spec, MakeCalls make_calls) {
  generator random(7);
  for (std::uint32_t clients : {1U, 2U, 4U, 8U}) {
    for (double lost : {0.0, 0.01}) {
      random_options how{.clients = clients, .operations = 300, .lost = lost};
      result found = check(make_history(spec, how, random, make_calls()), spec);
      CHECK(found.good());
      if (!found.good()) std::puts(found.report.c_str());
    }
  }
}

template <class Spec, class MakeCalls>
void both(const char* name, const Spec& spec, int rounds, MakeCalls make_calls) {
  small_histories(name, spec, rounds, make_calls);
  long_histories(spec, make_calls);
}

}  // namespace

/// The argument: how many small histories of each kind.
int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 5000;
  both("map", map(), rounds, [] { return map_call; });
  both("set", set(), rounds, [] { return set_call; });
  both("counter", counter(), rounds, [] { return counter_call; });
  both("queue", queue(), rounds, [] { return queue_calls(false); });
  both("queue, distinct", queue(), rounds, [] { return queue_calls(true); });
  both("queue of 2", queue{2}, rounds, [] { return queue_calls(false); });
  both("queue of 2, distinct", queue{2}, rounds, [] { return queue_calls(true); });
  for (std::size_t capacity : {std::size_t(1), std::size_t(3), queue::unbounded})
    longer_queues("queue, distinct", queue{capacity}, rounds, [] { return queue_calls(true); });
  return verdict("linearizability.random");
}

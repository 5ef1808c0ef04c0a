// How long the checker takes over long histories. Prints figures; only the verdicts are checked.
#include <chrono>
#include <cstdio>
#include <random>
#include <utility>

#include "../unit/check.hpp"
#include "linearizability.hpp"
#include "random_history.hpp"

using namespace linearizability;
using linearizability::map;
using linearizability::queue;
using linearizability::set;
using generator = std::mt19937_64;

namespace {

template <class Spec>
void measure(const char* name, const std::vector<event<Spec>>& history, const Spec& spec,
             outcome expected) {
  auto begin = std::chrono::steady_clock::now();
  result found = check(history, spec);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(found.verdict == expected);
  std::printf("%-58s %7.3f s  %s, %zu partitions, %llu steps\n", name, took.count(),
              text(found.verdict).c_str(), found.partitions,
              static_cast<unsigned long long>(found.steps));
}

/// Both as it is and with a wrong answer near the end. `spoil(history)` makes one.
template <class Spec, class MakeCall, class Spoil>
void both(const char* name, const Spec& spec, random_options how, MakeCall make_call, Spoil spoil) {
  generator random(11);
  auto history = make_history(spec, how, random, make_call);
  measure(name, history, spec, outcome::linearizable);
  spoil(history);
  measure("    one answer wrong", history, spec, outcome::not_linearizable);
}

/// An answer that no operation can give.
template <class Spec>
void spoil_value(std::vector<event<Spec>>& history) {
  for (std::size_t i = history.size() * 9 / 10; i < history.size(); ++i) {
    if (!history[i].answered || !history[i].answer.yes) continue;
    history[i].answer.value += 1'000'000;
    return;
  }
}

/// Two pops far apart exchange their values.
void spoil_order(std::vector<event<queue>>& history) {
  std::vector<std::size_t> pops;
  for (std::size_t i = history.size() / 2; i < history.size(); ++i)
    if (!queue::pushes(history[i].call) && history[i].answered && history[i].answer.yes)
      pops.push_back(i);
  std::swap(history[pops.front()].answer, history[pops.back()].answer);
}

auto map_calls(std::uint64_t keys) {
  return [keys](generator& random) {
    std::uint64_t key = random() % keys;
    switch (random() % 8) {
      case 0:
        return map::insert(key, random() % 100);
      case 1:
      case 2:
        return map::insert_or_assign(key, random() % 100);
      case 3:
        return map::erase(key);
      case 4:
        return map::fetch_add(key, random() % 100);
      default:
        return map::find(key);
    }
  };
}

auto queue_calls(unsigned pushes_of_100) {
  return [=, last = std::uint64_t(0)](generator& random) mutable {
    return random() % 100 < pushes_of_100 ? queue::try_push(++last) : queue::try_pop();
  };
}

}  // namespace

int main() {
  both("map, 100,000 operations, 8 clients, 1,000 keys", map(),
       {.clients = 8, .operations = 100'000}, map_calls(1000), spoil_value<map>);
  both("map, 100,000 operations, 8 clients, 1,000 keys, some lost", map(),
       {.clients = 8, .operations = 100'000, .lost = 0.001}, map_calls(1000), spoil_value<map>);
  both("map, 20,000 operations, 8 clients, 1 key", map(), {.clients = 8, .operations = 20'000},
       map_calls(1), spoil_value<map>);
  both(
      "counter, 20,000 operations, 8 clients, 1 counter", counter(),
      {.clients = 8, .operations = 20'000},
      [](generator& random) {
        return random() % 4 == 0 ? counter::read(0) : counter::fetch_add(0, 1);
      },
      spoil_value<counter>);
  both("queue, 20,000 operations, 4 clients", queue(), {.clients = 4, .operations = 20'000},
       queue_calls(50), spoil_order);
  both("queue, 20,000 operations, 4 clients, mostly pushes, some lost", queue(),
       {.clients = 4, .operations = 20'000, .lost = 0.001}, queue_calls(60), spoil_order);
  both("queue of 8, 20,000 operations, 4 clients", queue{8}, {.clients = 4, .operations = 20'000},
       queue_calls(55), spoil_order);
  both("queue of 8, 20,000 operations, 8 clients", queue{8}, {.clients = 8, .operations = 20'000},
       queue_calls(55), spoil_order);
  return verdict("linearizability.speed");
}

// far::rank_local: when values are made and destroyed, by one rank and several of its threads.
#include <farside/core/rank_local.hpp>
#include <farside/farside.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

std::vector<std::string> events;

template <int Number>
struct noisy {
  noisy() { events.push_back("+" + std::to_string(Number)); }
  ~noisy() { events.push_back("-" + std::to_string(Number)); }
  int x = Number;
};

far::rank_local<noisy<1>> first;
far::rank_local<noisy<2>> second;

/// Needs another one while it is made and while it is destroyed.
struct dependent {
  dependent() { x = first->x; }
  ~dependent() { events.push_back("first is still " + std::to_string(first->x)); }
  int x = 0;
};
far::rank_local<dependent> third;

struct circular;
int use_circular();
struct circular {
  int x = use_circular();
};
far::rank_local<circular> round_about;
int use_circular() { return round_about->x; }

int attempts = 0;
struct picky {
  picky() {
    if (++attempts == 1) throw std::runtime_error("not the first time");
  }
};
far::rank_local<picky> difficult;

/// What cannot be moved, and lies in far memory until the very end.
struct word {
  word() : at(far::make<long>(41)) {}
  word(const word&) = delete;
  ~word() {
    events.push_back("far memory holds " + std::to_string(far::get(at)));
    far::dealloc(at);
  }
  far::ptr<long> at;
};
far::rank_local<word> in_far_memory;

std::string text(const std::vector<std::string>& of) {
  std::string all;
  for (const auto& one : of) all += (all.empty() ? "" : ", ") + one;
  return all;
}

void order() {
  for (int round = 0; round < 2; ++round) {  // a second runtime begins with new values
    events.clear();
    {
      far::runtime world;
      CHECK(second->x == 2 && third->x == 1);
      second->x = 20;
      CHECK(second->x == 20 && (*second).x == 20);
      far::fetch_add(in_far_memory->at, 1);
      CHECK(text(events) == "+2, +1");
    }
    CHECK(text(events) == "+2, +1, far memory holds 42, first is still 1, -1, -2");
  }
  CHECK_THROWS(first->x, "no far::runtime");
}

void errors() {
  far::runtime world;
  CHECK_THROWS(round_about->x, "uses that same far::rank_local");
  CHECK_THROWS(*difficult, "not the first time");
  CHECK_THROWS(round_about->x, "uses that same far::rank_local");
  static_cast<void>(*difficult);
  CHECK(attempts == 2);
}

std::atomic<int> made{0};
struct counted {
  counted() { ++made; }
  std::atomic<long> sum{0};
};
far::rank_local<counted> shared[40];

void threads() {
  far::runtime world({.threads = far::thread_level::multiple});
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([] {
      for (int i = 0; i < 1000; ++i)
        for (auto& one : shared) one->sum.fetch_add(1, std::memory_order_relaxed);
    });
  for (auto& thread : all) thread.join();
  CHECK(made == 40);
  for (auto& one : shared) CHECK(one->sum == 4000);
}

}  // namespace

int main() {
  order();
  errors();
  threads();
  return verdict("rank_local");
}

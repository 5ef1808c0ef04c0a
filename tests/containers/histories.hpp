// Short histories of a container, many of them, each checked for linearizability.
#pragma once

#include "amounts.hpp"
#include "harness.hpp"
#include "linearizability/checks.hpp"

#include <sched.h>
#include <chrono>
#include <string>

namespace histories {

namespace lin = linearizability;

using amounts::many;
using amounts::simulated;

inline std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Between the invocation of an operation and its first step, every other time, the rank lets
/// others run: on few cores operations would hardly overlap otherwise.
class linger {
 public:
  template <class Random>
  explicit linger(Random& random) : yields_(random() % 2) {}
  void operator()() const {
    if (yields_) sched_yield();
  }

 private:
  bool yields_;
};

/// What was seen over all histories of a test, on rank 0.
struct tally {
  std::uint64_t histories = 0, operations = 0, overlapping = 0;
  std::uint64_t with_refusals = 0;  ///< histories in which an operation threw for lack of room

  void print(const char* what) const {
    if (far::rank() == 0)
      std::printf("linearizability: %s %llu histories, %llu operations, %llu overlapping\n", what,
                  static_cast<unsigned long long>(histories),
                  static_cast<unsigned long long>(operations),
                  static_cast<unsigned long long>(overlapping));
    if (far::rank() == 0 && with_refusals != 0)
      std::printf("linearizability: of those, operations threw in %llu histories\n",
                  static_cast<unsigned long long>(with_refusals));
  }
};

/// How many operations overlap one of another client on the same key.
template <class Spec>
std::uint64_t overlapping(const std::vector<lin::event<Spec>>& history, const Spec& spec) {
  std::uint64_t count = 0;
  for (const auto& a : history) {
    bool found = false;
    for (const auto& b : history)
      found |= a.client != b.client && spec.partition(a.call) == spec.partition(b.call) &&
               !precedes(a, b) && !precedes(b, a);
    count += found;
  }
  return count;
}

/// Collective: one history. Each rank calls `act(log)` after a barrier.
template <class Spec, class Act>
void one(tally& all, Act act) {
  lin::recorder<Spec> log(far::rank(), now);
  far::barrier();
  act(log);
  auto logs = far::gather(log.events(), 0);
  if (far::rank() == 0) {
    auto history = lin::merged(logs);
    auto verdict = lin::check(history);
    CHECK(verdict.good());
    if (!verdict.good()) std::printf("%s\n", verdict.report.c_str());
    ++all.histories;
    all.operations += history.size();
    all.overlapping += overlapping(history, Spec());
  }
  far::barrier();
}

}  // namespace histories

// How many messages a rank has sent and handled, over all time, and how all ranks find out that
// none is under way.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/collectives.hpp>

#include <atomic>
#include <cstdint>
#include <functional>

namespace far::inline FARSIDE_BACKEND::detail {

class message_counts {
 public:
  struct sums {
    std::uint64_t sent = 0, handled = 0;
    friend sums operator+(const sums& a, const sums& b) {
      return {a.sent + b.sent, a.handled + b.handled};
    }
  };

  void count_sent() { sent_.fetch_add(1, std::memory_order_relaxed); }
  void count_handled() { handled_.fetch_add(1, std::memory_order_release); }
  /// Handled ones first: what they have made their handlers send has been counted by then.
  sums now() const {
    const std::uint64_t handled = handled_.load(std::memory_order_acquire);
    return {sent_.load(std::memory_order_acquire), handled};
  }

  /// Collective over `members`: returns when no message of any of them is under way. `ship` sends what this rank has
  /// kept back, and waits for what it has begun.
  template <class Ship>
  void until_all_handled(Ship ship, const team& members = world()) {
    repeat_until_all_handled([&] {
      ship();
      return all_reduce(now(), std::plus<>(), members);
    });
  }

  /// Calls `round()`, which takes the counts of all and adds them up, until the job is at rest. That
  /// is when all that was sent by this round had been handled by the round before. Every rank's counts
  /// of a round are taken after those of the round before, and only grow. So nothing was under way
  /// between the two rounds, and only messages that are under way make handlers send
  /// (algorithms/detail/quiescence.hpp argues the same). Ranks serve messages while they wait for each
  /// other.
  template <class Round>
  static void repeat_until_all_handled(Round round) {
    for (std::uint64_t before = ~std::uint64_t{0};;) {
      const sums all = round();
      if (FARSIDE_MUTANT(quiet_after_one_round) ? all.sent == all.handled : all.sent == before)
        return;
      before = all.handled;
    }
  }

 private:
  std::atomic<std::uint64_t> sent_{0}, handled_{0};
};

}  // namespace far::inline FARSIDE_BACKEND::detail

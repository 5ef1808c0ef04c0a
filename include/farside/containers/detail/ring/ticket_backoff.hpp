// Ranks that do little else than take tickets of one word take turns at it.
//
// The line of that word goes from core to core with every ticket, if two cores take them as fast as
// they can: some 100 ns for what costs 10 while a core has the line to itself. So each of them
// takes tickets for some microseconds, and then waits for as long, before it takes another:
//
//                 another's ticket came between, and its turn is over
//   takes tickets ----------------------------------------------------> rests, with no ticket
//        ^                                                                 |
//        +-------------------------- the time is over ---------------------+
//
// A rank knows that it has company by the tickets that are missing between its own, so without
// company nothing is added but a comparison. Nobody waits for one that rests, as it has no ticket
// that it could use; if all of them rest at once their rests are of different lengths.
//
// It rests only where that pays. Not if the company costs little, as between two threads of one
// core, which share their caches; and not if it has other work to do between its tickets.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/base/backend_choice.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// What this rank knows of its turn. Its threads may share it: what they spoil is the time that one
/// rests, which is bounded. Tests have a clock of their own.
template <class Clock>
class basic_ticket_backoff {
 public:
  static constexpr std::uint64_t turn = 3000;  ///< ns
  static constexpr std::uint64_t longest_rest = turn + turn / 4 * 3;

  /// Before a ticket is taken.
  void wait() {
    if (rest_until_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      rest();
  }
  /// `n` tickets from `first` on were taken.
  void took(std::uint64_t first, std::uint64_t n) {
    std::uint64_t expected = next_.load(std::memory_order_relaxed);
    next_.store(first + n, std::memory_order_relaxed);
    if (first != expected) [[unlikely]]
      others_came(first, expected);
  }

  /// The next ticket is this one, if nobody else takes any: tickets were given back, or taken in
  /// another way.
  void expect(std::uint64_t next) { next_.store(next, std::memory_order_relaxed); }

  void reset() {
    for (auto* all : {&next_, &run_, &taken_, &gaps_, &began_, &dear_, &rest_until_})
      all->store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t long_ago = 100 * turn;
  static constexpr std::uint64_t dear = 60;   ///< ns a ticket: company costs that much
  static constexpr std::uint64_t slow = 200;  ///< ns a ticket: there is other work between them

  static constexpr std::uint64_t seldom = 16;  ///< gaps: to look at the clock takes 30 ns, too

  static std::uint64_t now() {
    auto since = Clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }

  [[gnu::noinline, gnu::cold]] void others_came(std::uint64_t first, std::uint64_t expected) {
    std::uint64_t run = load(run_), gaps = load(gaps_) + 1;
    std::uint64_t taken = load(taken_) + (expected > run ? expected - run : 0);  // or given back
    store(run_, first);
    store(taken_, taken);
    store(gaps_, gaps);
    if (load(dear_) == 0 && gaps % seldom != 0) return;
    std::uint64_t time = now(), age = time - load(began_);
    if (age < turn) return;
    if (age > long_ago) return begin(time);
    if (gaps * 2 > taken) store(dear_, age > taken * dear);  // else it was alone, mostly
    if (load(dear_) != 0 && age < taken * slow)
      store(rest_until_, time + turn + first % 4 * (turn / 4));
    begin(time);
  }

  [[gnu::noinline, gnu::cold]] void rest() {
    std::uint64_t until = load(rest_until_), time = now();
    for (; time < until; time = now()) relax();
    begin(time);
    store(rest_until_, 0);
  }

  void begin(std::uint64_t time) {
    store(began_, time);
    store(taken_, 0);
    store(gaps_, 0);
  }

  using number = std::atomic<std::uint64_t>;
  static std::uint64_t load(const number& n) { return n.load(std::memory_order_relaxed); }
  static void store(number& n, std::uint64_t value) { n.store(value, std::memory_order_relaxed); }

  number next_{0};        ///< the ticket after this rank's last
  number run_{0};         ///< the first of those that have followed each other up to there
  number taken_{0};       ///< tickets of this turn, before those
  number gaps_{0};        ///< how often others' came between them
  number began_{0};       ///< when the turn began
  number dear_{0};        ///< whether company costs much, as far as it is known
  number rest_until_{0};  ///< 0: it does not rest
};
using ticket_backoff = basic_ticket_backoff<std::chrono::steady_clock>;

}  // namespace far::inline FARSIDE_BACKEND::detail

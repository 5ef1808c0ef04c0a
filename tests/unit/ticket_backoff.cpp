// Who takes tickets together with others takes turns, where that pays, and rests for no longer than
// it must.
#include <farside/containers/detail/ring/ticket_backoff.hpp>

#include "check.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace {

/// Goes on by 10 ns whenever somebody looks at it.
struct hand_set_clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;
  static inline std::uint64_t time = 0;
  static time_point now() { return time_point(duration(time += 10)); }
};

using turns = far::detail::basic_ticket_backoff<hand_set_clock>;

/// One rank, and the others, of whom only the tickets show.
struct pusher {
  turns mine{};
  std::uint64_t tail = 0;
  std::uint64_t rests = 0, longest = 0;

  /// Takes a ticket every `cost` ns, `n` times; before each, others take `others`.
  void take(std::uint64_t n, std::uint64_t cost, std::uint64_t others) {
    for (std::uint64_t i = 0; i < n; ++i) {
      tail += others;
      std::uint64_t before = hand_set_clock::time;
      mine.wait();
      std::uint64_t rested = hand_set_clock::time - before;
      rests += rested > turns::turn / 2;
      longest = std::max(longest, rested);
      mine.took(tail++, 1);
      hand_set_clock::time += cost;
    }
  }
};

void alone() {
  for (std::uint64_t cost : {5, 100, 1000}) {
    pusher one;
    one.take(100'000, cost, 0);
    CHECK(one.rests == 0);
  }
}

void dear_company() {
  pusher one;
  one.take(10'000, 100, 1);  // a millisecond: a turn is 30 of them
  CHECK(one.rests > 100);
  CHECK(one.rests < 400);
  CHECK(one.longest >= turns::turn);
  CHECK(one.longest <= turns::longest_rest + 100);
  // Company that has gone is not waited for: no more than the rest that was due.
  std::uint64_t before = one.rests;
  one.take(10'000, 10, 0);
  CHECK(one.rests <= before + 1);
}

void cheap_company() {  // two threads of one core
  pusher one;
  one.take(10'000, 30, 1);
  CHECK(one.rests == 0);
}

void company_while_there_is_other_work() {
  pusher one;
  one.take(10'000, 1000, 1);
  CHECK(one.rests == 0);
}

/// Who has had its turns pushes while the others rest: long runs, with few gaps. It goes on
/// resting.
void turns_that_are_taken() {
  pusher one;
  one.take(1000, 100, 1);
  std::uint64_t before = one.rests;
  for (int i = 0; i < 100; ++i) {
    one.take(300, 10, 0);  // a turn of one's own
    one.take(2, 100, 1);
  }
  CHECK(one.rests >= before + 90);
}

/// Tickets that are given back, and new numbers, make nobody rest for ever.
void numbers_that_go_back() {
  pusher one;
  for (int i = 0; i < 1000; ++i) {
    one.take(20, 100, 1);
    one.tail -= one.tail < 30 ? 0 : 15;
    one.mine.expect(one.tail);
  }
  CHECK(one.longest <= turns::longest_rest + 100);
  one.mine.reset();
  one.longest = 0;
  one.tail = 0;
  one.take(100, 10, 0);
  CHECK(one.longest == 0);
}

}  // namespace

int main() {
  alone();
  dear_company();
  cheap_company();
  company_while_there_is_other_work();
  turns_that_are_taken();
  numbers_that_go_back();
  return verdict("ticket_backoff");
}

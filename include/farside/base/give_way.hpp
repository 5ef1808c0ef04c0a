// Waiting without keeping cores from others.
//
// Where a thread has a core for itself, or only shares it with others that wait, a yield takes a
// microsecond. Where others compute, it takes until each of them has had its slice, some milliseconds,
// and a rank that waits for another one pays for that at each of its messages. A thread that sleeps is
// woken in time instead, as the kernel owes it some. So when a yield has taken long, waits sleep for a
// while instead of yielding.
#pragma once

#include <farside/base/job_board.hpp>

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// Yields. False, at once, if yields have taken long lately: the caller had better sleep.
inline bool yield_if_quick() {
  constexpr std::uint64_t long_ns = 2'000'000, remembered = 10;  // times as long as it took
  static thread_local constinit std::uint64_t slow_until = 0;
  const std::uint64_t before = job_board::monotonic_ns();
  if (before < slow_until) return false;
  sched_yield();
  const std::uint64_t after = job_board::monotonic_ns();
  if (after - before > long_ns) slow_until = after + remembered * (after - before);
  return true;
}

/// A round of a wait: yields, or sleeps for a moment.
inline void give_way() {
  if (yield_if_quick()) return;
  timespec nap{0, 50'000};
  nanosleep(&nap, nullptr);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// How a process waits for what may come at once or in an hour: it polls, then it naps.
//
//   where every process has a core     polls for 200 us
//   where processes share cores        polls for 10 us
//
// A nap lasts 1/16 of the time without news so far, 20 us at least (5 us on shared cores) and 1 ms
// at most. So it delays the next news by at most 1/16 of the time before it, and at most 1 ms. A
// process that has been idle for long takes about a hundredth of a core.
//
// Cores are taken for shared if there are more processes than cores, or if a thread has overslept a
// moment ago. The second is for what we do not know: other jobs on this machine, hosts that have
// their cores in common, two ranks that the kernel has put on one core. There a rank that polls
// keeps the process that it waits for from running.
//
// Why nobody yields: since Linux 6.18 a yield gives away the time slice, and a compiler on the
// same core then runs for 3 ms, ten compilers for 25 ms. A nap keeps the claim to it.
#pragma once

#include <farside/base/backend_choice.hpp>
#include <farside/base/job_board.hpp>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

class patience {
 public:
  explicit patience(bool oversubscribed) : oversubscribed_(oversubscribed) {}

  void worked() { since_ = 0; }

  /// True: this was a nap, so there is time to look around.
  bool rest() {
    std::uint64_t now = job::monotonic_ns();
    if (since_ == 0) since_ = now;
    std::uint64_t quiet_for = now - since_;
    bool shared = shares_cores(oversubscribed_, now);
    if (quiet_for < (shared ? 10'000 : 200'000)) return false;
    nap(std::clamp(quiet_for / 16, shared ? shortest / 4 : shortest, longest), now);
    return true;
  }

  /// A round of a wait that does not say when it begins and ends: polls for a while, then naps for
  /// a while, and so on. `began` is kept by the caller, for all its threads.
  static void rest_in_turns(std::atomic<std::uint64_t>& began, bool oversubscribed) {
    std::uint64_t now = job::monotonic_ns();
    bool shared = shares_cores(oversubscribed, now);
    const std::uint64_t polls = shared ? 10'000 : 400'000, naps = shared ? 200'000 : 100'000;
    std::uint64_t passed = now - began.load(std::memory_order_relaxed);
    if (passed > polls + naps)
      began.store(now, std::memory_order_relaxed);
    else if (passed > polls)
      nap(shared ? shortest / 4 : shortest, now);
  }

  /// Notes whether another process had the core, for the next naps.
  static void nap(std::uint64_t length, std::uint64_t now) {
    nap(length);
    std::uint64_t woke = job::monotonic_ns();
    if (woke - now > length + too_long)
      overslept_until.store(woke + remembered, std::memory_order_relaxed);
  }

  /// Lasts as long as it says, not the 50 us longer that a thread grants the kernel at first.
  static void nap(std::uint64_t ns) {
    static thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1000UL);
    (void)precise;
    timespec length{0, static_cast<long>(ns)};
    nanosleep(&length, nullptr);
  }

  /// For a thread that does nothing but serve: it runs as soon as it wakes, if for a short while.
  /// A kernel that does not know how leaves things as they are.
  static void serve_only() {
    struct {  // sched_attr
      std::uint32_t size, policy;
      std::uint64_t flags;
      std::int32_t nice;
      std::uint32_t priority;
      std::uint64_t runtime, deadline, period;
    } attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    attributes.size = sizeof attributes;
    attributes.runtime = 100'000;  // of SCHED_OTHER: the time slice, since Linux 6.12
    if (attributes.policy == SCHED_OTHER) syscall(SYS_sched_setattr, 0, &attributes, 0);
  }

  static constexpr std::uint64_t shortest = 20'000, longest = 1'000'000;

 private:
  static bool shares_cores(bool oversubscribed, std::uint64_t now) {
    return oversubscribed || now < overslept_until.load(std::memory_order_relaxed);
  }

  static constexpr std::uint64_t too_long = 150'000, remembered = 20'000'000;
  inline static std::atomic<std::uint64_t> overslept_until = 0;  ///< by any thread of this process

  bool oversubscribed_;
  std::uint64_t since_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served

// How somebody waits for what may come at once or in an hour: polls, then lets others run, then
// naps.
//
//   where every process has a core     polls some 200 us; yields until 0.2 ms more have passed;
//   naps where processes share cores        polls some 10 us; naps
//
// A nap lasts 1/16 of the silence so far, 20 us at least and 1 ms at most. So it adds to what comes
// then at most 1/16 of the silence before it, and at most 1 ms; and who has been idle for long
// takes about a hundredth of a core.
//
// Why no yields on shared cores: since Linux 6.18 who yields gives away its time slice, and a
// compiler on the same core then runs for 3 ms. Who naps keeps its claim.
#pragma once

#include <farside/detail/board.hpp>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

class patience {
 public:
  explicit patience(bool crowded)
      : polls_(crowded ? 40 : 1000), yields_for_(crowded ? 0 : 200'000) {}

  void worked() { rounds_ = 0; }

  /// True: this was a nap, so there is time to look around.
  bool rest() {
    if (++rounds_ <= polls_) return false;
    std::uint64_t now = job::monotonic_ns();
    if (rounds_ == polls_ + 1) since_ = now;
    std::uint64_t silence = now - since_;
    if (silence < yields_for_) {
      sched_yield();
      return false;
    }
    nap(std::clamp(silence / 16, shortest, longest));
    return true;
  }

  static void nap(std::uint64_t ns) {
    timespec length{0, static_cast<long>(ns)};
    nanosleep(&length, nullptr);
  }

  /// For a thread that does nothing but serve: its naps last as long as they say, not 50 us longer,
  /// and it runs as soon as it wakes, if for a short while. A kernel that does not know how leaves
  /// things as they are.
  static void serve_only() {
    prctl(PR_SET_TIMERSLACK, 1000UL);
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
  std::uint64_t rounds_ = 0, polls_, yields_for_, since_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served

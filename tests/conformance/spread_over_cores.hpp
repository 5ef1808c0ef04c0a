// Keeps a rank on a core of its own while it lives: the scheduler of a busy machine likes to put
// two ranks that wait for each other on one core, where nothing ever races.
#pragma once

#include <farside/farside.hpp>

#include <sched.h>

namespace far_test {

class spread_over_cores {
 public:
  explicit spread_over_cores(far::rank_t role) {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0 || CPU_COUNT(&before_) < 2) return;
    auto skip = role % static_cast<unsigned>(CPU_COUNT(&before_));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &before_) && skip-- == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        moved_ = sched_setaffinity(0, sizeof one, &one) == 0;
        return;
      }
  }
  ~spread_over_cores() {
    if (moved_) sched_setaffinity(0, sizeof before_, &before_);
  }
  spread_over_cores(const spread_over_cores&) = delete;

 private:
  cpu_set_t before_;
  bool moved_ = false;
};

}  // namespace far_test

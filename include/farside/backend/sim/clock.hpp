// Time in a simulated run: a step takes a fixed time, whichever rank asks. The C library's
// functions are defined here for the whole program, so that <chrono> and sleeping know no other
// time while a run goes on; yielding lets another rank run.
#pragma once

#include <farside/backend/sim/world.hpp>

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

inline int simulated_sleep(const timespec* wanted, timespec* left) {
  auto ns = static_cast<std::uint64_t>(wanted->tv_sec) * ns_per_second +
            static_cast<std::uint64_t>(wanted->tv_nsec);
  if (left != nullptr) *left = {};  // may be the same as `wanted`
  running_world->sleep(ns);
  return 0;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

// NOLINTBEGIN(misc-definitions-in-headers): weak, so that a program has one of each
extern "C" {

[[gnu::weak]] int clock_gettime(clockid_t clock, timespec* now) noexcept {
  using namespace far::detail::sim_backend;
  if (running_world == nullptr) return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  std::uint64_t ns = ns_per_second + running_world->now_ns();
  now->tv_sec = static_cast<time_t>(ns / ns_per_second);
  now->tv_nsec = static_cast<long>(ns % ns_per_second);
  return 0;
}

[[gnu::weak]] int nanosleep(const timespec* wanted, timespec* left) {
  using namespace far::detail::sim_backend;
  if (running_world == nullptr) return static_cast<int>(syscall(SYS_nanosleep, wanted, left));
  return simulated_sleep(wanted, left);
}

[[gnu::weak]] int sched_yield() noexcept {
  using namespace far::detail::sim_backend;
  if (running_world == nullptr) return static_cast<int>(syscall(SYS_sched_yield));
  running_world->yield(running_world->running());
  return 0;
}

}  // extern "C"
// NOLINTEND(misc-definitions-in-headers)

// The thread that serves a rank's messages with attention::thread.
#pragma once

#include <farside/core/access.hpp>
#include <farside/core/detail/messages/wire.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>

namespace far::inline FARSIDE_BACKEND::detail {

class attendant {
 public:
  attendant() = default;
  attendant(const attendant&) = delete;
  ~attendant() { stop(); }

  /// The thread calls `service.serve_all()`, which says whether there was anything to do, and
  /// sleeps while there is nothing. `service.kept()`: bytes of messages that wait for room.
  template <class Service>
  void start(context& c, Service& service) {
    context_ = &c;
    thread_ = std::thread([this, &service] { attend(service); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    stopping_.store(true, std::memory_order_release);
    wake(*context_, context_->link.rank());
    thread_.join();
  }

 private:
  template <class Service>
  void attend(Service& service);

  context* context_ = nullptr;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Where memory is coherent, a rank that sends to this one wakes the thread. Elsewhere the thread
/// looks again after a nap of 20 microseconds, later of up to a millisecond.
template <class Service>
void attendant::attend(Service& service) {
  context& c = *context_;
  set_current(&c);
  constexpr long shortest = 20'000, longest = 1'000'000;
  long nap = shortest;
  try {
    while (!stopping_.load(std::memory_order_acquire)) {
      std::uint64_t rung = look_at(c, bell_word) >> 1;
      c.link.progress();
      if (service.serve_all()) {
        nap = shortest;
      } else if (c.link.coherent() && service.kept() == 0) {
        c.link.await(bell_word, rung + 1);
      } else {
        timespec time{0, nap};
        nanosleep(&time, nullptr);
        nap = std::min(longest, nap + nap / 4);
      }
    }
  } catch (const std::exception& e) {  // the rank's own threads find out by themselves
    std::fprintf(stderr, "rank %u: its thread for messages ends: %s\n", c.link.rank(), e.what());
  }
  set_current(nullptr);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

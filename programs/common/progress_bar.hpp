// A bar on rank 0's terminal; nothing where standard error is none.
#pragma once

#include <farside/core/runtime.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace programs {

class progress_bar {
 public:
  /// `expected` bytes on all ranks together; 0: not known. `unit`: of a million of them, or of
  /// whatever else is counted.
  explicit progress_bar(std::string what, std::uint64_t expected = 0, std::string unit = "MB")
      : what_(std::move(what)),
        unit_(std::move(unit)),
        expected_(expected),
        shown_(far::rank() == 0 && isatty(2) != 0) {}
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar() {
    if (drawn_) std::fprintf(stderr, "\r%78s\r", "");
  }

  /// Not collective. What rank 0 has done stands for all.
  void add(std::uint64_t bytes) {
    if (!shown_) return;
    done_ += static_cast<double>(bytes) * far::nprocs();
    auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    drawn_ = true;
    double seconds = std::max(1e-3, std::chrono::duration<double>(now - begin_).count());
    double rate = done_ / seconds / 1e6;
    if (expected_ == 0) {
      std::fprintf(stderr, "\r  %s  %.0f %s  about %.0f %s/s   ", what_.c_str(), done_ / 1e6,
                   unit_.c_str(), rate, unit_.c_str());
      return;
    }
    double share = std::min(1.0, done_ / static_cast<double>(expected_));
    int filled = static_cast<int>(30 * share);
    std::fprintf(stderr, "\r  %s  [%.*s%*s] %3.0f %%  about %.0f %s/s   ", what_.c_str(), filled,
                 "##############################", 30 - filled, "", 100 * share, rate,
                 unit_.c_str());
  }

 private:
  std::string what_, unit_;
  std::uint64_t expected_;
  bool shown_, drawn_ = false;
  double done_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

}  // namespace programs

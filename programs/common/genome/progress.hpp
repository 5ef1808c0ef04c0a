// A bar on rank 0's terminal; nothing where standard error is none.
#pragma once

#include <farside/core/runtime.hpp>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace genome {

class progress {
 public:
  /// `expected` bytes on this rank; 0: not known.
  explicit progress(std::uint64_t expected)
      : expected_(expected), shown_(far::rank() == 0 && isatty(2) != 0) {}

  /// Not collective. What rank 0 has done stands for all.
  void add(std::uint64_t bytes, std::uint64_t records) {
    if (!shown_) return;
    done_ += bytes;
    auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    double seconds = std::chrono::duration<double>(now - begin_).count();
    double rate = static_cast<double>(records) * far::nprocs() / std::max(seconds, 1e-3);
    if (expected_ == 0) {
      std::fprintf(stderr, "\r  about %.0f reads/s   ", rate);
      return;
    }
    double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(expected_));
    int filled = static_cast<int>(40 * share);
    std::fprintf(stderr, "\r  [%.*s%*s] %3.0f %%  about %.0f reads/s   ", filled,
                 "########################################", 40 - filled, "", 100 * share, rate);
  }
  /// Wipes the bar.
  void finish() {
    if (shown_) std::fprintf(stderr, "\r%78s\r", "");
  }

 private:
  std::uint64_t expected_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

}  // namespace genome

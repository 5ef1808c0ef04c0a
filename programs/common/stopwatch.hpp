// Where the time went, phase by phase.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace programs {

class stopwatch {
 public:
  struct phase {
    std::string name;
    double seconds;
  };

  /// The time since the last lap, or since the start, was that of phase `name`.
  void lap(std::string name) {
    auto now = std::chrono::steady_clock::now();
    laps_.push_back({std::move(name), std::chrono::duration<double>(now - since_).count()});
    since_ = now;
  }
  const std::vector<phase>& laps() const { return laps_; }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::vector<phase> laps_;
};

/// 0.25 -> "250.0".
inline std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e3 * seconds);
  return text;
}

}  // namespace programs

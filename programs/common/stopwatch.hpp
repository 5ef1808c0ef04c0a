// Where the time went, phase by phase.
#pragma once

#include <chrono>
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

}  // namespace programs

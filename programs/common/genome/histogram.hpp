// How often k-mers were seen.
#pragma once

#include <farside/core/collectives.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace genome {

/// How many k-mers were seen how often; the last line is for all that were seen more often.
class histogram {
 public:
  explicit histogram(std::uint32_t longest) : lines_(longest + 2) {}
  void add(std::uint32_t count) {
    ++lines_[std::min<std::size_t>(count, lines_.size() - 1)];
    ++different_;
    total_ += count;
  }
  /// `times` k-mers that were seen `count` times, or more often where that is the last line; `sum` in all.
  void add(std::size_t count, std::uint64_t times, std::uint64_t sum) {
    lines_[std::min(count, lines_.size() - 1)] += times;
    different_ += times;
    total_ += sum;
  }
  std::size_t lines() const { return lines_.size(); }
  /// Collective.
  void gather() {
    far::all_reduce(std::span(lines_));
    different_ = far::all_reduce(different_);
    total_ = far::all_reduce(total_);
  }
  std::uint64_t at(std::size_t count) const { return lines_[count]; }
  std::uint64_t different() const { return different_; }
  std::uint64_t total() const { return total_; }
  std::string text() const {
    std::string result;
    for (std::size_t i = 1; i < lines_.size(); ++i)
      if (lines_[i] != 0) result += std::to_string(i) + " " + std::to_string(lines_[i]) + "\n";
    return result;
  }

 private:
  std::vector<std::uint64_t> lines_;
  std::uint64_t different_ = 0, total_ = 0;
};

}  // namespace genome

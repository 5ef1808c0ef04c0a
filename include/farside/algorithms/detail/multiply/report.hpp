// What a multiplication did, and how long it took, on each member.
#pragma once

#include <farside/core/collectives.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// Of one member. Times are in seconds.
struct multiply_times {
  double compute = 0;      ///< in local kernels
  double communicate = 0;  ///< waiting for tiles, sending partial ones, in collectives of SUMMA
  double accumulate = 0;   ///< adding up partial tiles
  double imbalance = 0;    ///< waiting for others at the end
  double total = 0;
  std::uint64_t pieces = 0;         ///< products of two tiles
  std::uint64_t stolen = 0;         ///< of those, how many were another member's
  std::uint64_t bytes_fetched = 0;  ///< of tiles of other members
  std::uint64_t bytes_sent = 0;     ///< of partial tiles, to other members
  std::uint64_t most_waiting = 0;   ///< bytes of partial tiles that were out at once
};

/// Of all members.
struct multiply_report {
  std::string algorithm;  ///< what was chosen: "stationary C" and so on
  std::vector<multiply_times> members;

  /// The slowest member's time at work, without waiting at the end, by the mean of all. 1: nobody
  /// waits. Local; no communication.
  double load_imbalance() const {
    double most = 0, sum = 0;
    for (const auto& m : members) {
      most = std::max(most, m.total - m.imbalance);
      sum += m.total - m.imbalance;
    }
    return sum == 0 ? 1 : most * static_cast<double>(members.size()) / sum;
  }
};

/// A table for people: a row for each member, and the means. Local; no communication.
inline std::string to_text(const multiply_report& of) {
  double longest = 0;
  for (const auto& t : of.members) longest = std::max(longest, t.total);
  const bool short_one = longest < 10;
  const double scale = short_one ? 1e3 : 1;
  const char* unit = short_one ? "ms" : "s ";
  std::string out =
      of.algorithm + "\n" +
      "  member    compute  communicate  accumulate  imbalance     total  pieces  stolen"
      "     fetched        sent\n";
  auto row = [&](const char* name, const multiply_times& t) {
    char line[224];
    std::snprintf(
        line, sizeof line,
        "  %6s %7.2f %s   %8.2f %s  %7.2f %s %7.2f %s %6.2f %s %7llu %7llu %7.2f MB %7.2f MB\n",
        name, scale * t.compute, unit, scale * t.communicate, unit, scale * t.accumulate, unit,
        scale * t.imbalance, unit, scale * t.total, unit, static_cast<unsigned long long>(t.pieces),
        static_cast<unsigned long long>(t.stolen), static_cast<double>(t.bytes_fetched) / 1e6,
        static_cast<double>(t.bytes_sent) / 1e6);
    out += line;
  };
  multiply_times mean;
  auto n = static_cast<double>(std::max<std::size_t>(1, of.members.size()));
  for (std::size_t i = 0; i < of.members.size(); ++i) {
    const multiply_times& t = of.members[i];
    row(std::to_string(i).c_str(), t);
    mean.compute += t.compute / n, mean.communicate += t.communicate / n;
    mean.accumulate += t.accumulate / n, mean.imbalance += t.imbalance / n;
    mean.total += t.total / n;
    mean.pieces += t.pieces, mean.stolen += t.stolen;
    mean.bytes_fetched += t.bytes_fetched, mean.bytes_sent += t.bytes_sent;
  }
  row("all", mean);
  return out;
}

namespace detail {

/// Adds the time that it lives to a sum, less what others inside of it have added up.
class stopwatch {
 public:
  explicit stopwatch(double& to) : to_(to), begin_(job::monotonic_ns()) {}
  ~stopwatch() { to_ += seconds(); }
  stopwatch(const stopwatch&) = delete;
  double seconds() const { return static_cast<double>(job::monotonic_ns() - begin_) * 1e-9; }

 private:
  double& to_;
  std::uint64_t begin_;
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

// What `farside sim` says: about one run, about the line that repeats it, and about all runs.
#pragma once

#include <string>
#include <vector>

#include "sim.hpp"

namespace far::app {

/// `farside sim -n 3 --seed 17 --level cruel ./program`: a line for a shell.
std::string reproducing(const sim_options& options, const sim_plan& plan);

/// `seed 17 (cruel)`.
std::string name_of(const sim_plan& plan);

/// `deadlock, every rank waits, after 1,234 steps`.
std::string describe(const sim_options& options, const sim_result& result);

/// A failing run: its outcome, what it printed last, and how to have it again.
std::string failure_report(const sim_options& options, const sim_result& result);

/// What happened in all runs.
struct sim_tally {
  std::uint64_t runs = 0, failing = 0;
  std::uint64_t steps = 0, operations = 0, deliveries = 0;
  std::uint64_t without_allocation = 0;  ///< runs in which none could be made to fail
  bool complete = false;                 ///< exhaustive: all schedules were seen

  void add(const sim_result& result);
};

/// The last line: `400 runs at 4 ranks: 1,234,567 operations, ...; none failed (12.3 s)`.
std::string summary(const sim_options& options, const sim_tally& tally, double seconds);

}  // namespace far::app

// All runs of one `farside sim`: which seeds there are, which of them failed, and what is said.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "farside/base/job_board.hpp"
#include "sim_pool.hpp"
#include "sim_report.hpp"

namespace far::app {

class campaign {
 public:
  /// `to` is where results are printed, `trace` the absolute path of --trace, or empty.
  campaign(const sim_options& options, sim_pool& pool, std::FILE* to, std::string trace)
      : options_(options), pool_(pool), to_(to), trace_(std::move(trace)) {}

  /// Returns the exit status; throws `interruption`.
  int run();
  /// Whatever became of run().
  void print_summary();

 private:
  std::optional<sim_plan> next_plan();
  sim_plan plan_of(std::uint64_t seed) const;
  void add_faults(const sim_result& probed);
  void take(sim_result result);
  void take_failure(sim_result result);
  void shrink_first();
  void trace_shrunk(sim_plan plan);
  void show(const sim_result& result, const char* about = "");
  void show_failure();
  void show_progress();
  void clear_progress();
  double seconds() const {
    return 1e-9 * static_cast<double>(far::job_board::monotonic_ns() - started_);
  }

  const sim_options& options_;
  sim_pool& pool_;
  std::FILE* to_;
  std::string trace_;
  std::uint64_t started_ = far::job_board::monotonic_ns();
  std::uint64_t next_seed_ = options_.first_seed;
  std::deque<sim_plan> with_faults_;              ///< whose run without fault is done
  std::map<std::uint64_t, sim_result> failures_;  ///< by seed
  sim_tally tally_;
  bool failure_shown_ = false;
  bool progress_ = isatty(2) && !options_.verbose;
  double progress_shown_ = 0;
};

}  // namespace far::app

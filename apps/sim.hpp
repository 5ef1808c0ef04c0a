// `farside sim`: runs of a program whose ranks, all in one process, are scheduled by a seed.
// What launcher and program tell each other by FARSIDE_SIM_* is in farside/backend/sim.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "options.hpp"

namespace far::app {

/// How far the adversary goes.
enum class sim_level { mild, normal, harsh, cruel };
inline constexpr std::array<const char*, 4> level_names = {"mild", "normal", "harsh", "cruel"};
inline const char* name_of(sim_level level) { return level_names[static_cast<std::size_t>(level)]; }

/// Steps with first <= step < last.
struct step_window {
  std::uint64_t first = 0, last = 0;
  std::uint64_t steps() const { return last - first; }
};

/// A rank that stops for good.
struct rank_stop {
  std::uint64_t rank = 0, step = 0;
};

/// All that decides one run, beside the program and what is the same for all runs.
struct sim_plan {
  std::uint64_t seed = 1;
  sim_level level = sim_level::normal;
  std::optional<step_window> active{};  ///< nothing: the adversary always acts
  std::optional<rank_stop> stop{};
  std::optional<std::uint64_t> failing_allocation{};  ///< from 1
  std::uint64_t exhaustive = 0;                       ///< most schedules to explore; 0: by the seed
  std::string trace{};                                ///< absolute path, or empty
  bool probe = false;  ///< only made to learn where a random fault can be
};

/// What the program reports about a run.
struct sim_counts {
  std::uint64_t steps = 0, operations = 0, deliveries = 0, allocations = 0;
  std::uint64_t runs = 0;  ///< more than one only if exhaustive
  bool complete = false;   ///< exhaustive: all schedules were seen
};

enum class sim_outcome {
  ok,
  faulted,    ///< the planned fault was played and the others coped: good
  failed,     ///< a rank failed
  deadlock,   ///< every rank waits
  steps,      ///< the limit of steps
  killed,     ///< by a signal
  hangs,      ///< the limit of time
  bad_end,    ///< all ranks were well, and then the program exited with a status
  no_report,  ///< it ended without a word about the simulation
};

struct sim_result {
  sim_plan plan;
  sim_outcome outcome = sim_outcome::ok;
  int detail = 0;                                    ///< signal or exit status
  std::uint64_t failed_rank = 0, failed_status = 0;  ///< status 0: not known
  sim_counts counts{};
  std::string out{}, err{};     ///< the last of what it printed
  std::size_t error_lines = 0;  ///< lines on stderr, also those that `err` has no more
  double seconds = 0;

  bool good() const { return outcome == sim_outcome::ok || outcome == sim_outcome::faulted; }
  /// The same kind of failure: what a simpler run must still show.
  bool fails_like(const sim_result& other) const {
    return !good() && outcome == other.outcome &&
           (outcome != sim_outcome::killed || detail == other.detail);
  }
};

struct sim_options {
  std::uint32_t ranks = 4;
  std::uint64_t first_seed = 1, last_seed = 100;
  std::optional<sim_level> level{};  ///< nothing: by the seed
  std::optional<step_window> active{};
  std::optional<rank_stop> stop{};
  std::optional<std::uint64_t> failing_allocation{};
  bool random_stop = false, random_allocation = false;
  std::uint64_t exhaustive = 0;
  std::string trace;        ///< as given: a path, '-', or empty
  std::uint64_t steps = 0;  ///< 0: the program's default
  double time_limit = 0;    ///< seconds a run; 0 is none
  bool time_limit_given = false;
  double minutes = 0;
  unsigned jobs = 0;
  bool shrink = false, keep_going = false, verbose = false;
  std::string segment;
  variables environment;  ///< without --segment
  arguments command;      ///< program and its arguments

  bool random_faults() const { return random_stop || random_allocation; }
};

extern const char* const sim_usage;

/// Throws `error` for anything it does not understand, or that does not fit together.
sim_options parse_sim(const arguments& words);

/// `farside run` of such a program: once, with the seed that the environment names.
int run_simulated(const run_options& options, const std::string& program);

}  // namespace far::app

// What a back end does where it would make this process a job of one rank: it looks whether the
// process was started together with others, which would become jobs of one rank as well.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/foreign_start.hpp>

#include <optional>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

inline std::string how_to_start(std::uint64_t processes, const char* options = "") {
  std::string n = std::to_string(processes);
  std::string run = "farside run -n " + n + options + " PROGRAM'";
  return "'" + run + " (under Slurm: 'salloc -n " + n + " " + run + ")";
}

/// Throws where this process must not be a job of its own. `why` says why the back end `name` knows
/// nothing of the others, and `otherwise` how else to start the program than by `farside run`.
/// `start` is looked up before the back end's library starts: that may set variables itself.
inline void refuse_separate_jobs(const char* name, const std::optional<job::foreign_start>& start,
                                 const std::string& why, const std::string& otherwise) {
  if (auto ranks = job::ranks_of_launcher(); ranks > 1)
    raise("this process would be a job of its own, but 'farside run' has started it as one of ",
          ranks, " ranks of another back end than ", name,
          ", which it is built for. Start it without --backend, or with the one it is built for.");
  if (!start) return;
  raise("this process would be a job of its own, but it is one of ",
        start->at_least ? "at least " : "", start->processes, " processes that ", start->launcher,
        " has started (", start->evidence, "): ", why, ". Start it with ",
        how_to_start(start->processes), otherwise,
        ". Where each of them shall be a job of its own, set ", job::separate_variable, "=1.");
}

}  // namespace far::inline FARSIDE_BACKEND::detail

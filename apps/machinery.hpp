// The processes between the launcher and the ranks: mpirun, MPICH's daemon, the agents that start
// it on other hosts, our supervisors. When one of them is killed or cannot do its work, ranks die
// or wait as a consequence. So the launcher looks at these processes first, and names the one that
// is to blame.
#pragma once

#include <optional>
#include <string>

#include "job.hpp"

namespace far::app {

/// State of a process as /proc has it: R, S, D, T (stopped), t (by a debugger), Z (ended, its
/// parent has not noticed yet); 0 if there is none.
char process_state(pid_t);

/// `was killed by signal 9 (SIGKILL)`, `ended with status 3`: of a process that has ended and whose
/// parent has not noticed yet; otherwise `is gone`.
std::string how_it_ended(pid_t);

/// Supervisors are not our children: their number may belong to another process by now.
bool is_supervisor(pid_t);

class machinery {
 public:
  /// What is broken, or nothing. Unless `thoroughly`, only some supervisors are looked at each
  /// time.
  std::optional<std::string> look(const job_state&, bool thoroughly);

 private:
  std::optional<std::string> dead_supervisor(const job_state&, bool thoroughly);
  std::optional<std::string> dead_daemon(const job_state&) const;
  std::optional<std::string> dead_agent(const job_state&);
  std::optional<std::string> never_started(const job_state&);

  std::size_t next_ = 0;          ///< the first supervisor to look at
  std::uint64_t idle_since_ = 0;  ///< when the last agent ended, if none has done its work
  std::uint64_t told_since_ = 0;  ///< when mpirun was first seen to end the ranks itself
  std::size_t started_ = 0;       ///< how many supervisors there were
  std::uint64_t started_at_ = 0;  ///< when that was first seen
};

}  // namespace far::app

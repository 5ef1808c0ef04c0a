// Words about ranks: how one ended, and what all of them wait for.
#pragma once

#include <optional>
#include <string>

#include "job.hpp"

namespace far::app {

/// Why a job does not end well. The first one found stays.
struct cause {
  enum class kind {
    killed,    ///< a signal that nobody of ours sent
    exited,    ///< non-zero, before its runtime ended
    vanished,  ///< exit with 0 while its runtime still ran
    lost,      ///< on another host, whose supervisor of it, or which itself, is gone
    absent,    ///< exit with 0 without a runtime, while another rank counts on it
    failed,    ///< an exception left the runtime: the rank says why
    refused,   ///< the program cannot do what it was asked to: the rank has the line to print
    late,      ///< non-zero after its runtime ended: the others may go on
    stuck,     ///< no event can let the job go on: job_state::verdict says why
    timeout,
    interrupted,  ///< SIGINT or SIGTERM to the launcher
    starter,      ///< mpirun ended by itself
    machinery,    ///< another process between us and the ranks was killed or does not work
    output,       ///< what the ranks have printed could not be written
  };
  kind what;
  std::size_t slot = 0;
  int detail = 0;  ///< signal or exit status

  int status() const;
  /// A rank that announced its failure may still write its last words.
  bool grace() const { return what == kind::failed; }
  bool ends_the_job() const { return what != kind::late; }
};

/// How the rank in `slot` failed, or nothing if it is well so far.
std::optional<cause> judge(const job_state&, std::size_t slot);

/// Whether a rank ended only because another one had died: by its own account, or by its exit
/// status if an MPI library ended it that has lost a connection to another host.
bool is_secondary_failure(const job_state&, std::size_t slot);

/// `rank 2 (pid 4711) was killed by signal 9 (SIGKILL)`.
std::string describe(const job_state&, const cause&);

/// What to print about it: the line above with what follows from it, or a refusal as it is.
/// Empty for a time-out, which has been described already.
std::string announce(const job_state&, const cause&, const std::string& consequence);

/// A line for each rank: what it waits for, for which rank, since when, and how many collectives it
/// has called.
std::string waiting_report(const job_state&, double age);

std::string signal_name(int signal);

}  // namespace far::app

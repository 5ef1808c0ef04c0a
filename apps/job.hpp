// A job: the ranks of one run, the memory that the launcher shares with them, and what it
// writes down about them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "farside/base/job_board.hpp"
#include "memory_events.hpp"
#include "options.hpp"
#include "output.hpp"
#include "program.hpp"
#include "reach.hpp"

namespace far::app {

/// What launcher and supervisors tell each other about one rank. It lies behind the board's
/// slots, in the same memory; ranks know nothing of it.
struct record {
  std::atomic<std::uint32_t> pid;        ///< of the rank's process, known before its runtime starts
  std::atomic<std::uint32_t> told;       ///< 1: it was told to end, so its end is nobody's fault
  std::atomic<std::uint64_t> reaped_at;  ///< monotonic_ns(): the first to die is the cause
  std::atomic<std::uint32_t> orphan_of;  ///< the supervisor's parent, once that has ended before it
  std::atomic<std::uint32_t> lost;  ///< 1: on another host, and how it ended will never be known
};

/// Board and records of one job. `id` is random: a supervisor on another host could find some
/// other job's board behind the same path.
struct ledger {
  job_board::board* board = nullptr;
  std::uint64_t* id = nullptr;
  record* records = nullptr;

  static std::size_t bytes(std::size_t ranks) {
    return job_board::board::bytes(ranks) + sizeof(std::uint64_t) + ranks * sizeof(record);
  }
  static ledger on(job_board::board* board);
  /// Makes them, in memory of its own whose descriptor is put into `fd`; throws if there is none.
  static ledger make(std::uint32_t ranks, std::uint64_t id, int& fd);

  /// Writes down how a rank's process ended, as its parent learned it.
  void reaped(std::size_t slot, int wait_status);
  /// The same when its supervisor, on another host, is gone.
  void lost(std::size_t slot);
  /// Whether the end of every rank is known.
  bool all_reaped() const;
};

struct job_state {
  run_options options;
  pid_t launcher = 0;
  transport how = transport::smp;
  std::string program;  ///< path
  /// Processes among options.ranks that serve the others, see add_servers().
  std::uint32_t servers = 0;
  ledger book;
  int board_fd = -1;
  int segments_fd = -1;      ///< smp only
  std::vector<pid_t> ranks;  ///< smp: process of each slot, 0 once reaped
  pid_t starter = 0;         ///< mpirun; 0 if there is none or it has ended
  std::string starter_name;
  output_process output;        ///< what mpirun prints goes through it
  bool starter_killed = false;  ///< by a signal
  memory_events memory;         ///< what the kernel has killed for lack of memory
  std::string trouble;          ///< which process between us and the ranks is to blame, and why
  bool one_host = true;         ///< all ranks are here
  reception remote;             ///< the ranks that are not
  int out[2] = {-1, -1};        ///< mpirun with --prefix: supervisors write whole lines here
  int err[2] = {-1, -1};
  std::string verdict;  ///< why the job can never go on, once that is known
  std::string scratch;  ///< folder for what an MPI would leave in /dev/shm, on every host

  bool supervised() const { return how != transport::smp; }
  /// Whether every rank's supervisor is here or has called: then all ranks end by our hand.
  bool reaches_all() const;
  /// Whether supervisors stay until all ranks have ended: MPICH's daemon kills the other ranks of
  /// its host when one leaves without MPI_Finalize, which hangs on several hosts.
  bool leave_together() const { return how == transport::mpich && !one_host; }
};

/// A name under which other processes of this host can open a descriptor of one.
std::string path_of(pid_t owner, int fd);

class relays;

/// FARSIDE_MPI=progress_rank takes processes of each host from the ranks: so many more are started,
/// as -n counts the ranks of the program. Returns how many. 0 under a batch system, where mpirun
/// knows the hosts and we do not: there -n counts processes.
std::uint32_t add_servers(run_options&);

/// Start the processes. On an error they throw, and leave nothing running.
void start_smp(job_state&, relays&);
void start_mpi(job_state&, relays&);

/// Sets the variables for the processes to come. A rank may itself start jobs: what it was told
/// about its own is not for their ranks.
void set_up_environment(const variables& environment);

/// Tells processes to come, whose program is built for any back end, which one carries it.
void set_carrier(transport);

/// 0, 1 and 2 stay what they are everywhere: a memfd must not become some rank's stdin.
void open_standard_streams();

/// What a child does between fork and exec: dies with its parent, gets the signals back.
void become_child(pid_t parent);

/// Replaces the process; only returns if that fails.
void execute(const std::string& program, const arguments& command);

}  // namespace far::app

// Watches a running job until nothing of it is left.
//
//   watching --a rank fails---> (last words, 1 s at most) --> ending --> done
//      |  \--time is up-------> (stacks, 1 s)             -->   ^
//      |   \--signal to us------------------------------------- /
//      |    \--it can never go on (hang.hpp)------------------- /
//      \--all ranks ended----------------------------------------------> done
//
// Ending: SIGTERM to the ranks, SIGKILL a second later, then mpirun.
#pragma once

#include <optional>

#include "hang.hpp"
#include "host_name.hpp"
#include "machinery.hpp"
#include "relay.hpp"
#include "report.hpp"

namespace far::app {

class watcher {
 public:
  /// Blocks the signals it handles: construct it before the first fork.
  explicit watcher(job_state& job);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// Returns the exit status of the run.
  int watch(relays& lines);

 private:
  enum class phase { watching, last_words, stacks, ending };

  void wait_for_news(relays& lines);
  void take_signals();
  void reap();
  void look_for_cause();
  bool look_at_machinery(bool thoroughly);
  void look_for_hang();
  void advance();

  void blame(const cause& why);
  void begin_ending();
  void keep_ending(std::uint64_t age);
  bool rank_lives(std::size_t process) const;
  std::size_t living() const;
  void signal_ranks(int signal);
  bool in_hand() const { return job_.one_host || job_.reaches_all(); }
  bool settling() const;
  void dismiss();
  bool over() const;
  int conclude(relays& lines);

  job_state& job_;
  int signals_ = -1;
  std::uint64_t started_;
  phase phase_ = phase::watching;
  std::uint64_t phase_began_ = 0;
  std::uint64_t secondary_since_ = 0;  ///< when a rank first ended only because it had lost another
  int escalation_ = 0;                 ///< how far ending has gone: see keep_ending
  std::uint64_t ranks_gone_ = 0;       ///< how long after the begin of ending no rank was left
  std::optional<cause> cause_;
  machinery machinery_;
  hang_watch hang_;
  std::optional<int> starter_status_;
  std::uint64_t starter_ended_ = 0;
  slow_start slow_start_;
  bool dismissed_ = false;  ///< supervisors have been told that all ranks have ended
};

}  // namespace far::app

// Processes of simulated runs, several at a time, each watched until it ends or its time is up.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "sim.hpp"

namespace far::app {

/// SIGINT, SIGTERM or SIGHUP came; no run is left when this is thrown.
struct interruption {
  int signal;
};

/// What is the same for all runs.
struct sim_program {
  std::string path;
  arguments command;
  std::uint32_t ranks = 1;
  std::uint64_t steps = 0;  ///< 0: the program's default
  double time_limit = 0;    ///< seconds a run; 0 is none
  unsigned jobs = 1;
};

class sim_pool {
 public:
  /// Takes over the signals of this process until it is gone.
  explicit sim_pool(sim_program program);
  ~sim_pool();
  sim_pool(const sim_pool&) = delete;
  sim_pool& operator=(const sim_pool&) = delete;

  bool has_room() const { return running_.size() < program_.jobs; }
  bool idle() const { return running_.empty(); }
  void start(const sim_plan& plan);
  /// Waits until one of the runs has ended; there has to be one.
  sim_result next();
  /// One run from its start to its end; no other may be under way.
  sim_result run(const sim_plan& plan);
  /// Ends the runs that nobody needs any more; they have no result.
  void drop(const std::function<bool(const sim_plan&)>& unwanted);

 private:
  /// The end of what a process prints, and how many lines there were.
  struct tail {
    std::string text;
    std::size_t lines = 0;
    void add(const char* data, std::size_t size);
  };
  struct stream {
    int from = -1;
    tail kept{};
    void move();
  };
  struct run_under_way {
    sim_plan plan;
    pid_t process = 0;
    int report = -1;  ///< memory that the program writes its report to
    stream out{}, err{};
    std::uint64_t started = 0;
    bool late = false;  ///< killed because its time was up
  };

  [[noreturn]] void become_program(const run_under_way& run, int out, int err) const;
  void wait_for_news();
  void end_late_ones();
  void end(run_under_way& run);
  sim_result conclude(run_under_way& run, int wait_status) const;

  sim_program program_;
  pid_t launcher_;
  int signals_ = -1;
  std::vector<run_under_way> running_;
};

}  // namespace far::app

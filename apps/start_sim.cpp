// `farside run` of a program that is built for sim: one process that is all ranks.

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job.hpp"
#include "report.hpp"
#include "sim.hpp"

namespace far::app {

namespace {

[[noreturn]] void become_program(const run_options& options, const std::string& program,
                                 pid_t launcher) {
  become_child(launcher);
  fix_addresses();
  setenv(far::job_board::nprocs_variable, std::to_string(options.ranks).c_str(), 1);
  execute(program, options.command);
  std::fprintf(stderr, "farside run: cannot start %s: %s\n", program.c_str(), std::strerror(errno));
  _exit(not_executable);
}

/// The next of `set` to arrive, or 0 once `seconds` of the job have passed; 0 is no limit.
int wait_for_signal(const sigset_t& set, std::uint64_t started, double seconds) {
  if (seconds <= 0) return sigwaitinfo(&set, nullptr);
  double left = seconds - 1e-9 * static_cast<double>(far::job_board::monotonic_ns() - started);
  if (left <= 0) return 0;
  timespec time{static_cast<time_t>(left), 0};
  time.tv_nsec = static_cast<long>((left - static_cast<double>(time.tv_sec)) * 1e9);
  int signal = sigtimedwait(&set, nullptr, &time);
  return signal < 0 && errno == EAGAIN ? 0 : signal;
}

int conclude(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    std::fprintf(stderr, "farside run: the simulation was killed by signal %s\n",
                 signal_name(WTERMSIG(wait_status)).c_str());
    return signal_base + WTERMSIG(wait_status);
  }
  int status = WEXITSTATUS(wait_status);
  if (status != 0)
    std::fprintf(stderr, "farside run: the simulation exited with status %d\n", status);
  return status;
}

}  // namespace

int run_simulated(const run_options& options, const std::string& program) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGCHLD, SIG_DFL);
  if (options.verbose)
    std::fprintf(stderr, "farside run: %s as one process of %s, on sim\n",
                 quoted(options.command).c_str(), program.c_str());
  std::uint64_t started = far::job_board::monotonic_ns();
  pid_t launcher = getpid(), child = fork();
  if (child == 0) become_program(options, program, launcher);
  if (child < 0)
    throw error(failure, std::string("cannot start the program: ") + std::strerror(errno));
  int signal = SIGCHLD, wait_status = 0;
  bool ended = false;
  while (!ended && (signal == SIGCHLD || signal < 0)) {
    signal = wait_for_signal(set, started, options.timeout);
    ended = waitpid(child, &wait_status, WNOHANG) == child;
  }
  if (!ended) {
    std::string why =
        signal ? "received signal " + signal_name(signal)
               : "the job was not done after " + human_time(options.timeout) + " (--timeout)";
    std::fprintf(stderr, "farside run: %s; ending the simulation\n", why.c_str());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  if (ended) return conclude(wait_status);
  return signal ? signal_base + signal : static_cast<int>(timed_out);
}

}  // namespace far::app

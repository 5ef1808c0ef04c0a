// Starting the ranks of an smp program: children of the launcher that share a memfd.

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job.hpp"
#include "relay.hpp"

namespace far::app {

void become_child(pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  // A shell ignores it in background jobs; a runtime puts its handler only where nobody has
  // decided yet.
  signal(SIGQUIT, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(signal_base + SIGKILL);  // it died before prctl
}

void execute(const std::string& program, const arguments& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
}

namespace {

/// Two pipes a rank: more than the usual soft limit on open files from 500 ranks on. The ranks
/// get the limit back that we were given.
rlimit raise_file_limit() {
  rlimit given;
  getrlimit(RLIMIT_NOFILE, &given);
  rlimit raised = given;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return given;
}

void bind_to_core(std::uint32_t rank) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  std::uint32_t skip = rank % static_cast<std::uint32_t>(CPU_COUNT(&allowed));
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void set_environment(const job_state& job, std::uint32_t slot) {
  std::string ranks = std::to_string(job.options.ranks);
  setenv(far::job_board::board_variable, path_of(job.launcher, job.board_fd).c_str(), 1);
  setenv(far::job_board::slot_variable, std::to_string(slot).c_str(), 1);
  if (job.options.threads) {
    setenv(far::job_board::threads_variable, ranks.c_str(), 1);
    return;
  }
  setenv(far::job_board::rank_variable, std::to_string(slot).c_str(), 1);
  setenv(far::job_board::nprocs_variable, ranks.c_str(), 1);
  setenv(far::job_board::segments_variable, path_of(job.launcher, job.segments_fd).c_str(), 1);
}

struct outputs {
  int out = 1, err = 2;
};

[[noreturn]] void become_rank(job_state& job, std::uint32_t slot, outputs to, const rlimit& files) {
  become_child(job.launcher);
  setrlimit(RLIMIT_NOFILE, &files);
  if (slot != 0) {  // one reader of stdin, as under mpirun
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, 0);
  }
  if (to.out != 1) dup2(to.out, 1);
  if (to.err != 2) dup2(to.err, 2);
  if (job.options.bind == binding::core) bind_to_core(slot);
  set_environment(job, slot);
  execute(job.program, job.options.command);
  int reason = errno;
  std::string text = "cannot start " + job.program + ": " + std::strerror(reason) +
                     (reason == ENOEXEC ? " (a script needs a first line such as #!/bin/sh)" : "");
  job.book.board->operator[](slot).say(text.c_str());
  _exit(reason == ENOENT ? not_found : not_executable);
}

void end_started(job_state& job) {
  for (pid_t& pid : job.ranks) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }
}

/// `{read end, write end}`, kept out of children except where a child makes one its stdout.
void open_pipe(int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw error(failure, std::string("cannot make a pipe for --prefix: ") + std::strerror(errno) +
                             "; raise the limit on open files (ulimit -n), or leave --prefix out");
}

}  // namespace

void start_smp(job_state& job, relays& lines) {
  job.segments_fd = memfd_create("farside segments", MFD_CLOEXEC);
  if (job.segments_fd < 0)
    throw error(failure,
                std::string("cannot make shared memory (memfd_create): ") + std::strerror(errno));
  std::uint32_t processes = job.options.threads ? 1 : job.options.ranks;
  job.ranks.assign(processes, 0);
  rlimit files = raise_file_limit();
  try {
    for (std::uint32_t slot = 0; slot < processes; ++slot) {
      int out[2] = {-1, 1}, err[2] = {-1, 2};
      bool piped = job.options.prefix && !job.options.threads;
      if (piped) {
        open_pipe(out);
        lines.add(relay(out[0], 1, "[" + std::to_string(slot) + "] ", false));
        open_pipe(err);
        lines.add(relay(err[0], 2, "[" + std::to_string(slot) + "] ", false));
      }
      pid_t pid = fork();
      if (pid == 0) become_rank(job, slot, {out[1], err[1]}, files);
      int reason = errno;
      if (piped) close(out[1]), close(err[1]);
      if (pid < 0)
        throw error(
            failure,
            "cannot start rank " + std::to_string(slot) + " of " + std::to_string(processes) +
                ": " + std::strerror(reason) +
                "; start fewer ranks, use --threads, or raise the limit on processes (ulimit -u)");
      job.ranks[slot] = pid;
      job.book.records[slot].pid = static_cast<std::uint32_t>(pid);
    }
  } catch (...) {
    end_started(job);
    throw;
  }
}

}  // namespace far::app

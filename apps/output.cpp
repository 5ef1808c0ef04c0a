#include "output.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "relay.hpp"
#include "support.hpp"

namespace far::app {

namespace {

/// Passes on the stream until its end; after `finish()`, until nothing is left in the pipe. When the
/// output cannot be written it goes on reading, so that the ranks are not held up. It stops when
/// the reader of our output is gone.
[[noreturn]] void pass_on(int from, int finish) {
  char buffer[65536];
  int lost = 0;
  bool last = false;
  for (;;) {
    pollfd set[2] = {{from, POLLIN, 0}, {finish, POLLIN, 0}};
    if (poll(set, last ? 1 : 2, last ? 0 : -1) < 0 && errno != EINTR) _exit(errno);
    if (last && set[0].revents == 0) _exit(lost);
    if (!last && set[1].revents != 0) last = true;
    if (set[0].revents == 0) continue;
    ssize_t n = read(from, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) _exit(lost);
    if (lost || write_all(1, buffer, static_cast<std::size_t>(n))) continue;
    lost = errno;
    if (lost == EPIPE) _exit(lost);
    std::fprintf(stderr, "farside run: %s\n", cannot_write(lost).c_str());
  }
}

}  // namespace

int output_process::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw error(failure, std::string("cannot make a pipe for the output: ") + std::strerror(errno));
  pid_ = fork();
  if (pid_ == 0) {
    // Ctrl-C is for the ranks, whose last output shall come through. SIGUSR1 is finish().
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, nullptr);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    int finish = signalfd(-1, &set, SFD_CLOEXEC);
    dup2(ends[0], 0);
    if (finish > 3) dup2(finish, 3), finish = 3;
    close_range(4, ~0u, 0);  // the pipe's other end above all
    pass_on(0, finish);
  }
  int reason = errno;
  close(ends[0]);
  if (pid_ < 0) {
    close(ends[1]);
    throw error(failure, std::string("cannot start the process that passes the output on: ") +
                             std::strerror(reason) + "; raise the limit on processes (ulimit -u)");
  }
  input_ = ends[1];
  return input_;
}

void output_process::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

void output_process::finish() const {
  if (pid_ > 0) kill(pid_, SIGUSR1);
}

bool output_process::ended(pid_t pid, int wait_status) {
  if (pid != pid_) return false;
  pid_ = 0;
  trouble_ = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  return true;
}

}  // namespace far::app

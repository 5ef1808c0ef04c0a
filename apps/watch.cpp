#include "watch.hpp"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "stacks.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

/// How often the board is read. Deaths of our own children wake us at once.
constexpr int look_every_ms = 50;

constexpr int handled[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void set_mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : handled) sigaddset(&set, signal);
  sigprocmask(how, &set, nullptr);
}

/// Our children, adopted orphans included.
std::vector<pid_t> children() {
  std::vector<pid_t> result;
  DIR* folder = opendir("/proc");
  while (dirent* entry = folder ? readdir(folder) : nullptr) {
    auto pid = parse_number(entry->d_name);
    if (!pid) continue;
    std::ifstream file("/proc/" + std::string(entry->d_name) + "/stat");
    std::string line;
    std::getline(file, line);
    std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    char state = 0;
    pid_t parent = 0;
    std::istringstream(line.substr(name_end + 1)) >> state >> parent;
    if (parent == getpid()) result.push_back(static_cast<pid_t>(*pid));
  }
  if (folder) closedir(folder);
  return result;
}

/// What ranks or mpirun started and left behind has become our child. Bounded: a process in
/// uninterruptible sleep must not hold us.
void end_orphans() {
  for (int round = 0; round < 100; ++round) {
    std::vector<pid_t> left = children();
    if (left.empty()) return;
    for (pid_t pid : left) kill(pid, SIGKILL);
    usleep(10'000);
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}

/// Each thread of a process, one after the other: a handler that prints its stack shall be done
/// before the next begins.
void signal_threads(pid_t process, int signal) {
  std::error_code gone;
  std::string folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    if (auto thread = parse_number(entry.path().filename().string()))
      syscall(SYS_tgkill, process, static_cast<pid_t>(*thread), signal);
    usleep(2000);
  }
}

}  // namespace

watcher::watcher(job_state& job) : job_(job), started_(monotonic_ns()) {
  set_mask(SIG_BLOCK);
  sigset_t set;
  sigemptyset(&set);
  for (int signal : handled) sigaddset(&set, signal);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw error(failure, "cannot make a signalfd");
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

watcher::~watcher() {
  close(signals_);
  set_mask(SIG_UNBLOCK);
}

int watcher::watch(relays& lines) {
  while (!over()) {
    wait_for_news(lines);
    take_signals();
    reap();
    look_for_cause();
    look_for_hang();
    dismiss();
    advance();
  }
  return conclude(lines);
}

void watcher::wait_for_news(relays& lines) {
  std::vector<pollfd> set = {{signals_, POLLIN, 0}};
  lines.add_to(set);
  job_.remote.add_to(set);
  poll(set.data(), set.size(), look_every_ms);
  lines.move();
  job_.remote.take_news(job_.book);
}

/// Before reaping: Ctrl-C reaches the ranks as well, and is then the cause of their deaths.
void watcher::take_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (signal == SIGQUIT) {
      std::fputs(
          waiting_report(job_, 1e-9 * static_cast<double>(monotonic_ns() - started_)).c_str(),
          stderr);
      continue;
    }
    if (phase_ == phase::ending && cause_->what == cause::kind::interrupted)
      escalation_ = std::max(escalation_, 1);
    if (phase_ != phase::ending) {
      if (!cause_ || !cause_->ends_the_job()) cause_ = cause{cause::kind::interrupted, 0, signal};
      begin_ending();
    }
  }
}

void watcher::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (job_.output.ended(pid, status)) continue;
    if (pid == job_.starter) {
      job_.starter = 0;
      job_.starter_killed = WIFSIGNALED(status);
      job_.output.finish();
      starter_ended_ = monotonic_ns();
      starter_status_ = WIFSIGNALED(status) ? signal_base + WTERMSIG(status) : WEXITSTATUS(status);
    }
    auto rank = std::find(job_.ranks.begin(), job_.ranks.end(), pid);
    if (rank == job_.ranks.end()) continue;
    *rank = 0;
    job_.book.reaped(static_cast<std::size_t>(rank - job_.ranks.begin()), status);
  }
}

void watcher::look_for_cause() {
  if (phase_ == phase::last_words) {  // its own status counts, if it gets as far as that
    auto again = judge(job_, cause_->slot);
    if (again) cause_ = again;
    return;
  }
  if (phase_ != phase::watching || look_at_machinery(false)) return;
  std::optional<cause> first;
  std::uint64_t first_time = ~std::uint64_t{0};
  for (std::size_t i = 0; i < job_.options.ranks; ++i) {
    auto why = judge(job_, i);
    if (!why) continue;
    // A rank that has announced its failure still lives, or died in the same moment: it came first. A
    // rank that counts as absent, or ends because another one has died, comes last.
    std::uint64_t time =
        why->what == cause::kind::failed ? 0 : job_.book.records[i].reaped_at.load();
    if (why->what == cause::kind::late || why->what == cause::kind::absent ||
        is_secondary_failure(job_, i))
      time = ~std::uint64_t{0} - 1;
    if (time < first_time) first = why, first_time = time;
  }
  if (!first || (first->ends_the_job() && look_at_machinery(true))) return;
  if (is_secondary_failure(job_, first->slot)) {  // whom it lost will show up in a moment
    if (secondary_since_ == 0) secondary_since_ = monotonic_ns();
    if (monotonic_ns() - secondary_since_ < second) return;
  }
  blame(*first);
}

/// Ranks that die when a process above them is killed are not to blame. If mpirun itself was, that
/// is what counts.
bool watcher::look_at_machinery(bool thoroughly) {
  if (cause_ && cause_->ends_the_job()) return false;
  if (job_.starter_killed) return false;
  auto why = machinery_.look(job_, thoroughly);
  if (!why) return false;
  job_.trouble = *why;
  cause_ = cause{cause::kind::machinery, 0, 0};
  begin_ending();
  return true;
}

void watcher::look_for_hang() {
  if (phase_ != phase::watching || (cause_ && cause_->ends_the_job())) return;
  auto why = hang_.look(job_);
  if (!why) return;
  job_.verdict = *why;
  cause_ = cause{cause::kind::stuck, 0, 0};
  begin_ending();
}

void watcher::blame(const cause& why) {
  if (cause_ && !(why.ends_the_job() && !cause_->ends_the_job())) return;
  cause_ = why;
  if (!why.ends_the_job()) return;
  phase_ = phase::last_words;
  phase_began_ = monotonic_ns();
}

void watcher::advance() {
  std::uint64_t now = monotonic_ns();
  if (phase_ == phase::watching && job_.output.trouble() == EPIPE) {
    cause_ = cause{cause::kind::output, 0, EPIPE};
    begin_ending();
  }
  if (phase_ == phase::watching) slow_start_.look(job_, now - started_);
  // Where all ranks ended well MPICH may still complain of ranks that left without MPI_Finalize.
  if (phase_ == phase::watching && starter_status_ && *starter_status_ != 0 && !cause_ &&
      !settling() && !dismissed_) {
    cause_ = cause{cause::kind::starter, 0, *starter_status_};
    begin_ending();
  }
  if (phase_ == phase::watching && job_.options.timeout > 0 &&
      1e-9 * static_cast<double>(now - started_) >= job_.options.timeout) {
    cause_ = cause{cause::kind::timeout, 0, 0};
    std::fprintf(stderr, "farside run: %s\n", describe(job_, *cause_).c_str());
    std::fputs(waiting_report(job_, 1e-9 * static_cast<double>(now - started_)).c_str(), stderr);
    for (std::size_t i = 0; i < job_.options.ranks; ++i) job_.book.records[i].told = 1;
    signal_ranks(SIGQUIT);
    phase_ = phase::stacks;
    phase_began_ = now;
  }
  bool pause_over = now - phase_began_ >= second;
  if (phase_ == phase::stacks && pause_over) {
    std::fputs(stacks_report(job_).c_str(), stderr);
    begin_ending();
  }
  if (phase_ == phase::last_words) {
    std::size_t process = job_.options.threads ? 0 : cause_->slot;
    bool gone = (*job_.book.board)[process].reaped;
    if (!cause_->grace() || gone || pause_over) begin_ending();
  }
  if (phase_ == phase::ending) keep_ending(monotonic_ns() - phase_began_);
}

bool watcher::rank_lives(std::size_t process) const {
  if (!job_.supervised()) return job_.ranks[process] != 0;
  far::job_board::slot& rank = (*job_.book.board)[process];
  return rank.supervisor != 0 && !rank.reaped && !job_.book.records[process].lost;
}

std::size_t watcher::living() const {
  std::size_t processes = job_.options.threads ? 1 : job_.options.ranks, n = 0;
  for (std::size_t i = 0; i < processes; ++i) n += rank_lives(i);
  return job_.options.threads ? n * job_.options.ranks : n;
}

/// To supervisors also when their rank is gone: they wait to hear that we have seen its end.
void watcher::signal_ranks(int signal) {
  std::size_t processes = job_.options.threads ? 1 : job_.options.ranks;
  for (std::size_t i = 0; i < processes; ++i) {
    far::job_board::slot& rank = (*job_.book.board)[i];
    // Without a runtime there is no handler that prints the stack: it would just die.
    if (signal == SIGQUIT && rank.state == far::job_board::rank_state::unborn) continue;
    if (job_.remote.send(i, signal)) continue;
    pid_t pid = job_.supervised() ? static_cast<pid_t>(rank.supervisor) : job_.ranks[i];
    if (!pid || (job_.supervised() && !is_supervisor(pid))) continue;
    if (signal == SIGQUIT && job_.options.threads)
      signal_threads(pid, signal);
    else
      kill(pid, signal);
  }
}

void watcher::begin_ending() {
  using kind = cause::kind;
  std::size_t others = living();
  bool names_a_rank = cause_->what != kind::interrupted && cause_->what != kind::timeout &&
                      cause_->what != kind::starter && cause_->what != kind::machinery &&
                      cause_->what != kind::output && cause_->what != kind::stuck;
  bool itself_lives = names_a_rank && (job_.options.threads || rank_lives(cause_->slot));
  if (itself_lives && others > 0) --others;
  std::string end = "ending the" + std::string(names_a_rank ? " other " : " ") +
                    (!in_hand()    ? "ranks"
                     : others == 1 ? "rank"
                                   : std::to_string(others) + " ranks");
  if (others == 0 && in_hand()) end.clear();
  std::fputs(announce(job_, *cause_, end).c_str(), stderr);

  phase_ = phase::ending;
  phase_began_ = monotonic_ns();
  for (std::size_t i = 0; i < job_.options.ranks; ++i)
    if (!(*job_.book.board)[i].reaped) job_.book.records[i].told = 1;
  signal_ranks(SIGTERM);
  if (job_.starter && !in_hand()) kill(job_.starter, SIGTERM);  // it reaches ranks that we do not
}

/// Supervisors need no second signal: they kill their rank themselves after a second, and stay
/// so that mpirun sees nothing of it. With all ranks gone mpirun has nothing left to do but print
/// banners about their end (and crash, now and then): it is killed, after a moment in which it
/// passes the last output on. Its files are in the scratch folder; its daemons on other hosts
/// notice that it is gone, and remove their own.
void watcher::keep_ending(std::uint64_t age) {
  bool impatient = escalation_ == 1;
  std::uint64_t patience = job_.supervised() ? second * 3 / 2 : second;
  if (escalation_ < 2 && (age >= patience || impatient)) signal_ranks(SIGKILL), escalation_ = 2;
  if (!job_.starter) return;
  if (!in_hand()) {
    if (escalation_ == 2 && age >= 2 * second) kill(job_.starter, SIGTERM), escalation_ = 3;
    if (escalation_ == 3 && age >= 3 * second) kill(job_.starter, SIGKILL), escalation_ = 4;
    return;
  }
  if (living() > 0 && age < 2 * second) return;
  if (ranks_gone_ == 0) ranks_gone_ = age;
  if (escalation_ < 4 && age >= ranks_gone_ + 100 * millisecond)
    kill(job_.starter, SIGKILL), escalation_ = 4;
}

void watcher::dismiss() {
  if (dismissed_ || !job_.leave_together() || !job_.book.all_reaped()) return;
  dismissed_ = true;
  for (std::size_t i = 0; i < job_.options.ranks; ++i) job_.remote.send(i, reach::dismissed);
}

/// mpirun has ended, and what ranks on other hosts had to say may still be under way.
bool watcher::settling() const {
  if (phase_ != phase::watching || job_.starter != 0) return false;
  // Supervisors of MPICH on one host are about to say that its daemon has ended before it.
  if (job_.how == transport::mpich && job_.one_host && starter_status_.value_or(0) != 0 &&
      !job_.starter_killed && !cause_ && living() > 0)
    return monotonic_ns() - starter_ended_ < second;
  if (job_.one_host || dismissed_ || job_.starter != 0 || phase_ != phase::watching) return false;
  bool open_question = starter_status_.value_or(0) != 0 ? !cause_ : living() > 0;
  return open_question && monotonic_ns() - starter_ended_ < second;
}

bool watcher::over() const {
  if (settling()) return false;
  // The reader of our output may take its time, unless the job has failed.
  if (job_.output.runs() &&
      (phase_ != phase::ending || monotonic_ns() - phase_began_ < 3 * second) && job_.starter == 0)
    return false;
  if (job_.supervised())
    return job_.starter == 0 && (phase_ == phase::watching || phase_ == phase::ending);
  bool none = std::all_of(job_.ranks.begin(), job_.ranks.end(), [](pid_t pid) { return pid == 0; });
  return none && (phase_ == phase::watching || phase_ == phase::ending);
}

int watcher::conclude(relays& lines) {
  if (phase_ == phase::watching) look_for_cause();
  bool said = phase_ == phase::ending;
  if (said) end_orphans();
  lines.finish();
  // mpirun's 0 is not enough: every supervisor must have seen its rank end.
  for (std::size_t i = 0; !cause_ && job_.supervised() && i < job_.options.ranks; ++i)
    if (rank_lives(i)) cause_ = cause{cause::kind::starter, i, starter_status_.value_or(failure)};
  int lost = job_.output.trouble() != 0 ? job_.output.trouble() : lines.trouble();
  if (!cause_ && lost != 0) {
    said |= job_.output.trouble() > 0 && lost != EPIPE;  // when it happened
    cause_ = cause{cause::kind::output, 0, lost};
  }
  if (!cause_) {
    if (auto why = hang_watch::last_look(job_)) {
      job_.verdict = *why;
      cause_ = cause{cause::kind::stuck, 0, 0};
    }
  }
  if (!cause_) return success;
  if (!said) std::fputs(announce(job_, *cause_, "").c_str(), stderr);
  return cause_->status();
}

}  // namespace far::app

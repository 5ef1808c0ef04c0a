// `farside __rank`: between mpirun and one rank.
//
// mpirun may not tell which rank died, or that one died at all (MPICH takes an exit with 0 in
// the middle of a job for success). So each rank's parent is ours: it writes down how the rank
// ended, and keeps quiet towards mpirun until the launcher has read that and ends the job.
// On another host than the launcher's it has a board of its own, and tells the launcher by TCP
// what changes there (reach.hpp). If it cannot, mpirun's rules are the rules.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "host_name.hpp"
#include "job.hpp"
#include "privacy.hpp"
#include "relay.hpp"
#include "report.hpp"
#include "run.hpp"
#include "stacks.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

struct supervisor_options {
  std::uint64_t job = 0;
  pid_t launcher = 0;
  std::uint32_t ranks = 0;
  bool together = false;  ///< see job_state::leave_together
  bool one_host = false;  ///< all ranks are on the launcher's
  std::string tmpdir, scratch, out, err;
  arguments command;
};

supervisor_options parse(const arguments& words) {
  supervisor_options result;
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--"; ++i) {
    auto next = [&] { return i + 1 < words.size() ? words[++i] : std::string(); };
    if (words[i] == "--job") result.job = std::strtoull(next().c_str(), nullptr, 16);
    if (words[i] == "--launcher") result.launcher = static_cast<pid_t>(std::atoi(next().c_str()));
    if (words[i] == "--ranks") result.ranks = static_cast<std::uint32_t>(std::atoi(next().c_str()));
    if (words[i] == "--together") result.together = true;
    if (words[i] == "--one-host") result.one_host = true;
    if (words[i] == "--tmpdir") result.tmpdir = next();
    if (words[i].starts_with("--resolver="))
      ask_name_servers_again(words[i].substr(words[i].find('=') + 1));
    if (words[i] == "--scratch") result.scratch = next();
    if (words[i] == "--prefix") result.out = next(), result.err = next();
  }
  if (i + 1 < words.size())
    result.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
  if (result.command.empty()) throw error(usage_error, "this is not for people: use farside run");
  return result;
}

std::uint64_t slot_from_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* value = getenv(name))
      if (auto rank = parse_number(value)) return *rank;
  throw error(
      failure,
      "mpirun does not say which rank this is (no OMPI_COMM_WORLD_RANK, PMIX_RANK or PMI_RANK)");
}

int watch_process(pid_t pid) {
  return pid > 1 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1;
}

/// The job's folder for files that a killed rank would leave, on another host than the launcher's.
/// Each supervisor there holds a shared lock on it. The one that gets the lock alone is the last, and
/// removes the folder.
class shared_folder {
 public:
  void join(const std::string& path) {
    for (int attempt = 0; attempt < 100 && !path.empty(); ++attempt) {
      mkdir(path.c_str(), 0700);
      lock_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
      struct stat here{}, named{};
      if (lock_ < 0) return;
      if (flock(lock_, LOCK_SH) == 0 && fstat(lock_, &here) == 0 && here.st_uid == geteuid() &&
          stat(path.c_str(), &named) == 0 && here.st_ino == named.st_ino) {
        path_ = path;
        return;
      }
      close(lock_);  // its last user removed it just now
    }
  }

  void leave() {
    std::error_code ignored;
    if (!path_.empty() && flock(lock_, LOCK_EX | LOCK_NB) == 0) {
      remove_listed_files(path_);
      std::filesystem::remove_all(path_, ignored);
    }
    path_.clear();
  }

 private:
  std::string path_;
  int lock_ = -1;
};

class supervisor {
 public:
  explicit supervisor(supervisor_options options);
  int supervise();

 private:
  void find_board();
  void call_launcher();
  void start();
  [[noreturn]] void become_rank(int out, int err, pid_t parent);
  void add_relay(const std::string& path, int fallback, int source);
  void wait_for_news();
  void take_signals();
  void take_as_blow(const signalfd_siginfo& info);
  void take_orders();
  void end_rank(int signal);
  void print_stack();
  void report() { orphaned_ |= !launcher_line_.report(book_, slot_); }
  bool try_reap();
  bool shall_linger() const;
  bool others_may_object() const;
  int end_alike() const;

  supervisor_options options_;
  std::uint64_t slot_;
  ledger
      book_;  ///< the launcher's, or on another host its own; without board if nobody would read it
  bool near_ = false;     ///< on the launcher's host
  uplink launcher_line_;  ///< if not
  shared_folder scratch_;
  relays lines_;
  pid_t child_ = 0;
  int signals_ = -1, launcher_ = -1, parent_ = -1;
  std::uint32_t parent_pid_ = 0;  ///< mpirun, or its daemon
  int status_ = 0;
  bool told_ = false;           ///< somebody wants us to end
  bool struck_ = false;         ///< and it is none of ours: a signal was sent to this process
  bool launcher_ends_ = false;  ///< and it is the launcher, who will end mpirun too
  bool orphaned_ = false;       ///< launcher or mpirun is gone
  bool dismissed_ = false;      ///< the launcher says that all ranks have ended
  std::uint64_t kill_at_ = 0;
};

supervisor::supervisor(supervisor_options options)
    : options_(std::move(options)), slot_(slot_from_environment()) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2}) {
    sigaddset(&set, signal);
    ::signal(signal, SIG_DFL);
  }
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  parent_pid_ = static_cast<std::uint32_t>(getppid());
  parent_ = watch_process(getppid());
  find_board();
}

void supervisor::find_board() {
  const char* path = getenv(far::job_board::board_variable);
  far::job_board::board* board = path ? far::job_board::board::open(path) : nullptr;
  if (board && slot_ < board->slots) {
    ledger found = ledger::on(board);
    if (*found.id == options_.job) book_ = found, near_ = true;
  }
  if (!near_) call_launcher();
  if (near_ && !options_.scratch.empty()) {  // several hosts, and mpirun had another one
    if (options_.tmpdir.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", options_.tmpdir.c_str(), 1);
  }
  unsetenv(reach::variable);  // its secret is not for the rank
  if (!book_.board) {
    unsetenv(far::job_board::board_variable);
    return;
  }
  setenv(far::job_board::slot_variable, std::to_string(slot_).c_str(), 1);
  (*book_.board)[slot_].supervisor = static_cast<std::uint32_t>(getpid());
  if (near_) launcher_ = watch_process(options_.launcher);
}

void supervisor::call_launcher() {
  scratch_.join(options_.scratch);
  const char* where = getenv(reach::variable);
  if (!where || slot_ >= options_.ranks || !launcher_line_.call(where, options_.job, slot_)) return;
  int fd = -1;
  book_ = ledger::make(options_.ranks, options_.job, fd);
  setenv(far::job_board::board_variable, path_of(getpid(), fd).c_str(), 1);
}

void supervisor::add_relay(const std::string& path, int fallback, int source) {
  int to = near_ ? open(path.c_str(), O_WRONLY | O_CLOEXEC) : -1;
  lines_.add(relay(source, to < 0 ? fallback : to, "[" + std::to_string(slot_) + "] ", to >= 0));
}

void supervisor::become_rank(int out, int err, pid_t parent) {
  become_child(parent);
  if (slot_ != 0) {  // one reader of stdin; MPICH would leave the others waiting for its end
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, 0);
  }
  if (out != 1) dup2(out, 1);
  if (err != 2) dup2(err, 2);
  preload_guard(options_.one_host ? guarded::rank_of_one_host : guarded::rank_of_many);
  execute(options_.command[0], options_.command);
  std::string text = "cannot start " + options_.command[0] + ": " + std::strerror(errno);
  if (book_.board)
    (*book_.board)[slot_].say(text.c_str());
  else
    std::fprintf(stderr, "farside run: rank %llu: %s\n", static_cast<unsigned long long>(slot_),
                 text.c_str());
  _exit(not_executable);
}

void supervisor::start() {
  int out[2] = {-1, 1}, err[2] = {-1, 2};
  bool piped = !options_.out.empty();
  if (piped && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0))
    throw error(failure, std::string("cannot make a pipe for --prefix: ") + std::strerror(errno));
  pid_t self = getpid();
  child_ = fork();
  if (child_ == 0) become_rank(out[1], err[1], self);
  if (child_ < 0) {
    std::string why = std::string("its supervisor cannot start a process: ") +
                      std::strerror(errno) +
                      "; raise the limit on processes (ulimit -u), or start fewer ranks";
    if (!book_.board) throw error(failure, why);
    (*book_.board)[slot_].say(why.c_str());
    child_ = 0;
    status_ = failure << 8;  // as if there had been a process, and it had exited so
    return;
  }
  if (book_.board) book_.records[slot_].pid = static_cast<std::uint32_t>(child_);
  if (!piped) return;
  close(out[1]);
  close(err[1]);
  add_relay(options_.out, 1, out[0]);
  add_relay(options_.err, 2, err[0]);
}

int supervisor::supervise() {
  start();
  report();  // at once: a host that is lost soon is told of with the rank's process
  while (child_ != 0 && !try_reap()) {
    wait_for_news();
    take_signals();
    take_orders();
    if (orphaned_ || (told_ && monotonic_ns() >= kill_at_)) kill(child_, SIGKILL);
  }
  lines_.finish();
  if (book_.board) {
    if ((told_ && !struck_) || orphaned_) book_.records[slot_].told = 1;
    book_.reaped(slot_, status_);
    report();
  }
  while (shall_linger()) {
    wait_for_news();
    take_signals();
    take_orders();
  }
  scratch_.leave();
  return book_.board ? success : end_alike();
}

void supervisor::wait_for_news() {
  std::vector<pollfd> set = {{signals_, POLLIN, 0}};
  for (int fd : {launcher_, parent_})
    if (fd >= 0) set.push_back({fd, POLLIN, 0});
  std::size_t processes = set.size();
  lines_.add_to(set);
  if (launcher_line_.open()) set.push_back({launcher_line_.descriptor(), POLLIN, 0});
  poll(set.data(), set.size(), !child_ || told_ ? 20 : launcher_line_.open() ? 200 : 1000);
  for (std::size_t i = 1; i < processes; ++i) orphaned_ |= set[i].revents != 0;
  if (set[processes - 1].fd == parent_ && set[processes - 1].revents != 0 && near_)
    book_.records[slot_].orphan_of = parent_pid_;
  lines_.move();
}

void supervisor::take_signals() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (near_ && signal == SIGTERM && info.ssi_pid == static_cast<std::uint32_t>(options_.launcher))
      launcher_ends_ = true;
    take_as_blow(info);
    // Where the launcher does not end mpirun's daemon, that is what this is: mpirun's end.
    if (!near_ && !child_ && signal != SIGQUIT) orphaned_ = true;
    end_rank(signal);
  }
}

/// A signal that neither the launcher nor mpirun has sent, nor a terminal: it ends the rank, and
/// the job.
void supervisor::take_as_blow(const signalfd_siginfo& info) {
  int signal = static_cast<int>(info.ssi_signo);
  bool ends = signal != SIGQUIT && signal != SIGUSR1 && signal != SIGUSR2;
  bool stranger = info.ssi_code == SI_USER && info.ssi_pid != 0 && info.ssi_pid != parent_pid_ &&
                  info.ssi_pid != static_cast<std::uint32_t>(options_.launcher);
  if (!near_ || !book_.board || !child_ || !ends || told_) return;
  // mpirun may kill this process next, which must not be taken for the cause.
  if (info.ssi_pid == parent_pid_) book_.records[slot_].told = 1;
  if (!stranger) return;
  struck_ = true;
  (*book_.board)[slot_].say(("its supervisor (pid " + std::to_string(getpid()) +
                             ") received signal " + signal_name(signal))
                                .c_str());
}

/// What the launcher does by signals on its own host.
void supervisor::take_orders() {
  if (!launcher_line_.open()) return;
  report();
  for (int signal; (signal = launcher_line_.next_order()) != 0;) {
    if (signal < 0) {
      orphaned_ = true;
      return;
    }
    if (signal == reach::dismissed) {
      dismissed_ = true;
      continue;
    }
    launcher_ends_ |= signal == SIGTERM;
    if (signal == SIGKILL) kill_at_ = 0, told_ = true;
    end_rank(signal);
    if (signal == SIGQUIT) print_stack();
  }
}

/// The launcher cannot look into a process of this host.
void supervisor::print_stack() {
  far::job_board::slot& rank = (*book_.board)[slot_];
  for (int i = 0; i < 50 && !rank.frames_ready; ++i) usleep(10'000);
  std::string stack = stack_text(rank, child_, false);
  if (stack.empty()) return;
  stack = "  stack of rank " + std::to_string(rank.rank) + ":\n" + stack;
  if (write(2, stack.data(), stack.size()) < 0) return;
}

void supervisor::end_rank(int signal) {
  if (child_) kill(child_, signal);
  if (signal == SIGQUIT || signal == SIGUSR1 || signal == SIGUSR2 || told_) return;
  told_ = true;
  kill_at_ = monotonic_ns() + second;
}

bool supervisor::try_reap() {
  if (waitpid(child_, &status_, WNOHANG) != child_) return false;
  child_ = 0;
  return true;
}

/// Not longer than the launcher or mpirun live. A rank that ended badly is the launcher's to
/// announce; were we to end now, mpirun might kill the others first, and which of them was the
/// cause could not be told.
bool supervisor::shall_linger() const {
  if (!book_.board || orphaned_) return false;
  if (launcher_ends_) return true;  // mpirun shall not learn of deaths one by one
  if (told_ && !struck_) return false;
  if (options_.together && !dismissed_ && !(near_ && book_.all_reaped())) return true;
  auto state = (*book_.board)[slot_].state.load();
  if (WIFSIGNALED(status_)) return true;
  if (state == far::job_board::rank_state::finished) return false;
  if (WEXITSTATUS(status_) != 0 || state != far::job_board::rank_state::unborn) return true;
  return others_may_object();
}

/// Whether it was wrong to end without a runtime shows in what the others do: they have one, or
/// may still make one. If not, this is no program of ours, and mpirun's rules are the rules.
bool supervisor::others_may_object() const {
  bool soon = monotonic_ns() < book_.records[slot_].reaped_at + second;
  if (!near_) return soon;  // the launcher sees them, and will tell us to end if they do
  for (std::size_t i = 0; i < book_.board->slots; ++i) {
    far::job_board::slot& other = (*book_.board)[i];
    bool lives = other.supervisor && !other.reaped;
    if (lives && (soon || other.state != far::job_board::rank_state::unborn)) return true;
  }
  return false;
}

/// On another host than the launcher's mpirun has to learn it from us.
int supervisor::end_alike() const {
  if (!WIFSIGNALED(status_)) return WEXITSTATUS(status_);
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  int signal = WTERMSIG(status_);
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
  return signal_base + signal;
}

}  // namespace

int supervise_command(const arguments& words) { return supervisor(parse(words)).supervise(); }

}  // namespace far::app

#include "sim_pool.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "farside/base/job_board.hpp"
#include "job.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

constexpr std::size_t kept_bytes = 64 << 10;

/// Where a run finds the memory for its report.
constexpr int report_descriptor = 3;
constexpr const char* report_path = "/proc/self/fd/3";

double seconds_since(std::uint64_t begin) {
  return 1e-9 * static_cast<double>(monotonic_ns() - begin);
}

sigset_t handled_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

/// Always the same variables (an empty one counts as not set) of the same length in all: the
/// environment lies above the stack, which a trace or a narrower window must not move.
void set_variables(const sim_plan& plan, std::uint64_t ranks, std::uint64_t steps) {
  constexpr std::size_t length = 1024;
  auto pair = [](std::uint64_t a, const char* between, std::uint64_t b) {
    return std::to_string(a) + between + std::to_string(b);
  };
  auto number = [](std::uint64_t n) { return n > 0 ? std::to_string(n) : ""; };
  bool seeded = plan.exhaustive == 0;
  const variables all = {
      {far::job_board::nprocs_variable, std::to_string(ranks)},
      {"FARSIDE_SIM_SEED", seeded ? std::to_string(plan.seed) : ""},
      {"FARSIDE_SIM_LEVEL", seeded ? name_of(plan.level) : ""},
      {"FARSIDE_SIM_EXHAUSTIVE", number(plan.exhaustive)},
      {"FARSIDE_SIM_ACTIVE", plan.active ? pair(plan.active->first, "..", plan.active->last) : ""},
      {"FARSIDE_SIM_STOP", plan.stop ? pair(plan.stop->rank, "@", plan.stop->step) : ""},
      {"FARSIDE_SIM_FAIL_ALLOCATION", number(plan.failing_allocation.value_or(0))},
      {"FARSIDE_SIM_STEPS", number(steps)},
      {"FARSIDE_SIM_TRACE", plan.trace},
      {"FARSIDE_SIM_REPORT", report_path}};
  std::size_t used = 0;
  for (const auto& [name, value] : all) {
    setenv(name.c_str(), value.c_str(), 1);
    used += name.size() + value.size();
  }
  setenv("FARSIDE_SIM_PADDING", std::string(length - used % length, '.').c_str(), 1);
}

std::string contents(int fd) {
  std::string text(4096, '\0');
  ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

/// Reads `outcome=ok steps=12 ...`; false if that is no report.
bool parse_report(const std::string& text, sim_result& result) {
  bool known = false;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "outcome") {
      constexpr const char* names[] = {"ok", "faulted", "failed", "deadlock", "steps"};
      for (std::size_t i = 0; i < std::size(names); ++i)
        if (value == names[i]) result.outcome = static_cast<sim_outcome>(i), known = true;
    }
    std::uint64_t number = parse_number(value).value_or(0);
    if (name == "steps") result.counts.steps = number;
    if (name == "operations") result.counts.operations = number;
    if (name == "deliveries") result.counts.deliveries = number;
    if (name == "allocations") result.counts.allocations = number;
    if (name == "runs") result.counts.runs = number;
    if (name == "complete") result.counts.complete = number != 0;
    if (name == "failed_rank") result.failed_rank = number;
    if (name == "failed_status") result.failed_status = number;
  }
  return known;
}

[[noreturn]] void cannot(const std::string& what) {
  throw error(failure, "cannot " + what + ": " + std::strerror(errno) +
                           "; try fewer runs at a time (--jobs 1)");
}

}  // namespace

void sim_pool::tail::add(const char* data, std::size_t size) {
  lines += static_cast<std::size_t>(std::count(data, data + size, '\n'));
  text.append(data, size);
  if (text.size() > 2 * kept_bytes) text.erase(0, text.size() - kept_bytes);
}

/// Takes what can be read now; closes itself at the end.
void sim_pool::stream::move() {
  char buffer[16384];
  while (from >= 0) {
    ssize_t n = read(from, buffer, sizeof buffer);
    if (n > 0) {
      kept.add(buffer, static_cast<std::size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    close(from);
    from = -1;
  }
}

sim_pool::sim_pool(sim_program program) : program_(std::move(program)), launcher_(getpid()) {
  signal(SIGCHLD, SIG_DFL);
  sigset_t set = handled_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw error(failure, "cannot make a signalfd");
}

sim_pool::~sim_pool() {
  for (run_under_way& run : running_) end(run);
  close(signals_);
  sigset_t set = handled_signals();
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

void sim_pool::become_program(const run_under_way& run, int out, int err) const {
  become_child(launcher_);
  setpgid(0, 0);  // what it starts ends with it
  int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, 0);
  dup2(out, 1);
  dup2(err, 2);
  // dup2 of a descriptor to itself would leave it to be closed by exec.
  if (run.report == report_descriptor)
    fcntl(run.report, F_SETFD, 0);
  else
    dup2(run.report, report_descriptor);
  fix_addresses();
  set_variables(run.plan, program_.ranks, program_.steps);
  execute(program_.path, program_.command);
  std::fprintf(stderr, "cannot start %s: %s\n", program_.path.c_str(), std::strerror(errno));
  _exit(not_executable);
}

void sim_pool::start(const sim_plan& plan) {
  run_under_way run{plan};
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  run.report = memfd_create("farside sim report", MFD_CLOEXEC);
  if (run.report < 0) cannot("make memory for the report of a run");
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
    cannot("make a pipe for what a run prints");
  run.started = monotonic_ns();
  run.process = fork();
  if (run.process == 0) become_program(run, out[1], err[1]);
  if (run.process < 0) cannot("start a run");
  setpgid(run.process, run.process);  // both processes do it: one of them comes first
  close(out[1]);
  close(err[1]);
  run.out.from = out[0];
  run.err.from = err[0];
  for (int fd : {out[0], err[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);
  running_.push_back(std::move(run));
}

void sim_pool::end(run_under_way& run) {
  kill(-run.process, SIGKILL);
  kill(run.process, SIGKILL);
  waitpid(run.process, nullptr, 0);
  for (int fd : {run.report, run.out.from, run.err.from})
    if (fd >= 0) close(fd);
}

void sim_pool::drop(const std::function<bool(const sim_plan&)>& unwanted) {
  std::erase_if(running_, [&](run_under_way& run) {
    if (!unwanted(run.plan)) return false;
    end(run);
    return true;
  });
}

void sim_pool::end_late_ones() {
  if (program_.time_limit <= 0) return;
  for (run_under_way& run : running_) {
    if (run.late || seconds_since(run.started) < program_.time_limit) continue;
    run.late = true;
    kill(-run.process, SIGKILL);
  }
}

void sim_pool::wait_for_news() {
  std::vector<pollfd> set{{signals_, POLLIN, 0}};
  double patience = 3600;
  for (const run_under_way& run : running_) {
    for (int fd : {run.out.from, run.err.from})
      if (fd >= 0) set.push_back({fd, POLLIN, 0});
    if (program_.time_limit > 0 && !run.late)
      patience = std::min(patience, program_.time_limit - seconds_since(run.started));
  }
  poll(set.data(), set.size(), static_cast<int>(std::max(0.0, patience) * 1000) + 1);
  signalfd_siginfo news;
  while (read(signals_, &news, sizeof news) == sizeof news) {
    if (news.ssi_signo == SIGCHLD) continue;
    drop([](const sim_plan&) { return true; });
    throw interruption{static_cast<int>(news.ssi_signo)};
  }
  for (run_under_way& run : running_) run.out.move(), run.err.move();
  end_late_ones();
}

sim_result sim_pool::next() {
  for (;;) {
    for (auto run = running_.begin(); run != running_.end(); ++run) {
      siginfo_t ended{};
      waitid(P_PID, static_cast<id_t>(run->process), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid != run->process) continue;
      kill(-run->process, SIGKILL);  // what it started and left behind, while the number is ours
      int status = 0;
      waitpid(run->process, &status, 0);
      sim_result result = conclude(*run, status);
      running_.erase(run);
      return result;
    }
    wait_for_news();
  }
}

sim_result sim_pool::run(const sim_plan& plan) {
  start(plan);
  return next();
}

sim_result sim_pool::conclude(run_under_way& run, int wait_status) const {
  sim_result result{run.plan};
  result.seconds = seconds_since(run.started);
  run.out.move(), run.err.move();
  result.out = std::move(run.out.kept.text);
  result.err = std::move(run.err.kept.text);
  result.error_lines = run.err.kept.lines + (!result.err.empty() && result.err.back() != '\n');
  bool reported = parse_report(contents(run.report), result);
  if (result.counts.runs == 0) result.counts.runs = 1;
  for (int fd : {run.report, run.out.from, run.err.from})
    if (fd >= 0) close(fd);
  if (run.late && WIFSIGNALED(wait_status)) {
    result.outcome = sim_outcome::hangs;
  } else if (WIFSIGNALED(wait_status)) {
    result.outcome = sim_outcome::killed;
    result.detail = WTERMSIG(wait_status);
  } else {
    result.detail = WEXITSTATUS(wait_status);
    if (!reported)
      result.outcome = sim_outcome::no_report;
    else if (result.good() && result.detail != 0)
      result.outcome = sim_outcome::bad_end;
  }
  return result;
}

}  // namespace far::app

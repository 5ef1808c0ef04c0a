#include "machinery.hpp"

#include <dirent.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "report.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

/// The fields of /proc/PID/stat from the third on. The second is a name that may hold anything and
/// ends at the last ')'.
std::vector<std::string> stat_of(pid_t pid, std::string* name = nullptr) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line, word;
  std::getline(file, line);
  std::size_t begin = line.find('('), end = line.rfind(')');
  if (end == std::string::npos) return {};
  if (name) *name = line.substr(begin + 1, end - begin - 1);
  std::vector<std::string> fields;
  for (std::istringstream rest(line.substr(end + 1)); rest >> word;) fields.push_back(word);
  return fields;
}

/// As waitpid() would give it; nothing unless the process has ended and its parent has not noticed.
std::optional<int> unnoticed_status(pid_t pid) {
  std::vector<std::string> fields = stat_of(pid);
  constexpr std::size_t exit_code = 52 - 3;
  if (fields.size() <= exit_code || fields[0] != "Z") return std::nullopt;
  return std::atoi(fields[exit_code].c_str());
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> result;
  std::string id = std::to_string(pid);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  for (pid_t child; file >> child;) result.push_back(child);
  return result;
}

/// Whether anybody is connected to this process by TCP: MPICH's daemons are, to mpiexec.
bool has_connections(pid_t pid) {
  std::vector<std::string> sockets;
  std::error_code ignored;
  std::string folder = "/proc/" + std::to_string(pid);
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd", ignored)) {
    std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.starts_with("socket:[")) sockets.push_back(target.substr(8, target.size() - 9));
  }
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream file(folder + table);
    for (std::string line; std::getline(file, line);) {
      // sl local remote state queues timer retransmits uid timeout inode
      std::istringstream words(line);
      std::string field[10];
      for (std::string& one : field) words >> one;
      bool established = field[3] == "01";
      if (established && std::find(sockets.begin(), sockets.end(), field[9]) != sockets.end())
        return true;
    }
  }
  return false;
}

bool somebody_is_told(const job_state& job) {
  for (std::size_t i = 0; i < job.options.ranks; ++i)
    if (job.book.records[i].told) return true;
  return false;
}

std::string ended_with(int status) {
  return WIFSIGNALED(status) ? "was killed by signal " + signal_name(WTERMSIG(status))
                             : "ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

char process_state(pid_t pid) {
  std::vector<std::string> fields = stat_of(pid);
  return fields.empty() ? '\0' : fields[0][0];
}

bool is_supervisor(pid_t pid) {
  std::error_code failed;
  auto theirs = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", failed);
  return !failed && theirs == self_path();
}

std::string how_it_ended(pid_t pid) {
  auto status = unnoticed_status(pid);
  return status ? ended_with(*status) : "is gone";
}

std::optional<std::string> machinery::look(const job_state& job, bool thoroughly) {
  if (!job.supervised()) return std::nullopt;
  if (auto what = dead_daemon(job)) return what;
  if (auto what = dead_supervisor(job, thoroughly)) return what;
  if (auto what = dead_agent(job)) return what;
  return never_started(job);
}

/// It writes down its rank's end before its own. One that ends without having done so was killed,
/// and its rank with it, as the kernel sends ranks a signal when their parent dies.
std::optional<std::string> machinery::dead_supervisor(const job_state& job, bool thoroughly) {
  // An mpirun that ends the job, as it has received a signal, tells supervisors so before it kills
  // them. It is about to end itself, and to be blamed for it.
  if (told_since_ == 0 && somebody_is_told(job)) told_since_ = monotonic_ns();
  if (told_since_ != 0 && monotonic_ns() - told_since_ < 5 * second) return std::nullopt;
  constexpr std::size_t a_few = 16;
  std::size_t ranks = job.options.ranks, n = thoroughly ? ranks : std::min(ranks, a_few);
  for (std::size_t k = 0; k < n; ++k, next_ = (next_ + 1) % ranks) {
    std::size_t i = next_ % ranks;
    far::job_board::slot& rank = (*job.book.board)[i];
    auto pid = static_cast<pid_t>(rank.supervisor.load());
    if (!pid || rank.reaped || job.remote.knows(i) || is_supervisor(pid)) continue;
    if (rank.reaped.load(std::memory_order_acquire)) continue;  // just before its own end
    return "the supervisor (pid " + std::to_string(pid) + ") of rank " + std::to_string(i) +
           " (pid " + std::to_string(job.book.records[i].pid) + ") " + how_it_ended(pid) +
           ", and the rank with it";
  }
  return std::nullopt;
}

/// Between mpiexec of MPICH and the supervisors. These notice when it ends.
std::optional<std::string> machinery::dead_daemon(const job_state& job) const {
  if (job.how != transport::mpich || !job.one_host) return std::nullopt;
  for (std::size_t i = 0; i < job.options.ranks; ++i) {
    auto daemon = static_cast<pid_t>(job.book.records[i].orphan_of.load());
    if (!daemon || daemon == job.starter) continue;
    return "the daemon of " + job.starter_name + " (hydra_pmi_proxy, pid " +
           std::to_string(daemon) + ") " + how_it_ended(daemon) +
           ", and the ranks that it had started with it";
  }
  return std::nullopt;
}

/// mpiexec of MPICH waits for its daemons on other hosts for ever, also when the agent that was to
/// start one has ended. (mpirun of Open MPI ends.)
std::optional<std::string> machinery::dead_agent(const job_state& job) {
  if (job.how != transport::mpich || job.one_host || !job.starter || job.reaches_all())
    return std::nullopt;
  std::string agent = job.options.agent.empty() ? "ssh" : job.options.agent;
  std::string advice = "; try it: " + agent + " HOST true";
  bool none_works = true, any = false;
  for (pid_t child : children_of(job.starter)) {
    auto status = unnoticed_status(child);
    std::string who = "the agent that was to start ranks on another host (" + agent + ", pid " +
                      std::to_string(child) + ") ";
    if (status && *status != 0) return who + ended_with(*status) + advice;
    none_works &= status.has_value();
    any = true;
  }
  // One that ends well may have started the daemon in the background, which then calls mpiexec.
  if (!any || !none_works) {
    idle_since_ = 0;
    return std::nullopt;
  }
  if (idle_since_ == 0) idle_since_ = monotonic_ns();
  if (monotonic_ns() - idle_since_ < 5 * second || has_connections(job.starter))
    return std::nullopt;
  return "the agent that was to start ranks on other hosts (" + agent +
         ") ended with status 0, but no host has called back" + advice;
}

/// mpirun starts the supervisors of one host in one go.
std::optional<std::string> machinery::never_started(const job_state& job) {
  if (!job.one_host || !job.starter) return std::nullopt;
  std::size_t n = 0;
  for (std::size_t i = 0; i < job.options.ranks; ++i) n += (*job.book.board)[i].supervisor != 0;
  if (n != started_ || started_at_ == 0) started_ = n, started_at_ = monotonic_ns();
  if (n == 0 || n == job.options.ranks || monotonic_ns() - started_at_ < 20 * second)
    return std::nullopt;
  return job.starter_name + " has started " + std::to_string(n) + " of " +
         counted(job.options.ranks, "rank") +
         " and no other one for 20 s; a limit on processes (ulimit -u) may be why";
}

}  // namespace far::app

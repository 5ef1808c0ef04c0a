#include "report.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>

#include "farside/base/verdict.hpp"
#include "hang.hpp"
#include "machinery.hpp"
#include "memory_events.hpp"
#include "relay.hpp"

namespace far::app {

using far::job_board::rank_state;
using far::job_board::slot;

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return std::to_string(signal) + (name ? " (SIG" + std::string(name) + ")" : "");
}

int cause::status() const {
  switch (what) {
    case kind::killed:
    case kind::interrupted:
      return signal_base + detail;
    case kind::timeout:
      return timed_out;
    case kind::output:
      return detail == EPIPE ? signal_base + SIGPIPE : failure;
    case kind::vanished:
    case kind::absent:
    case kind::lost:
    case kind::refused:
    case kind::machinery:
    case kind::stuck:
      return failure;
    default:
      return detail == 0 ? failure : detail;
  }
}

/// With --threads one process carries all slots.
static std::size_t process_of(const job_state& job, std::size_t i) {
  return job.options.threads ? 0 : i;
}

static bool someone_counts_on(const job_state& job, std::size_t i) {
  if (job.options.threads) return false;
  for (std::size_t k = 0; k < job.options.ranks; ++k) {
    slot& other = (*job.book.board)[k];
    if (k != i && other.state == rank_state::running &&
        other.world == job.options.ranks - job.servers)
      return true;
  }
  return false;
}

std::optional<cause> judge(const job_state& job, std::size_t i) {
  using kind = cause::kind;
  slot& rank = (*job.book.board)[i];
  std::size_t process = process_of(job, i);
  slot& owner = (*job.book.board)[process];
  bool told = job.book.records[process].told;
  rank_state state = rank.state;
  if (state == rank_state::refused && !told) return cause{kind::refused, i, 0};
  if (!owner.reaped.load(std::memory_order_acquire)) {
    if (state == rank_state::failed && !told) return cause{kind::failed, i, 0};
    if (job.book.records[process].lost && !told) return cause{kind::lost, i, 0};
    return std::nullopt;
  }
  if (told) return std::nullopt;
  state = rank.state;  // may have changed between the first look and its end
  if (state == rank_state::refused) return cause{kind::refused, i, 0};
  int status = static_cast<int>(owner.wait_status.load());
  bool spoke = state == rank_state::failed || (state != rank_state::finished && rank.message_ready);
  if (WIFSIGNALED(status)) {
    if (spoke) return cause{kind::failed, i, signal_base + WTERMSIG(status)};
    return i == process ? std::optional(cause{kind::killed, i, WTERMSIG(status)}) : std::nullopt;
  }
  int code = WEXITSTATUS(status);
  if (spoke) return cause{kind::failed, i, code};
  if (code != 0) {
    if (i != process) return std::nullopt;
    return cause{state == rank_state::finished ? kind::late : kind::exited, i, code};
  }
  if (state == rank_state::running) return cause{kind::vanished, i, 0};
  if (state == rank_state::unborn && someone_counts_on(job, i)) return cause{kind::absent, i, 0};
  return std::nullopt;
}

bool is_secondary_failure(const job_state& job, std::size_t i) {
  slot& rank = (*job.book.board)[i];
  if (rank.secondary_failure) return true;
  bool of_openmpi = job.how == transport::openmpi || job.how == transport::shmem;
  if (job.one_host || !of_openmpi || rank.state != rank_state::running || !rank.reaped)
    return false;
  int status = static_cast<int>(rank.wait_status.load());
  int other_error = 16, internal_error = 17;  // MPI_ERR_OTHER, MPI_ERR_INTERN of Open MPI 4
  return WIFEXITED(status) && !rank.message_ready &&
         (WEXITSTATUS(status) == other_error || WEXITSTATUS(status) == internal_error);
}

static std::size_t rank_in(const job_state& job, std::size_t i) {
  slot& it = (*job.book.board)[i];
  return it.state == rank_state::unborn ? i : it.rank.load();
}

static std::uint32_t pid_in(const job_state& job, std::size_t i) {
  std::uint32_t own = (*job.book.board)[i].pid;
  return own ? own : job.book.records[process_of(job, i)].pid.load();
}

/// Servers have the numbers after the last rank.
static bool serves(const job_state& job, std::size_t i) {
  slot& it = (*job.book.board)[i];
  return it.state != rank_state::unborn && it.world != 0 && it.rank >= it.world;
}

static std::string name_of_rank(const job_state& job, std::size_t i) {
  std::uint32_t pid = pid_in(job, i);
  std::string host = job.remote.host_of(i);
  std::string where = pid ? "pid " + std::to_string(pid) : "";
  if (!host.empty()) where += (where.empty() ? "on " : " on ") + host;
  return (serves(job, i) ? "progress rank " : "rank ") + std::to_string(rank_in(job, i)) +
         (where.empty() ? "" : " (" + where + ")");
}

/// A rank's own words, on one line.
static std::string words_of(slot& rank) {
  if (!rank.message_ready.load(std::memory_order_acquire))
    return "an exception left its far::runtime";
  std::string text = trimmed(std::string(rank.message, strnlen(rank.message, sizeof rank.message)));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Why mpirun may have ended a job that makes no runtime: one rank left while others went on.
static std::string early_leaver(const job_state& job) {
  for (std::size_t i = 0; i < job.options.ranks; ++i)
    if ((*job.book.board)[i].reaped && !job.book.records[i].told &&
        (*job.book.board)[i].wait_status == 0)
      return " after " + name_of_rank(job, i) + " exited with status 0";
  return "";
}

/// FARSIDE_MPI=spawned: mpirun has started the servers, and no supervisor of ours watches them.
static std::string dead_server(int status) {
  const char* strategy = getenv("FARSIDE_MPI");
  if (!strategy || strcmp(strategy, "spawned") != 0 || status <= signal_base) return "";
  return ", as it does when a server of FARSIDE_MPI=spawned is killed by signal " +
         signal_name(status - signal_base);
}

/// The sender of a signal is not known, but the kernel counts what it kills when memory runs out.
static std::string who_kills(const job_state& job, std::size_t i) {
  std::string evidence = job.remote.knows(i) ? "" : job.memory.since_begin();
  return evidence.empty() ? "by somebody, or by the kernel if memory ran out" : evidence;
}

/// What other ranks say that have failed too: the first may have failed because of them.
static std::string other_words(const job_state& job, const cause& why) {
  if (why.what != cause::kind::failed && why.what != cause::kind::exited) return "";
  constexpr std::size_t most = 4;
  std::vector<std::string> said = {words_of((*job.book.board)[why.slot])};
  std::string text;
  for (std::size_t i = 0; i < job.options.ranks && said.size() <= most; ++i) {
    slot& rank = (*job.book.board)[i];
    if (i == why.slot || !rank.message_ready || rank.state != rank_state::failed) continue;
    std::string words = words_of(rank);
    if (std::find(said.begin(), said.end(), words) != said.end()) continue;
    said.push_back(words);
    text += "farside run: " + name_of_rank(job, i) + " failed too: " + words + "\n";
  }
  return text;
}

/// Ranks that call different collectives read each other's data wrongly: whatever else is said of
/// one, that is likely to be why.
static std::string wrong_calls(const job_state& job, const cause& why) {
  using kind = cause::kind;
  if (why.what != kind::failed && why.what != kind::killed && why.what != kind::exited) return "";
  if (words_of((*job.book.board)[why.slot]).find("mismatched collectives") != std::string::npos)
    return "";  // a checked build has said so
  auto found = hang_watch::last_look(job);
  return found ? "farside run: " + *found + "\n" : "";
}

std::string announce(const job_state& job, const cause& why, const std::string& consequence) {
  if (why.what == cause::kind::refused) return words_of((*job.book.board)[why.slot]) + "\n";
  std::string text = why.what == cause::kind::timeout ? "" : describe(job, why);
  bool sentence = text.ends_with('.') || text.ends_with('\n');  // or lines
  if (!consequence.empty() && sentence)
    text += (text.ends_with('\n') ? "farside run: " : "\nfarside run: ") + consequence;
  else if (!consequence.empty())
    text += (text.empty() ? "" : "; ") + consequence;
  if (text.empty()) return "";
  return "farside run: " + text + (text.ends_with('\n') ? "" : "\n") + other_words(job, why) +
         wrong_calls(job, why);
}

std::string describe(const job_state& job, const cause& why) {
  using kind = cause::kind;
  std::string rank = name_of_rank(job, why.slot);
  switch (why.what) {
    case kind::killed:
      return rank + " was killed by signal " + signal_name(why.detail) +
             (why.detail == SIGKILL ? ", " + who_kills(job, why.slot) : "");
    case kind::exited:
    case kind::late:
      return rank + " exited with status " + std::to_string(why.detail);
    case kind::vanished:
      return rank + " exited with status 0 before its far::runtime ended";
    case kind::absent:
      return rank +
             " exited with status 0 without making a far::runtime, which the other ranks wait for";
    case kind::lost:
      return rank + " is lost: its host does not answer, or its supervisor there was killed";
    case kind::failed:
    case kind::refused:
      return rank + " failed: " + words_of((*job.book.board)[why.slot]);
    case kind::stuck:
      return job.verdict;
    case kind::timeout:
      return "the job was not done after " + human_time(job.options.timeout) + " (--timeout)";
    case kind::interrupted:
      return "received signal " + signal_name(why.detail);
    case kind::machinery:
      return job.trouble;
    case kind::output:
      return why.detail < 0 ? "the process that passes the output of the ranks on was killed"
                            : cannot_write(why.detail);
    case kind::starter:
      if (job.starter_killed)
        return job.starter_name + " was killed by signal " + signal_name(why.detail - signal_base);
      return job.starter_name + " ended with status " + std::to_string(why.detail) +
             early_leaver(job) + dead_server(why.detail) +
             (job.options.verbose || !job.one_host || job.how == transport::mpich
                  ? ""
                  : "; --verbose shows its own messages");
  }
  return "";
}

namespace {

const char* state_name(rank_state state, bool reaped) {
  switch (state) {
    case rank_state::unborn:
      return reaped ? "ended" : "no runtime yet";
    case rank_state::running:
      return reaped ? "died" : "running";
    case rank_state::finished:
      return reaped ? "ended" : "finished";
    case rank_state::failed:
    case rank_state::refused:
      return reaped ? "ended" : "failed";
  }
  return "?";
}

/// By SIGSTOP, or by a debugger. Of ranks on other hosts it is not known.
bool is_stopped(const job_state& job, std::size_t i) {
  std::uint32_t pid = job.remote.knows(i) ? 0 : pid_in(job, i);
  char state = pid ? process_state(static_cast<pid_t>(pid)) : '\0';
  return state == 'T' || state == 't';
}

/// Says so when ranks have not entered the same number of collectives: the usual hang.
std::string compare_collectives(const job_state& job) {
  std::map<std::uint64_t, std::vector<std::size_t>> ranks_at;
  for (std::size_t i = 0; i < job.options.ranks; ++i) {
    slot& rank = (*job.book.board)[i];
    if (rank.state == rank_state::running && !serves(job, i))
      ranks_at[rank.collectives].push_back(rank_in(job, i));
  }
  if (ranks_at.size() < 2) return "";
  std::string text = "  The ranks have not entered the same number of collectives:\n";
  for (auto& [count, ranks] : ranks_at) {
    std::sort(ranks.begin(), ranks.end());
    text += "    " + std::to_string(count) + ": rank";
    for (std::size_t k = 0; k < std::min<std::size_t>(ranks.size(), 16); ++k)
      text += " " + std::to_string(ranks[k]);
    text += ranks.size() > 16 ? " and " + counted(ranks.size() - 16, "other") + "\n" : "\n";
  }
  return text + "  If those with more wait in one, they wait for those with fewer to enter it.\n";
}

}  // namespace

std::string waiting_report(const job_state& job, double age) {
  std::string text = "farside run: " + counted(job.options.ranks - job.servers, "rank") +
                     (job.servers ? " and " + counted(job.servers, "progress rank") : "") + ", " +
                     human_time(age) + " after the start\n";
  table lines;
  lines.row({"rank", "pid", "state", "waits for", "on rank", "for", "collectives"});
  for (std::size_t i = 0; i < job.options.ranks; ++i) {
    slot& rank = (*job.book.board)[i];
    bool running = rank.state == rank_state::running;
    bool reaped = (*job.book.board)[process_of(job, i)].reaped;
    auto [what, on] = rank.waits.load();
    bool known = what <= far::job_board::last_wait;
    std::uint64_t since = rank.waits_since, now = far::job_board::monotonic_ns();
    bool waits = running && known && !reaped && what != far::job_board::waiting::nothing;
    lines.row(
        {std::to_string(rank_in(job, i)), std::to_string(pid_in(job, i)),
         is_stopped(job, i) ? "stopped" : state_name(rank.state, reaped),
         running && !reaped ? describe_wait(rank) : "-",
         waits && on != far::job_board::no_rank ? std::to_string(on) : "-",
         waits && since && since < now ? human_time(1e-9 * static_cast<double>(now - since)) : "-",
         rank.state == rank_state::unborn ? "-" : std::to_string(rank.collectives)});
  }
  return text + lines.text("  ") + compare_collectives(job);
}

}  // namespace far::app

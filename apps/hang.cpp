#include "hang.hpp"

#include <unistd.h>

#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;
using far::job_board::rank_state;

constexpr std::uint64_t look_every = 100 * millisecond;
/// An entry of the board may be read while its rank replaces it. What is still there after this
/// time has been written whole.
constexpr std::uint64_t seen_for = 150 * millisecond;
/// A rank that waits tells the names of files after this time at the latest; others may never do.
constexpr std::uint64_t names_within = 700 * millisecond;
/// All ranks are on this host and look around: what is under way arrives within milliseconds.
constexpr std::uint64_t standstill_for = 3 * second, standstill_looks = 8;

/// The ranks of the program, in order; empty as long as not all have made their runtime.
far::job_board::slots ranks_of(const job_state& job) {
  std::size_t n = job.options.ranks - job.servers;
  far::job_board::slots result(n);
  for (std::size_t i = 0; i < job.options.ranks; ++i) {
    far::job_board::slot& one = (*job.book.board)[i];
    if (one.state == rank_state::unborn) return {};
    if (one.rank >= one.world) continue;  // it serves others
    if (one.rank >= n || result[one.rank] != nullptr) return {};
    result[one.rank] = &one;
  }
  for (auto* one : result)
    if (one == nullptr) return {};
  return result;
}

/// Whether the rank has told only the line of a place, and not the file.
bool lacks_names(const std::string& why) { return why.find(" at line ") != std::string::npos; }

std::string wrong_calls(const far::job_board::slots& ranks) {
  std::string why = far::job_board::different_calls(ranks);
  if (why.empty()) why = far::job_board::others_have_left(ranks);
  return why.empty() ? "" : why + ". " + far::job_board::same_collectives;
}

}  // namespace

std::optional<std::string> hang_watch::look(const job_state& job) {
  std::uint64_t now = monotonic_ns();
  if (now - looked_ < look_every) return std::nullopt;
  looked_ = now;
  far::job_board::slots ranks = ranks_of(job);
  if (ranks.size() < 2) return std::nullopt;
  std::string why = wrong_calls(ranks);
  if (why.empty()) since_ = 0;
  if (!why.empty()) {
    if (since_ == 0) since_ = now;
    if (now - since_ >= (lacks_names(why) ? names_within : seen_for)) return why;
  }
  if (!job.one_host || job.servers != 0) return std::nullopt;
  if (!standstill_.look(ranks, now, standstill_for, standstill_looks)) return std::nullopt;
  return "every rank waits, and nothing is under way that could end that:\n" +
         far::job_board::all_waits(ranks, "  ");
}

std::optional<std::string> hang_watch::last_look(const job_state& job) {
  far::job_board::slots ranks = ranks_of(job);
  if (ranks.size() < 2) return std::nullopt;
  std::string why = far::job_board::different_calls(ranks);
  for (std::uint64_t begin = monotonic_ns();
       lacks_names(why) && monotonic_ns() - begin < names_within; usleep(20'000))
    why = far::job_board::different_calls(ranks);
  if (why.empty()) return std::nullopt;
  return why + ". " + far::job_board::same_collectives;
}

}  // namespace far::app

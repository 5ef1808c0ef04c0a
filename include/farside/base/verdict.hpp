// Why a job cannot go on, as far as its board can tell. The launcher asks, and the simulator.
//
//   different calls   the n-th collective of all ranks has one name on some ranks and another on
//                     others. All must call the same ones in the same order, so the program is
//                     wrong whatever happens next.
//   others have left  a rank is in a collective of all ranks that another one never enters, since
//                     that one has left far::run before. Nobody comes back from there.
//   everybody waits   see `standstill`.
//
// Each is a fact that no later event can undo. A rank that computes decides nothing.
#pragma once

#include <farside/base/job_board.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace far::job_board {

using slots = std::vector<slot*>;  ///< by rank

/// "rank 1", "ranks 1 and 2", "ranks 0, 2 and 5 to 9".
inline std::string names_of(const std::vector<std::size_t>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (last - i >= 2) {
      parts.push_back(std::to_string(sorted[i]) + " to " + std::to_string(sorted[last]));
    } else {
      for (std::size_t k = i; k <= last; ++k) parts.push_back(std::to_string(sorted[k]));
    }
    i = last + 1;
  }
  constexpr std::size_t most = 12;
  std::string text = sorted.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(parts.size(), most); ++i) {
    bool last = i + 1 == parts.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + parts[i];
  }
  return parts.size() > most ? text + " and more" : text;
}

/// A call as it is said: name and place. Empty if it is being replaced.
struct said_call {
  std::uint64_t number = 0;
  std::string name, place;

  std::string text() const { return name + (place.empty() ? "" : " at " + place); }
};

inline said_call read(const called& entry) {
  called copy;
  std::uint64_t number = entry.number.load(std::memory_order_acquire);
  std::memcpy(copy.name, entry.name, sizeof copy.name);
  std::memcpy(copy.file, entry.file, sizeof copy.file);
  copy.line = entry.line;
  if (number == 0 || entry.number.load(std::memory_order_acquire) != number) return {};
  said_call result{number, std::string(copy.name, strnlen(copy.name, sizeof copy.name)), ""};
  std::string file(copy.file, strnlen(copy.file, sizeof copy.file));
  if (copy.line != 0)
    result.place = (file.empty() ? "line " : file + ":") + std::to_string(copy.line);
  return result;
}

inline said_call call_of(const slot& rank, std::uint64_t number) {
  said_call result = read(rank.calls[number % kept_calls]);
  return result.number == number ? result : said_call();
}

/// What a rank waits for, in the words of its user: "barrier at prog.cpp:12".
inline std::string describe_wait(const slot& rank) {
  auto [what, on] = rank.waits.load();
  if (what > last_wait) return "?";
  std::string text = name_of(what);
  if (what == waiting::barrier || what == waiting::collective) {
    said_call call = read(rank.call);
    if (call.number != 0 && call.number == rank.collectives) text = call.text();
  } else if (rank.subject_ready.load(std::memory_order_acquire)) {
    text += " '" + std::string(rank.subject, strnlen(rank.subject, sizeof rank.subject)) + "'";
  }
  return text;
}

/// A sentence about a wait, with the rank that has to act, if there is a single one.
inline std::string describe_wait_fully(const slot& rank) {
  auto [what, on] = rank.waits.load();
  bool of_many = what == waiting::barrier || what == waiting::collective ||
                 what == waiting::barrier_in_handler || what == waiting::collective_in_handler ||
                 what == waiting::starting || what == waiting::ending;
  return describe_wait(rank) + (of_many || on == no_rank ? "" : ", on rank " + std::to_string(on));
}

inline constexpr const char* same_collectives =
    "All ranks of a team must call the same collectives in the same order.";

/// The first collective that has different names on two ranks, and which call what; empty: none
/// that is still remembered.
inline std::string different_calls(const slots& ranks) {
  std::uint64_t first = 0;
  for (const slot* rank : ranks)
    for (const called& entry : rank->calls) {
      said_call theirs = read(entry);
      if (theirs.number == 0 || (first != 0 && theirs.number >= first)) continue;
      said_call other = call_of(*ranks[0], theirs.number);
      if (other.number != 0 && other.name != theirs.name) first = theirs.number;
    }
  if (first == 0) return "";
  std::map<std::string, std::vector<std::size_t>> callers;
  std::vector<std::string> order;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    said_call call = call_of(*ranks[r], first);
    if (call.number == 0) continue;
    auto& of = callers[call.text()];
    if (of.empty()) order.push_back(call.text());
    of.push_back(r);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(order.size(), 4); ++i) {
    const auto& who = callers[order[i]];
    text += (text.empty() ? "" : ", ") + names_of(who) + (who.size() == 1 ? " calls " : " call ") +
            order[i];
  }
  return text;
}

/// A rank that waits in a collective of all ranks which others, who have left, never enter; empty:
/// there is none.
inline std::string others_have_left(const slots& ranks) {
  std::vector<std::size_t> waiting_ranks, gone, others;
  std::uint64_t number = 0;
  std::string call;
  leaving how = leaving::no;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    std::uint64_t inside = ranks[r]->inside;
    waiting what = ranks[r]->waits.load().what;
    bool waits = what == waiting::barrier || what == waiting::collective;
    bool here = ranks[r]->state == rank_state::running && ranks[r]->left == leaving::no;
    if (inside == 0 || !waits || !here) continue;
    said_call now = call_of(*ranks[r], inside);
    if (now.number == 0 || (number != 0 && (inside != number || now.text() != call))) continue;
    number = inside;
    call = now.text();
    waiting_ranks.push_back(r);
  }
  if (number == 0) return "";
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r]->left == leaving::no || ranks[r]->entered >= number) continue;
    gone.push_back(r);
    how = ranks[r]->left;
  }
  if (gone.empty()) return "";
  bool all = waiting_ranks.size() + gone.size() == ranks.size() && gone.size() > 1;
  bool one = gone.size() == 1;
  return names_of(waiting_ranks) + (waiting_ranks.size() == 1 ? " calls " : " call ") + call +
         ", " + (all ? "the others" : names_of(gone)) + (one ? " has " : " have ") +
         (how == leaving::far_run ? "left far::run"
          : one                   ? "ended its far::runtime"
                                  : "ended their far::runtime");
}

/// Whether all ranks wait, inside the library, and nothing changes. What a rank waits for comes
/// from another rank: a word that one writes, a message that one sends. If all of them wait, each
/// looks around again and again, none finds anything to do, and nothing is on its way, then it
/// stays so. Not decided while a rank computes, has other threads, or has not looked around since.
class standstill {
 public:
  /// One look; true: nothing has changed for `ns`, while each rank has looked around `looks` times.
  bool look(const slots& ranks, std::uint64_t now, std::uint64_t ns, std::uint64_t looks) {
    std::vector<standing> seen;
    bool some = false;
    for (const slot* rank : ranks) {
      standing one{rank->waits_since, rank->activity, rank->rounds, rank->state, rank->collectives};
      bool waits = one.state == rank_state::running && one.since != 0 && !rank->threads;
      some = some || waits;
      if (!waits && one.state != rank_state::finished) return begin({}, now);
      seen.push_back(one);
    }
    if (!some || seen.size() != seen_.size()) return begin(std::move(seen), now);
    bool looked = true;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i].since != seen_[i].since || seen[i].activity != seen_[i].activity ||
          seen[i].state != seen_[i].state || seen[i].collectives != seen_[i].collectives)
        return begin(std::move(seen), now);
      if (seen[i].state == rank_state::running && seen[i].rounds < seen_[i].rounds + looks)
        looked = false;
    }
    return looked && now - began_ >= ns;
  }

 private:
  struct standing {
    std::uint64_t since, activity, rounds;
    rank_state state;
    std::uint64_t collectives;
  };
  bool begin(std::vector<standing> seen, std::uint64_t now) {
    seen_ = std::move(seen);
    began_ = now;
    return false;
  }

  std::vector<standing> seen_;
  std::uint64_t began_ = 0;
};

/// What each rank waits for, a line for those that wait for the same.
inline std::string all_waits(const slots& ranks, const char* indent) {
  std::map<std::string, std::vector<std::size_t>> groups;
  std::vector<std::string> order;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    bool running = ranks[r]->state == rank_state::running;
    std::string what = running ? describe_wait_fully(*ranks[r]) : "nothing: it has ended";
    auto& group = groups[what];
    if (group.empty()) order.push_back(what);
    group.push_back(r);
  }
  std::string text;
  for (const auto& what : order) {
    const auto& who = groups[what];
    text += indent + names_of(who) + (who.size() == 1 ? " waits for " : " wait for ") + what + "\n";
  }
  return text;
}

}  // namespace far::job_board

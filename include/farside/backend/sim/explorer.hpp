// Goes through all schedules of a small program, one run after another: at each choice the run
// follows the path of the last one, and the last choice that has an alternative takes the next.
//
// Schedules that differ only in the order of neighbouring actions that do not touch the same memory
// lead to the same state: one of them is enough. Sleep sets do that: once an action has been tried
// at a choice, it sleeps in the runs of its alternatives until something happens that it could
// notice. A run in which all that could happen sleeps has been seen already, and is left.
#pragma once

#include <farside/backend/concept.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// What an action reads or writes.
struct footprint {
  rank_t rank = 0;
  std::size_t begin = 0, end = 0;  ///< none if equal
  bool writes = false;

  friend bool meet(const footprint& a, const footprint& b) {
    return (a.writes || b.writes) && a.rank == b.rank && a.begin < b.end && b.begin < a.end;
  }
};

/// A rank that goes on, or something in flight that lands. It has one identity in all runs.
struct action {
  std::uint64_t identity;
  footprint touches;
};

class explorer {
 public:
  /// Which of `enabled` comes next; nothing if all that could has been seen from here.
  std::optional<std::size_t> pick(const std::vector<action>& enabled) {
    if (depth_ == path_.size()) {
      path_.push_back({enabled, 0, asleep_});
      auto first = next_awake(path_.back(), 0);
      if (!first) {
        path_.pop_back();
        return std::nullopt;
      }
      path_.back().taken = *first;
    }
    choice& here = path_[depth_++];
    put_to_sleep(here);
    return here.taken;
  }

  /// Prepares the next run; false if there is none.
  bool next() {
    depth_ = 0;
    asleep_.clear();
    while (!path_.empty()) {
      choice& last = path_.back();
      last.asleep.push_back(last.enabled[last.taken]);
      if (auto other = next_awake(last, last.taken + 1)) {
        last.taken = *other;
        return true;
      }
      path_.pop_back();
    }
    return false;
  }

 private:
  struct choice {
    std::vector<action> enabled;
    std::size_t taken;
    std::vector<action> asleep;
  };

  static std::optional<std::size_t> next_awake(const choice& at, std::size_t from) {
    for (std::size_t i = from; i < at.enabled.size(); ++i) {
      auto same = [&](const action& a) { return a.identity == at.enabled[i].identity; };
      if (std::none_of(at.asleep.begin(), at.asleep.end(), same)) return i;
    }
    return std::nullopt;
  }

  /// What still sleeps after the choice: whatever it does not touch.
  void put_to_sleep(const choice& at) {
    asleep_.clear();
    for (const action& a : at.asleep)
      if (!meet(a.touches, at.enabled[at.taken].touches)) asleep_.push_back(a);
  }

  std::vector<choice> path_;
  std::vector<action> asleep_;
  std::size_t depth_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

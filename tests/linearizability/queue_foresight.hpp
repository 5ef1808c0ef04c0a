// What the whole history of a queue says about when its operations took effect, where no value is
// pushed twice. A search that does not know it decides too early which of two pushes came first,
// and learns that it was wrong when their values are popped, much later.
//
// By order: if a comes before b, because its push or its pop ended before that of b began, both
// its push and its pop come before those of b. So each must take effect before that of b has ended,
// and that of b after that of a has begun.
//
// By counting: an operation that found the queue full did so at a moment when as many values were
// in as fit. Where there cannot have been more at any moment of it, all pushes that had begun were
// done then, and no pop that could wait. It is the same with pops that found the queue empty, and
// at moments when there are not less values in than fit, or not more than none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "queue_order.hpp"

namespace linearizability::detail {

using times = std::pair<std::uint64_t, std::uint64_t>;

/// Pairs (when, limit): the limit of the first pair at `when` or later is that of it and all after.
class limits_from {
 public:
  explicit limits_from(std::vector<times> pairs) : pairs_(std::move(pairs)) {
    std::ranges::sort(pairs_);
    for (std::size_t i = pairs_.size(); i-- > 1;)
      pairs_[i - 1].second = std::min(pairs_[i - 1].second, pairs_[i].second);
  }
  /// The least limit of the pairs that are not before `when`.
  std::uint64_t least(std::uint64_t when) const {
    auto at = std::ranges::lower_bound(pairs_, when, {}, &times::first);
    return at == pairs_.end() ? moment::forever : at->second;
  }

 private:
  std::vector<times> pairs_;
};

/// Pairs (when, limit) again, seen from the other side.
class limits_until {
 public:
  explicit limits_until(std::vector<times> pairs) : pairs_(std::move(pairs)) {
    std::ranges::sort(pairs_);
    for (std::size_t i = 1; i < pairs_.size(); ++i)
      pairs_[i].second = std::max(pairs_[i].second, pairs_[i - 1].second);
  }
  /// The greatest limit of the pairs that are not after `when`.
  std::uint64_t greatest(std::uint64_t when) const {
    auto after = std::ranges::upper_bound(pairs_, when, {}, &times::first);
    return after == pairs_.begin() ? 0 : std::prev(after)->second;
  }

 private:
  std::vector<times> pairs_;
};

/// True if that changed anything.
inline bool tighten(moment& m, std::uint64_t from, std::uint64_t until) {
  moment before = m;
  m.from = std::max(m.from, from);
  m.until = std::min(m.until, until);
  return m.from != before.from || m.until != before.until;
}

/// For each a before b, judged by their pushes or by their pops as `judged` says, narrows `other`.
inline bool narrow_by_order(std::vector<passage>& values, moment passage::* judged,
                            moment passage::* other) {
  std::vector<times> ends;
  std::vector<times> beginnings;
  for (const passage& p : values) {
    ends.emplace_back((p.*judged).from, (p.*other).until);
    beginnings.emplace_back((p.*judged).until, (p.*other).from);
  }
  limits_from later(std::move(ends));
  limits_until sooner(std::move(beginnings));
  bool changed = false;
  for (passage& p : values) {
    std::uint64_t began = (p.*judged).from;
    std::uint64_t ended = (p.*judged).until;
    std::uint64_t until = ended == moment::forever ? ended : later.least(ended + 1);
    std::uint64_t from = began == 0 ? 0 : sooner.greatest(began - 1);
    changed = tighten(p.*other, from, until) || changed;
  }
  return changed;
}

/// How many of some operations can have taken effect, and how many must have.
struct tally {
  std::vector<std::uint64_t> beginnings{};
  std::vector<std::uint64_t> ends{};  ///< of those that did happen

  void sort() {
    std::ranges::sort(beginnings);
    std::ranges::sort(ends);
  }
  std::int64_t begun(std::uint64_t at) const {
    return std::ranges::upper_bound(beginnings, at) - beginnings.begin();
  }
  std::int64_t ended_before(std::uint64_t at) const {
    return std::ranges::lower_bound(ends, at) - ends.begin();
  }
};

/// What counting implies for the pushes, or for the pops.
struct implied {
  std::vector<times> ends{};        ///< (a, b): what begins by a takes effect by b
  std::vector<times> beginnings{};  ///< (b, a): what ends at b or later takes effect from a on

  bool narrow(std::vector<passage>& values, moment passage::* which) const {
    limits_from until(ends);
    limits_until from(beginnings);
    bool changed = false;
    for (passage& p : values) {
      moment& m = p.*which;
      if (m.operation == moment::no_operation) continue;
      changed = tighten(m, from.greatest(m.until), until.least(m.from)) || changed;
    }
    return changed;
  }
};

/// Counts what can be and what must be in the queue.
class counting {
 public:
  counting(const std::vector<passage>& values, const queue_history& h, std::size_t capacity)
      : capacity_(static_cast<std::int64_t>(std::min(capacity, std::size_t(1) << 62))) {
    for (const passage& p : values) {
      bool popped = p.pop.operation != moment::no_operation;
      add(pushes_, p.push, p.certain || popped);
      if (popped) add(pops_, p.pop, true);
    }
    for (const moment& pop : h.unknown_pops) add(pops_, pop, false);
    for (const moment& full : h.fulls) stamps_.insert(stamps_.end(), {full.from, full.until});
    for (const moment& empty : h.empties) stamps_.insert(stamps_.end(), {empty.from, empty.until});
    pushes_.sort();
    pops_.sort();
    std::ranges::sort(stamps_);
    for (const moment& full : h.fulls) found_full(full);
    for (const moment& empty : h.empties) found_empty(empty);
    for (std::uint64_t at : stamps_)
      if (at != moment::forever) look_between(at);
  }

  /// An operation that surely did not find the queue full, and says it did; if there is one.
  const std::optional<finding>& impossible() const { return impossible_; }

  bool narrow(std::vector<passage>& values) const {
    bool changed = of_pushes_.narrow(values, &passage::push);
    return of_pops_.narrow(values, &passage::pop) || changed;
  }

 private:
  void add(tally& to, const moment& m, bool happened) {
    to.beginnings.push_back(m.from);
    if (happened) to.ends.push_back(m.until);
    stamps_.insert(stamps_.end(), {m.from, m.until});
  }

  /// `excess(at)`: by how much the extreme that was found could be surpassed. Where it can just be
  /// reached, all of `these` are done then that can be, and none of `those` that need not be. False
  /// if it cannot be reached at all.
  template <class Excess>
  bool found(const moment& when, Excess excess, implied& these, implied& those) {
    std::uint64_t first = moment::forever;
    std::uint64_t last = 0;
    std::int64_t most = -1;
    auto at = std::ranges::lower_bound(stamps_, when.from);
    for (; at != stamps_.end() && *at <= when.until; ++at) {
      std::int64_t here = excess(*at);
      if (here < 0) continue;
      first = std::min(first, *at);
      last = *at;
      most = std::max(most, here);
    }
    if (most == 0) {
      these.ends.emplace_back(first, last);
      those.beginnings.emplace_back(last, first);
    }
    return most >= 0;
  }
  void found_full(const moment& when) {
    auto excess = [&](std::uint64_t at) {
      return pushes_.begun(at) - pops_.ended_before(at) - capacity_;
    };
    if (!found(when, excess, of_pushes_, of_pops_))
      impossible_ = contradiction("At each moment of it there was room", {when});
  }
  void found_empty(const moment& when) {
    auto excess = [&](std::uint64_t at) { return pops_.begun(at) - pushes_.ended_before(at); };
    found(when, excess, of_pops_, of_pushes_);
  }

  /// Just after `at`, there must not be more in than fit, nor less than none.
  void look_between(std::uint64_t at) {
    if (pushes_.ended_before(at + 1) - pops_.begun(at) == capacity_) {
      of_pops_.ends.emplace_back(at, at);
      of_pushes_.beginnings.emplace_back(at + 1, at);
    }
    if (pops_.ended_before(at + 1) == pushes_.begun(at)) {
      of_pushes_.ends.emplace_back(at, at);
      of_pops_.beginnings.emplace_back(at + 1, at);
    }
  }

  std::int64_t capacity_;
  tally pushes_;
  tally pops_;
  std::vector<std::uint64_t> stamps_;
  implied of_pushes_;
  implied of_pops_;
  std::optional<finding> impossible_;
};

/// What contradicts the bound of a queue, if that shows by counting alone.
inline std::optional<finding> miscounted(const queue_history& h, std::size_t capacity) {
  std::vector<passage> values = h.values;
  static_cast<void>(match(values, h.pops));
  return counting(values, h, capacity).impossible();
}

/// The values of a history that not_first_in_first_out finds nothing wrong with, with the times
/// between which each push and pop must have taken effect.
inline std::vector<passage> narrowed(const queue_history& h, std::size_t capacity) {
  std::vector<passage> values = h.values;
  static_cast<void>(match(values, h.pops));
  std::uint64_t unknown = moment::forever;  // from here on, a value may have been popped unseen
  for (const moment& pop : h.unknown_pops) unknown = std::min(unknown, pop.from);
  for (passage& p : values) {
    if (p.pop.operation != moment::no_operation) continue;
    p.pop.from = unknown;
    if (!p.certain) p.push.until = moment::forever;  // no other value may count on it
  }
  bool changed = true;
  while (changed) {
    for (passage& p : values) {
      tighten(p.push, 0, p.pop.until);
      tighten(p.pop, p.push.from, moment::forever);
    }
    changed = narrow_by_order(values, &passage::push, &passage::pop);
    changed = narrow_by_order(values, &passage::pop, &passage::push) || changed;
    if (!changed) changed = counting(values, h, capacity).narrow(values);
  }
  return values;
}

inline bool must_come_before(const passage& a, const passage& b) {
  return a.push.until < b.push.from || a.pop.until < b.pop.from;
}

}  // namespace linearizability::detail

// When has a team come to rest? Each member counts what it has sent and what it has handled; the
// team is at rest when all is handled and nobody will send again. Asked without blocking, since a
// member that waited here could not handle what others still send.
//
// Waves run up a tree of radix 8 and back down. A member joins a wave only when it is idle.
//
//   round r of a member:
//
//   gathering ---- idle, and all children have reported r: ----> waiting for the parent's
//       ^          sums go to the parent by put, flush, atomic   verdict on r
//       |                                                              |
//       +----------------- tells its children the verdict <------------+
//
//   its words, in its own segment:   reports[8]: {sent, handled, failed}          by puts
//                                    rounds[8]: the round of each report          by atomics
//                                    verdict: round << 2 | failed << 1 | at rest  by atomics
//
// The root says 'at rest' when all that was sent by this wave had been handled by the wave before:
// S(r) == H(r-1). Why that is right: every report of r-1 precedes every report of r, and counts
// only grow, so at the moment between the two waves H(r-1) <= H <= S <= S(r); equality means that
// nothing was under way then, and an idle member sends only what it is handed. (Mattern's four
// counters, of which two are enough.) S(r) == H(r) of one wave is not enough: a member that has
// reported may be handed something and send on, to one that has not.
//
// A member that has failed takes part until the team is at rest, as the others wait for it. Reports
// carry how many have failed, and the verdict tells everybody.
//
// A report is overwritten only after the verdict on it, which the parent gives after reading it.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Reads a word of this rank's own segment that others change by atomics. Coherent: a load; else 1
/// atomic.
inline std::uint64_t load_own(context& c, ptr<std::uint64_t> word) {
  if (!c.link.coherent()) return atomic_load(word);
  auto* at = static_cast<std::uint64_t*>(c.link.address(word.rank(), word.offset()));
  return std::atomic_ref(*at).load(std::memory_order_acquire);
}

class quiescence {
 public:
  /// Collective over `over`.
  explicit quiescence(const team& over) : over_(over), me_(over.rank()) {
    all_ = alloc_together<words>(over, "exchange", 1);
    mine_ = all_[me_];
    put(mine_, words{});
    barrier(over);
    std::uint64_t first = std::uint64_t{me_} * radix + 1;
    if (first < over.size())
      children_ = static_cast<rank_t>(std::min<std::uint64_t>(radix, over.size() - first));
  }
  void release() { dealloc(mine_); }

  /// One look, without waiting for any other rank. True once, on every member, when the team has
  /// come to rest. `idle`: nothing left to send or handle here, as far as this member can see;
  /// `sent` and `handled` count from the beginning and never fall. Cost of a wave: 1 put, 1 flush
  /// and 1 atomic up, 1 atomic for each child down.
  bool step(bool idle, std::uint64_t sent, std::uint64_t handled, bool failed = false);
  /// After step() was true: whether a member had failed. The same on all.
  bool any_failed() const { return any_failed_; }

 private:
  static constexpr rank_t radix = 8;
  struct counts {
    std::uint64_t sent = 0, handled = 0, failed = 0;
  };
  static constexpr rank_t words_before_rounds = sizeof(counts) / sizeof(std::uint64_t) * radix;
  struct words {
    counts reports[radix]{};
    std::uint64_t rounds[radix]{};
    std::uint64_t verdict = 0;
  };

  static ptr<counts> report_of(ptr<words> at, rank_t child) {
    return pointer_cast<counts>(at) + child;
  }
  static ptr<std::uint64_t> round_of(ptr<words> at, rank_t child) {
    return pointer_cast<std::uint64_t>(at) + std::ptrdiff_t{words_before_rounds} + child;
  }
  static ptr<std::uint64_t> verdict_of(ptr<words> at) {
    return pointer_cast<std::uint64_t>(at) + std::ptrdiff_t{words_before_rounds + radix};
  }

  bool tell_children(bool at_rest, bool failed) {
    for (rank_t i = 0; i < children_; ++i)
      atomic_store(verdict_of(all_[me_ * radix + 1 + i]),
                   round_ << 2 | std::uint64_t{failed} << 1 | at_rest);
    ++round_;
    any_failed_ = failed;
    return at_rest;
  }

  team over_;
  rank_t me_;
  rank_t children_ = 0;
  ptr<words> mine_;
  std::vector<ptr<words>> all_;
  std::uint64_t round_ = 1;
  rank_t heard_ = 0;       ///< children whose report of this round is here
  bool reported_ = false;  ///< waiting for the verdict
  bool any_failed_ = false;
  counts before_;  ///< at the root: the sums of the wave before
};

inline bool quiescence::step(bool idle, std::uint64_t sent, std::uint64_t handled, bool failed) {
  context& c = here();
  if (reported_) {
    std::uint64_t verdict = load_own(c, verdict_of(mine_));
    if (verdict >> 2 != round_) return false;
    reported_ = false;
    return tell_children(verdict & 1, (verdict & 2) != 0);
  }
  while (heard_ < children_ && load_own(c, round_of(mine_, heard_)) == round_) ++heard_;
  if (!idle || heard_ < children_) return false;
  counts sum{sent, handled, failed};
  for (rank_t i = 0; i < children_; ++i) {
    counts child = get(report_of(mine_, i));
    sum.sent += child.sent, sum.handled += child.handled, sum.failed += child.failed;
  }
  heard_ = 0;
  if (me_ == 0) {
    bool at_rest = sum.sent == before_.handled;
    if (FARSIDE_MUTANT(rest_after_one_wave)) at_rest = sum.sent == sum.handled;
    before_ = sum;
    return tell_children(at_rest, sum.failed != 0);
  }
  rank_t index = (me_ - 1) % radix;
  ptr<words> parent = all_[(me_ - 1) / radix];
  put(report_of(parent, index), sum);
  if (!FARSIDE_MUTANT(rest_reported_unflushed)) flush(parent.rank());
  atomic_store(round_of(parent, index), round_);
  reported_ = true;
  return false;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

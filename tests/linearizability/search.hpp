// The search for an order that explains a history: Wing and Gong's (Testing and verifying
// concurrent objects, 1993) with Lowe's memoisation (Testing for linearizability, 2017).
//
// The operations are dealt out to lanes, so that those of one lane follow each other in real time.
// What has been linearized is then a position in each lane, however long the history is and
// however slow one of its operations; at a quiescent point, where no operation is under way, all
// that is left of the past is the state. As many lanes are needed as operations overlap.
//
//   lane 0   |--a--|    |---d---|         linearized {a, b, d}: positions 2 1 0
//   lane 1      |---b----|    |--e--|     next may come e or c: both began before
//   lane 2        |-------c-------|       any operation that is left has ended
//
// An operation that did not return is the last one of its lane, and need not be passed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "configurations.hpp"
#include "finding.hpp"
#include "history.hpp"

namespace linearizability {

template <specification Spec>
class search {
 public:
  using state = typename Spec::state;

  /// `limit` bounds the number of steps.
  search(const Spec& spec, std::span<const event<Spec>> events, std::uint64_t limit,
         foresight<Spec> known = {})
      : spec_(spec),
        known_(std::move(known)),
        events_(known_.narrowed.empty() ? events : std::span<const event<Spec>>(known_.narrowed)),
        limit_(limit),
        lanes_(dealt(events_)),
        seen_(lanes_.size()) {}
  search(const search&) = delete;
  search& operator=(const search&) = delete;

  outcome run();

  /// Operations tried; 8 words of memory that a configuration takes count as another one.
  std::uint64_t steps() const { return steps_; }

  /// The configuration that explains most.
  std::uint32_t furthest() const { return furthest_; }
  /// The operation that no order gets past: of those left there, the one with the first response.
  std::uint32_t culprit() const;
  const configurations<state>& seen() const { return seen_; }

  /// The operations that may come next in a configuration, the one to return first in front.
  std::vector<std::uint32_t> candidates(std::uint32_t configuration) const;

 private:
  using event_type = event<Spec>;

  /// A configuration on the path, and which of its choices are still to be tried.
  struct frame {
    std::uint32_t configuration;
    std::size_t first_choice;
    std::size_t next_choice;
  };

  static std::vector<std::vector<std::uint32_t>> dealt(std::span<const event_type> events);

  /// Makes a configuration the end of the path. True if it explains all that returned.
  bool enter(std::uint32_t configuration);
  bool backtrack();
  /// The configuration that comes of the next operation of a lane, if it is possible and new.
  std::optional<std::uint32_t> advance(std::uint32_t configuration, std::uint32_t lane);
  /// The state after an operation, if its answer can be what was recorded.
  std::optional<state> after(const state& before, const event_type& e);
  /// The first response of what is left: all that ended earlier has been explained. `never` if
  /// nothing that returned is left.
  std::uint64_t explained_until(std::uint32_t configuration) const;
  /// Appends the lanes whose next operation may come next, the one to return first in front.
  void append_choices(std::uint32_t configuration, std::vector<std::uint32_t>& lanes) const;
  void keep_one_that_only_reads(std::uint32_t configuration, std::size_t first_choice);

  std::uint32_t head(std::uint32_t lane, std::span<const std::uint32_t> positions) const {
    return lanes_[lane][positions[lane]];
  }

  const Spec& spec_;
  foresight<Spec> known_;
  std::span<const event_type> events_;
  std::uint64_t limit_;
  std::uint64_t steps_ = 0;
  std::vector<std::vector<std::uint32_t>> lanes_;
  configurations<state> seen_;
  std::vector<frame> path_;
  std::vector<std::uint32_t> choices_;    ///< lanes; those of each frame of the path in turn
  std::vector<std::uint32_t> positions_;  ///< of the configuration being made
  std::uint32_t furthest_ = 0;
  std::uint64_t furthest_until_ = 0;  ///< what the furthest one explains
};

template <specification Spec>
std::vector<std::vector<std::uint32_t>> search<Spec>::dealt(std::span<const event_type> events) {
  std::vector<std::uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(events[i].invocation, i); });
  std::vector<std::vector<std::uint32_t>> lanes;
  for (std::uint32_t i : order) {
    auto free = std::ranges::find_if(
        lanes, [&](const auto& lane) { return precedes(events[lane.back()], events[i]); });
    if (free == lanes.end()) free = lanes.insert(lanes.end(), std::vector<std::uint32_t>());
    free->push_back(i);
  }
  return lanes;
}

template <specification Spec>
outcome search<Spec>::run() {
  positions_.assign(lanes_.size(), 0);
  state first = spec_.initial();
  std::size_t hash = spec_.hash(first);
  auto none = configurations<state>::none;
  if (enter(seen_.add(positions_, std::move(first), hash, none, none).first))
    return outcome::linearizable;
  while (true) {
    frame& last = path_.back();
    if (last.next_choice == choices_.size()) {
      if (!backtrack()) return outcome::not_linearizable;
      continue;
    }
    if (steps_ >= limit_) return outcome::gave_up;
    auto next = advance(last.configuration, choices_[last.next_choice++]);
    if (next && enter(*next)) return outcome::linearizable;
  }
}

template <specification Spec>
bool search<Spec>::enter(std::uint32_t configuration) {
  std::uint64_t until = explained_until(configuration);
  if (until == never) return true;
  if (until > furthest_until_ || path_.empty()) {
    furthest_until_ = until;
    furthest_ = configuration;
  }
  std::size_t first_choice = choices_.size();
  append_choices(configuration, choices_);
  keep_one_that_only_reads(configuration, first_choice);
  path_.push_back({configuration, first_choice, first_choice});
  return false;
}

template <specification Spec>
bool search<Spec>::backtrack() {
  choices_.resize(path_.back().first_choice);
  path_.pop_back();
  return !path_.empty();
}

template <specification Spec>
std::uint64_t search<Spec>::explained_until(std::uint32_t configuration) const {
  auto positions = seen_.positions(configuration);
  std::uint64_t until = never;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    if (positions[lane] < lanes_[lane].size())
      until = std::min(until, events_[head(lane, positions)].response);
  return until;
}

template <specification Spec>
void search<Spec>::append_choices(std::uint32_t configuration,
                                  std::vector<std::uint32_t>& lanes) const {
  auto positions = seen_.positions(configuration);
  std::uint64_t until = explained_until(configuration);
  auto first = static_cast<std::ptrdiff_t>(lanes.size());
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane)
    if (positions[lane] < lanes_[lane].size() && events_[head(lane, positions)].invocation <= until)
      lanes.push_back(lane);
  std::ranges::sort(lanes.begin() + first, lanes.end(), {}, [&](std::uint32_t lane) {
    const event_type& e = events_[head(lane, positions)];
    return std::pair(e.response, e.invocation);
  });
}

/// An operation that only reads, and is right here, can as well come first: whatever order there
/// is without it stays good when it is moved to the front. No other choice need be tried.
template <specification Spec>
void search<Spec>::keep_one_that_only_reads(std::uint32_t configuration, std::size_t first_choice) {
  auto positions = seen_.positions(configuration);
  for (std::size_t i = first_choice; i < choices_.size(); ++i) {
    const event_type& e = events_[head(choices_[i], positions)];
    if (e.pending() || !e.answered || !spec_.reads_only(e.call, e.answer)) continue;
    if (!after(seen_.state(configuration), e)) continue;
    choices_[first_choice] = choices_[i];
    choices_.resize(first_choice + 1);
    return;
  }
}

template <specification Spec>
std::optional<std::uint32_t> search<Spec>::advance(std::uint32_t configuration,
                                                   std::uint32_t lane) {
  auto positions = seen_.positions(configuration);
  std::uint32_t operation = head(lane, positions);
  auto next = after(seen_.state(configuration), events_[operation]);
  if (!next) return {};
  // One that did not return, and would change nothing, may as well come later or not at all.
  if (events_[operation].pending() && *next == seen_.state(configuration)) return {};
  positions_.assign(positions.begin(), positions.end());
  ++positions_[lane];
  std::size_t hash = spec_.hash(*next);
  auto [number, is_new] = seen_.add(positions_, std::move(*next), hash, configuration, operation);
  return is_new ? std::optional(number) : std::nullopt;
}

template <specification Spec>
std::optional<typename Spec::state> search<Spec>::after(const state& before, const event_type& e) {
  steps_ += 1 + lanes_.size() / 16;
  if constexpr (weighed<Spec>) steps_ += spec_.weight(before) / 8;
  state result = before;
  auto answer = spec_.apply(result, e.call);
  if (!answer) return {};
  if (e.answered && !(*answer == e.answer)) return {};
  if (known_.hopeless && known_.hopeless(result)) return {};
  return result;
}

template <specification Spec>
std::uint32_t search<Spec>::culprit() const {
  auto positions = seen_.positions(furthest_);
  std::uint32_t lane = 0;
  while (positions[lane] == lanes_[lane].size() ||
         events_[head(lane, positions)].response != furthest_until_)
    ++lane;
  return head(lane, positions);
}

template <specification Spec>
std::vector<std::uint32_t> search<Spec>::candidates(std::uint32_t configuration) const {
  std::vector<std::uint32_t> lanes;
  append_choices(configuration, lanes);
  std::vector<std::uint32_t> operations;
  for (std::uint32_t lane : lanes) operations.push_back(head(lane, seen_.positions(configuration)));
  return operations;
}

}  // namespace linearizability

// First-in-first-out queues of 64-bit values, told apart by a number, with or without a bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "finding.hpp"
#include "history.hpp"
#include "queue_foresight.hpp"
#include "queue_order.hpp"
#include "specification.hpp"

namespace linearizability {

/// Push no value twice in a history that is to be checked, if you can. Without a bound, that takes
/// no longer than sorting (queue_order.hpp). With one, the search knows much beforehand
/// (queue_foresight.hpp); a small capacity is best. Among equal values it soon takes too long.
struct queue {
  static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

  std::size_t capacity = unbounded;

  enum class operation : std::uint64_t { push, try_push, pop, try_pop };
  using call = basic_call<operation>;
  using answer = basic_answer;
  using state = std::vector<std::uint64_t>;  ///< the oldest value first

  /// Waits for room. Answers true, or nothing.
  static call push(std::uint64_t value, std::uint64_t id = 0) {
    return {operation::push, id, value};
  }
  /// Answers whether there was room: bool.
  static call try_push(std::uint64_t value, std::uint64_t id = 0) {
    return {operation::try_push, id, value};
  }
  /// Waits for a value. Answers it: std::uint64_t.
  static call pop(std::uint64_t id = 0) { return {operation::pop, id, 0}; }
  /// Answers a value, if there is one: std::optional<std::uint64_t>.
  static call try_pop(std::uint64_t id = 0) { return {operation::try_pop, id, 0}; }

  static bool pushes(const call& c) {
    return c.operation == operation::push || c.operation == operation::try_push;
  }
  static bool waits(const call& c) {
    return c.operation == operation::push || c.operation == operation::pop;
  }

  state initial() const { return {}; }
  std::optional<answer> apply(state& values, const call& c) const;
  bool reads_only(const call&, const answer& said) const { return !said.yes; }
  std::uint64_t partition(const call& c) const { return c.key; }
  std::size_t hash(const state& values) const;
  std::size_t weight(const state& values) const { return values.size(); }
  std::optional<finding> decide(std::span<const event<queue>> events) const;
  foresight<queue> foresee(std::span<const event<queue>> events) const;

  std::string text(const call& c) const;
  std::string text(const call& c, const answer& said) const;
  std::string text_of_state(const state& values) const;

 private:
  std::optional<detail::queue_history> sorted_out(std::span<const event<queue>> events) const;
};

inline std::optional<queue::answer> queue::apply(state& values, const call& c) const {
  bool possible = pushes(c) ? values.size() < capacity : !values.empty();
  if (!possible) return waits(c) ? std::nullopt : std::optional(answer(false));
  if (pushes(c)) {
    values.push_back(c.argument);
    return answer(true);
  }
  std::uint64_t oldest = values.front();
  values.erase(values.begin());
  return answer(oldest);
}

inline std::size_t queue::hash(const state& values) const {
  std::size_t hash = values.size();
  for (std::size_t v : values) hash = (hash ^ v ^ (hash >> 32)) * 0x9e3779b97f4a7c15U;
  return hash;
}

/// Puts the history in the form that queue_order.hpp wants; nothing where it does not apply.
inline std::optional<detail::queue_history> queue::sorted_out(
    std::span<const event<queue>> events) const {
  detail::queue_history h;
  std::unordered_set<std::uint64_t> pushed;
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const event<queue>& e = events[i];
    detail::moment when{e.invocation, e.response, i};
    bool failed = e.answered && !e.answer.yes;
    // Answers that make no sense are left to the search.
    if (failed && waits(e.call)) return {};
    if (e.answer.value != 0 && (failed || pushes(e.call))) return {};
    if (pushes(e.call)) {
      if (failed) {
        h.fulls.push_back(when);
        continue;
      }
      if (!pushed.insert(e.call.argument).second) return {};
      bool certain = e.answered || waits(e.call) || capacity == unbounded;
      h.values.push_back({e.call.argument, when, {}, certain && !e.pending()});
    } else if (failed) {
      h.empties.push_back(when);
    } else if (e.answered) {
      h.pops.emplace_back(e.answer.value, when);
    } else {
      h.unknown_pops.push_back(when);
    }
  }
  return h;
}

inline std::optional<finding> queue::decide(std::span<const event<queue>> events) const {
  auto sorted = sorted_out(events);
  if (!sorted) return {};
  // What a queue without a bound cannot do, one with a bound cannot either.
  if (auto found = detail::not_first_in_first_out(*sorted)) return found;
  if (auto found = detail::miscounted(*sorted, capacity)) return found;
  bool all_known = std::ranges::all_of(
      sorted->unknown_pops, [](const auto& pop) { return pop.until == detail::moment::forever; });
  if (capacity != unbounded || !all_known) return {};
  return finding{};
}

inline foresight<queue> queue::foresee(std::span<const event<queue>> events) const {
  auto sorted = sorted_out(events);
  if (!sorted) return {};
  foresight<queue> known{{events.begin(), events.end()}, {}};
  std::unordered_map<std::uint64_t, detail::passage> by_value;
  for (const detail::passage& p : detail::narrowed(*sorted, capacity)) {
    by_value[p.value] = p;
    // Of a push that may have found no room, these are the times if it did find some.
    if (!p.certain && p.pop.operation == detail::moment::no_operation) continue;
    for (const detail::moment& m : {p.push, p.pop}) {
      if (m.operation == detail::moment::no_operation) continue;
      known.narrowed[m.operation].invocation = m.from;
      known.narrowed[m.operation].response = m.until;
    }
  }
  // The last value may have been pushed just now; about the others it was asked before.
  known.hopeless = [by_value = std::move(by_value)](const state& values) {
    if (values.empty()) return false;
    const detail::passage& last = by_value.at(values.back());
    return std::any_of(values.begin(), values.end() - 1, [&](std::uint64_t v) {
      return detail::must_come_before(last, by_value.at(v));
    });
  };
  return known;
}

inline std::string queue::text(const call& c) const {
  std::string name = pushes(c) ? "push(" : "pop(";
  if (!waits(c)) name = "try_" + name;
  return name + (pushes(c) ? std::to_string(c.argument) : "") + ")";
}

inline std::string queue::text(const call& c, const answer& said) const {
  if (pushes(c)) return said.yes ? "pushed" : "full";
  return said.yes ? std::to_string(said.value) : "empty";
}

inline std::string queue::text_of_state(const state& values) const {
  if (values.empty()) return "queue empty";
  std::string out = std::to_string(values.size()) + " in the queue, oldest first:";
  for (std::size_t i = 0; i < values.size() && i < 10; ++i) out += " " + std::to_string(values[i]);
  return out + (values.size() > 10 ? " ..." : "");
}

}  // namespace linearizability

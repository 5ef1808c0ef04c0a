// First in, first out, decided without a search where no value is pushed twice.
//
// A history of a queue without bound in which every operation returned is linearizable exactly if
// (Henzinger, Sezgin and Vafeiadis: Aspect-oriented linearizability proofs, 2013)
//
//   fresh    no value is popped that was not pushed, or popped before its push began
//   once     no value is popped twice
//   order    no value b, pushed after a, is popped before a (or popped, and a is not)
//   empty    no pop finds the queue empty while at each moment of it some value is surely in
//
// where "before" and "after" are meant in real time: one ended before the other began. A value is
// surely in from the end of its push to the beginning of its pop.
//
//   push(a) |--|      pop -> a     |---|          the values together cover the pop that found
//   push(b)        |--|            pop -> b |-|   nothing: it is wrong
//   pop -> empty         |------------|
//
// An operation that did not return does what suits best. A push whose value was popped did happen,
// one whose value was not had better not. The pops may have taken values that nobody else popped:
// those pushed first are most in the way, and the pop that began first takes them earliest, so the
// k-th pop (by its beginning) takes the k-th value (by the end of its push). Exchanging two of them
// makes no pair's order better and covers no less.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "finding.hpp"

namespace linearizability::detail {

/// An operation of the history: which one, and when. `forever` stands for what did not happen.
struct moment {
  static constexpr std::uint64_t forever = static_cast<std::uint64_t>(-1);
  static constexpr std::uint32_t no_operation = static_cast<std::uint32_t>(-1);

  std::uint64_t from = forever;
  std::uint64_t until = forever;
  std::uint32_t operation = no_operation;
};

/// The way of one value through the queue.
struct passage {
  std::uint64_t value = 0;
  moment push{};
  moment pop{};
  bool certain = true;  ///< false: the push may have done nothing
};

inline finding contradiction(const char* why, std::initializer_list<moment> moments) {
  finding found{outcome::not_linearizable, {}, {}, {}, std::string(why) + ".\n"};
  for (const moment& m : moments)
    if (m.operation != moment::no_operation) found.operations.push_back(m.operation);
  return found;
}

/// Gives each pop its value. Finds what breaks the rules `fresh` and `once`.
inline std::optional<finding> match(std::vector<passage>& values,
                                    std::span<const std::pair<std::uint64_t, moment>> pops) {
  std::unordered_map<std::uint64_t, std::size_t> where;
  for (std::size_t i = 0; i < values.size(); ++i) where[values[i].value] = i;
  for (const auto& [value, pop] : pops) {
    auto at = where.find(value);
    if (at == where.end()) return contradiction("The value was never pushed", {pop});
    passage& p = values[at->second];
    if (p.pop.operation != moment::no_operation)
      return contradiction("The value was popped twice", {p.push, p.pop, pop});
    if (pop.until < p.push.from)
      return contradiction("The value was popped before it was pushed", {pop, p.push});
    p.pop = pop;
  }
  return {};
}

/// Lets the operations that did not return do what suits best, as said above.
inline void settle(std::vector<passage>& values, std::span<const moment> unknown_pops) {
  std::erase_if(values, [](const passage& p) {
    return !p.certain && p.pop.operation == moment::no_operation;
  });
  std::ranges::sort(values, {}, [](const passage& p) { return p.push.until; });
  auto next = unknown_pops.begin();
  for (passage& p : values) {
    if (next == unknown_pops.end()) return;
    if (p.pop.operation != moment::no_operation) continue;
    p.pop = {next->from, moment::forever, next->operation};
    ++next;
  }
}

inline std::optional<finding> out_of_order(std::vector<passage> values) {
  std::ranges::sort(values, {}, [](const passage& p) { return p.push.from; });
  // For each value, the one popped first of it and those pushed later.
  std::vector<const passage*> first_out(values.size() + 1, nullptr);
  for (std::size_t i = values.size(); i-- > 0;) {
    const passage* later = first_out[i + 1];
    bool sooner = later == nullptr || values[i].pop.until < later->pop.until;
    first_out[i] = sooner ? &values[i] : later;
  }
  for (const passage& a : values) {
    auto after = std::ranges::upper_bound(values, a.push.until, {},
                                          [](const passage& p) { return p.push.from; });
    const passage* b = first_out[static_cast<std::size_t>(after - values.begin())];
    if (b != nullptr && b->pop.until < a.pop.from)
      return contradiction(
          a.pop.operation == moment::no_operation
              ? "The second value was pushed after the first; it was popped, the first was not"
              : "The second value was pushed after the first and popped before it",
          {a.push, b->push, b->pop, a.pop});
  }
  return {};
}

/// When some value is surely in: from where to where, in order, without overlaps.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> surely_filled(
    std::span<const passage> values) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const passage& p : values)
    if (p.push.until < p.pop.from) spans.emplace_back(p.push.until, p.pop.from);
  std::ranges::sort(spans);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> joined;
  for (const auto& span : spans) {
    if (!joined.empty() && span.first < joined.back().second)
      joined.back().second = std::max(joined.back().second, span.second);
    else
      joined.push_back(span);
  }
  return joined;
}

/// The fewest values that are surely in during all of `empty`: the one that stays longest, of those
/// in when the one before may be gone, and so on. They are known to exist.
inline finding covered(const moment& empty, std::span<const passage> values) {
  finding found = contradiction("At each moment of the first, one of these values was in", {empty});
  std::uint64_t until = empty.from;
  while (until <= empty.until) {
    const passage* longest = nullptr;
    for (const passage& p : values)
      if (p.push.until < until && (longest == nullptr || p.pop.from > longest->pop.from))
        longest = &p;
    until = longest->pop.from;
    found.operations.push_back(longest->push.operation);
    if (longest->pop.operation != moment::no_operation)
      found.operations.push_back(longest->pop.operation);
  }
  return found;
}

inline std::optional<finding> wrongly_empty(std::span<const passage> values,
                                            std::span<const moment> empties) {
  auto filled = surely_filled(values);
  for (const moment& empty : empties) {
    auto after = std::ranges::lower_bound(filled, empty.from, {},
                                          &std::pair<std::uint64_t, std::uint64_t>::first);
    if (after != filled.begin() && std::prev(after)->second > empty.until)
      return covered(empty, values);
  }
  return {};
}

/// What was done to a queue, all values pushed being different. Each list is sorted by when its
/// operations began.
struct queue_history {
  std::vector<passage> values{};  ///< their pops are found by match()
  std::vector<std::pair<std::uint64_t, moment>> pops{};
  std::vector<moment> unknown_pops{};  ///< that did not return, or did not say what they popped
  std::vector<moment> empties{};       ///< pops that found nothing
  std::vector<moment> fulls{};         ///< pushes that found no room
};

/// What contradicts a queue without bound, if anything does.
inline std::optional<finding> not_first_in_first_out(queue_history h) {
  if (auto found = match(h.values, h.pops)) return found;
  settle(h.values, h.unknown_pops);
  if (auto found = out_of_order(h.values)) return found;
  return wrongly_empty(h.values, h.empties);
}

}  // namespace linearizability::detail

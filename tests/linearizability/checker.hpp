// The checker: is there an order of all operations, one that keeps to real time, in which a
// sequential object would have given the answers that were recorded?
//
//   auto found = check<map>(history);
//   if (!found.good()) std::puts(found.report.c_str());
//
// Each partition (each key of a map) is checked by itself: a history is linearizable exactly if
// each of its partitions is (Herlihy and Wing 1990; P-compositionality: Horn and Kroening 2015).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "explanation.hpp"
#include "finding.hpp"
#include "history.hpp"
#include "search.hpp"
#include "specification.hpp"

namespace linearizability {

struct options {
  /// The bound on the work of one check: operations tried, and words of memory. All of it takes a
  /// few seconds and less than 1 GB.
  std::uint64_t limit = 10'000'000;
  bool shortcuts = true;  ///< false: always search
};

struct result {
  outcome verdict = outcome::linearizable;
  std::string report{};        ///< for a person; never empty
  std::size_t partitions = 0;  ///< all of them
  std::size_t failed = 0;      ///< those that are not linearizable
  std::size_t undecided = 0;   ///< those given up
  std::uint64_t steps = 0;     ///< the work done

  /// Only a history that is known to be linearizable is good; one given up is not.
  bool good() const { return verdict == outcome::linearizable; }
};

namespace detail {

/// The history by partitions, smallest first, each sorted by invocation. A hard one then spoils no
/// easy one's chances when the work is bounded, and the first failure is one easy to read.
template <class Spec>
std::vector<std::vector<event<Spec>>> partitions(const Spec& spec,
                                                 std::vector<event<Spec>> history) {
  auto by_time = [](const event<Spec>& e) {
    return std::tuple(e.invocation, e.response, e.client);
  };
  if constexpr (!partitioned<Spec>) {
    std::ranges::sort(history, {}, by_time);
    return {std::move(history)};
  } else {
    auto key = [&](const event<Spec>& e) { return spec.partition(e.call); };
    std::ranges::sort(history, {},
                      [&](const event<Spec>& e) { return std::pair(key(e), by_time(e)); });
    std::vector<std::vector<event<Spec>>> parts;
    for (const auto& e : history) {
      if (parts.empty() || key(parts.back().front()) != key(e)) parts.emplace_back();
      parts.back().push_back(e);
    }
    std::ranges::sort(parts, {},
                      [&](const auto& part) { return std::pair(part.size(), key(part.front())); });
    return parts;
  }
}

template <class Spec>
finding check_partition(const Spec& spec, std::span<const event<Spec>> events, options how,
                        std::uint64_t& steps) {
  if constexpr (requires { spec.decide(events); }) {
    std::optional<finding> found;
    if (how.shortcuts) found = spec.decide(events);
    if (found) return *found;
  }
  foresight<Spec> known;
  if constexpr (requires { spec.foresee(events); })
    if (how.shortcuts) known = spec.foresee(events);
  search<Spec> all(spec, events, how.limit - std::min(steps, how.limit), std::move(known));
  outcome verdict = all.run();
  steps += all.steps();
  if (verdict == outcome::linearizable) return {};
  return explained(spec, events, all, verdict,
                   [&](std::uint32_t i) { return text(spec, events[i]); });
}

/// Is `a` the better one to show? One that failed before one given up, then the smaller one.
inline bool tells_more(const finding& a, const finding& b) {
  if (a.verdict != b.verdict) return a.verdict == outcome::not_linearizable;
  return a.operations.size() < b.operations.size();
}

template <class Spec>
std::string report(const Spec& spec, const finding& worst, std::span<const event<Spec>> events,
                   const result& all) {
  std::string out = text(all.verdict);
  out += ": of " + std::to_string(all.partitions) + " partitions " + std::to_string(all.failed) +
         " failed and " + std::to_string(all.undecided) + " were given up, after " +
         std::to_string(all.steps) + " steps.\n";
  if (all.good()) return out;
  out +=
      text(worst.verdict) + ", the smallest: " + std::to_string(worst.operations.size()) + " of ";
  out += std::to_string(events.size()) + " operations";
  if constexpr (partitioned<Spec>)
    out += " of partition " + std::to_string(spec.partition(events.front().call));
  auto show = [&](std::uint32_t i) { return text(spec, events[i]); };
  out += ":\n" + lines(worst.operations, show, worst.culprit);
  if (!worst.before.empty()) out += "All before them had ended, last\n" + lines(worst.before, show);
  return out + worst.why;
}

}  // namespace detail

template <specification Spec>
result check(std::vector<event<Spec>> history, const Spec& spec = {}, options how = {}) {
  require_sound(spec, history);
  auto parts = detail::partitions(spec, std::move(history));
  result all;
  all.partitions = parts.size();
  finding worst;
  std::span<const event<Spec>> worst_in;
  for (const auto& part : parts) {
    finding found = detail::check_partition(spec, std::span(part), how, all.steps);
    if (found.verdict == outcome::linearizable) continue;
    ++(found.verdict == outcome::gave_up ? all.undecided : all.failed);
    if (worst_in.empty() || detail::tells_more(found, worst)) {
      worst = std::move(found);
      worst_in = part;
    }
  }
  if (all.undecided != 0) all.verdict = outcome::gave_up;
  if (all.failed != 0) all.verdict = outcome::not_linearizable;
  all.report = detail::report(spec, worst, worst_in, all);
  return all;
}

}  // namespace linearizability

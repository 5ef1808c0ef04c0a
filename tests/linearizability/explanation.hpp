// What a search that failed or gave up can say about where it got stuck.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "finding.hpp"
#include "history.hpp"
#include "search.hpp"

namespace linearizability {

/// No more lines than this of one list: the last ones, which are where it went wrong.
inline constexpr std::size_t lines_shown = 40;

/// How an operation of the partition is shown, by its index.
using shown = std::function<std::string(std::uint32_t)>;

/// The operations, one a line; one of `marked` has a star.
inline std::string lines(const std::vector<std::uint32_t>& operations, const shown& show,
                         const std::vector<std::uint32_t>& marked = {}) {
  std::string out;
  std::size_t left_out = operations.size() - std::min(operations.size(), lines_shown);
  if (left_out != 0) out += "    ... (" + std::to_string(left_out) + " before)\n";
  for (std::uint32_t i : std::span(operations).subspan(left_out)) {
    bool star = std::ranges::find(marked, i) != marked.end();
    out += (star ? "  * " : "    ") + show(i) + "\n";
  }
  return out;
}

/// The last operation, `upto` or one before it, that began when no other that returned was under
/// way: a quiescent point lies before it.
template <class Spec>
std::uint32_t segment_start(std::span<const event<Spec>> events, std::uint32_t upto) {
  std::uint32_t start = 0;
  std::uint64_t busy_until = 0;
  for (std::uint32_t i = 0; i <= upto; ++i) {
    if (i != 0 && busy_until < events[i].invocation) start = i;
    if (!events[i].pending()) busy_until = std::max(busy_until, events[i].response);
  }
  return start;
}

/// What matters for the operation `culprit`: what began between the quiescent point before it and
/// its end, and what never returned.
template <class Spec>
std::vector<std::uint32_t> segment(std::span<const event<Spec>> events, std::uint32_t start,
                                   std::uint32_t culprit) {
  std::vector<std::uint32_t> operations;
  for (std::uint32_t i = 0; i < events.size(); ++i)
    if (events[i].invocation <= events[culprit].response && (i >= start || events[i].pending()))
      operations.push_back(i);
  return operations;
}

/// The last few operations before a quiescent point.
template <class Spec>
std::vector<std::uint32_t> last_before(std::span<const event<Spec>> events, std::uint32_t start) {
  std::vector<std::uint32_t> operations;
  for (std::uint32_t i = start - std::min(start, 8U); i < start; ++i)
    if (!events[i].pending()) operations.push_back(i);
  return operations;
}

/// What each operation that may come next would have to answer after the furthest configuration.
template <class Spec>
std::string refusals(const Spec& spec, std::span<const event<Spec>> events,
                     const search<Spec>& failed, const shown& show) {
  std::string out;
  for (std::uint32_t i : failed.candidates(failed.furthest())) {
    auto state = failed.seen().state(failed.furthest());
    auto answer = spec.apply(state, events[i].call);
    out += "    " + show(i);
    if (!answer)
      out += " (not possible now)";
    else if (!events[i].answered || *answer == events[i].answer)
      out += " (possible, but it leads nowhere)";
    else
      out += " (it would be " + spec.text(events[i].call, *answer) + ")";
    out += "\n";
  }
  return out.empty() ? "    nothing\n" : out;
}

/// The order in which a search got furthest, from the operation `start` on; and, in `at`, the
/// configuration where that begins.
template <class Spec>
std::vector<std::uint32_t> furthest_order(std::span<const event<Spec>> events,
                                          const search<Spec>& failed, std::uint32_t start,
                                          std::uint32_t& at) {
  const auto& seen = failed.seen();
  std::vector<std::uint32_t> order;
  for (at = failed.furthest(); seen.parent(at) != seen.none; at = seen.parent(at)) {
    std::uint32_t operation = seen.operation(at);
    if (operation < start && !events[operation].pending()) break;
    order.push_back(operation);
  }
  std::ranges::reverse(order);
  return order;
}

template <class Spec>
finding explained(const Spec& spec, std::span<const event<Spec>> events, const search<Spec>& failed,
                  outcome verdict, const shown& show) {
  std::uint32_t culprit = failed.culprit();
  std::uint32_t start = segment_start(events, culprit);
  std::uint32_t at = 0;
  auto order = furthest_order(events, failed, start, at);

  finding found{
      verdict, segment(events, start, culprit), last_before(events, start), {culprit}, {}};
  found.why =
      std::string(verdict == outcome::gave_up ? "No order tried so far" : "No order") +
      " gets past *. The furthest began with: " + spec.text_of_state(failed.seen().state(at)) +
      ", and went on with\n" + (order.empty() ? "    nothing\n" : lines(order, show)) +
      "then: " + spec.text_of_state(failed.seen().state(failed.furthest())) +
      ". Next could only come one of\n" + refusals(spec, events, failed, show);
  return found;
}

}  // namespace linearizability

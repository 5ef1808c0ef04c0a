// Counters, told apart by a number. All begin at 0 and are counted modulo 2^64.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "specification.hpp"

namespace linearizability {

struct counter {
  enum class operation : std::uint64_t { fetch_add, read };
  using call = basic_call<operation>;
  using answer = basic_answer;
  using state = std::uint64_t;

  /// Answers the value before: std::uint64_t.
  static call fetch_add(std::uint64_t id, std::uint64_t by) {
    return {operation::fetch_add, id, by};
  }
  /// Answers the value: std::uint64_t.
  static call read(std::uint64_t id) { return {operation::read, id, 0}; }

  state initial() const { return 0; }
  std::optional<answer> apply(state& value, const call& c) const {
    // The argument of a read is 0.
    return answer(std::exchange(value, value + c.argument));
  }
  bool reads_only(const call& c, const answer&) const { return c.argument == 0; }
  std::uint64_t partition(const call& c) const { return c.key; }
  std::size_t hash(const state& value) const { return value; }

  std::string text(const call& c) const {
    std::string id = std::to_string(c.key);
    if (c.operation == operation::read) return "read(" + id + ")";
    return "fetch_add(" + id + ", " + std::to_string(c.argument) + ")";
  }
  std::string text(const call&, const answer& said) const { return std::to_string(said.value); }
  std::string text_of_state(const state& value) const { return "value " + std::to_string(value); }
};

}  // namespace linearizability

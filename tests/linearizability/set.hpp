// A set of 64-bit keys. One key's operations do not see another key's.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "specification.hpp"

namespace linearizability {

struct set {
  enum class operation : std::uint64_t { insert, erase, contains };
  using call = basic_call<operation>;
  using answer = basic_answer;
  using state = bool;  ///< is the key in?

  /// Answers whether it was not in: bool.
  static call insert(std::uint64_t key) { return {operation::insert, key, 0}; }
  /// Answers whether it was in: bool.
  static call erase(std::uint64_t key) { return {operation::erase, key, 0}; }
  /// Answers whether it is in: bool.
  static call contains(std::uint64_t key) { return {operation::contains, key, 0}; }

  state initial() const { return false; }
  std::optional<answer> apply(state& in, const call& c) const {
    switch (c.operation) {
      case operation::insert:
        return answer(!std::exchange(in, true));
      case operation::erase:
        return answer(std::exchange(in, false));
      case operation::contains:
        return answer(in);
    }
    return {};
  }
  bool reads_only(const call& c, const answer& said) const {
    return c.operation == operation::contains || !said.yes;
  }
  std::uint64_t partition(const call& c) const { return c.key; }
  std::size_t hash(const state& in) const { return in ? 1 : 0; }

  std::string text(const call& c) const {
    std::string key = "(" + std::to_string(c.key) + ")";
    if (c.operation == operation::contains) return "contains" + key;
    return (c.operation == operation::insert ? "insert" : "erase") + key;
  }
  std::string text(const call&, const answer& said) const { return yes_or_no(said.yes); }
  std::string text_of_state(const state& in) const { return in ? "in" : "not in"; }
};

}  // namespace linearizability

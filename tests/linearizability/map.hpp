// A map from 64-bit keys to 64-bit values. One key's operations do not see another key's.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "specification.hpp"

namespace linearizability {

struct map {
  enum class operation : std::uint64_t { insert, insert_or_assign, find, erase, fetch_add };
  using call = basic_call<operation>;
  using answer = basic_answer;
  using state = std::optional<std::uint64_t>;  ///< the value of one key

  /// Keeps the value that is there. Answers whether there was none: bool.
  static call insert(std::uint64_t key, std::uint64_t value) {
    return {operation::insert, key, value};
  }
  /// Answers whether there was none: bool.
  static call insert_or_assign(std::uint64_t key, std::uint64_t value) {
    return {operation::insert_or_assign, key, value};
  }
  /// Answers the value, if there is one: std::optional<std::uint64_t>.
  static call find(std::uint64_t key) { return {operation::find, key, 0}; }
  /// Answers whether there was one: bool.
  static call erase(std::uint64_t key) { return {operation::erase, key, 0}; }
  /// Adds, to 0 where there is no value. Answers the value before, 0 for none: std::uint64_t.
  static call fetch_add(std::uint64_t key, std::uint64_t by) {
    return {operation::fetch_add, key, by};
  }

  state initial() const { return {}; }
  std::optional<answer> apply(state& value, const call& c) const;
  bool reads_only(const call& c, const answer& said) const;
  std::uint64_t partition(const call& c) const { return c.key; }
  std::size_t hash(const state& value) const { return std::hash<state>()(value); }

  std::string text(const call& c) const;
  std::string text(const call& c, const answer& said) const;
  std::string text_of_state(const state& value) const {
    return value ? "value " + std::to_string(*value) : "no value";
  }
};

inline std::optional<map::answer> map::apply(state& value, const call& c) const {
  bool found = value.has_value();
  switch (c.operation) {
    case operation::insert:
      if (!found) value = c.argument;
      return answer(!found);
    case operation::insert_or_assign:
      value = c.argument;
      return answer(!found);
    case operation::find:
      return answer(value);
    case operation::erase:
      value.reset();
      return answer(found);
    case operation::fetch_add: {
      std::uint64_t before = value.value_or(0);
      value = before + c.argument;
      return answer(before);
    }
  }
  return {};
}

inline bool map::reads_only(const call& c, const answer& said) const {
  if (c.operation == operation::find) return true;
  return (c.operation == operation::insert || c.operation == operation::erase) && !said.yes;
}

inline std::string map::text(const call& c) const {
  std::string key = std::to_string(c.key);
  std::string both = key + ", " + std::to_string(c.argument) + ")";
  switch (c.operation) {
    case operation::insert:
      return "insert(" + both;
    case operation::insert_or_assign:
      return "insert_or_assign(" + both;
    case operation::find:
      return "find(" + key + ")";
    case operation::erase:
      return "erase(" + key + ")";
    case operation::fetch_add:
      return "fetch_add(" + both;
  }
  return "?";
}

inline std::string map::text(const call& c, const answer& said) const {
  if (c.operation == operation::fetch_add) return std::to_string(said.value);
  if (c.operation != operation::find) return yes_or_no(said.yes);
  return said.yes ? std::to_string(said.value) : "nothing";
}

}  // namespace linearizability

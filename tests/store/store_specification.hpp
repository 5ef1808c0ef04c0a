// How a store behaves when operations come one after the other: one key has nothing, or a value of
// two parts, a and b, and a cell. One key's operations do not see another key's.
//
// update_if names a version, which is the store's own affair. Tests give each value once, so that a
// value stands for its version.
#pragma once

#include "linearizability/linearizability.hpp"

#include <optional>
#include <string>

namespace linearizability {

struct keyed_store {
  enum class operation : std::uint64_t {
    put,
    get,
    update,
    update_if,
    exchange,
    set_part,
    get_part,
    erase,
    add,
    read_cell,
    swap_cell
  };
  struct call {
    keyed_store::operation operation;
    std::uint64_t key, argument, expected;
  };
  using answer = basic_answer;
  struct value {
    std::uint64_t a, b, cell;
    bool operator==(const value&) const = default;
    std::uint64_t both() const { return a << 32 | b; }
  };
  using state = std::optional<value>;

  static call of(keyed_store::operation what, std::uint64_t key, std::uint64_t argument = 0,
                 std::uint64_t expected = 0) {
    return {what, key, argument, expected};
  }

  state initial() const { return {}; }
  std::optional<answer> apply(state& now, const call& c) const {
    using enum operation;
    if (c.operation == put) {
      if (now) return answer(false);
      now = value{c.argument, 0, 0};
      return answer(true);
    }
    if (!now) return answer(false);
    const value old = *now;
    switch (c.operation) {
      case get:
        return answer(true, old.both());
      case update_if:
        if (old.both() != c.expected) return answer(false);
        [[fallthrough]];
      case update:
        now->a = c.argument, now->b = 0;
        return answer(true);
      case exchange:
        now->a = c.argument, now->b = 0;
        return answer(true, old.both());
      case set_part:
        now->b = c.argument;
        return answer(true);
      case get_part:
        return answer(true, old.b);
      case erase:
        now.reset();
        return answer(true);
      case add:
        now->cell += c.argument;
        return answer(true, old.cell);
      case read_cell:
        return answer(true, old.cell);
      case swap_cell:
        if (old.cell == c.expected) now->cell = c.argument;
        return answer(true, old.cell);
      default:
        return {};
    }
  }
  bool reads_only(const call& c, const answer& said) const {
    using enum operation;
    return c.operation == get || c.operation == get_part || c.operation == read_cell || !said.yes;
  }
  std::uint64_t partition(const call& c) const { return c.key; }
  std::size_t hash(const state& s) const {
    return s ? static_cast<std::size_t>((s->both() * 31 + s->cell) | 1) : 0;
  }

  std::string text(const call& c) const {
    constexpr const char* names[] = {"put",      "get",       "update",   "update_if",
                                     "exchange", "set_part",  "get_part", "erase",
                                     "add",      "read_cell", "swap_cell"};
    return std::string(names[static_cast<int>(c.operation)]) + "(" + std::to_string(c.key) + ", " +
           std::to_string(c.argument) + ", " + std::to_string(c.expected) + ")";
  }
  std::string text(const call&, const answer& said) const {
    return said.yes ? "yes, " + std::to_string(said.value) : "no";
  }
  std::string text_of_state(const state& s) const {
    return s ? std::to_string(s->both()) + ", cell " + std::to_string(s->cell) : "nothing";
  }
};

}  // namespace linearizability

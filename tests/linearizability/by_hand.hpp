// Histories written down by hand, and what the checker must say about them.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "../unit/check.hpp"
#include "linearizability.hpp"

namespace linearizability {

template <class Spec>
struct by_hand {
  using history = std::vector<event<Spec>>;

  /// A client's operation from one moment to another.
  static event<Spec> done(std::uint32_t client, std::uint64_t from, std::uint64_t until,
                          typename Spec::call call, typename Spec::answer answer) {
    return {call, answer, from, until, client, true};
  }
  /// One that did not say what it answered.
  static event<Spec> silent(std::uint32_t client, std::uint64_t from, std::uint64_t until,
                            typename Spec::call call) {
    return {call, {}, from, until, client, false};
  }
  /// One that never returned.
  static event<Spec> lost(std::uint32_t client, std::uint64_t from, typename Spec::call call) {
    return {call, {}, from, never, client, false};
  }

  static bool says(outcome expected, const char* name, const history& h, const Spec& spec,
                   std::string_view part) {
    bool good = true;
    for (bool shortcuts : {true, false}) {
      result found = check(h, spec, {.shortcuts = shortcuts});
      // What the report says of a failure depends on how it was found.
      bool right =
          found.verdict == expected && (!shortcuts || found.report.find(part) != std::string::npos);
      if (!right) std::printf("%s: %s\n", name, found.report.c_str());
      good = good && right;
    }
    return good;
  }
  static bool good(const char* name, const history& h, const Spec& spec = {}) {
    return says(outcome::linearizable, name, h, spec, "linearizable");
  }
  /// Not linearizable, and the report contains `part`.
  static bool bad(const char* name, const history& h, std::string_view part = "",
                  const Spec& spec = {}) {
    return says(outcome::not_linearizable, name, h, spec, part);
  }
};

}  // namespace linearizability

// Runs the tests that a program has registered. Its arguments:
//
//   FILTER...    run the tests whose name contains one of these
//   --list       name the tests and run none
//   --repeat N   run them N times, with other random numbers each time
//   --seed S     the random numbers of an earlier run, which it printed when it failed
#pragma once

#include "harness.hpp"

#include <algorithm>
#include <cerrno>

namespace far_test {

/// What main was asked for.
struct request {
  std::vector<std::string> filters;  ///< run what contains one of them; all if there is none
  std::uint64_t seed = 1;
  std::uint64_t repeat = 1;
  bool list = false;
};

inline std::uint64_t number_after(int argc, char** argv, int& i) {
  std::string option = argv[i];
  if (++i >= argc) throw std::invalid_argument(option + " needs a number after it");
  char* end = nullptr;
  errno = 0;
  std::uint64_t value = std::strtoull(argv[i], &end, 10);
  if (end == argv[i] || *end != '\0' || *argv[i] == '-' || errno != 0)
    throw std::invalid_argument(option + " needs a number after it, not '" + argv[i] + "'");
  return value;
}

inline request parse(int argc, char** argv) {
  request result;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--list")
      result.list = true;
    else if (argument == "--repeat")
      result.repeat = number_after(argc, argv, i);
    else if (argument == "--seed")
      result.seed = number_after(argc, argv, i);
    else if (argument.starts_with("-"))
      throw std::invalid_argument("unknown option " + std::string(argument) +
                                  "; there are --list, --repeat N, --seed S and filters");
    else
      result.filters.emplace_back(argument);
  }
  return result;
}

/// What the request asks for, in an order that does not depend on the linker.
inline std::vector<test_case> chosen(const request& asked) {
  std::vector<test_case> cases;
  for (const auto& test : registry()) {
    auto matches = [&](const std::string& part) {
      return test.name.find(part) != std::string::npos;
    };
    if (asked.filters.empty() || std::any_of(asked.filters.begin(), asked.filters.end(), matches))
      cases.push_back(test);
  }
  std::sort(cases.begin(), cases.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  auto twice = std::adjacent_find(cases.begin(), cases.end(),
                                  [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != cases.end()) throw std::logic_error("two tests are called " + twice->name);
  return cases;
}

/// Runs the suite on this rank; the exit status, which is the same on all ranks.
inline int test_main(int argc, char** argv) {
  request asked = parse(argc, argv);
  std::vector<test_case> cases = chosen(asked);
  bool speaks = far::rank() == 0;
  if (asked.list) {
    for (const auto& test : cases)
      if (speaks) std::printf("%s\n", test.name.c_str());
    return 0;
  }
  session s;
  s.seed = asked.seed;
  sessions[far::rank()] = &s;
  std::size_t counts[3] = {};
  for (s.round = 0; asked.repeat > s.round; ++s.round)  // nvcc 13 takes `round <` for a template
    for (const auto& test : cases) ++counts[static_cast<int>(run_one(s, test))];
  auto [passed, failed, skipped] = counts;
  bool good = failed == 0 && passed + skipped != 0;  // a filter that matches nothing is a mistake
  if (speaks) {
    if (skipped == 0)
      std::printf("%zu passed, %zu failed\n", passed, failed);
    else
      std::printf("%zu passed, %zu failed, %zu skipped\n", passed, failed, skipped);
    std::fflush(stdout);
  }
  far::barrier();  // nobody ends the job by its exit status before the line above is out
  sessions[far::rank()] = nullptr;
  return good ? 0 : 1;
}

}  // namespace far_test

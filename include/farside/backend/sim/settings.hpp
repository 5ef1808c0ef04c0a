// What a simulated run is asked for: FARSIDE_SIM_* (docs/testing.md). `farside sim` sets them.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/environment.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// How far the adversary goes.
enum class level { mild, normal, harsh, cruel };

inline constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

struct settings {
  std::uint64_t seed = 1;
  level hardness = level::normal;
  std::uint64_t active_begin = 0;  ///< steps in which the adversary acts
  std::uint64_t active_end = forever;
  std::uint64_t step_limit = 50'000'000;
  std::uint64_t exhaustive = 0;  ///< explore all schedules, in at most so many runs
  std::optional<std::pair<rank_t, std::uint64_t>> stop;  ///< this rank stops at this step
  std::uint64_t fail_allocation = 0;                     ///< the allocation that fails, from 1
  std::string trace, report;                             ///< paths, or empty
};

inline std::optional<std::uint64_t> number_in(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return {};
  errno = 0;
  std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
  if (errno != 0) return {};
  return value;
}

inline std::optional<std::uint64_t> number_setting(const char* name) {
  auto value = setting(name);
  if (!value) return {};
  if (auto number = number_in(*value)) return number;
  raise("environment variable ", name, "='", *value,
        "' is not a whole number from 0 to 2^64-1. Correct it or unset it.");
}

/// "12..34", "3@500": two numbers with something between.
inline std::optional<std::pair<std::uint64_t, std::uint64_t>> pair_setting(const char* name,
                                                                           const char* between) {
  auto value = setting(name);
  if (!value) return {};
  if (auto at = value->find(between); at != std::string::npos) {
    auto first = number_in(value->substr(0, at));
    auto second = number_in(value->substr(at + std::string_view(between).size()));
    if (first && second) return std::pair(*first, *second);
  }
  raise("environment variable ", name, "='", *value, "' is not of the form 10", between,
        "200. Correct it or unset it.");
}

inline settings read_settings(rank_t nprocs) {
  settings result;
  if (auto seed = number_setting("FARSIDE_SIM_SEED")) result.seed = *seed;
  if (auto steps = number_setting("FARSIDE_SIM_STEPS")) result.step_limit = *steps;
  if (auto runs = number_setting("FARSIDE_SIM_EXHAUSTIVE")) result.exhaustive = *runs;
  if (auto which = number_setting("FARSIDE_SIM_FAIL_ALLOCATION")) result.fail_allocation = *which;
  result.trace = setting("FARSIDE_SIM_TRACE").value_or("");
  result.report = setting("FARSIDE_SIM_REPORT").value_or("");
  if (auto active = pair_setting("FARSIDE_SIM_ACTIVE", ".."))
    std::tie(result.active_begin, result.active_end) = *active;
  if (auto stop = pair_setting("FARSIDE_SIM_STOP", "@")) {
    if (stop->first >= nprocs)
      raise("FARSIDE_SIM_STOP names rank ", stop->first, ", but there are only ", nprocs,
            " ranks, 0 to ", nprocs - 1, ".");
    result.stop.emplace(static_cast<rank_t>(stop->first), stop->second);
  }
  if (auto name = setting("FARSIDE_SIM_LEVEL")) {
    constexpr const char* names[] = {"mild", "normal", "harsh", "cruel"};
    std::size_t i = 0;
    while (i < 4 && *name != names[i]) ++i;
    if (i == 4) raise("FARSIDE_SIM_LEVEL='", *name, "' is none of mild, normal, harsh and cruel.");
    result.hardness = static_cast<level>(i);
  }
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

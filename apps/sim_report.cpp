#include "sim_report.hpp"

#include <filesystem>

#include "report.hpp"

namespace far::app {

namespace {

constexpr std::size_t shown_lines = 40;

/// This program, as one can type it here.
std::string own_name() {
  std::error_code failed;
  std::string found = find_in_path("farside");
  if (!found.empty() && std::filesystem::equivalent(found, self_path(), failed)) return "farside";
  std::string near = std::filesystem::proximate(self_path(), failed).string();
  if (failed || near.empty() || near.starts_with("..")) return self_path();
  return near.find('/') == std::string::npos ? "./" + near : near;
}

/// The last lines of `text`, indented; `total` is how many there were.
std::string last_lines(const std::string& text, std::size_t total) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::size_t shown = std::min(lines.size(), shown_lines);
  std::string result;
  if (shown < total)
    result = "    (the last " + std::to_string(shown) + " of " + grouped(total) + " lines)\n";
  for (std::size_t i = lines.size() - shown; i < lines.size(); ++i)
    result += "    " + lines[i] + "\n";
  return result;
}

std::string what_happened(const sim_options& options, const sim_result& result) {
  switch (result.outcome) {
    case sim_outcome::ok:
      return "ok";
    case sim_outcome::faulted:
      return "ok, the fault was survived";
    case sim_outcome::failed:
      if (result.failed_status == 0) return "a rank failed";
      return "rank " + std::to_string(result.failed_rank) + " failed with status " +
             std::to_string(result.failed_status);
    case sim_outcome::deadlock:
      return "deadlock, every rank waits";
    case sim_outcome::steps:
      return "the limit of steps was reached, which --steps raises";
    case sim_outcome::killed:
      return "killed by signal " + signal_name(result.detail);
    case sim_outcome::hangs:
      return "hangs: killed when it was not done after " + human_time(options.time_limit) +
             ", which --time-limit raises";
    case sim_outcome::bad_end:
      return "no rank failed, but the program exited with status " + std::to_string(result.detail);
    case sim_outcome::no_report:
      return "exited with status " + std::to_string(result.detail) +
             " and simulated nothing (it has to call far::run)";
  }
  return "?";
}

}  // namespace

std::string reproducing(const sim_options& options, const sim_plan& plan) {
  arguments line = {own_name(), "sim", "-n", std::to_string(options.ranks)};
  auto add = [&](const std::string& option, const std::string& value) {
    line.insert(line.end(), {option, value});
  };
  if (plan.exhaustive > 0) {
    add("--exhaustive", std::to_string(plan.exhaustive));
  } else {
    add("--seed", std::to_string(plan.seed));
    add("--level", name_of(plan.level));
  }
  if (plan.active)
    add("--active", std::to_string(plan.active->first) + ".." + std::to_string(plan.active->last));
  if (plan.stop)
    add("--stop", std::to_string(plan.stop->rank) + "@" + std::to_string(plan.stop->step));
  if (plan.failing_allocation) add("--fail-allocation", std::to_string(*plan.failing_allocation));
  if (options.steps > 0) add("--steps", std::to_string(options.steps));
  if (options.time_limit_given) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", options.time_limit);
    add("--time-limit", text);
  }
  if (!options.segment.empty()) add("--segment", options.segment);
  for (const auto& [name, value] : options.environment) add("-e", name + "=" + value);
  line.insert(line.end(), options.command.begin(), options.command.end());
  return quoted(line);
}

std::string name_of(const sim_plan& plan) {
  if (plan.exhaustive > 0) return "exhaustive";
  return "seed " + std::to_string(plan.seed) + " (" + name_of(plan.level) + ")" +
         (plan.probe ? " without fault" : "");
}

std::string describe(const sim_options& options, const sim_result& result) {
  std::string text = what_happened(options, result);
  if (result.plan.exhaustive > 0) text += ", in schedule " + grouped(result.counts.runs);
  if (result.counts.steps > 0) text += ", after " + grouped(result.counts.steps) + " steps";
  return text;
}

std::string failure_report(const sim_options& options, const sim_result& result) {
  std::string text = name_of(result.plan) + ": " + describe(options, result) + "\n" +
                     last_lines(result.err, result.error_lines) + "  to see it again:\n  " +
                     reproducing(options, result.plan) + "\n";
  static const bool fixed = fix_addresses();
  if (!fixed)
    text +=
        "  Addresses are random here, as this machine does not allow to fix them (personality): a "
        "program\n  whose choices follow from addresses may do something else then.\n";
  return text;
}

void sim_tally::add(const sim_result& result) {
  runs += result.counts.runs;
  failing += !result.good();
  steps += result.counts.steps;
  operations += result.counts.operations;
  deliveries += result.counts.deliveries;
  complete = result.counts.complete;
}

std::string summary(const sim_options& options, const sim_tally& tally, double seconds) {
  bool exhaustive = options.exhaustive > 0;
  const char* noun = exhaustive ? "schedule" : "run";
  std::string text = grouped(tally.runs) + " " + noun + (tally.runs == 1 ? "" : "s") + " at " +
                     counted(options.ranks, "rank");
  if (exhaustive && tally.complete) text += ", all that there are";
  if (exhaustive && !tally.complete && tally.failing == 0)
    text += ", not all that there are (--exhaustive RUNS goes further)";
  text += ": " + grouped(tally.operations) + " operations, " + grouped(tally.deliveries) +
          " deliveries, " + grouped(tally.steps) + " steps; ";
  if (tally.without_allocation > 0)
    text += grouped(tally.without_allocation) + " without an allocation that could fail; ";
  text += tally.failing == 0 ? "none" : grouped(tally.failing);
  return text + " failed (" + human_time(seconds) + ")";
}

}  // namespace far::app

#include <algorithm>
#include <cmath>
#include <tuple>

#include "machine.hpp"
#include "option_values.hpp"
#include "sim.hpp"

namespace far::app {

const char* const sim_usage =
    R"(usage: farside sim [options] [--] program [arguments...]

Runs a program that is built for the back end sim (link farside::sim) under many seeds. All ranks
of a run are in one process and take turns; an adversary that follows the seed decides who is next
and delays, reorders and tears what they send. The same seed is the same run, every time.

  -n, --ranks N             how many ranks; 4 by default
      --seeds A..B          one run for each seed from A to B; 1..100 by default
      --seed S              one run
      --level LEVEL         how far the adversary goes: mild, normal, harsh, cruel; or all, the
                            default: seed s has level s modulo 4, so that a range covers all
  -j, --jobs J              how many runs at a time; as many as there are cores by default
      --minutes M           goes on with further seeds behind the range until M minutes are over
      --keep-going          does not stop at the first failing seed, and lists all in the end
      --verbose             shows each run and what it printed

When a run fails:
      --trace FILE          writes what happened in the run of one seed, one line an event, to
                            FILE; '-' is the standard output, after the run
      --shrink              looks for a simpler run that fails in the same way as the first seed
                            that failed: fewer steps in which the adversary acts, then a milder
                            level; at most 200 runs. Writes its trace to --trace, or else to
                            PROGRAM.seed<S>.trace in this directory
      --active A..B         the adversary acts in steps A <= step < B only; in all others ranks
                            take turns and everything is delivered at once

Faults, which the program is expected to survive:
      --stop R@STEP         rank R stops for good at that step
      --stop random         a run without fault first; then rank and step follow from the seed
      --fail-allocation K   the K-th allocation of far memory fails, counted over all ranks
      --fail-allocation random

Instead of seeds:
      --exhaustive [RUNS]   all schedules of a small program, at most RUNS (100000 by default)

Limits and settings of each run:
      --steps L             gives up after L steps, which is a failure; 50 million by default
      --time-limit SECONDS  is killed then, which is a failure; 120 by default, but none with
                            --exhaustive
      --segment SIZE        far memory of each rank: bytes, or with K, M, G, T
  -e, --env NAME=VALUE      sets a variable; NAME alone passes its present value on
      --help                prints this

Examples:
  farside sim -n 3 --seeds 1..1000 ./queue_test
      a thousand runs on 3 ranks. A seed that fails prints the line that runs it again.
  farside sim -n 3 --seed 17 --level cruel --shrink ./queue_test
      makes that failure as simple as it gets, and writes down what happens in it.

Status: 0 if no run failed, 1 if one did, 2 for a wrong command line, 126 and 127 for a program
that cannot be run or found, 128 + signal if interrupted.
)";

namespace {

const arguments long_options = {"--ranks",      "--seeds",           "--seed",       "--level",
                                "--jobs",       "--minutes",         "--keep-going", "--verbose",
                                "--trace",      "--shrink",          "--active",     "--stop",
                                "--env",        "--fail-allocation", "--exhaustive", "--steps",
                                "--time-limit", "--segment",         "--help"};

constexpr double default_time_limit = 120;
constexpr std::uint64_t default_schedules = 100'000;

std::uint64_t checked_number(const std::string& option, const std::string& text,
                             std::uint64_t least, const std::string& example) {
  auto n = parse_number(text);
  if (!n || *n < least)
    throw error(usage_error, option + " " + text + ": that is not a whole number" +
                                 (least > 0 ? " above 0" : "") + " below 2^64; write " + option +
                                 " " + example);
  return *n;
}

/// `A..B`, both of them numbers.
std::pair<std::uint64_t, std::uint64_t> checked_range(const std::string& option,
                                                      const std::string& text) {
  std::size_t dots = text.find("..");
  auto first = parse_number(text.substr(0, dots));
  auto last = dots == std::string::npos ? std::nullopt : parse_number(text.substr(dots + 2));
  if (!first || !last)
    throw error(usage_error, option + " " + text + ": that is not a range; write two numbers with" +
                                 " two dots between, such as " + option + " 1..100" +
                                 (option == "--seeds" && first ? ", or --seed " + text : ""));
  if (*first > *last)
    throw error(usage_error, option + " " + text + ": that range ends before it begins; write " +
                                 option + " " + std::to_string(*last) + ".." +
                                 std::to_string(*first));
  return {*first, *last};
}

std::optional<sim_level> checked_level(const std::string& text) {
  if (text == "all") return std::nullopt;
  auto found = std::find(level_names.begin(), level_names.end(), text);
  if (found == level_names.end())
    throw error(usage_error, "--level " + text +
                                 ": there is no such level; it is mild, normal, harsh, cruel, or "
                                 "all for a level that follows from the seed");
  return static_cast<sim_level>(found - level_names.begin());
}

rank_stop checked_stop(const std::string& text) {
  std::size_t at = text.find('@');
  auto rank = parse_number(text.substr(0, at));
  auto step = at == std::string::npos ? std::nullopt : parse_number(text.substr(at + 1));
  if (!rank || !step)
    throw error(usage_error, "--stop " + text +
                                 ": that names no rank and step; write --stop 2@1500 to stop rank "
                                 "2 at step 1500, or --stop random");
  return {*rank, *step};
}

std::pair<std::string, std::string> checked_variable(const std::string& text) {
  auto variable = parse_variable(text);
  if (variable.first.starts_with("FARSIDE_SIM_") || variable.first == "FARSIDE_NPROCS")
    throw error(usage_error, "--env " + variable.first +
                                 ": farside sim sets that one itself; there is an option for it, "
                                 "see farside sim --help");
  return variable;
}

unsigned default_jobs() {
  cores here = count_cores();
  double usable = std::min<double>(here.allowed, std::ceil(here.quota.value_or(here.allowed)));
  return std::max(1u, static_cast<unsigned>(usable));
}

/// What was said only matters together: which of the options were there.
struct said {
  bool seed = false, seeds = false, level = false;
};

void check_exhaustive(const sim_options& options, const said& there) {
  if (options.exhaustive == 0) return;
  const char* other = there.seed || there.seeds   ? "--seed and --seeds"
                      : there.level               ? "--level"
                      : options.active            ? "--active"
                      : options.minutes > 0       ? "--minutes"
                      : options.shrink            ? "--shrink"
                      : options.random_stop       ? "--stop random"
                      : options.random_allocation ? "--fail-allocation random"
                                                  : nullptr;
  if (other)
    throw error(usage_error, std::string("--exhaustive explores all schedules instead of following "
                                         "a seed, so ") +
                                 other + " cannot be there too; leave one of them out");
}

void check(const sim_options& options, const said& there) {
  if (options.command.empty())
    throw error(usage_error, "no program is named; write farside sim -n 4 ./program");
  if (there.seed && there.seeds)
    throw error(usage_error,
                "--seed is for one run and --seeds for a range; leave one of them out");
  bool many = options.first_seed != options.last_seed || options.minutes > 0;
  if (!options.trace.empty() && many && !options.shrink && options.exhaustive == 0)
    throw error(usage_error, "--trace " + options.trace +
                                 ": a trace is of one run, and these are many seeds; name one with "
                                 "--seed S, or add --shrink for the trace of the first that fails");
  if (options.stop && options.stop->rank >= options.ranks)
    throw error(usage_error, "--stop " + std::to_string(options.stop->rank) + "@" +
                                 std::to_string(options.stop->step) +
                                 ": there is no such rank; with -n " +
                                 std::to_string(options.ranks) + " they are 0 to " +
                                 std::to_string(options.ranks - 1));
  check_exhaustive(options, there);
}

/// False if `word` is none of the options that say which runs there are.
bool parse_choice(option_reader& word, sim_options& result, said& there) {
  if (word.is("--seeds")) {
    std::tie(result.first_seed, result.last_seed) =
        checked_range("--seeds", word.value("a range of seeds"));
    there.seeds = true;
  } else if (word.is("--seed")) {
    result.first_seed = checked_number("--seed", word.value("a number"), 0, "17");
    result.last_seed = result.first_seed;
    there.seed = true;
  } else if (word.is("--level")) {
    result.level = checked_level(word.value("a level"));
    there.level = true;
  } else if (word.is("--active")) {
    auto [first, last] = checked_range("--active", word.value("a range of steps"));
    result.active = step_window{first, last};
  } else if (word.is("--exhaustive")) {
    auto runs = word.number_if_any();
    result.exhaustive =
        runs ? checked_number("--exhaustive", *runs, 1, "100000") : default_schedules;
  } else if (word.is("--stop")) {
    std::string text = word.value("RANK@STEP or random");
    result.random_stop = text == "random";
    result.stop = result.random_stop ? std::nullopt : std::optional(checked_stop(text));
  } else if (word.is("--fail-allocation")) {
    std::string text = word.value("a number or random");
    result.random_allocation = text == "random";
    result.failing_allocation =
        result.random_allocation
            ? std::nullopt
            : std::optional(checked_number("--fail-allocation", text, 1, "3, or random"));
  } else {
    return false;
  }
  return true;
}

}  // namespace

sim_options parse_sim(const arguments& words) {
  sim_options result;
  result.jobs = default_jobs();
  said there;
  option_reader word(words);
  while (word.next_option()) {
    if (parse_choice(word, result, there)) continue;
    if (word.is("-n", "--ranks"))
      result.ranks = parse_ranks(word.value("a number of ranks"));
    else if (word.is("-j", "--jobs"))
      result.jobs = static_cast<unsigned>(std::min<std::uint64_t>(
          checked_number("--jobs", word.value("a number of runs"), 1, "4"), 4096));
    else if (word.is("--minutes"))
      result.minutes = checked_time("--minutes", word.value("a number of minutes"), "minutes");
    else if (word.is("--time-limit")) {
      result.time_limit = checked_time("--time-limit", word.value("a number of seconds"));
      result.time_limit_given = true;
    } else if (word.is("--steps"))
      result.steps = checked_number("--steps", word.value("a number of steps"), 1, "1000000");
    else if (word.is("--trace"))
      result.trace = word.value("a file");
    else if (word.is("--segment"))
      result.segment = checked_segment(word.value("a size"));
    else if (word.is("-e", "--env"))
      result.environment.push_back(checked_variable(word.value("NAME=VALUE")));
    else if (word.is("--shrink"))
      word.no_value(), result.shrink = true;
    else if (word.is("--keep-going"))
      word.no_value(), result.keep_going = true;
    else if (word.is("--verbose"))
      word.no_value(), result.verbose = true;
    else
      refuse_option("sim", word.name(), long_options);
  }
  result.command = word.rest();
  check(result, there);
  if (!result.time_limit_given && result.exhaustive == 0) result.time_limit = default_time_limit;
  return result;
}

}  // namespace far::app

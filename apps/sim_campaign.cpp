#include "sim_campaign.hpp"

#include <filesystem>

#include "farside/base/random.hpp"
#include "sim_shrink.hpp"

namespace far::app {

namespace {

/// How many failing runs --keep-going shows in full; all are listed in the end.
constexpr std::size_t shown_failures = 10;

/// Number `purpose` of those that follow from a seed: a rank, a step, an allocation.
std::uint64_t drawn(std::uint64_t seed, std::uint64_t purpose) {
  return far::random_stream(seed, purpose)();
}

}  // namespace

sim_plan campaign::plan_of(std::uint64_t seed) const {
  sim_plan plan;
  plan.seed = seed;
  plan.level = options_.level.value_or(static_cast<sim_level>(seed % level_names.size()));
  plan.active = options_.active;
  plan.stop = options_.stop;
  plan.failing_allocation = options_.failing_allocation;
  plan.exhaustive = options_.exhaustive;
  plan.probe = options_.random_faults();
  bool one_seed = options_.first_seed == options_.last_seed && options_.minutes <= 0;
  if (one_seed || plan.exhaustive > 0) plan.trace = trace_;
  return plan;
}

/// After a failure only seeds before it matter, so that the one that is shown does not depend on
/// how many runs there are at a time.
std::optional<sim_plan> campaign::next_plan() {
  bool stopping = !failures_.empty() && !options_.keep_going;
  while (!with_faults_.empty()) {
    sim_plan plan = with_faults_.front();
    with_faults_.pop_front();
    if (!stopping || plan.seed < failures_.begin()->first) return plan;
  }
  if (stopping) return std::nullopt;
  bool exhaustive_done = options_.exhaustive > 0 && next_seed_ > options_.first_seed;
  bool range_done = next_seed_ > options_.last_seed && seconds() >= 60 * options_.minutes;
  if (exhaustive_done || range_done) return std::nullopt;
  return plan_of(next_seed_++);
}

/// Rank, step and allocation follow from the seed, within what the run without fault had.
void campaign::add_faults(const sim_result& probed) {
  sim_plan plan = probed.plan;
  plan.probe = false;
  const sim_counts& had = probed.counts;
  if (options_.random_stop)
    plan.stop = rank_stop{drawn(plan.seed, 1) % options_.ranks,
                          had.steps ? drawn(plan.seed, 2) % had.steps : 0};
  if (options_.random_allocation && had.allocations > 0)
    plan.failing_allocation = 1 + drawn(plan.seed, 3) % had.allocations;
  if (options_.random_allocation && had.allocations == 0) ++tally_.without_allocation;
  if (plan.stop || plan.failing_allocation) with_faults_.push_back(plan);
}

void campaign::show(const sim_result& result, const char* about) {
  std::fprintf(to_, "%s%s: %s (%s)\n", about, name_of(result.plan).c_str(),
               describe(options_, result).c_str(), human_time(result.seconds).c_str());
  std::fputs(result.out.c_str(), to_);
  if (result.good()) std::fputs(result.err.c_str(), to_);
}

void campaign::take(sim_result result) {
  tally_.add(result);
  if (options_.verbose) show(result);
  if (!result.good())
    take_failure(std::move(result));
  else if (result.plan.probe)
    add_faults(result);
}

void campaign::take_failure(sim_result result) {
  std::uint64_t seed = result.plan.seed;
  if (options_.keep_going && failures_.size() < shown_failures) {
    clear_progress();
    std::fputs((failure_report(options_, result) + "\n").c_str(), to_);
    std::fflush(to_);
  }
  failures_.insert_or_assign(seed, std::move(result));
  if (!options_.keep_going) {
    std::uint64_t lowest = failures_.begin()->first;
    pool_.drop([&](const sim_plan& plan) { return plan.seed > lowest; });
  }
}

int campaign::run() {
  for (;;) {
    while (pool_.has_room()) {
      auto plan = next_plan();
      if (!plan) break;
      pool_.start(*plan);
    }
    if (pool_.idle()) break;
    show_progress();
    take(pool_.next());
  }
  clear_progress();
  if (failures_.empty()) return success;
  show_failure();
  if (options_.shrink) shrink_first();
  return failure;
}

void campaign::show_failure() {
  if (options_.keep_going || failure_shown_ || failures_.empty()) return;
  std::fputs(failure_report(options_, failures_.begin()->second).c_str(), to_);
  failure_shown_ = true;
}

void campaign::shrink_first() {
  const sim_result& failing = failures_.begin()->second;
  auto tried = [&](const sim_result& result) {
    if (options_.verbose)
      show(result, ("shrinking, steps " + std::to_string(result.plan.active->first) + ".." +
                    std::to_string(result.plan.active->last) + ", ")
                       .c_str());
  };
  std::fflush(to_);
  shrunk_run found = shrink(pool_, failing, tried);
  if (!found.reproduced) {
    std::fprintf(to_,
                 "%s cannot be shrunk: run again, it did not fail in the same way. Something else "
                 "than the seed decides what the program does: time, a random number of its own, "
                 "memory that nobody has set\n",
                 name_of(failing.plan).c_str());
    return;
  }
  std::uint64_t left = found.plan.active->steps();
  std::fprintf(to_, "shrunk in %s to %s in which the adversary acts, level %s%s:\n  %s\n",
               counted(found.runs, "run").c_str(),
               (grouped(left) + (left == 1 ? " step" : " steps")).c_str(),
               name_of(found.plan.level),
               left == 0 ? " (it fails also when ranks just take turns)" : "",
               reproducing(options_, found.plan).c_str());
  trace_shrunk(found.plan);
}

void campaign::trace_shrunk(sim_plan plan) {
  std::filesystem::path program(options_.command[0]);
  std::string name = program.filename().string() + ".seed" + std::to_string(plan.seed) + ".trace";
  plan.trace = trace_.empty() ? std::filesystem::absolute(name).string() : trace_;
  std::error_code failed;
  if (trace_.empty()) std::filesystem::remove(plan.trace, failed);  // must not pass for this one
  sim_result result = pool_.run(plan);
  if (!result.fails_like(failures_.begin()->second))
    std::fprintf(to_, "  with a trace it ended in another way: %s\n",
                 describe(options_, result).c_str());
  if (options_.trace == "-") return;
  bool written = std::filesystem::file_size(plan.trace, failed) > 0 && !failed;
  if (written)
    std::fprintf(to_, "  its trace is in %s\n", trace_.empty() ? name.c_str() : trace_.c_str());
  else
    std::fprintf(to_, "  its trace could not be written to %s; name a file by --trace FILE\n",
                 plan.trace.c_str());
}

void campaign::print_summary() {
  clear_progress();
  show_failure();
  if (options_.keep_going && !failures_.empty()) {
    std::fputs("failing:\n", to_);
    for (const auto& [seed, result] : failures_)
      std::fprintf(to_, "  %s: %s\n    %s\n", name_of(result.plan).c_str(),
                   describe(options_, result).c_str(), reproducing(options_, result.plan).c_str());
  }
  std::fprintf(to_, "%s\n", summary(options_, tally_, seconds()).c_str());
}

void campaign::show_progress() {
  if (!progress_ || seconds() - progress_shown_ < 0.5) return;
  progress_shown_ = seconds();
  std::fprintf(stderr, "\r%s runs, %s failed, %s \x1b[K", grouped(tally_.runs).c_str(),
               grouped(tally_.failing).c_str(), human_time(seconds()).c_str());
}

void campaign::clear_progress() {
  if (progress_ && progress_shown_ > 0) std::fputs("\r\x1b[K", stderr);
  progress_shown_ = 0;
}

}  // namespace far::app

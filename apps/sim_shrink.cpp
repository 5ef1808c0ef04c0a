#include "sim_shrink.hpp"

namespace far::app {

namespace {

constexpr std::uint64_t most_runs = 200;
constexpr std::uint64_t most_steps = std::uint64_t{1} << 48;

class shrinker {
 public:
  shrinker(sim_pool& pool, const sim_result& failing,
           const std::function<void(const sim_result&)>& tried)
      : pool_(pool), failing_(failing), tried_(tried), best_(failing.plan) {}

  shrunk_run shrink();

 private:
  bool fails(const sim_plan& plan);
  bool fails(step_window window);
  bool find_first_window();
  void narrow();
  void narrow_once();
  bool make_milder();

  std::uint64_t& first() { return best_.active->first; }
  std::uint64_t& last() { return best_.active->last; }

  sim_pool& pool_;
  const sim_result& failing_;
  const std::function<void(const sim_result&)>& tried_;
  sim_plan best_;  ///< fails, with all that `fails` was ever true for
  std::uint64_t runs_ = 0;
};

/// Once there were too many runs nothing fails any more, and every search ends at what it has.
bool shrinker::fails(const sim_plan& plan) {
  if (runs_ == most_runs) return false;
  ++runs_;
  sim_result result = pool_.run(plan);
  if (tried_) tried_(result);
  return result.fails_like(failing_);
}

bool shrinker::fails(step_window window) {
  sim_plan plan = best_;
  plan.active = window;
  return fails(plan);
}

/// A window outside of which nothing was adversarial in the failing run. A run that was killed
/// has not told how long it was: then windows grow until one is large enough.
bool shrinker::find_first_window() {
  step_window given = best_.active.value_or(step_window{0, most_steps});
  step_window window = given;
  std::uint64_t steps = failing_.counts.steps;
  if (steps > 0) {
    window.last = std::max(given.first, std::min(given.last, steps + 1));
    best_.active = window;
    return fails(window);
  }
  for (std::uint64_t size = 1024;; size *= 8) {
    window.last = std::min(given.last, given.first + size);
    if (fails(window)) break;
    if (window.last == given.last || runs_ == most_runs) return false;
  }
  best_.active = window;
  return true;
}

void shrinker::narrow() {
  std::uint64_t before = 0;
  do {
    before = best_.active->steps();
    narrow_once();
  } while (best_.active->steps() < before && runs_ < most_runs);
}

/// Two bisections. Failing need not be monotonic in either end: each finds a place where one step
/// less does not fail, not always the least of all.
void shrinker::narrow_once() {
  if (best_.active->steps() == 0) return;
  if (fails(step_window{first(), first()})) {  // no adversary at all
    last() = first();
    return;
  }
  for (std::uint64_t good = first(); last() - good > 1;) {
    std::uint64_t middle = good + (last() - good) / 2;
    (fails(step_window{first(), middle}) ? last() : good) = middle;
  }
  for (std::uint64_t good = last(); good - first() > 1;) {
    std::uint64_t middle = first() + (good - first()) / 2;
    (fails(step_window{middle, last()}) ? first() : good) = middle;
  }
}

bool shrinker::make_milder() {
  for (int level = 0; level < static_cast<int>(best_.level); ++level) {
    sim_plan plan = best_;
    plan.level = static_cast<sim_level>(level);
    if (!fails(plan)) continue;
    best_ = plan;
    return true;
  }
  return false;
}

shrunk_run shrinker::shrink() {
  best_.trace.clear();
  shrunk_run result;
  result.reproduced = find_first_window();
  if (result.reproduced) {
    narrow();
    if (make_milder()) narrow();
  }
  result.plan = best_;
  result.runs = runs_;
  return result;
}

}  // namespace

shrunk_run shrink(sim_pool& pool, const sim_result& failing,
                  const std::function<void(const sim_result&)>& tried) {
  return shrinker(pool, failing, tried).shrink();
}

}  // namespace far::app

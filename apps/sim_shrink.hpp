// From a failing run to a simpler one that fails in the same way.
#pragma once

#include <functional>

#include "sim_pool.hpp"

namespace far::app {

struct shrunk_run {
  bool reproduced = false;  ///< false: the failing run did not fail when it was run again
  sim_plan plan;            ///< the simplest that was found
  std::uint64_t runs = 0;   ///< tried
};

/// Narrows the steps in which the adversary acts, from the end and then from the beginning, and
/// tries milder levels. Runs one process at a time, 200 at most, and calls `tried` after each.
shrunk_run shrink(sim_pool& pool, const sim_result& failing,
                  const std::function<void(const sim_result&)>& tried);

}  // namespace far::app

// How the check of one partition came out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linearizability {

enum class outcome {
  linearizable,
  not_linearizable,
  gave_up  ///< the bound on the work was reached: nothing is known
};

inline std::string text(outcome o) {
  if (o == outcome::linearizable) return "linearizable";
  return o == outcome::not_linearizable ? "not linearizable" : "gave up";
}

struct finding {
  outcome verdict = outcome::linearizable;
  /// Unless linearizable: operations that contradict each other, or among which the search got
  /// stuck. Indices into the partition.
  std::vector<std::uint32_t> operations{};
  /// Some that had ended when the first of those began: what may have led to it.
  std::vector<std::uint32_t> before{};
  /// Which of `operations` no order gets past; empty or one.
  std::vector<std::uint32_t> culprit{};
  std::string why{};
};

}  // namespace linearizability

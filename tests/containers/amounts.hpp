// How much a test of containers does: less where an operation is dear.
#pragma once

#include <farside/core/runtime.hpp>

#include <algorithm>
#include <cstdlib>

namespace amounts {

inline bool simulated() { return far::detail::ranks_are_simulated(); }

/// FARSIDE_TEST_SHARE=4: a fourth, where hosts or servers have too few cores.
inline int share() {
  static const int value = [] {
    const char* text = std::getenv("FARSIDE_TEST_SHARE");
    return text != nullptr ? std::max(std::atoi(text), 1) : 1;
  }();
  return value;
}

/// Operations of a rank that others wait for.
inline int scaled(int n) {
  int parts = std::max(share(), far::nprocs() > 8 ? 8 : 1);
  return parts == 1 ? n : n / parts + 1;
}

/// Histories: simulated runs are many, others few.
inline int many(int otherwise) { return std::max(otherwise / (simulated() ? 15 : share()), 1); }

}  // namespace amounts

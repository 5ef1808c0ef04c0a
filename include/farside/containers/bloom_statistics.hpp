// far::bloom_statistics: what statistics() of a Bloom filter gives.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// The state of a Bloom filter, over all ranks.
struct bloom_statistics {
  std::uint64_t bits = 0;  ///< that it has
  std::uint64_t bits_set = 0;
  unsigned bits_per_key = 0;
  double load = 0;            ///< bits_set / bits
  double estimated_rate = 0;  ///< of false positives, as it is filled now
  double skew = 0;            ///< most bits set on one rank, over the mean; 1 is even
};

}  // namespace far::inline FARSIDE_BACKEND

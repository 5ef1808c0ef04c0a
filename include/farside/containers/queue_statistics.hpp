// far::queue_statistics: what statistics() of a queue gives.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// What far::fast_queue, circular_queue and checksum_queue say of themselves.
struct queue_statistics {
  std::uint64_t size = 0;      ///< elements now
  std::uint64_t capacity = 0;  ///< elements at most
  std::uint64_t pushes = 0;    ///< elements ever pushed
  std::uint64_t pops = 0;      ///< elements ever popped, or cleared
  std::uint64_t bytes = 0;     ///< far memory of the ring, on its host
};

}  // namespace far::inline FARSIDE_BACKEND

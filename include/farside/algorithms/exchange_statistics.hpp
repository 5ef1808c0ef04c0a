// far::exchange_statistics: what statistics() of an exchange gives.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// What one rank has seen of an exchange. Bytes are those of the elements.
struct exchange_statistics {
  std::uint64_t messages = 0;         ///< shipped by this rank
  std::uint64_t bytes_sent = 0;       ///< in them
  std::uint64_t bytes_handled = 0;    ///< given to handlers of this rank
  std::uint64_t stalls = 0;           ///< times that this rank waited for room at another one
  std::uint64_t largest_backlog = 0;  ///< bytes it kept aside meanwhile, at most
};

}  // namespace far::inline FARSIDE_BACKEND

// Operations of containers that run in handlers of messages may not wait for another rank.
//
// Where their protocol waits, they ask whether they may, and throw if not. Nothing has been changed
// by then. The rank that has sent the operation is told so, and does it one-sided.
#pragma once

#include <farside/core/context.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// Leaves a protocol. The handler that runs it catches it.
struct would_wait {};

/// Whether the calling thread runs an operation for another rank, and so may not wait.
inline bool may_not_wait(const context& c) {
  const message_service* service = c.messages.load(std::memory_order_acquire);
  return service != nullptr && service->may_not_wait();
}

inline void throw_if_may_not_wait(const context& c) {
  if (may_not_wait(c)) throw would_wait{};
}

/// One round of a wait loop of a protocol.
inline void wait_or_throw(context& c) {
  throw_if_may_not_wait(c);
  c.wait_round();
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// Giving up instead of waiting: what the protocols of containers do inside handlers of messages.
//
// A handler may not wait for another rank. Where a protocol waits it therefore asks, and gives up
// if it runs for somebody else: nothing has been changed by then, and that rank goes on one-sided.
#pragma once

#include <farside/core/context.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// Leaves a protocol, never the handler that runs it.
struct not_at_once {};

/// Does the calling thread run an operation for another rank?
inline bool in_a_hurry(const context& c) {
  const message_service* post = c.messages.load(std::memory_order_acquire);
  return post != nullptr && post->in_a_hurry();
}

inline void give_up_if_in_a_hurry(const context& c) {
  if (in_a_hurry(c)) throw not_at_once{};
}

/// One round of a wait loop of a protocol.
inline void wait_or_give_up(context& c) {
  give_up_if_in_a_hurry(c);
  c.wait_round();
}

}  // namespace far::inline FARSIDE_BACKEND::detail

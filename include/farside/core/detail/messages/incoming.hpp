// What the code sees that runs for a message.
#pragma once

#include <farside/core/detail/messages/wire.hpp>

#include <cstddef>
#include <span>

namespace far::inline FARSIDE_BACKEND::detail {

class messenger;

/// A message whose handler is about to run.
struct incoming {
  messenger& messages;
  rank_t from;
  std::span<const std::byte> arguments;
  reply_place reply;
};

/// Reads the arguments of a message, calls its function, and answers: one for each kind of call.
using trampoline = void (*)(incoming&);

/// Keeps messages back, to send several of them together: far::visits.
struct gathering {
  virtual ~gathering() = default;
  virtual void ship() = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

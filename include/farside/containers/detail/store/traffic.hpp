// What stores send: by name, so that a message finds its receiver's part, and counted, so that a
// fence knows when nothing is under way.
#pragma once

#include <farside/containers/detail/store/index.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/detail/messages/message_counts.hpp>
#include <farside/core/rpc.hpp>

#include <atomic>
#include <memory>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// A store as the argument of a message.
template <class Core>
class named {
 public:
  explicit named(Core& of) : state_(container_handle<Core>::borrowed(of)) {}
  explicit named(container_handle<Core> of) : state_(std::move(of)) {}
  Core& operator*() const { return *state_; }

 private:
  friend handle_access;
  container_handle<Core> state_;
};

/// What handlers and continuations of a store need of it when it may have ended: they hold this, and
/// look whether it is still there.
template <class Core>
struct traffic {
  std::atomic<Core*> of{nullptr};
  /// Posts, calls of waiters and their answers: what was sent from here, and what was done with what
  /// came. Who sends counts before its own work counts as done.
  message_counts counts;
  std::atomic<unsigned> continuing{0};  ///< continuations of the store's that run
};

/// Whether a rank may wait for others where it is: not in handlers, nor in continuations, which would
/// be stacked on top of each other.
template <class Core>
bool may_wait(const Core& m, const traffic<Core>& of) {
  return !is_in_handler(m.c) && of.continuing.load(std::memory_order_relaxed) == 0;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

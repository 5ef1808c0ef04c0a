// far::circular_queue<T>: a queue on one rank, pushed to and popped from by all, at any time.
//
//   far::circular_queue<int> work(0, 1024);       // collective: hosted on rank 0, 1,024 elements
//   work.push(7);                                 // waits for room
//   int x = work.pop();                           // waits for an element
//   if (auto y = work.try_pop()) ...              // does not wait
//
// Its slots verify themselves: a push takes a ticket and writes its slot, and that is all; nobody
// waits for another's turn (docs/protocols/queues.md, containers/detail/ring/sealed_slots.hpp). The
// protocol of the thesis, which moves a shared ready pointer by a compare-and-swap in turn, can be
// had for comparison:
//
//   far::circular_queue<int, far::queue_protocol::two_atomics> slow(0, 1024);
#pragma once

#include <farside/containers/detail/ring/concurrent_queue.hpp>
#include <farside/containers/detail/ring/ordered_slots.hpp>
#include <farside/containers/detail/ring/sealed_slots.hpp>

#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

enum class queue_protocol {
  self_verifying,  ///< A + W + R/k and A + R + an A nobody waits for
  two_atomics      ///< 2A + W and 2A + R, the second A repeated until it is its turn
};

namespace detail {
template <std::size_t Bytes, queue_protocol Protocol>
using circular_slots =
    std::conditional_t<Protocol == queue_protocol::two_atomics, ordered_slots<Bytes>,
                       sealed_slots<Bytes, slot_check::stamp_or_seal>>;
}  // namespace detail

/// Beside the constructor it has the operations that all queues share: push, pop, try_push,
/// try_pop, of one and of many, async_push, local_pop, size, as_vector, resize, migrate, clear,
/// statistics.
template <class T, queue_protocol Protocol = queue_protocol::self_verifying>
class circular_queue
    : public detail::concurrent_queue<T, detail::circular_slots<sizeof(box<T>), Protocol>> {
 public:
  /// Collective over the team of `with` (the world, if there is none): an empty queue for
  /// `capacity` elements in the memory of member `host`. Costs an allocation there, and a few
  /// collectives.
  circular_queue(rank_t host, std::uint64_t capacity, const container_options& with = {})
      : detail::concurrent_queue<T, detail::circular_slots<sizeof(box<T>), Protocol>>(
            "circular_queue", host, capacity, with) {
    detail::require_serializable<T>();
  }

 private:
  friend detail::handle_access;
  using base = detail::concurrent_queue<T, detail::circular_slots<sizeof(box<T>), Protocol>>;
  template <class State>
  explicit circular_queue(detail::container_handle<State> of) : base(std::move(of)) {}
};

}  // namespace far::inline FARSIDE_BACKEND

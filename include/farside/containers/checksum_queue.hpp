// far::checksum_queue<T>: a queue on one rank whose elements are verified by a checksum, as in the
// thesis (Brock 2022, 5.1), on every back end.
//
//   far::checksum_queue<int> work(0, 1024);   // collective: hosted on rank 0, 1,024 elements
//   work.push(7);                             // waits for room
//   int x = work.pop();                       // waits for an element
//
// A push takes a ticket and writes element and checksum; a pop takes one, reads both and compares.
// The checksum depends on the ticket, so that what the ring held a round ago is never taken for
// new. Where memory is not coherent far::circular_queue does the same. On coherent memory it has a
// plain stamp instead, and is faster.
#pragma once

#include <farside/containers/detail/ring/concurrent_queue.hpp>
#include <farside/containers/detail/ring/sealed_slots.hpp>

namespace far::inline FARSIDE_BACKEND {

/// The operations, guarantees and costs are those of far::circular_queue.
template <class T>
class checksum_queue : public detail::concurrent_queue<
                           T, detail::sealed_slots<sizeof(box<T>), detail::slot_check::seal>> {
 public:
  /// Collective over the team of `with` (the world, if there is none): an empty queue for
  /// `capacity` elements in the memory of member `host`.
  checksum_queue(rank_t host, std::uint64_t capacity, const container_options& with = {})
      : detail::concurrent_queue<T, detail::sealed_slots<sizeof(box<T>), detail::slot_check::seal>>(
            "checksum_queue", host, capacity, with) {
    detail::require_serializable<T>();
  }

 private:
  friend detail::handle_access;
  using base =
      detail::concurrent_queue<T, detail::sealed_slots<sizeof(box<T>), detail::slot_check::seal>>;
  template <class State>
  explicit checksum_queue(detail::container_handle<State> of) : base(std::move(of)) {}
};

}  // namespace far::inline FARSIDE_BACKEND

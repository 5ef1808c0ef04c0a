// Slots with two ready pointers, as in the thesis (Brock 2022, 5.1): what far::circular_queue does
// with queue_protocol::two_atomics.
//
//   head <= ready_tail <= tail:   elements below ready_tail are complete
//   ready_head <= head:           slots below ready_head may be written again
//
// A push that has written its slot moves ready_tail from its ticket to the next, once all before it
// have done so: by a compare-and-swap that it repeats until it succeeds. Pops do the same with
// ready_head. So every operation waits for the slowest before it, and for its turn.
//
// Costs, for n elements that do not wrap: push 2 atomics, 1 put, 1 flush; pop 2 atomics, 1 get; and
// the second atomic again for each time that it came too early, and one for a look at the other
// side's pointer now and then.
#pragma once

#include <farside/containers/detail/ring/tickets.hpp>
#include <farside/core/engine.hpp>

#include <cstring>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <std::size_t Bytes>
class ordered_slots {
 public:
  static constexpr bool counted = false;
  static constexpr std::size_t stride = 8 * ((Bytes + 7) / 8);
  static constexpr operation_cost push_cost{.puts = 1, .atomics = 2};
  static constexpr operation_cost pop_cost{.gets = 1, .atomics = 2};

  explicit ordered_slots(context&) {}
  static void require(const context&, const char*) {}

  bool look_for_room(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    if (first + n <= free_until_.settled(in.where())) return true;
    free_until_.raise_to(in.look(ring_word::ready_head) + in.shape().capacity);
    return first + n <= free_until_.value();
  }

  /// Before a ticket is taken: is there room, or are the elements there, and would it be its turn
  /// at once? While it is, nobody else has a ticket before this one.
  bool ready_to_write(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    return look_for_room(in, first, n) && in.look(ring_word::ready_tail) == first;
  }
  bool ready_to_read(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    return in.look(ring_word::ready_tail) >= first + n && in.look(ring_word::ready_head) == first;
  }

  void write(ring_tickets& in, std::uint64_t first, const std::byte* forms, std::uint64_t n, bool) {
    put_all(in, first, forms, n);
    move_on(in, ring_word::ready_tail, first, n);
  }

  /// A write for an async_push, in two steps that do not wait. False: it is not its turn.
  void begin_write(ring_tickets& in, std::uint64_t ticket, const std::byte* form) {
    put_all(in, ticket, form, 1);
  }
  bool end_write(ring_tickets& in, std::uint64_t ticket) {
    return in.compare_swap(ring_word::ready_tail, ticket, ticket + 1) == ticket;
  }

  std::uint64_t read(ring_tickets& in, std::uint64_t first, std::uint64_t n, std::byte* to) {
    if (first + n > filled_until_.settled(in.where())) {
      filled_until_.raise_to(in.look(ring_word::ready_tail));
      std::uint64_t filled = filled_until_.value();
      if (filled < first + n) n = filled > first ? filled - first : 0;
    }
    std::vector<std::byte> buffer;
    in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
      buffer.resize(count * stride);
      get(pointer_cast<std::byte>(in.slot(slot)), buffer.data(), buffer.size());
      for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(to + (ticket - first + i) * Bytes, buffer.data() + i * stride, Bytes);
    });
    return n;
  }

  void free(ring_tickets& in, std::uint64_t first, std::uint64_t n, pop_overlap) {
    move_on(in, ring_word::ready_head, first, n);
  }
  void send_marks(ring_tickets&) {}
  void settle(ring_tickets&) {}
  void forget() {
    free_until_.set(0);
    filled_until_.set(0);
  }

 private:
  static void put_all(ring_tickets& in, std::uint64_t first, const std::byte* forms,
                      std::uint64_t n) {
    std::vector<std::byte> buffer;
    in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
      buffer.assign(count * stride, std::byte{});
      for (std::uint64_t i = 0; i < count; ++i)
        std::memcpy(buffer.data() + i * stride, forms + (ticket - first + i) * Bytes, Bytes);
      put(pointer_cast<std::byte>(in.slot(slot)), buffer.data(), buffer.size());
    });
    flush(in.host());
  }

  /// Waits for its turn.
  static void move_on(ring_tickets& in, ring_word w, std::uint64_t first, std::uint64_t n) {
    while (in.compare_swap(w, first, first + n) != first) in.where().wait_round();
  }

  ring_watermark free_until_, filled_until_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

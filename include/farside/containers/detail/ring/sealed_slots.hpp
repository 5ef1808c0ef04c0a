// Slots that verify themselves: what a push writes and a pop waits for.
//
//              push: put of element and seal            pop: get, verified
//   free for lap L ----------------------> filled, lap L ---------------> read
//        ^                                                                  |
//        +-------- the counter of its block: pops of lap L complete <-------+
//
// Element and seal are written by puts only, the counters by atomics only. Nobody writes a slot
// before the counter of its block says that all pops of the lap before are complete, and a pop adds
// to it only when it has seen the seal: so at most one put is in flight for a slot (seal.hpp).
//
// Invariant: in each slot, fills and reads take turns, each of the ticket that is `slots` greater
// than the one before.
//
// Where memory is coherent the seal is a plain stamp, ticket + 1, stored with release after the
// element and loaded with acquire before it; the counters are added to with release after the
// element was read, and loaded with acquire. There a slot is never read before it is filled.
//
// Costs, for n elements in slots that follow each other (2 of each where they wrap):
//   write   1 put, and 1 flush if it has to be complete
//   read    1 get for each look
//   free    1 atomic for each block, not waited for
#pragma once

#include <farside/containers/detail/ring/seal.hpp>
#include <farside/containers/detail/ring/tickets.hpp>
#include <farside/core/detail/messages/may_not_wait.hpp>
#include <farside/core/engine.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// How an element is known to be complete: by a stamp where memory is coherent, or always by a
/// seal.
enum class slot_check { stamp_or_seal, seal };

template <std::size_t Bytes, slot_check How>
class sealed_slots {
 public:
  static constexpr std::size_t words = ring_words(Bytes);
  static constexpr bool counted = true;  ///< the ring has counters
  static constexpr std::size_t stride = 8 * (words + 1);
  static constexpr operation_cost push_cost{.puts = 1, .atomics = 1};
  static constexpr operation_cost pop_cost{.gets = 1, .atomics = 1};

  explicit sealed_slots(context& c) : mutex_(c.threads == thread_level::multiple) {}

  static void require(const context& c, const char* kind) {
    if (!c.link.coherent() && !c.link.racy_get())
      raise(kind,
            " needs a transport on which a get that overlaps a put is torn between words only ",
            "(the trait racy_get), which this one does not promise. Use ",
            "far::circular_queue<T, far::queue_protocol::two_atomics>.");
  }

  /// Whether the slots of these tickets may be written. One look, 1 get, if it is not known.
  bool look_for_room(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    if (in.known_free(first, n)) [[likely]]
      return true;
    in.look_for_room();
    return in.known_free(first, n);
  }

  /// Before a ticket is taken: whether the slots from it on may be written, or read. A caller that
  /// then takes this ticket waits for nobody.
  bool ready_to_write(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    return look_for_room(in, first, n);
  }
  bool ready_to_read(ring_tickets& in, std::uint64_t first, std::uint64_t n) {
    if (stamped(in)) {
      for (std::uint64_t i = 0; i < n; ++i)
        if (!filled(in, first + i)) return false;
      return true;
    }
    std::vector<std::byte> scratch(n * Bytes);
    return read_many(in, first, n, scratch.data()) == n;
  }

  /// Fills slots that are free. `complete`: a pop that looks afterwards sees them.
  [[gnu::always_inline]] void write(ring_tickets& in, std::uint64_t first, const std::byte* forms,
                                    std::uint64_t n, bool complete) {
    if (n == 1 && !stamped(in)) return write_sealed(in, first, forms, complete);
    if (n != 1 || in.where().counts) [[unlikely]]
      return write_many(in, first, forms, n, complete);
    store(in, first, forms);
  }

  /// A write for an async_push, in two steps that do not wait.
  void begin_write(ring_tickets& in, std::uint64_t ticket, const std::byte* form) {
    write(in, ticket, form, 1, false);
  }
  bool end_write(ring_tickets&, std::uint64_t) { return true; }

  /// Reads the first elements of these tickets that are there, one look. How many there were.
  [[gnu::always_inline]] std::uint64_t read(ring_tickets& in, std::uint64_t first, std::uint64_t n,
                                            std::byte* to) {
    if (n != 1 || !stamped(in) || in.where().counts) [[unlikely]]
      return read_many(in, first, n, to);
    return load(in, first, to);
  }

  /// The slots of these tickets have been read.
  [[gnu::always_inline]] void free(ring_tickets& in, std::uint64_t first, std::uint64_t n,
                                   pop_overlap others) {
    if (in.raw() != nullptr && others != pop_overlap::without_pushes) {
      in.each_block(first, n, [&](std::uint64_t block, std::uint64_t count) {
        auto* at = reinterpret_cast<std::uint64_t*>(in.raw() + ring_layout::counters_at);
        std::atomic_ref<std::uint64_t> popped(at[block]);
        if (others == pop_overlap::owner_only)
          popped.store(popped.load(std::memory_order_relaxed) + count, std::memory_order_release);
        else
          popped.fetch_add(count, std::memory_order_release);
        note(in.where(), operation::atomic, in.host(), 8, false);
      });
      return;
    }
    free_far(in, first, n, others);
  }

  /// Sends what free() has kept back.
  void send_marks(ring_tickets& in) {
    std::array<std::uint64_t, ring_layout::most_blocks> marks{};
    {
      std::lock_guard lock(mutex_);
      if (!std::exchange(marks_waiting_, false)) return;
      marks.swap(marks_);
    }
    for (std::uint64_t block = 0; block < in.shape().blocks; ++block)
      if (marks[block] != 0) mark(in, block, marks[block]);
  }

  /// Until all of its atomics are complete: before the ring goes away.
  void settle(ring_tickets& in) {
    send_marks(in);
    while (sent_->load(std::memory_order_acquire) != 0) in.where().wait_round();
  }

  void forget() {}

 private:
  static constexpr std::size_t most_sent = 64;  ///< more, and it asks what has become of them

  static bool stamped(const ring_tickets& in) {
    return How == slot_check::stamp_or_seal && in.raw() != nullptr;
  }
  static std::atomic_ref<std::uint64_t> stamp(std::byte* slot) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(slot + 8 * words));
  }
  static std::uint64_t stamp_of(const ring_tickets& in, std::uint64_t ticket) {
    return seal_ticket(in, ticket) + 1;
  }
  static std::uint64_t seal_ticket(const ring_tickets& in, std::uint64_t ticket) {
    return FARSIDE_MUTANT(ring_seal_without_round) ? ticket % in.shape().slots : ticket;
  }

  /// One element, where memory is coherent.
  [[gnu::always_inline]] static void store(ring_tickets& in, std::uint64_t ticket,
                                           const std::byte* form) {
    std::byte* at = in.raw_slot(in.push_slot(ticket));
    std::memcpy(at, form, Bytes);
    stamp(at).store(stamp_of(in, ticket), std::memory_order_release);
  }
  static bool filled(ring_tickets& in, std::uint64_t ticket) {
    std::byte* at = in.raw_slot(in.pop_slot(ticket));
    return stamp(at).load(std::memory_order_acquire) == stamp_of(in, ticket);
  }
  [[gnu::always_inline]] static bool load(ring_tickets& in, std::uint64_t ticket, std::byte* to) {
    std::byte* at = in.raw_slot(in.pop_slot(ticket));
    if (stamp(at).load(std::memory_order_acquire) != stamp_of(in, ticket)) return false;
    std::memcpy(to, at, Bytes);
    return true;
  }

  /// One element, where slots have seals.
  [[gnu::always_inline]] static void write_sealed(ring_tickets& in, std::uint64_t ticket,
                                                  const std::byte* form, bool complete) {
    std::uint64_t slot[words + 1];
    ring_encode(seal_ticket(in, ticket), form, Bytes, slot);
    ptr<std::uint64_t> to = in.slot(in.push_slot(ticket));
    if (complete && !FARSIDE_MUTANT(ring_push_unflushed))
      put_through(to, slot, words + 1);
    else
      put(to, slot, words + 1);
  }
  void write_many(ring_tickets& in, std::uint64_t first, const std::byte* forms, std::uint64_t n,
                  bool complete);
  std::uint64_t read_many(ring_tickets& in, std::uint64_t first, std::uint64_t n, std::byte* to);

  /// What loads and stores stood for.
  static void note_all(ring_tickets& in, operation kind, std::uint64_t first, std::uint64_t n) {
    if (in.where().counts)
      in.runs(first, n, [&](std::uint64_t, std::uint64_t, std::uint64_t count) {
        note(in.where(), kind, in.host(), count * stride, kind == operation::get);
      });
  }

  void free_far(ring_tickets& in, std::uint64_t first, std::uint64_t n, pop_overlap others) {
    in.each_block(first, n, [&](std::uint64_t block, std::uint64_t count) {
      if (others != pop_overlap::without_pushes) return mark(in, block, count);
      std::lock_guard lock(mutex_);
      marks_[block] += count;
      marks_waiting_ = true;
    });
  }

  void mark(ring_tickets& in, std::uint64_t block, std::uint64_t count) {
    if (FARSIDE_MUTANT(ring_slot_freed_twice)) count *= 2;
    if (may_not_wait(in.where())) {  // its own memory, and no progress in handlers
      fetch_add(in.counter(block), count);
      return;
    }
    if (sent_->load(std::memory_order_acquire) >= most_sent) in.where().progress();
    sent_->fetch_add(1, std::memory_order_relaxed);
    async_fetch_add(in.counter(block), count).finally([sent = sent_](future<std::uint64_t>) {
      sent->fetch_sub(1, std::memory_order_release);
    });
  }

  optional_mutex mutex_;
  std::array<std::uint64_t, ring_layout::most_blocks> marks_{};  ///< of each block, not sent yet
  bool marks_waiting_ = false;
  std::shared_ptr<std::atomic<std::size_t>> sent_ =
      std::make_shared<std::atomic<std::size_t>>(0);  ///< marks under way
};

template <std::size_t Bytes, slot_check How>
void sealed_slots<Bytes, How>::write_many(ring_tickets& in, std::uint64_t first,
                                          const std::byte* forms, std::uint64_t n, bool complete) {
  if (stamped(in)) {
    for (std::uint64_t i = 0; i < n; ++i) store(in, first + i, forms + i * Bytes);
    note_all(in, operation::put, first, n);
    if (complete) note(in.where(), operation::flush, in.host(), 0, true);
    return;
  }
  std::vector<std::uint64_t> buffer;
  in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
    buffer.resize(count * (words + 1));
    for (std::uint64_t i = 0; i < count; ++i)
      ring_encode(seal_ticket(in, ticket + i), forms + (ticket - first + i) * Bytes, Bytes,
                  buffer.data() + i * (words + 1));
    put(in.slot(slot), buffer.data(), buffer.size());
  });
  if (complete && !FARSIDE_MUTANT(ring_push_unflushed)) flush(in.host());
}

template <std::size_t Bytes, slot_check How>
std::uint64_t sealed_slots<Bytes, How>::read_many(ring_tickets& in, std::uint64_t first,
                                                  std::uint64_t n, std::byte* to) {
  std::uint64_t done = 0;
  if (stamped(in)) {
    while (done < n && load(in, first + done, to + done * Bytes)) ++done;
    note_all(in, operation::get, first, n);
    return done;
  }
  if (n == 1) {
    std::uint64_t slot[words + 1];
    get(in.slot(in.pop_slot(first)), slot, words + 1);
    return ring_decode(seal_ticket(in, first), slot, to, Bytes);
  }
  std::vector<std::uint64_t> buffer;
  in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
    if (done != ticket - first) return;  // one before was missing
    buffer.resize(count * (words + 1));
    get(in.slot(slot), buffer.data(), buffer.size());
    for (std::uint64_t i = 0; i < count; ++i, ++done)
      if (!ring_decode(seal_ticket(in, ticket + i), buffer.data() + i * (words + 1),
                       to + done * Bytes, Bytes))
        break;
  });
  return done;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

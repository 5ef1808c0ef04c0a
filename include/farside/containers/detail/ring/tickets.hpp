// The tickets of a ring: they say which push writes a slot and which pop reads it. And what this
// rank knows of them.
//
// A push takes the next ticket of `tail`, a pop the next one of `head`; ticket t belongs to slot
// t % slots, and push t and pop t meet there. Tickets are taken in three ways:
//
//   claim        fetch_add; the caller waits until its slot is free, or filled
//   try_claim    compare-and-swap, once it is known that there is room, or an element
//   phased       fetch_add, where no pop can overlap (no push, for pops): what lies beyond the
//                end is given back by a fetch_min to the end, which does not move meanwhile. Every
//                ticket below the end is used, so no ticket is given out twice.
//
// Linearization. Let T(t) and H(t) be when ticket t was taken of tail and of head. Push t takes
// effect at max(T(t), effect of pop t - capacity), pop t at max(H(t), effect of push t). Both lie
// within the operations, as a push returns after its slot was freed and a pop after its slot was
// filled; both are in the order of tickets; there are never more than `capacity` elements.
//   - try_push says "full" if, with a t <= tail, head <= t - capacity was loaded afterwards. At
//     that load p <= t - capacity pops had taken effect, so p + capacity <= t <= tail pushes had:
//     it was full.
//   - try_pop says "empty" if, with an h <= head, tail <= h was loaded afterwards. All pushes that
//     had taken effect were of tickets < h, and so had their pops: it was empty.
//   - After a try_claim a rank waits only for operations that are under way: their tickets, of the
//     other side, were taken before (layout.hpp).
//
// What a rank knows only grows, so it may be old: `room_until_` (head + capacity), `free_until_`
// (all tickets below have room, and their slots are free), `filled_until_` (tail).
//
// Memory order, where ranks load and store (coherent): tickets are relaxed. A rank that uses a slot
// has acquired it from the last user, through the counters (room) or the slot itself (element); the
// ticket only says which slot. That leaves tickets of one core in bursts: two pushers do not hand
// the cache line over with each push, as an acquire would make them. A negative answer is preceded
// by a flush: a rank's earlier push elsewhere comes before it for all (store buffering). Where
// memory is not coherent, the atomics of a rank are in its program order.
#pragma once

#include <farside/containers/detail/ring/layout.hpp>
#include <farside/containers/detail/ring/ticket_backoff.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/rma.hpp>

#include <array>
#include <atomic>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail {

/// Something that the threads of one rank know: it only grows, and anything older is right too.
/// `settled` is for what is used without another look: what was seen before it comes first.
class ring_watermark {
 public:
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  std::uint64_t settled(const context& c) const {
    if (c.threads == thread_level::multiple) [[unlikely]]
      return value_.load(std::memory_order_acquire);
    return value_.load(std::memory_order_relaxed);
  }
  void set(std::uint64_t now) { value_.store(now, std::memory_order_relaxed); }
  /// Not less than before, whichever thread comes last.
  void raise_to(std::uint64_t now) {
    std::uint64_t old = value();
    while (old < now && !value_.compare_exchange_weak(old, now, std::memory_order_release)) {
    }
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Tickets from `first` on.
struct ticket_range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// What a pop may rely on when it marks its slots as free.
enum class pop_overlap {
  any_mix,
  without_pushes,  ///< none overlaps: the marks of a block can wait for each other
  owner_only       ///< only the host pops: no other rank changes the counters
};

class ring_tickets {
 public:
  ring_tickets() = default;
  ring_tickets(const ring_tickets&) = delete;

  /// Takes the ring at `at`, which is empty or holds tickets 0 to n - 1.
  void place(context& c, const ring_layout& shape, ptr<ring_line> at) {
    where_ = &c;
    shape_ = shape;
    at_ = at;
    raw_ = c.link.coherent() ? reinterpret_cast<std::byte*>(at.local()) : nullptr;
    for (ring_watermark* known : {&room_until_, &free_until_, &filled_until_, &push_guess_,
                                  &pop_guess_, &push_lap_, &pop_lap_})
      known->set(0);
    push_backoff_.reset();
    pop_backoff_.reset();
  }

  context& where() const { return *where_; }
  const ring_layout& shape() const { return shape_; }
  rank_t host() const { return at_.rank(); }
  ptr<ring_line> memory() const { return at_; }
  /// The ring as this process loads and stores it; null where that does not mix with atomics.
  std::byte* raw() const { return raw_; }

  ptr<std::uint64_t> word(ring_word w) const {
    return ptr<std::uint64_t>(host(), at_.offset() + static_cast<std::size_t>(w));
  }
  ptr<std::uint64_t> counter(std::uint64_t block) const {
    return ptr<std::uint64_t>(host(), at_.offset() + ring_layout::counters_at + block * 8);
  }
  ptr<std::uint64_t> slot(std::uint64_t index) const {
    return ptr<std::uint64_t>(host(), at_.offset() + shape_.slots_at + index * shape_.stride);
  }
  std::byte* raw_slot(std::uint64_t index) const {
    return raw_ + shape_.slots_at + index * shape_.stride;
  }

  /// A word, as it is at some time within this call, and after all that this rank did before.
  std::uint64_t look(ring_word w) const {
    if (raw_ == nullptr) return atomic_load(word(w));
    where_->link.flush();
    note(*where_, operation::atomic, host(), 8, true);
    return raw_word(w).load(std::memory_order_acquire);
  }

  std::uint64_t compare_swap(ring_word w, std::uint64_t expected, std::uint64_t desired) {
    if (raw_ == nullptr) return far::compare_swap(word(w), expected, desired);
    note(*where_, operation::atomic, host(), 8, true);
    raw_word(w).compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                        std::memory_order_acquire);
    return expected;
  }

  [[gnu::always_inline]] std::uint64_t claim_push(std::uint64_t n) {
    std::uint64_t first = add(ring_word::tail, n, push_backoff_);
    push_guess_.set(first + n);
    return first;
  }
  [[gnu::always_inline]] std::uint64_t claim_pop(std::uint64_t n) {
    std::uint64_t first = add(ring_word::head, n, pop_backoff_);
    pop_guess_.set(first + n);
    return first;
  }

  /// The host's, while nobody else pops: the ticket is the one it has counted to.
  void claim_local_pop(std::uint64_t ticket, std::uint64_t n) {
    if (raw_ == nullptr) {
      claim_pop(n);
      return;
    }
    note(*where_, operation::atomic, host(), 8, false);
    raw_word(ring_word::head).store(ticket + n, std::memory_order_relaxed);
    pop_guess_.set(ticket + n);
    pop_backoff_.expect(ticket + n);
  }

  std::optional<std::uint64_t> try_claim_push(std::uint64_t n) {
    return try_claim_push(n, [](std::uint64_t) {});
  }
  ticket_range try_claim_pop(std::uint64_t most) {
    return try_claim_pop(most, [](std::uint64_t, std::uint64_t) {});
  }
  /// Before a ticket is taken they call `ready(ticket)`, or `ready(ticket, count)`, which throws if
  /// it shall not be taken.
  template <class Ready>
  std::optional<std::uint64_t> try_claim_push(std::uint64_t n, Ready ready);
  template <class Ready>
  ticket_range try_claim_pop(std::uint64_t most, Ready ready);

  /// As many tickets as there is room for, while nobody pops.
  [[gnu::always_inline]] ticket_range phased_push(std::uint64_t n) {
    return granted_push(add(ring_word::tail, n, push_backoff_), n);
  }
  /// Of `n` tickets that were taken from `first` on: those for which there is room.
  [[gnu::always_inline]] ticket_range granted_push(std::uint64_t first, std::uint64_t n) {
    return granted(ring_word::tail, first, n, room_until_, push_backoff_,
                   [this] { return look(ring_word::head) + shape_.capacity; });
  }
  /// As many tickets as there are elements, while nobody pushes.
  ticket_range phased_pop(std::uint64_t n) {
    return granted(ring_word::head, add(ring_word::head, n, pop_backoff_), n, filled_until_,
                   pop_backoff_, [this] { return look(ring_word::tail); });
  }

  bool known_free(std::uint64_t first, std::uint64_t n) const {
    return first + n <= free_until_.settled(*where_) || FARSIDE_MUTANT(ring_watermark_not_limited);
  }

  /// Reads head and the counters, and moves the watermark. 1 get.
  void look_for_room();

  /// The slots of the tickets from `first` on have been read: adds to the counters of their blocks,
  /// by `mark(block, count)`.
  template <class Mark>
  void each_block(std::uint64_t first, std::uint64_t n, Mark mark) {
    while (n != 0) {
      std::uint64_t slot = pop_slot(first);
      std::uint64_t block = shape_.block_of(slot);
      std::uint64_t now = std::min(n, ((block + 1) << shape_.block_shift) - slot);
      mark(block, now);
      first += now, n -= now;
    }
  }

  [[gnu::always_inline]] std::uint64_t push_slot(std::uint64_t ticket) {
    return slot_of(ticket, push_lap_);
  }
  [[gnu::always_inline]] std::uint64_t pop_slot(std::uint64_t ticket) {
    return slot_of(ticket, pop_lap_);
  }

  /// Cuts tickets into runs of slots that follow each other: `each(slot, ticket, count)`.
  template <class Each>
  void runs(std::uint64_t first, std::uint64_t n, Each each) const {
    while (n != 0) {
      std::uint64_t slot = first % shape_.slots;
      std::uint64_t now = std::min(n, shape_.slots - slot);
      each(slot, first, now);
      first += now, n -= now;
    }
  }

 private:
  std::atomic_ref<std::uint64_t> raw_word(ring_word w) const {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(raw_ + static_cast<std::size_t>(w)));
  }

  [[gnu::always_inline]] std::uint64_t add(ring_word w, std::uint64_t n, ticket_backoff& backoff) {
    if (FARSIDE_MUTANT(ring_ticket_by_load_and_store)) {
      std::uint64_t seen = atomic_load(word(w));
      atomic_store(word(w), seen + n);
      return seen;
    }
    if (raw_ == nullptr) [[unlikely]]
      return fetch_add(word(w), n);
    backoff.wait();
    note(*where_, operation::atomic, host(), 8, true);
    std::uint64_t first = raw_word(w).fetch_add(n, std::memory_order_relaxed);
    backoff.took(first, n);
    return first;
  }

  template <class End>
  [[gnu::always_inline]] ticket_range granted(ring_word w, std::uint64_t first, std::uint64_t n,
                                              ring_watermark& known, ticket_backoff& backoff,
                                              End end) {
    backoff.expect(first + n);
    if (first + n <= known.value()) [[likely]]
      return {first, n};
    return granted_late(w, first, n, known, backoff, end);
  }
  template <class End>
  [[gnu::noinline]] ticket_range granted_late(ring_word w, std::uint64_t first, std::uint64_t n,
                                              ring_watermark& known, ticket_backoff& backoff,
                                              End end) {
    std::uint64_t until = end();
    known.raise_to(until);
    if (first + n <= until) return {first, n};
    backoff.expect(until);
    if (!FARSIDE_MUTANT(ring_overshoot_kept)) {
      if (raw_ == nullptr)
        fetch_min(word(w), until);
      else
        lower(w, until);
    }
    return {first, first < until ? until - first : 0};
  }

  void lower(ring_word w, std::uint64_t until) {
    note(*where_, operation::atomic, host(), 8, true);
    auto at = raw_word(w);
    std::uint64_t old = at.load(std::memory_order_relaxed);
    while (old > until && !at.compare_exchange_weak(old, until, std::memory_order_relaxed)) {
    }
  }

  /// Without a division, mostly: tickets of a rank go on in the same lap.
  [[gnu::always_inline]] std::uint64_t slot_of(std::uint64_t ticket, ring_watermark& lap) {
    std::uint64_t slot = ticket - lap.value();
    if (slot < shape_.slots) [[likely]]
      return slot;
    slot = ticket % shape_.slots;
    lap.set(ticket - slot);
    return slot;
  }

  context* where_ = nullptr;
  ring_layout shape_;
  ptr<ring_line> at_;
  std::byte* raw_ = nullptr;
  ring_watermark room_until_, free_until_, filled_until_;
  ring_watermark push_guess_, pop_guess_;  ///< tail and head, as far as this rank knows
  ring_watermark push_lap_, pop_lap_;      ///< the ticket of slot 0 in the lap of the last one
  ticket_backoff push_backoff_, pop_backoff_;
};

template <class Ready>
std::optional<std::uint64_t> ring_tickets::try_claim_push(std::uint64_t n, Ready ready) {
  std::uint64_t ticket = push_guess_.value();
  for (;;) {
    if (ticket + n > room_until_.value()) {
      room_until_.raise_to(look(ring_word::head) + shape_.capacity);
      if (ticket + n > room_until_.value()) {
        push_guess_.set(std::min(ticket, room_until_.value()));  // not what a phased push overshot
        return std::nullopt;
      }
    }
    ready(ticket);
    std::uint64_t seen = compare_swap(ring_word::tail, ticket, ticket + n);
    if (seen == ticket || FARSIDE_MUTANT(ring_lost_ticket_taken_for_won)) {
      push_guess_.set(ticket + n);
      if (raw_ != nullptr) push_backoff_.took(ticket, n);
      return ticket;
    }
    ticket = seen;
  }
}

template <class Ready>
ticket_range ring_tickets::try_claim_pop(std::uint64_t most, Ready ready) {
  std::uint64_t ticket = pop_guess_.value();
  for (;;) {
    if (ticket + most > filled_until_.value()) filled_until_.raise_to(look(ring_word::tail));
    std::uint64_t filled = filled_until_.value();
    if (ticket >= filled) {
      pop_guess_.set(std::min(ticket, filled));
      return {ticket, 0};
    }
    std::uint64_t count = std::min(most, filled - ticket);
    ready(ticket, count);
    std::uint64_t seen = compare_swap(ring_word::head, ticket, ticket + count);
    if (seen == ticket || FARSIDE_MUTANT(ring_lost_element_taken_for_won)) {
      pop_guess_.set(ticket + count);
      if (raw_ != nullptr) pop_backoff_.took(ticket, count);
      return {ticket, count};
    }
    ticket = seen;
  }
}

inline void ring_tickets::look_for_room() {
  std::array<std::uint64_t, 1 + ring_layout::most_blocks> words{};
  std::size_t count = 1 + shape_.blocks;
  if (raw_ == nullptr) {
    get(word(ring_word::head), words.data(), count);
  } else {
    note(*where_, operation::get, host(), count * 8, true);
    auto* from = reinterpret_cast<std::uint64_t*>(raw_ + static_cast<std::size_t>(ring_word::head));
    for (std::size_t i = 0; i < count; ++i)
      words[i] = std::atomic_ref<std::uint64_t>(from[i]).load(std::memory_order_acquire);
  }
  if (FARSIDE_MUTANT(ring_room_counted_by_pops)) std::fill(words.begin() + 1, words.end(), ~0U);
  // A block that was popped L times as a whole is free for lap L: the first ticket for which it is
  // not known to be free is its first one in lap L + 1.
  std::uint64_t until = words[0] + shape_.capacity;
  for (std::uint64_t block = 0; block < shape_.blocks; ++block) {
    std::uint64_t laps = words[1 + block] >> shape_.block_shift;
    until = std::min(until, (laps + 1) * shape_.slots + (block << shape_.block_shift));
  }
  free_until_.raise_to(until);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

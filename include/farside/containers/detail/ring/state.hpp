// What a member of a queue keeps: the ring, its slots, and how the ring is made, moved and freed.
#pragma once

#include <farside/containers/detail/concurrency_check.hpp>
#include <farside/containers/detail/dispatch/choice.hpp>
#include <farside/containers/detail/ring/tickets.hpp>
#include <farside/containers/queue_statistics.hpp>
#include <farside/core/box.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/container.hpp>

#include <memory>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// `Slots` knows how elements lie in slots (sealed_slots.hpp, ordered_slots.hpp, fast_queue.hpp).
template <class T, class Slots>
struct queue_state : shared_state {
  using element = T;
  using form = box<T>;
  static constexpr std::size_t form_bytes = sizeof(form);

  /// Collective.
  queue_state(const char* kind, rank_t host, std::uint64_t capacity, const container_options& with)
      : shared_state(kind, with), overlaps(*this), slots(*where) {
    require(host, capacity, kind);
    Slots::require(*where, kind);
    rebuild(host, capacity, false);
    choice.open(*this, with,
                {{container_operation::push, Slots::push_cost},
                 {container_operation::pop, Slots::pop_cost}});
  }

  ~queue_state() override {
    if (!constructed && tickets.memory() && is_host()) dealloc(tickets.memory());
  }

  /// All that this rank has begun is complete before the host frees the ring, in release().
  void before_end() override { settle(); }

  void require(rank_t host, std::uint64_t capacity, const char* what) const {
    if (capacity == 0)
      raise(what, " of '", label,
            "' with a capacity of 0: it could never hold an element. Ask for 1 ", "or more.");
    if (host >= members.size())
      raise(what, " of '", label, "' on member ", host, ": its team has ", members.size(),
            " members, 0 to ", members.size() - 1, ".");
    require_possible(text(what, " of '", label, "'"), capacity, Slots::stride);
  }

  void after_barrier() override {
    overlaps.next_epoch();
    if (!FARSIDE_MUTANT(ring_marks_never_sent)) slots.send_marks(tickets);
    local_head_known = false;
  }

  void release() override {
    *open = false;  // pushes that wait for room look no more
    settle();
    if (!FARSIDE_MUTANT(ring_freed_unsettled)) synchronize(*where, members.members());
    overlaps.release();
    if (!is_host()) return;
    release_elements();
    dealloc(tickets.memory());
  }

  bool is_host() const { return tickets.host() == where->link.rank(); }
  /// Whether this rank sends operations of this kind to the host.
  bool asks(container_operation kind) const { return choice.asks(kind) && !is_host(); }

  /// Serialized bytes of boxes lie with this rank: complete before any slot names them.
  void complete_boxes() {
    if constexpr (!form::in_place)
      if (tickets.raw() == nullptr && !FARSIDE_MUTANT(ring_bytes_unflushed))
        flush(where->link.rank());
  }

  /// Until nothing of this rank is under way.
  void settle() {
    choice.settle(*where);
    while (tickets_under_way->load(std::memory_order_acquire) != 0) where->wait_round();
    slots.settle(tickets);
  }

  std::uint64_t size() const {
    std::uint64_t head = tickets.look(ring_word::head), tail = tickets.look(ring_word::tail);
    return tail > head ? std::min(tail - head, tickets.shape().capacity) : 0;
  }

  /// The forms of all elements, oldest first. Nobody may push or pop.
  std::vector<std::byte> snapshot() {
    std::uint64_t head = tickets.look(ring_word::head), n = size();
    std::vector<std::byte> forms(n * form_bytes);
    std::uint64_t there = slots.read(tickets, head, n, forms.data());
    if (there != n)
      raise(kind_name, " '", label, "': ", n - there, " of ", n,
            " elements are not complete. Look at ",
            "all of a queue only while nobody pushes or pops, after a barrier of its team.");
    return forms;
  }

  /// What they point to, if they point to anything. Slots of pushes that never had room hold
  /// nothing.
  void release_elements() {
    if constexpr (!form::in_place) {
      std::uint64_t head = tickets.look(ring_word::head), n = size();
      std::byte bytes[form_bytes];
      for (std::uint64_t i = 0; i < n; ++i)
        if (slots.read(tickets, head + i, 1, bytes) == 1) from_memory<form>(bytes).release();
    }
  }

  void rebuild(rank_t new_host, std::uint64_t new_capacity, bool keep);

  concurrency_check overlaps;
  engine_choice choice;
  ring_tickets tickets;
  Slots slots;
  rank_t host = 0;                                   ///< its position in the team
  std::uint64_t pushes_before = 0, pops_before = 0;  ///< in rings that are no more
  std::uint64_t local_head = 0, local_tail = 0;  ///< of local pops, valid until the next barrier
  bool local_head_known = false;
  std::shared_ptr<bool> open = std::make_shared<bool>(true);  ///< for what outlives the queue
  /// Of async_push: those without a ticket yet, and those that wait for room.
  std::shared_ptr<std::atomic<std::size_t>> tickets_under_way =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::size_t> waiting_for_room{0};

 private:
  struct moved {
    ptr<ring_line> at;
    std::uint64_t head = 0, tail = 0, kept = 0;
    std::uint64_t late = 0;  ///< async pushes that still wait for room
  };

  void clear_memory(ptr<ring_line> at, std::size_t lines);
  void fill(ptr<ring_line> at, const ring_layout& shape, const std::vector<std::byte>& forms,
            std::uint64_t n);
};

/// Collective: a new ring on member `new_host`, with the elements of the old one if `keep`. The new
/// host reads the old ring, in order; boxes move, what they point to stays.
template <class T, class Slots>
void queue_state<T, Slots>::rebuild(rank_t new_host, std::uint64_t new_capacity, bool keep) {
  bool first = !tickets.memory();
  if (!first) {
    settle();
    if (all_reduce(waiting_for_room.load(), std::plus<>(), members) != 0)
      raise(kind_name, " '", label,
            "': resize, migrate or clear while pushes of async_push still wait ",
            "for room. Wait for their futures first.");
    barrier(members);
  }
  ring_layout shape(new_capacity, Slots::stride, Slots::counted);
  moved now;
  if (FARSIDE_MUTANT(ring_left_memory_freed_early) && !first && is_host())
    dealloc(tickets.memory());
  std::exception_ptr failure;
  if (members.rank() == new_host) try {
      std::vector<std::byte> forms;
      if (!first) {
        now.head = tickets.look(ring_word::head);
        now.tail = tickets.look(ring_word::tail);
        now.kept = keep ? size() : 0;
        if (keep && now.kept <= new_capacity) forms = snapshot();
        if (!keep) release_elements();
      }
      if (now.kept <= new_capacity) {
        now.at = alloc<ring_line>(shape.lines());
        fill(now.at, shape, forms, now.kept);
      }
    } catch (...) {
      failure = std::current_exception();  // the others must not wait for it
    }
  now = broadcast(now, new_host, members);
  if (failure) std::rethrow_exception(failure);
  if (now.kept > new_capacity)
    raise(kind_name, " '", label, "': resize to ", new_capacity, ", but it has ", now.kept,
          " elements. Pop some first, or ask for more.");
  if (!now.at)
    raise<allocation_error>(kind_name, " '", label, "': member ", new_host,
                            ", its host, could not make ", "a ring of ",
                            shape.lines() * sizeof(ring_line), " bytes; its own message says why.");
  if (!FARSIDE_MUTANT(ring_left_memory_freed_early) && !first && is_host())
    dealloc(tickets.memory());
  pushes_before += now.tail - now.kept;
  pops_before += now.head + (keep ? 0 : now.tail - now.head);
  host = new_host;
  local_head_known = false;
  slots.forget();
  tickets.place(*where, shape, now.at);
}

/// What has been in this memory must not be taken for elements, or for the words of the ring.
template <class T, class Slots>
void queue_state<T, Slots>::clear_memory(ptr<ring_line> at, std::size_t lines) {
  std::vector<ring_line> zeros(std::min<std::size_t>(lines, 1024));
  for (std::size_t done = 0; done < lines; done += zeros.size())
    put(at + static_cast<std::ptrdiff_t>(done), zeros.data(), std::min(zeros.size(), lines - done));
  flush(at.rank());
}

/// Writes a fresh ring with `n` elements, complete on return.
template <class T, class Slots>
void queue_state<T, Slots>::fill(ptr<ring_line> at, const ring_layout& shape,
                                 const std::vector<std::byte>& forms, std::uint64_t n) {
  // Slots that do not verify themselves are never read before they are written.
  bool slots_too = Slots::counted && !FARSIDE_MUTANT(ring_memory_not_cleared);
  clear_memory(at, slots_too ? shape.lines() : shape.slots_at / sizeof(ring_line));
  ring_tickets fresh;
  fresh.place(*where, shape, at);
  Slots(*where).write(fresh, 0, forms.data(), n, true);
  atomic_store(fresh.word(ring_word::tail), n);
  flush(at.rank());
}

}  // namespace far::inline FARSIDE_BACKEND::detail

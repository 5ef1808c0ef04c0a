// far::fast_queue<T>: a queue on one rank for phases: all push, a barrier, all pop, a barrier.
//
//   far::fast_queue<int> inbox(0, 1 << 20);
//   inbox.push(my_numbers);                       // many at once: one atomic and one put
//   far::barrier();
//   while (auto x = inbox.try_pop()) ...
//   far::barrier();
//
// The barrier does what other queues do element by element: it completes what was pushed before
// anybody pops, and what was popped before anybody pushes. So there is nothing to verify, and slots
// hold the elements alone. Between two barriers of its team there are either pushes or pops, by as
// many ranks as like; a checked build reports who does both.
//
// Invariant of a phase of pushes: head does not move, so the end, head + capacity, does not either.
// Each ticket below the end is written by who has taken it; who takes one beyond it sets tail back
// to the end by a fetch_min. The end is never undercut, so no ticket is given out twice
// (containers/detail/ring/tickets.hpp). The same holds for pops, with head for tail and tail for the end.
//
// Pushes and pops are one-sided: the host takes no part.
#pragma once

#include <farside/containers/detail/ring/queue_base.hpp>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Slots without anything but the element.
template <std::size_t Bytes>
struct phased_slots {
  static constexpr bool counted = false;
  static constexpr std::size_t stride = Bytes;
  static constexpr operation_cost push_cost{.atomics = 1};  // its put is not waited for
  static constexpr operation_cost pop_cost{.gets = 1, .atomics = 1};

  explicit phased_slots(context&) {}
  static void require(const context&, const char*) {}

  static ptr<std::byte> at(const ring& in, std::uint64_t slot) {
    return ptr<std::byte>(in.host(), in.memory().offset() + in.shape().slots_at + slot * Bytes);
  }
  [[gnu::always_inline]] void write(ring& in, std::uint64_t first, const std::byte* forms,
                                    std::uint64_t n, bool) {
    if (n == 1) [[likely]]
      return put(at(in, in.push_slot(first)), forms, Bytes);
    in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
      put(at(in, slot), forms + (ticket - first) * Bytes, count * Bytes);
    });
  }
  std::uint64_t read(ring& in, std::uint64_t first, std::uint64_t n, std::byte* to) {
    if (n == 1) {
      get(at(in, in.pop_slot(first)), to, Bytes);
      return 1;
    }
    in.runs(first, n, [&](std::uint64_t slot, std::uint64_t ticket, std::uint64_t count) {
      get(at(in, slot), to + (ticket - first) * Bytes, count * Bytes);
    });
    return n;
  }
  /// In a phase nobody has to wait.
  static bool ready_to_write(ring&, std::uint64_t, std::uint64_t) { return true; }
  static bool ready_to_read(ring&, std::uint64_t, std::uint64_t) { return true; }
  static void free(ring&, std::uint64_t, std::uint64_t, ring_pops) {}
  void send_marks(ring&) {}
  void settle(ring&) {}
  void forget() {}
};

}  // namespace detail

template <class T>
class fast_queue : public detail::hosted_ring<T, detail::phased_slots<sizeof(box<T>)>> {
  using base = detail::hosted_ring<T, detail::phased_slots<sizeof(box<T>)>>;
  using typename base::form;
  using typename base::state;

 public:
  /// Collective over the team of `with` (the world, if there is none): an empty queue for
  /// `capacity` elements in the memory of member `host`.
  fast_queue(rank_t host, std::uint64_t capacity, const container_options& with = {})
      : base("fast_queue", host, capacity, with) {
    detail::require_serializable<T>();
  }

  /// In a phase of pushes. One-sided; complete after the barrier. Throws if it is full, as nobody
  /// may pop. A + W, 1 wait, and 1 A more once it nears what was its end when this rank last
  /// looked.
  void push(const T& value) {
    state& s = open(container_operation::push, "push");
    if (!push_one(s, value)) this->raise_full(s, 1, 0);
  }
  /// All of them, next to each other; what fits if it throws. A + W, 2 W where they wrap, 1 wait.
  void push(std::span<const T> values) {
    state& s = open(container_operation::push, "push");
    this->require_bulk(s, "push", values.size());
    if (values.empty()) return;
    if (s.asks(container_operation::push)) {
      auto pushed = ask_push(s, values, detail::ring_asks::phased);
      if (pushed == values.size()) return;
      if (pushed) this->raise_full(s, values.size(), *pushed);
    }
    detail::packed_forms<T> forms(values);
    detail::ring_grant got = s.line.phased_push(values.size());
    if (got.count != 0) s.slots.write(s.line, got.first, forms.data(), got.count, false);
    if (got.count == values.size()) return;
    release(forms.data() + got.count * sizeof(form), values.size() - got.count);
    this->raise_full(s, values.size(), got.count);
  }

  /// False, and nothing has changed, if it is full.
  bool try_push(const T& value) {
    state& s = open(container_operation::push, "try_push");
    return push_one(s, value);
  }
  /// All or nothing. A + W, the A again when others take those tickets.
  bool try_push(std::span<const T> values) {
    state& s = open(container_operation::push, "try_push");
    this->require_bulk(s, "try_push", values.size());
    if (values.empty()) return true;
    if (s.asks(container_operation::push))
      if (auto pushed = ask_push(s, values, detail::ring_asks::any_mix)) return *pushed != 0;
    detail::packed_forms<T> forms(values);
    auto first = s.line.try_claim_push(values.size());
    if (first)
      s.slots.write(s.line, *first, forms.data(), values.size(), false);
    else
      release(forms.data(), values.size());
    return first.has_value();
  }

  /// Begins a push, of which a copy is kept. Wait for the future before the barrier: it is ready
  /// when the element has its place and the network has taken it. It fails if the queue is full.
  /// Pushes under way have no order among each other. A + W.
  future<void> async_push(const T& value) {
    state& s = open(container_operation::push, "async_push");
    if (s.asks(container_operation::push))
      return ask_push_later(s, value, detail::ring_asks::phased,
                            [&s, value](std::optional<std::uint64_t> pushed) {
                              if (!pushed) return async_push_alone(s, value);
                              if (*pushed == 0) base::raise_full(s, 1, 0);
                              return future<void>::ready();
                            });
    return async_push_alone(s, value);
  }

  /// In a phase of pops: the oldest element. Throws if it is empty, as nobody may push. A + R, 2
  /// waits, and 1 A more when this rank has popped all that it knew of.
  T pop() {
    auto value = try_pop();
    if (!value) this->raise_empty(*this->state_);
    return *std::move(value);
  }
  /// `n` of them, next to each other, or those that there are. A + R, 2 R where they wrap, 2 waits.
  std::vector<T> pop(std::uint64_t n) {
    state& s = open(container_operation::pop, "pop");
    n = std::min(n, s.line.shape().capacity);  // there are no more, and tickets must not wrap
    if (n == 0) return {};
    if (s.asks(container_operation::pop))
      if (auto popped = ask_pop(s, detail::ring_asks::phased, false, n)) return *std::move(popped);
    detail::ring_grant got = s.line.phased_pop(n);
    return this->unpacked(got.count, true, [&](std::byte* forms) {
      s.slots.read(s.line, got.first, got.count, forms);
    });
  }
  /// The same. As nobody may push, ranks together get all that there are.
  std::vector<T> try_pop(std::uint64_t most) { return pop(most); }

  /// Nothing if it is empty.
  std::optional<T> try_pop() {
    state& s = open(container_operation::pop, "pop");
    if (s.asks(container_operation::pop))
      if (auto popped = ask_pop(s, detail::ring_asks::phased, false, 1)) {
        if (popped->empty()) return std::nullopt;
        return std::move(popped->front());
      }
    detail::ring_grant got = s.line.phased_pop(1);
    if (got.count == 0) return std::nullopt;
    alignas(8) std::byte packed[sizeof(form)];
    s.slots.read(s.line, got.first, 1, packed);
    return this->unpack(packed, true);
  }

  /// On the host, where nobody else pops before the next barrier: an own atomic and an own get.
  std::optional<T> local_pop() {
    state& s = *this->state_;
    if (!s.is_host())
      detail::raise("local_pop of fast_queue '", s.label, "' on rank ", s.where->link.rank(),
                    ", but it lies on rank ", s.line.host(), ": only its host can pop so.");
    s.overlaps.check(container_operation::pop, "local_pop", concurrency::owner_only,
                     [] { return std::string(); });
    if (!s.local_head_known) {
      s.local_head = s.line.look(detail::ring_word::head);
      s.local_tail = s.line.look(detail::ring_word::tail);
      s.local_head_known = true;
    }
    if (s.local_head == s.local_tail) return std::nullopt;
    alignas(8) std::byte packed[sizeof(form)];
    s.slots.read(s.line, s.local_head, 1, packed);
    s.line.claim_local_pop(s.local_head++, 1);
    return this->unpack(packed, true);
  }

 private:
  friend detail::handle_access;
  explicit fast_queue(detail::container_handle<state> of) : base(std::move(of)) {}

  state& open(container_operation kind, const char* name) {
    state& s = *this->state_;
    s.overlaps.check(kind, name, static_cast<concurrency>(kind), [] { return std::string(); });
    return s;
  }
  [[gnu::always_inline]] bool push_one(state& s, const T& value) {
    if (s.asks(container_operation::push))
      if (auto pushed = ask_push(s, std::span<const T>(&value, 1), detail::ring_asks::phased))
        return *pushed != 0;
    form packed = form::pack(value);
    return finish_push(s, s.line.phased_push(1), packed);
  }
  static future<void> async_push_alone(state& s, const T& value) {
    auto go_on = [&s, packed = form::pack(value),
                  under_way = s.tickets_under_way](std::uint64_t ticket) {
      under_way->fetch_sub(1, std::memory_order_release);
      if (!finish_push(s, s.line.granted_push(ticket, 1), packed)) base::raise_full(s, 1, 0);
    };
    s.tickets_under_way->fetch_add(1, std::memory_order_relaxed);
    return async_fetch_add(s.line.word(detail::ring_word::tail), 1).then(go_on);
  }
  [[gnu::always_inline]] static bool finish_push(state& s, detail::ring_grant got,
                                                 const form& packed) {
    if (got.count != 0)
      s.slots.write(s.line, got.first, reinterpret_cast<const std::byte*>(&packed), 1, false);
    else
      release(reinterpret_cast<const std::byte*>(&packed), 1);
    return got.count != 0;
  }
  /// Of elements that found no room. Their bytes may still be on their way to the memory given
  /// back.
  static void release(const std::byte* forms, std::uint64_t n) {
    if constexpr (!form::in_place) {
      flush(detail::here().link.rank());
      for (std::uint64_t i = 0; i < n; ++i)
        detail::from_memory<form>(forms + i * sizeof(form)).release();
    }
  }
};

}  // namespace far::inline FARSIDE_BACKEND

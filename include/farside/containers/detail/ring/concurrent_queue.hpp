// The queues in which pushes and pops overlap as they like.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/containers/detail/ring/queue_base.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND::detail {

/// An async_push that has its ticket: it waits for room, never in a call, as continuations run
/// there.
template <class State>
struct push_in_flight : pending {
  push_in_flight(State& of, const std::byte* form)
      : state(of), open(of.open), bytes(form, form + State::form_bytes) {}

  bool poll() override {
    if (result->ready.load(std::memory_order_acquire)) return true;
    if (!*open) {
      if (!written) from_memory<typename State::form>(bytes.data()).release();
      result->fail(std::make_exception_ptr(usage_error(
          "farside: a queue was destroyed before there was room for an async_push. Wait for "
          "its future first.")));
      return true;
    }
    if (!written) {
      if (!state.slots.look_for_room(state.tickets, ticket, 1)) return false;
      state.slots.begin_write(state.tickets, ticket, bytes.data());
      written = true;
    }
    if (!state.slots.end_write(state.tickets, ticket)) return false;
    if (waits) state.waiting_for_room.fetch_sub(1);
    result->set({});
    return true;
  }

  State& state;
  std::shared_ptr<bool> open;
  std::vector<std::byte> bytes;
  std::uint64_t ticket = 0;
  bool written = false;
  bool waits = false;
  std::shared_ptr<future_state<void>> result = std::make_shared<future_state<void>>();
};

/// Elements of any serializable type, hosted on one member of the team, first in, first out.
///
/// All operations are one-sided and linearizable, waiting and try_ forms mixed at will
/// (containers/detail/ring/tickets.hpp has the argument), unless a promise says that they do not
/// overlap. What is pushed is complete on return: a pop that begins afterwards finds it. `R`, `W`,
/// `A`: gets, puts, atomics issued. In the costs k is about the room that there was at the last
/// look; elements of variable length (not far::fixed_length) add a flush of this rank's own memory
/// to a push, and to a pop 1 R for their bytes and what far::dealloc costs.
template <class T, class Slots>
class concurrent_queue : public queue_base<T, Slots> {
  using base = queue_base<T, Slots>;
  using typename base::form;
  using typename base::state;

 public:
  /// Waits for room. A + W + R/k and a flush, 2 waits. With concurrency::push (nobody pops before
  /// the next barrier): A + W, 1 wait, complete after the barrier; throws if it is full, instead of
  /// waiting.
  void push(const T& value, concurrency with = concurrency::everything) {
    state& s = *this->state_;
    s.overlaps.check(container_operation::push, "push", with, [&] { return describe(value); });
    if (s.asks(container_operation::push)) [[unlikely]]
      if (push_there(s, std::span<const T>(&value, 1), with)) return;
    form packed = form::pack(value);
    push_forms(s, reinterpret_cast<const std::byte*>(&packed), 1, with);
  }

  /// All of them, next to each other; at most `capacity`. A + W + R/k, 2 W where they wrap, and a
  /// flush, 2 waits; promises as above, and what fits before it throws has been pushed.
  void push(std::span<const T> values, concurrency with = concurrency::everything) {
    state& s = *this->state_;
    s.overlaps.check(container_operation::push, "push", with,
                     [&] { return text(values.size(), " elements"); });
    this->require_bulk(s, "push", values.size());
    if (values.empty()) return;
    if (s.asks(container_operation::push) && push_there(s, values, with)) return;
    packed_forms<T> forms(values);
    push_forms(s, forms.data(), values.size(), with);
  }

  /// False, and nothing has changed, if it was full. Waits for no more than pops under way.
  /// A + W + (A + R)/k and a flush, 2 waits; the first A again when others take that ticket. If it
  /// is full: A, 1 wait. With concurrency::push: A + W, 1 wait, complete after the barrier.
  bool try_push(const T& value, concurrency with = concurrency::everything) {
    state& s = *this->state_;
    s.overlaps.check(container_operation::push, "try_push", with, [&] { return describe(value); });
    if (s.asks(container_operation::push)) [[unlikely]]
      if (auto pushed = ask_push(s, std::span<const T>(&value, 1), how(with))) return *pushed != 0;
    form packed = form::pack(value);
    return try_push_forms(s, reinterpret_cast<const std::byte*>(&packed), 1, with);
  }
  /// All or nothing.
  bool try_push(std::span<const T> values, concurrency with = concurrency::everything) {
    state& s = *this->state_;
    s.overlaps.check(container_operation::push, "try_push", with,
                     [&] { return text(values.size(), " elements"); });
    this->require_bulk(s, "try_push", values.size());
    if (values.empty()) return true;
    if (s.asks(container_operation::push))
      if (auto pushed = ask_push(s, values, remote_mode::any_mix)) return *pushed != 0;
    packed_forms<T> forms(values);
    return try_push_forms(s, forms.data(), values.size(), with);
  }

  /// Begins a push, of which a copy is kept. The future is ready when it has its place in the queue
  /// and the network has taken it; poppers find it at the latest after a flush or barrier of this
  /// rank, made after that. Pushes under way have no order among each other. A + W + R/k.
  future<void> async_push(const T& value, concurrency with = concurrency::everything);

  /// Takes the oldest element; waits until there is one. A + R, and an A that nobody waits for, 2
  /// waits (the R again while its push is under way). With concurrency::pop (nobody pushes before
  /// the next barrier) the last A is made once a block of elements; throws if it is empty, instead
  /// of waiting. With concurrency::owner_only, on the host, only one thread of it pops before the
  /// next barrier: R and 2 A of its own memory.
  T pop(concurrency with = concurrency::everything) {
    state& s = *this->state_;
    alignas(8) std::byte packed[sizeof(form)];
    pop_overlap others = check_pop(s, "pop", with);
    if (s.asks(container_operation::pop)) [[unlikely]]
      if (auto popped = pop_there(s, others)) return *std::move(popped);
    if (others == pop_overlap::owner_only) {
      take_local(s, packed, true);
    } else {
      std::uint64_t ticket;
      if (others == pop_overlap::without_pushes) {
        ticket_range got = s.tickets.phased_pop(1);
        if (got.count == 0) this->raise_empty(s);
        ticket = got.first;
      } else {
        ticket = s.tickets.claim_pop(1);
      }
      take(s, ticket, 1, packed, others);
    }
    return this->unpack(packed, true);
  }

  /// `n` of them, oldest first; next to each other in the queue if `n` is at most its capacity.
  /// A + R, 2 R where they wrap, and an A that nobody waits for for each block, 2 waits. With
  /// concurrency::pop those that there are.
  std::vector<T> pop(std::uint64_t n, concurrency with = concurrency::everything);

  /// The oldest element, or nothing if it was empty. Waits for no more than pushes under way.
  /// A + R + A/k, and an A that nobody waits for, 2 waits; the first A again when others take that
  /// ticket. If it is empty: A, 1 wait.
  std::optional<T> try_pop(concurrency with = concurrency::everything) {
    state& s = *this->state_;
    alignas(8) std::byte packed[sizeof(form)];
    pop_overlap others = check_pop(s, "try_pop", with);
    if (s.asks(container_operation::pop)) [[unlikely]]
      if (std::optional<T> popped; try_pop_there(s, popped)) return popped;
    if (others == pop_overlap::owner_only) {
      if (!take_local(s, packed, false)) return std::nullopt;
    } else {
      ticket_range got = s.tickets.try_claim_pop(1);
      if (got.count == 0) return std::nullopt;
      take(s, got.first, 1, packed, others);
    }
    return this->unpack(packed, true);
  }
  /// The oldest elements, `most` at most, next to each other; no more than the capacity. If they
  /// are fewer, the queue held no others at one moment of this call. They are taken later than
  /// that: what is pushed in between stays, and a try_push in between may find the queue full. So
  /// a caller that has got fewer, and wants what has come meanwhile, asks again.
  std::vector<T> try_pop(std::uint64_t most, concurrency with = concurrency::everything);

  /// try_pop on the host, where nobody else pops before the next barrier. No communication.
  std::optional<T> local_pop(concurrency with = concurrency::push | concurrency::owner_only) {
    return try_pop(with | concurrency::owner_only);
  }

 protected:
  using base::base;

 private:
  static future<void> async_push_alone(state& s, const T& value);

  /// Checks the promise, and says what it allows.
  pop_overlap check_pop(state& s, const char* name, concurrency with) {
    bool local = includes(with, concurrency::owner_only);
    if (local && !s.is_host())
      raise(name, " of ", s.kind_name, " '", s.label, "' with concurrency::owner_only on rank ",
            s.where->link.rank(), ", but it lies on rank ", s.tickets.host(),
            ": only its host can pop so.");
    s.overlaps.check(container_operation::pop, name, local ? with & ~concurrency::pop : with,
                     [] { return std::string(); });
    if (local) return pop_overlap::owner_only;
    s.local_head_known = false;
    return includes(with, concurrency::push) ? pop_overlap::any_mix : pop_overlap::without_pushes;
  }

  static remote_mode how(concurrency with) {
    return includes(with, concurrency::pop) ? remote_mode::any_mix : remote_mode::phased;
  }

  /// Asks the host. False: it has to be done one-sided, as it has to wait.
  [[gnu::noinline, gnu::cold]] bool push_there(state& s, std::span<const T> values,
                                               concurrency with) {
    auto pushed = ask_push(s, values, how(with));
    if (pushed && how(with) == remote_mode::phased && *pushed < values.size())
      this->raise_full(s, values.size(), *pushed);
    return pushed && *pushed != 0;
  }

  /// Nothing: it has to be done one-sided, as it has to wait.
  [[gnu::noinline, gnu::cold]] std::optional<T> pop_there(state& s, pop_overlap others) {
    bool waits = others == pop_overlap::any_mix;
    auto popped = ask_pop(s, remote_mode::any_mix, waits, 1);
    if (!popped) return std::nullopt;
    if (popped->empty()) this->raise_empty(s);
    return std::move(popped->front());
  }
  /// False: one-sided. True: `to` is the element, if there was one.
  [[gnu::noinline, gnu::cold]] bool try_pop_there(state& s, std::optional<T>& to) {
    auto popped = ask_pop(s, remote_mode::any_mix, false, 1);
    if (popped && !popped->empty()) to.emplace(std::move(popped->front()));
    return popped.has_value();
  }

  /// Until `ready()`.
  template <class Ready>
  [[gnu::always_inline]] static void await(state& s, job::waiting what, Ready ready) {
    if (!ready()) [[unlikely]]
      await_longer(s, what, ready);
  }
  template <class Ready>
  [[gnu::noinline]] static void await_longer(state& s, job::waiting what, Ready& ready) {
    constexpr int spins = 50;
    for (int i = 0; s.tickets.raw() != nullptr && i < spins; ++i) {
      relax();
      if (ready()) return;
    }
    wait_marker note(*s.where, what, s.tickets.host(), s.label.c_str());
    while (!ready()) s.where->wait_round();
  }

  [[gnu::always_inline]] void push_forms(state& s, const std::byte* forms, std::uint64_t n,
                                         concurrency with) {
    s.complete_boxes();
    if (includes(with, concurrency::pop)) {
      fill(s, s.tickets.claim_push(n), forms, n);
      return;
    }
    ticket_range got = s.tickets.phased_push(n);
    if (got.count != 0) s.slots.write(s.tickets, got.first, forms, got.count, false);
    if (got.count == n) return;
    release(forms + got.count * sizeof(form), n - got.count);
    this->raise_full(s, n, got.count);
  }

  bool try_push_forms(state& s, const std::byte* forms, std::uint64_t n, concurrency with) {
    s.complete_boxes();
    if (!includes(with, concurrency::pop) && n == 1) {
      ticket_range got = s.tickets.phased_push(1);
      if (got.count != 0)
        s.slots.write(s.tickets, got.first, forms, 1, false);
      else
        release(forms, 1);
      return got.count != 0;
    }
    auto first = s.tickets.try_claim_push(n);
    if (first)
      fill(s, *first, forms, n);
    else
      release(forms, n);
    return first.has_value();
  }

  static void release(const std::byte* forms, std::uint64_t n) {
    if constexpr (!form::in_place)
      for (std::uint64_t i = 0; i < n; ++i) from_memory<form>(forms + i * sizeof(form)).release();
  }

  [[gnu::always_inline]] static void fill(state& s, std::uint64_t first, const std::byte* forms,
                                          std::uint64_t n) {
    await(s, job::waiting::push, [&] { return s.slots.look_for_room(s.tickets, first, n); });
    s.slots.write(s.tickets, first, forms, n, true);
  }

  /// Takes the elements of tickets that this rank has. Those that have been read are freed before
  /// it waits for the next: the push it waits for may need that room.
  static void take(state& s, std::uint64_t first, std::uint64_t n, std::byte* to,
                   pop_overlap others) {
    if (FARSIDE_MUTANT(ring_freed_before_read)) s.slots.free(s.tickets, first, n, others);
    std::uint64_t done = 0;
    await(s, job::waiting::pop, [&] {
      std::uint64_t now = s.slots.read(s.tickets, first + done, n - done, to + done * sizeof(form));
      if (now != 0 && !FARSIDE_MUTANT(ring_freed_before_read))
        s.slots.free(s.tickets, first + done, now, others);
      done += now;
      return done == n;
    });
  }

  /// Takes one element on the host, while nobody else pops. False: there is none, and it was not to
  /// wait.
  static bool take_local(state& s, std::byte* to, bool wait) {
    if (!s.local_head_known) {
      s.local_head = s.tickets.look(ring_word::head);
      s.local_head_known = true;
    }
    std::uint64_t ticket = s.local_head;
    auto there = [&] { return s.slots.read(s.tickets, ticket, 1, to) == 1; };
    if (!there()) {
      if (!wait && s.tickets.look(ring_word::tail) <= ticket) return false;
      await(s, job::waiting::pop, there);
    }
    ++s.local_head;
    s.tickets.claim_local_pop(ticket, 1);
    s.slots.free(s.tickets, ticket, 1, pop_overlap::owner_only);
    return true;
  }
};

template <class T, class Slots>
std::vector<T> concurrent_queue<T, Slots>::pop(std::uint64_t n, concurrency with) {
  state& s = *this->state_;
  pop_overlap others = check_pop(s, "pop", with);
  std::vector<T> values;
  std::uint64_t part = std::min(n, s.tickets.shape().capacity);
  values.reserve(part);
  std::vector<std::byte> forms(part * sizeof(form));
  while (values.size() < n) {
    std::uint64_t now = std::min(part, n - values.size());
    if (s.asks(container_operation::pop)) {
      bool waits = others == pop_overlap::any_mix;
      if (auto popped = ask_pop(s, remote_mode::any_mix, waits, now)) {
        if (popped->empty()) break;
        std::move(popped->begin(), popped->end(), std::back_inserter(values));
        continue;
      }
    }
    if (others == pop_overlap::owner_only) {
      for (std::uint64_t i = 0; i < now; ++i) take_local(s, forms.data() + i * sizeof(form), true);
    } else if (others == pop_overlap::without_pushes) {
      ticket_range got = s.tickets.phased_pop(now);
      if (got.count == 0) break;
      now = got.count;
      take(s, got.first, now, forms.data(), others);
    } else {
      take(s, s.tickets.claim_pop(now), now, forms.data(), others);
    }
    for (std::uint64_t i = 0; i < now; ++i)
      values.push_back(this->unpack(forms.data() + i * sizeof(form), true));
  }
  return values;
}

template <class T, class Slots>
std::vector<T> concurrent_queue<T, Slots>::try_pop(std::uint64_t most, concurrency with) {
  state& s = *this->state_;
  pop_overlap others = check_pop(s, "try_pop", with);
  most = std::min(most, s.tickets.shape().capacity);
  if (most == 0) return {};
  if (s.asks(container_operation::pop))
    if (auto popped = ask_pop(s, remote_mode::any_mix, false, most)) return *std::move(popped);
  std::vector<std::byte> forms(most * sizeof(form));
  if (others == pop_overlap::owner_only) {
    std::uint64_t n = 0;
    while (n < most && take_local(s, forms.data() + n * sizeof(form), false)) ++n;
    return this->unpacked(forms.data(), n, true);
  }
  ticket_range got = s.tickets.try_claim_pop(most);
  if (got.count != 0) take(s, got.first, got.count, forms.data(), others);
  return this->unpacked(forms.data(), got.count, true);
}

template <class T, class Slots>
future<void> concurrent_queue<T, Slots>::async_push(const T& value, concurrency with) {
  state& s = *this->state_;
  s.overlaps.check(container_operation::push, "async_push", with, [&] { return describe(value); });
  if (s.asks(container_operation::push))
    return ask_push_later(s, value, remote_mode::any_mix,
                          [&s, value](std::optional<std::uint64_t> pushed) {
                            if (!pushed || *pushed == 0) return async_push_alone(s, value);
                            return future<void>::ready();
                          });
  return async_push_alone(s, value);
}

template <class T, class Slots>
future<void> concurrent_queue<T, Slots>::async_push_alone(state& s, const T& value) {
  form packed = form::pack(value);
  s.complete_boxes();
  auto push =
      std::make_shared<push_in_flight<state>>(s, reinterpret_cast<const std::byte*>(&packed));
  auto go_on = [push, under_way = s.tickets_under_way](std::uint64_t ticket) {
    under_way->fetch_sub(1, std::memory_order_release);
    push->ticket = ticket;
    if (push->poll()) return future<void>(push->result);
    push->waits = true;
    push->state.waiting_for_room.fetch_add(1);
    context& c = push->state.tickets.where();
    std::lock_guard lock(c.mutex);
    c.in_flight.push_back(push);
    return future<void>(push->result);
  };
  s.tickets_under_way->fetch_add(1, std::memory_order_relaxed);
  if (s.tickets.raw() != nullptr) return go_on(s.tickets.claim_push(1));
  return async_fetch_add(s.tickets.word(ring_word::tail), 1).then(go_on);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// Pushes and pops that are sent to the host of a queue (far::engine::rpc).
//
//   caller                                       host, in a handler
//   elements ------------------------------->    takes tickets, if their slots can be written at
//   how many were pushed, or declined <------    once, and writes them
//   how many are wanted -------------------->    takes tickets, if their elements are there, reads
//   elements, or declined <------------------    them and frees their slots
//
// The host's protocol is that of every rank, but it looks before it takes a ticket: with one in its
// hands it could not go back. It declines where it would have to wait: for room or an element, if
// the caller does; for pushes and pops of others that are under way one-sided; and if it is not
// yet, or no longer, the host of the ring that the caller knows. The caller then goes on one-sided,
// and waits with a ticket of its own, in turn with all others.
//
// Elements of variable length travel as they are. The host puts their bytes into its own segment.
#pragma once

#include <farside/containers/detail/ring/state.hpp>

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

enum class remote_mode {
  any_mix,  ///< all of them or nothing
  phased    ///< no pop overlaps pushes, and no push pops: as many as there is room, or are there
};

/// Elements on their way: the form they have in a ring, or themselves if that is only a pointer.
template <class T>
using sent_element = std::conditional_t<box<T>::in_place, box<T>, T>;

template <class T>
std::vector<sent_element<T>> sent_elements(std::span<const T> values) {
  std::vector<sent_element<T>> cargo;
  cargo.reserve(values.size());
  for (const T& value : values) {
    if constexpr (box<T>::in_place)
      cargo.push_back(box<T>::pack(value));
    else
      cargo.push_back(value);
  }
  return cargo;
}

/// Forms of elements that have come; what they point to is freed again unless they were used.
template <class T>
class received_forms {
 public:
  explicit received_forms(const std::vector<sent_element<T>>& cargo) : cargo_(cargo) {
    if constexpr (!box<T>::in_place)
      for (const T& value : cargo) forms_.push_back(box<T>::pack(value));
  }
  received_forms(const received_forms&) = delete;
  ~received_forms() {
    if constexpr (!box<T>::in_place) {
      if (used_ == forms_.size()) return;
      flush(here().link.rank());  // their bytes may still be on the way
      for (std::size_t i = used_; i < forms_.size(); ++i) forms_[i].release();
    }
  }
  const std::byte* data() const {
    if constexpr (box<T>::in_place)
      return reinterpret_cast<const std::byte*>(cargo_.data());
    else
      return reinterpret_cast<const std::byte*>(forms_.data());
  }
  void use(std::size_t n) { used_ = n; }

 private:
  const std::vector<sent_element<T>>& cargo_;
  std::vector<box<T>> forms_;
  std::size_t used_ = 0;
};

/// The state of a ring, if it lies where the caller has seen it: a thread that serves may be asked
/// before its rank has heard that a queue has moved to it.
template <class State>
State& same_ring(State& s, std::uint64_t at) {
  if (s.tickets.memory().raw() != at) throw would_wait{};
  return s;
}

/// At the host: how many of the elements are in the queue now.
template <class State>
void serve_push(void* state, reader& in, writer& answer) {
  using T = typename State::element;
  State& s = same_ring(*static_cast<State*>(state), in.read<std::uint64_t>());
  auto how = in.read<remote_mode>();
  auto cargo = in.read<std::vector<sent_element<T>>>();
  received_forms<T> forms(cargo);
  s.complete_boxes();
  ticket_range got{0, 0};
  if (how == remote_mode::phased) {
    got = s.tickets.phased_push(cargo.size());
  } else {
    auto ready = [&](std::uint64_t ticket) {
      if (FARSIDE_MUTANT(engine_slot_not_asked)) return;
      if (!s.slots.ready_to_write(s.tickets, ticket, cargo.size())) throw would_wait{};
    };
    if (auto first = s.tickets.try_claim_push(cargo.size(), ready)) got = {*first, cargo.size()};
  }
  if (got.count != 0) {
    s.slots.write(s.tickets, got.first, forms.data(), got.count, true);
    // Slots of phases leave that to the pusher's barrier, which would not complete it here.
    if (!FARSIDE_MUTANT(engine_push_unflushed)) flush(s.tickets.host());
  }
  forms.use(got.count);
  answer << got.count;
}

/// At the host: `most` elements if `exactly`, else as many as there are.
template <class State>
void serve_pop(void* state, reader& in, writer& answer) {
  using T = typename State::element;
  State& s = same_ring(*static_cast<State*>(state), in.read<std::uint64_t>());
  auto how = in.read<remote_mode>();
  auto exactly = in.read<bool>();
  auto most = in.read<std::uint64_t>();
  constexpr std::size_t longest = box<T>::in_place ? sizeof(box<T>) : std::size_t{1} << 32;
  s.choice.prepare_answer(8 + std::min<std::uint64_t>(most, 1 << 20) * longest);
  ticket_range got;
  if (how == remote_mode::phased) {
    got = s.tickets.phased_pop(most);
  } else {
    got = s.tickets.try_claim_pop(most, [&](std::uint64_t ticket, std::uint64_t count) {
      if (exactly && count < most) throw would_wait{};
      if (FARSIDE_MUTANT(engine_element_not_asked)) return;
      if (!s.slots.ready_to_read(s.tickets, ticket, count)) throw would_wait{};
    });
    if (exactly && got.count == 0) throw would_wait{};
  }
  std::vector<box<T>> forms(got.count);
  if (got.count != 0) {
    s.slots.read(s.tickets, got.first, got.count, reinterpret_cast<std::byte*>(forms.data()));
    s.slots.free(s.tickets, got.first, got.count, pop_overlap::any_mix);
  }
  if constexpr (box<T>::in_place) {
    answer << forms;
  } else {
    std::vector<T> values;
    for (const box<T>& form : forms) {
      values.push_back(form.unpack());
      form.release();
    }
    answer << values;
  }
}

/// A message to the host that asks for pushes.
template <class State>
writer push_question(State& s, std::span<const typename State::element> values, remote_mode how) {
  writer message = s.choice.message(&serve_push<State>);
  message << s.tickets.memory().raw() << how << sent_elements(values);
  return message;
}

/// What the host has answered. Nothing: it could not, or not at once.
template <class Answer>
std::optional<Answer> ring_answer(const std::vector<std::byte>& bytes) {
  reader in(bytes);
  if (in.left() == 0) return std::nullopt;
  return in.read<Answer>();
}

template <class State>
[[gnu::noinline, gnu::cold]] std::optional<std::uint64_t> ask_push(
    State& s, std::span<const typename State::element> values, remote_mode how) {
  return ring_answer<std::uint64_t>(
      s.choice.ask(s.host, values.size(), push_question(s, values, how)));
}

template <class State>
[[gnu::noinline, gnu::cold]] auto ask_pop(State& s, remote_mode how, bool exactly,
                                          std::uint64_t most)
    -> std::optional<std::vector<typename State::element>> {
  using T = typename State::element;
  writer message = s.choice.message(&serve_pop<State>);
  message << s.tickets.memory().raw() << how << exactly << most;
  auto cargo =
      ring_answer<std::vector<sent_element<T>>>(s.choice.ask(s.host, 1, std::move(message)));
  if constexpr (box<T>::in_place) {
    if (!cargo) return std::nullopt;
    std::vector<T> values;
    values.reserve(cargo->size());
    for (const box<T>& form : *cargo) values.push_back(form.unpack());
    return values;
  } else {
    return cargo;
  }
}

/// A push that is not waited for: `then(pushed)` gives its future.
template <class State, class Then>
future<void> ask_push_later(State& s, const typename State::element& value, remote_mode how,
                            Then then) {
  using T = typename State::element;
  return s.choice.send_later(s.host, push_question(s, std::span<const T>(&value, 1), how),
                             [then = std::move(then)](const std::vector<std::byte>& bytes) mutable {
                               return then(ring_answer<std::uint64_t>(bytes));
                             });
}

}  // namespace far::inline FARSIDE_BACKEND::detail

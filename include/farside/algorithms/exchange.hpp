// far::exchange<T>: everybody sends to everybody, whenever it likes. Values are gathered by target
// and travel as large messages, which land in the receiver's memory without its CPU; the receiver
// handles them when it finds time. The base of buffered inserts and of bucket sorts.
//
//   far::exchange<long> mail;
//   for (long x : values) mail.send(owner_of(x), x);
//   mail.finish([&](std::span<const long> some) {
//     mine.insert(mine.end(), some.begin(), some.end());
//   });
//
// Each pair of members has a ring of its own at the receiver
// (algorithms/detail/exchange_rings.hpp). One ring for all senders would save only a constant
// factor of memory, as gathering by target takes a buffer for each target anyway. With a ring for
// each pair no two senders contend, no ticket has to be waited for, values of one sender keep their
// order, and on shared memory they are written in place. Messages shrink where there are many
// members, so that memory stays bounded (see the constructor).
//
// Memory of a rank: its inbox, plus a message for each member, plus what has arrived while it
// waited in a `send` that was given no handler, plus what handlers send faster than their receivers
// take.
//
// A member whose ring is full makes its sender wait until it calls send, receive or finish. So
// between the first send and finish no member may wait for another one by other means (a barrier).
// What was sent and not finished is lost when the exchange ends.
//
// send and send_all are one-sided, finish is collective.
//
// A handler that throws has handled the values that it was called with. send and receive pass on
// what it throws: the value of that send has not been sent, of several those before may have been.
// finish throws on all members when what was under way has arrived. The member whose handler threw
// has dropped the rest. The exchange is empty then, and can be used on.
#pragma once

#include <farside/algorithms/detail/exchange_rings.hpp>
#include <farside/core/serialization.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <type_traits>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// One thread of a rank at a time may use it.
template <class T>
class exchange {
  static constexpr bool fixed = fixed_length<T>;

 public:
  /// The type of what handlers get. It is valid until they return.
  using values = std::span<const T>;

  /// 64 KiB: on shared memory large enough that announcing costs nothing, and small enough that the
  /// messages under way stay in the caches; see docs/protocols/exchange.md for the measurements.
  static constexpr std::size_t default_message_bytes = std::size_t{64} << 10;
  /// Unless asked for by size, messages get smaller until an inbox needs no more than this.
  static constexpr std::size_t default_inbox_bytes = std::size_t{16} << 20;

  /// Collective. An inbox takes size of the team x `messages` x `message_bytes`. Messages hold at
  /// least one value of fixed length; values of variable length may span messages.
  explicit exchange(const container_options& with = {}, std::size_t message_bytes = 0,
                    std::size_t messages = 4)
      : state_(new state(with, message_size(with, message_bytes, messages), messages)) {
    detail::require_serializable<T>();
  }

  /// Sends a value to a member (its position in the team, or the rank in a world). One-sided. On
  /// return it is on its way at the latest by the next ship() or finish(). Complete messages: 1
  /// put, 1 flush and 1 atomic, 2 waits, so nothing for most values. Waits while the ring at the
  /// receiver is full, and keeps aside meanwhile what arrives here. In a handler it never waits.
  void send(rank_t to, const T& value) { append(to, value, nullptr); }

  /// With a handler: if it has to wait, what arrives is handled at once instead of kept. For
  /// bounded memory.
  template <class Handler>
    requires std::invocable<Handler&, values>
  void send(rank_t to, const T& value, Handler&& meanwhile) {
    with_handler(meanwhile, [&](const auto& h) { append(to, value, &h); });
  }

  /// Sends all of them, in order: copies of whole pieces where T is trivially copyable.
  void send(rank_t to, std::span<const T> some) { append_all(to, some, nullptr); }
  template <class Handler>
    requires std::invocable<Handler&, values>
  void send(rank_t to, std::span<const T> some, Handler&& meanwhile) {
    with_handler(meanwhile, [&](const auto& h) { append_all(to, some, &h); });
  }

  /// Ships messages that are not yet full. One-sided; may wait as send does.
  void ship() {
    state& s = *state_;
    for (rank_t i = 0; i < s.size(); ++i) s.ship(i, nullptr);
  }

  /// Calls `handler(values)` for what has arrived, as often as it takes; values of one sender in
  /// the order of their sending. One-sided, waits for nobody. Returns how many values there were.
  /// 1 get of 8 bytes a member (shared memory: loads), 1 get for each sender that has sent, and an
  /// atomic for each message's worth of room that it gives back.
  template <class Handler>
  std::size_t receive(Handler&& handler) {
    state& s = *state_;
    s.require_outside_handler("receive");
    s.values_handled = 0;
    with_handler(handler, [&](const auto& h) { s.drain(&h); });
    return s.values_handled;
  }

  /// Collective: returns when all members have called it and everything sent has been handled
  /// everywhere, also what handlers have sent meanwhile. Another exchange of the same values can
  /// begin at once. Orders nothing else: puts of handlers need a barrier. Some waves over a tree, 2
  /// at least if anything was sent: 1 put, 1 flush and 2 atomics a member each.
  template <class Handler>
  void finish(Handler&& handler) {
    struct guard {
      state& s;
      ~guard() { s.unfinished.clear(); }  // of values that were dropped
    } until_return{*state_};
    with_handler(handler, [&](const auto& h) { state_->finish(h); });
  }

  /// What this rank has seen of it. Local; no communication.
  exchange_statistics statistics() const { return state_->seen(); }

  /// How many members take part; its name in errors. Local; no communication.
  rank_t size() const { return state_->size(); }
  const std::string& name() const { return state_->label; }

 private:
  template <class U, bool>
  struct unit_of {
    using type = std::byte;
  };
  template <class U>
  struct unit_of<U, true> {
    using type = typename detail::fixed_form<U>::type;
  };
  using unit = typename unit_of<T, fixed>::type;

  struct state : detail::exchange_rings {
    using exchange_rings::exchange_rings;
    std::vector<std::vector<std::byte>> unfinished{};  ///< of each sender: the begin of a value
    std::vector<T> unpacked{};
    std::size_t values_handled = 0;
  };
  using raw_handler = detail::exchange_rings::handler;

  static std::size_t message_size(const container_options& with, std::size_t asked,
                                  std::size_t messages) {
    if (messages < 2)
      detail::raise("exchange: an inbox of ", messages,
                    " messages for each sender cannot work: while one is handled another one is "
                    "written. Ask for at least 2.");
    std::size_t members = with.over ? with.over.size() : nprocs();
    if (messages >= max_segment / members || asked >= max_segment / (members * messages))
      detail::raise<allocation_error>("exchange: an inbox for ", members, " members of ", messages,
                                      " messages each, with ", asked,
                                      " bytes a message, is more than can be: a segment has less "
                                      "than ",
                                      max_segment,
                                      " bytes. Has a negative number become such a large one?");
    std::size_t bytes =
        asked != 0 ? asked
                   : std::min(default_message_bytes, default_inbox_bytes / (members * messages));
    return std::max<std::size_t>(1, bytes / sizeof(unit)) * sizeof(unit);
  }

  /// Calls `work(h)` with `handler` in the form that the rings know.
  template <class Handler, class Work>
  void with_handler(Handler& handler, Work work) {
    state& s = *state_;
    auto raw = [&](rank_t from, const std::byte* bytes, std::size_t n) {
      std::exception_ptr thrown;  // by a serializer: what else has arrived is handled before
      values some = unpack(s, from, bytes, n, thrown);
      s.values_handled += some.size();
      if (!some.empty()) handler(some);
      if (thrown) std::rethrow_exception(thrown);
    };
    work(raw_handler(raw));
  }

  static values unpack(state& s, rank_t from, const std::byte* bytes, std::size_t n,
                       std::exception_ptr& thrown);
  static values unpack_stream(state& s, rank_t from, const std::byte* bytes, std::size_t n,
                              std::exception_ptr& thrown);
  /// A value that cannot be loaded is left out.
  template <class Load>
  static void unpack_one(state& s, std::exception_ptr& thrown, Load load) {
    try {
      s.unpacked.push_back(load());
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  void append(rank_t to, const T& value, const raw_handler* meanwhile);
  void append_all(rank_t to, std::span<const T> some, const raw_handler* meanwhile);
  static void append_bytes(state& s, rank_t to, const std::byte* from, std::size_t n,
                           const raw_handler* meanwhile);

  detail::container_handle<state> state_;
};

template <class T>
[[gnu::always_inline]] inline void exchange<T>::append(rank_t to, const T& value,
                                                       const raw_handler* meanwhile) {
  state& s = *state_;
  if constexpr (fixed) {
    auto& line = s.to(to);
    if (line.at == line.end) [[unlikely]]
      s.begin_message(to, meanwhile);
    new (line.at) unit(detail::fixed_form<T>::pack(value));
    line.at += sizeof(unit);
    if (line.at == line.end) [[unlikely]]
      s.ship(to, nullptr, false);  // the next message waits: this value has been sent
  } else {
    s.to(to);  // checks the rank before anything is written
    auto bytes = to_bytes(value);
    std::uint64_t length = bytes.size();
    // A handler that is called in the midst of a value might send to the same member: only the
    // first byte may wait for one.
    append_bytes(s, to, reinterpret_cast<const std::byte*>(&length), sizeof length, meanwhile);
    append_bytes(s, to, bytes.data(), bytes.size(), nullptr);
  }
}

template <class T>
void exchange<T>::append_all(rank_t to, std::span<const T> some, const raw_handler* meanwhile) {
  if constexpr (detail::plain<T>) {
    append_bytes(*state_, to, reinterpret_cast<const std::byte*>(some.data()), some.size_bytes(),
                 meanwhile);
  } else {
    for (const T& value : some) append(to, value, meanwhile);
  }
}

/// Whole units, over as many messages as it takes.
template <class T>
void exchange<T>::append_bytes(state& s, rank_t to, const std::byte* from, std::size_t n,
                               const raw_handler* meanwhile) {
  auto& line = s.to(to);
  while (n != 0) {
    if (line.at == line.end) s.begin_message(to, meanwhile);
    std::size_t piece = std::min(n, static_cast<std::size_t>(line.end - line.at));
    std::memcpy(line.at, from, piece);
    line.at += piece, from += piece, n -= piece;
    if constexpr (!fixed) meanwhile = nullptr;
    if (line.at == line.end) s.ship(to, nullptr, false);
  }
}

template <class T>
typename exchange<T>::values exchange<T>::unpack(state& s, rank_t from, const std::byte* bytes,
                                                 std::size_t n, std::exception_ptr& thrown) {
  if constexpr (detail::plain<T>) {
    return values(reinterpret_cast<const T*>(bytes), n / sizeof(T));
  } else if constexpr (fixed) {
    s.unpacked.clear();
    for (std::size_t i = 0; i < n; i += sizeof(unit))
      unpack_one(s, thrown, [&] {
        return detail::fixed_form<T>::unpack(*reinterpret_cast<const unit*>(bytes + i));
      });
    return s.unpacked;
  } else {
    return unpack_stream(s, from, bytes, n, thrown);
  }
}

/// Values of variable length: {length, bytes} one after another, cut anywhere.
template <class T>
typename exchange<T>::values exchange<T>::unpack_stream(state& s, rank_t from,
                                                        const std::byte* bytes, std::size_t n,
                                                        std::exception_ptr& thrown) {
  s.unpacked.clear();
  s.unfinished.resize(s.size());
  auto& rest = s.unfinished[from];
  rest.insert(rest.end(), bytes, bytes + n);
  std::size_t at = 0;
  for (std::uint64_t length; rest.size() - at >= sizeof length; at += sizeof length + length) {
    std::memcpy(&length, rest.data() + at, sizeof length);
    if (rest.size() - at - sizeof length < length) break;
    unpack_one(s, thrown, [&] {
      return from_bytes<T>(std::span<const std::byte>(rest).subspan(at + sizeof length, length));
    });
  }
  rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(at));
  return s.unpacked;
}

}  // namespace far::inline FARSIDE_BACKEND

// What far::exchange stands on: bytes from every member to every member, through rings that lie at
// the receiver, one for each sender. docs/protocols/exchange.md tells the whole protocol.
//
//   at the receiver, written by sender s:
//     ring[s]:   | ... taken | arrived, to be handled | free ... |            by puts
//     arrived[phase & 1][s]: how many bytes s has written                     by atomics
//   at the sender, written by receiver r:
//     credits[r]: how many bytes r has handled of those that were sent to it  by atomics
//
// A ring has one producer and one consumer: nobody contends for anything, and bytes keep their
// order. All counts only grow. Invariant: credits <= handled <= arrived <= written <= credits +
// ring. So the bytes that a sender may write are bytes that its receiver has done with.
//
// Memory order: a sender writes, flushes, then adds to `arrived`: a receiver that sees the sum sees
// the bytes (message passing, docs/memory_model.md). A receiver is done with the bytes before it
// adds to `credits` (a get is performed before what follows it), and a sender sees credits before
// it writes (load buffering).
//
// Where memory is coherent a sender writes its elements straight into the free part of the ring,
// and a receiver handles them there: no copy is made at all. Elsewhere a message is gathered in a
// private buffer, put, and got.
#pragma once

#include <farside/algorithms/detail/quiescence.hpp>
#include <farside/algorithms/exchange_statistics.hpp>
#include <farside/base/function_ref.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/detail/attempt.hpp>
#include <farside/core/detail/container.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Bytes, aligned for anything.
struct aligned_buffer {
  struct free_aligned {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t bytes)
      : data(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{64}))) {}
  std::unique_ptr<std::byte[], free_aligned> data;
};

class exchange_rings : public shared_state {
 public:
  /// Called with bytes of one sender, in the order in which it sent them; whole units. Bytes with
  /// which it was called count as handled, also if it throws.
  using handler = function_ref<void(rank_t from, const std::byte* bytes, std::size_t n)>;

  /// A message that is being written to one member.
  struct line {
    std::byte* at = nullptr;  ///< where the next byte goes; == end: no message has been begun
    std::byte* end = nullptr;
    std::byte* begin = nullptr;
    bool direct = false;         ///< it is written in the receiver's ring
    std::uint64_t shipped = 0;   ///< bytes, all announced
    std::uint64_t credited = 0;  ///< as last read
    aligned_buffer buffer;
    struct chunk {
      aligned_buffer buffer;
      std::size_t bytes;
    };
    std::deque<chunk> waiting;  ///< complete messages that found no room
    std::uint64_t queued = 0, delivered = 0;
  };

  /// Collective. `message` and `unit` in bytes; `message` is a multiple of `unit`.
  exchange_rings(const container_options& with, std::size_t message, std::size_t messages);
  inline void release()
      override;  // `inline` here: the table of virtual functions is made where it is used

  line& to(rank_t member) {
    if (member >= lines_.size()) [[unlikely]]
      raise("exchange '", label, "': send to ", member, ", but its team has only ", lines_.size(),
            " members. Ranks are positions in the team.");
    return lines_[member];
  }
  /// Makes room for at least one unit at `at`. May wait, unless a handler runs; what arrives
  /// meanwhile goes to `meanwhile`, or is kept if that is null.
  void begin_message(rank_t to, const handler* meanwhile);
  /// Sends what has been written to `to`, if anything. Waits for room under the same condition.
  void ship(rank_t to, const handler* meanwhile, bool may_wait = true);
  /// Handles what has arrived, once; the number of bytes.
  std::uint64_t drain(const handler* with);
  void finish(const handler& with);

  void require_outside_handler(const char* what) const {
    if (handling_)
      raise(
          "exchange '", label, "': ", what,
          " was called by a handler. A handler may only send; what arrives is handled after it has "
          "returned.");
  }

  rank_t size() const { return static_cast<rank_t>(lines_.size()); }
  const exchange_statistics& seen() const { return seen_; }

 private:
  struct incoming {
    std::uint64_t taken = 0;            ///< bytes handled or kept, over all phases
    std::uint64_t taken_of_phase[2]{};  ///< the same, as `arrived` counts
    std::uint64_t uncredited = 0;
  };
  struct kept {
    rank_t from;
    aligned_buffer buffer;
    std::size_t bytes;
  };

  /// Which of the two sets of arrivals counts: a fast member may send for the next phase already.
  std::size_t parity() const { return FARSIDE_MUTANT(exchange_phases_mixed) ? 0 : phase_ & 1; }
  ptr<std::uint64_t> arrived_at(rank_t member, rank_t from) const {
    return words_[member] + (parity() * size() + from);
  }
  ptr<std::uint64_t> credits_at(rank_t member, rank_t from) const {
    return words_[member] + (2 * size() + from);
  }
  std::size_t room(rank_t to, std::size_t wanted);
  bool begin_direct(rank_t to);
  void deliver_waiting(rank_t to);
  void announce(rank_t to, std::size_t bytes);
  void look_for_arrivals();
  void take(rank_t from, std::size_t bytes, const handler* with);
  void credit(rank_t from, std::size_t bytes);
  void handle(rank_t from, const std::byte* bytes, std::size_t n, const handler& with);
  void keep(rank_t from, const std::byte* bytes, std::size_t n);
  template <class Ready>
  void wait_for(rank_t to, const handler* meanwhile, Ready ready);

  rank_t me_;
  bool coherent_;
  std::size_t message_, ring_;
  ptr<std::byte> inbox_;
  std::vector<ptr<std::byte>> outlets_;    ///< this member's ring at each
  std::vector<ptr<std::uint64_t>> words_;  ///< of each: arrived[2][n], credits[n]
  std::vector<line> lines_;
  std::vector<incoming> incoming_;
  std::vector<std::uint64_t> arrivals_;  ///< this phase's words, as last read
  aligned_buffer scratch_;
  std::deque<kept> backlog_;
  std::uint64_t backlog_bytes_ = 0;
  std::uint64_t phase_ = 0;  ///< finishes so far
  bool handling_ = false;
  exchange_statistics seen_;
  quiescence rest_;
};

inline exchange_rings::exchange_rings(const container_options& with, std::size_t message,
                                      std::size_t messages)
    : shared_state("exchange", with),
      me_(members.rank()),
      coherent_(here().link.coherent()),
      message_(message),
      ring_(message * messages),
      lines_(members.size()),
      incoming_(members.size()),
      arrivals_(members.size()),
      rest_(members) {
  rank_t n = members.size();
  struct alignas(64) cache_line {
    std::byte bytes[64];
  };
  ptr<std::uint64_t> words;
  auto give_back = [&] {
    dealloc(words);
    dealloc(inbox_);
    rest_.release();
  };
  do_together(
      members, full_name(),
      [&] {
        try {
          inbox_ = pointer_cast<std::byte>(alloc<cache_line>((n * ring_ + 63) / 64));
          words = alloc<std::uint64_t>(3 * std::size_t{n});
        } catch (const allocation_error&) {
          give_back();
          throw;
        }
      },
      give_back);
  put(words, std::vector<std::uint64_t>(3 * std::size_t{n}));
  outlets_ = all_gather(inbox_, members);
  for (auto& outlet : outlets_) outlet += static_cast<std::ptrdiff_t>(me_ * ring_);
  words_ = all_gather(words, members);
  barrier(members);
}

inline void exchange_rings::release() {
  rest_.release();
  dealloc(words_[me_]);
  dealloc(inbox_);
}

/// Free bytes in the ring at `to`; looks for new credits only if there are fewer than `wanted`.
inline std::size_t exchange_rings::room(rank_t to, std::size_t wanted) {
  line& out = lines_[to];
  if (ring_ - (out.shipped - out.credited) < wanted)
    out.credited = load_own(here(), credits_at(me_, to));
  return ring_ - (out.shipped - out.credited);
}

/// Waits until `ready()`, and does what others wait for meanwhile.
template <class Ready>
void exchange_rings::wait_for(rank_t to, const handler* meanwhile, Ready ready) {
  if (ready()) return;
  ++seen_.stalls;
  context& c = here();
  detail::wait_marker note(c, job::waiting::room, members.world_rank(to), label.c_str());
  while (!ready())
    if (drain(meanwhile) == 0) c.wait_round();
}

/// A message in the receiver's ring itself, up to the ring's end at most.
inline bool exchange_rings::begin_direct(rank_t to) {
  line& out = lines_[to];
  std::size_t position = out.shipped % ring_;
  std::size_t bytes = std::min(message_, ring_ - position);
  if (room(to, bytes) < bytes) return false;
  auto* ring =
      static_cast<std::byte*>(here().link.address(outlets_[to].rank(), outlets_[to].offset()));
  out.begin = out.at = ring + position;
  out.end = out.at + bytes;
  out.direct = true;
  return true;
}

inline void exchange_rings::begin_message(rank_t to, const handler* meanwhile) {
  line& out = lines_[to];
  auto begun = [&, this] {
    if (out.at != out.end) return true;  // by a handler, while this waited
    deliver_waiting(to);
    return out.waiting.empty() && (!coherent_ || begin_direct(to));
  };
  bool can_begin = true;
  if (handling_)
    can_begin = begun();
  else
    wait_for(to, meanwhile, begun);
  if (out.at != out.end || (coherent_ && can_begin)) return;
  if (!out.buffer.data) out.buffer = aligned_buffer(message_);
  out.begin = out.at = out.buffer.data.get();
  out.end = out.at + message_;
  out.direct = false;
}

inline void exchange_rings::ship(rank_t to, const handler* meanwhile, bool may_wait) {
  line& out = lines_[to];
  auto bytes = static_cast<std::size_t>(out.at - out.begin);
  if (out.direct && bytes != 0) {
    note(here(), operation::put, outlets_[to].rank(), bytes, false);
    out.begin = out.at = out.end = nullptr;
    announce(to, bytes);
  } else if (bytes != 0) {
    out.waiting.push_back({std::move(out.buffer), bytes});
    out.begin = out.at = out.end = nullptr;
    ++out.queued;
  }
  auto mine = out.queued;
  auto gone = [&, this] {
    deliver_waiting(to);
    return out.delivered >= mine;
  };
  if (may_wait && !handling_)
    wait_for(to, meanwhile, gone);
  else
    gone();
}

/// Puts messages that wait, in order, as long as there is room.
inline void exchange_rings::deliver_waiting(rank_t to) {
  line& out = lines_[to];
  while (!out.waiting.empty()) {
    auto& [buffer, bytes] = out.waiting.front();
    if (room(to, bytes) < bytes) return;
    std::size_t position = out.shipped % ring_;
    std::size_t first = std::min(bytes, ring_ - position);
    put(outlets_[to] + static_cast<std::ptrdiff_t>(position), buffer.data.get(), first);
    if (first < bytes) put(outlets_[to], buffer.data.get() + first, bytes - first);
    std::size_t all = bytes;
    if (!out.buffer.data) out.buffer = std::move(buffer);
    out.waiting.pop_front();
    ++out.delivered;
    announce(to, all);
  }
}

inline void exchange_rings::announce(rank_t to, std::size_t bytes) {
  if (!FARSIDE_MUTANT(exchange_announced_unflushed)) flush(outlets_[to].rank());
  fetch_add(arrived_at(to, me_), bytes);
  lines_[to].shipped += bytes;
  ++seen_.messages;
  seen_.bytes_sent += bytes;
}

inline void exchange_rings::look_for_arrivals() {
  context& c = here();
  ptr<std::uint64_t> from = arrived_at(me_, 0);
  if (coherent_) {
    auto* at = static_cast<std::uint64_t*>(c.link.address(from.rank(), from.offset()));
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
      arrivals_[i] = std::atomic_ref(at[i]).load(std::memory_order_acquire);
    note(c, operation::get, from.rank(), 8 * arrivals_.size(), true);
  } else if (c.link.racy_get()) {
    get(from, arrivals_.data(), arrivals_.size());
  } else {
    for (std::size_t i = 0; i < arrivals_.size(); ++i)
      arrivals_[i] = atomic_load(from + static_cast<std::ptrdiff_t>(i));
  }
}

inline std::uint64_t exchange_rings::drain(const handler* with) {
  std::uint64_t bytes = 0;
  while (with != nullptr && !backlog_.empty()) {
    kept first = std::move(backlog_.front());
    backlog_.pop_front();
    backlog_bytes_ -= first.bytes;
    handle(first.from, first.buffer.data.get(), first.bytes, *with);
    bytes += first.bytes;
  }
  look_for_arrivals();
  for (rank_t i = 0; i < size(); ++i) {
    rank_t from = me_ + i < size() ? me_ + i : me_ + i - size();  // not all at one ring at once
    incoming& in = incoming_[from];
    std::uint64_t fresh = arrivals_[from] - in.taken_of_phase[parity()];
    if (fresh == 0) continue;
    take(from, fresh, with);
    bytes += fresh;
  }
  if (bytes != 0) here().count_activity();
  return bytes;
}

/// Handles or keeps the next `bytes` of a ring, in one piece or two, and gives their room back.
inline void exchange_rings::take(rank_t from, std::size_t bytes, const handler* with) {
  context& c = here();
  incoming& in = incoming_[from];
  while (bytes != 0) {
    std::size_t position = in.taken % ring_;
    std::size_t piece = std::min(bytes, ring_ - position);
    ptr<std::byte> at = inbox_ + static_cast<std::ptrdiff_t>(from * ring_ + position);
    const std::byte* data;
    if (FARSIDE_MUTANT(exchange_room_given_back_early)) credit(from, piece);
    if (coherent_) {
      note(c, operation::get, at.rank(), piece, true);
      data = static_cast<const std::byte*>(c.link.address(at.rank(), at.offset()));
    } else {
      if (!scratch_.data) scratch_ = aligned_buffer(ring_);
      get(at, scratch_.data.get(), piece);
      data = scratch_.data.get();
    }
    bytes -= piece;
    // Also if the handler throws: what it was given has been taken, and nothing else.
    struct taken {
      exchange_rings& rings;
      rank_t from;
      std::size_t piece;
      ~taken() {
        incoming& in = rings.incoming_[from];
        in.taken += piece;
        in.taken_of_phase[rings.parity()] += piece;
        if (!FARSIDE_MUTANT(exchange_room_given_back_early)) rings.credit(from, piece);
      }
    } until_handled{*this, from, piece};
    if (with != nullptr)
      handle(from, data, piece, *with);
    else
      keep(from, data, piece);
  }
}

/// Room is given back a message at a time: fewer atomics, and a sender finds enough at once.
inline void exchange_rings::credit(rank_t from, std::size_t bytes) {
  incoming& in = incoming_[from];
  in.uncredited += bytes;
  if (in.uncredited < message_) return;
  fetch_add(credits_at(from, me_), in.uncredited);
  in.uncredited = FARSIDE_MUTANT(exchange_credit_counted_again) ? bytes / 2 : 0;
}

inline void exchange_rings::handle(rank_t from, const std::byte* bytes, std::size_t n,
                                   const handler& with) {
  struct guard {
    exchange_rings& rings;
    std::size_t n;
    ~guard() {
      rings.handling_ = false;
      rings.seen_.bytes_handled += n;
    }
  } until_return{*this, n};
  handling_ = true;
  with(from, bytes, n);
}

inline void exchange_rings::keep(rank_t from, const std::byte* bytes, std::size_t n) {
  kept copy{from, aligned_buffer(n), n};
  std::memcpy(copy.buffer.data.get(), bytes, n);
  backlog_.push_back(std::move(copy));
  backlog_bytes_ += n;
  seen_.largest_backlog = std::max(seen_.largest_backlog, backlog_bytes_);
}

inline void exchange_rings::finish(const handler& with) {
  require_outside_handler("finish");
  context& c = here();
  attempt tried;
  {
    detail::wait_marker note(c, job::waiting::exchange, job::no_rank, label.c_str());
    // Once the handler has thrown, what arrives is dropped: the others wait until it was taken.
    auto guarded = [&](rank_t from, const std::byte* bytes, std::size_t n) {
      tried([&] { with(from, bytes, n); });
    };
    const handler all(guarded);
    for (bool idle = false;;) {
      std::uint64_t handled = drain(&all);
      bool all_out = true;
      for (rank_t i = 0; i < size(); ++i) {
        ship(i, nullptr, false);
        all_out = all_out && lines_[i].waiting.empty();
      }
      idle = all_out && handled == 0;
      if (rest_.step(idle, seen_.bytes_sent, seen_.bytes_handled, tried.failed())) break;
      if (idle || handled == 0) c.wait_round();
    }
    ++phase_;
  }
  if (rest_.any_failed())
    collectively<"exchange::finish">(
        members, 0, 1, job::no_rank, {}, [&](context& in, team_members& t) {
          tried.agree(in, t, ("exchange '" + label + "'").c_str(), "a handler threw");
        });
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// The sender's side of rings: writes messages where their receivers find them, and keeps those for
// which there is no room yet, in order.
//
//   send --- no message waits, and there is room -----------------> written
//     \----- else ---> waiting --- room comes --------------------> written
//   keep ------------> waiting     (piece by piece, or many small
//                                   ones together)
//
//   written: put, flush, fetch_add(arrived)
//
// Invariant of a ring: credited <= taken <= arrived <= written <= credited + ring. The sender alone
// writes from `written` to `credited + ring`, the receiver alone reads from `taken` to `arrived`.
// A receiver that sees a sum in `arrived` sees all bytes up to it, as they were flushed before
// (message passing). Credits are given after the bytes were read, and seen before others are
// written (load buffering).
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/messages/wire.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>

#include <deque>
#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// One thread at a time.
class outbox {
 public:
  using message = std::vector<std::byte>;

  explicit outbox(context& c)
      : c_(c), ring_(ring_bytes(c.link.nprocs())), lines_(c.link.nprocs()) {}

  /// Makes the ring that leads to a rank, if there is none. Throws far::allocation_error where
  /// there is no room for it.
  void prepare(rank_t to) { line_to(to); }

  /// Writes the message, or keeps it. A ticket to ask `gone` with; 0: it is written.
  std::uint64_t send(rank_t to, message bytes) {
    line& out = line_to(to);
    bool first = out.waiting.empty() || FARSIDE_MUTANT(message_overtakes);
    if (first && room(out, bytes.size()) >= bytes.size()) {
      write(to, out, bytes.data(), bytes.size());
      return 0;
    }
    if (FARSIDE_MUTANT(message_lost_when_full)) return 0;
    return add(to, out, std::move(bytes));
  }

  /// Keeps the message, to be written with others: by deliver, or behind it by the next send.
  std::uint64_t keep(rank_t to, message bytes) { return add(to, line_to(to), std::move(bytes)); }

  bool gone(rank_t to, std::uint64_t ticket) const { return lines_[to]->delivered >= ticket; }

  /// Writes what waits, as far as there is room; whether that was anything.
  bool deliver() {
    bool moved = false;
    for (std::size_t i = 0; i < stuck_.size();) {
      line& out = *lines_[stuck_[i]];
      moved = deliver(stuck_[i], out) || moved;
      if (out.waiting.empty())
        stuck_.erase(stuck_.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    return moved;
  }

  std::size_t kept() const { return kept_; }  ///< bytes that wait
  std::size_t kept(rank_t to) const { return lines_[to] ? lines_[to]->kept : 0; }

 private:
  struct line {
    ptr<std::byte> ring;
    ptr<std::uint64_t> arrived, credits;
    std::uint64_t written = 0, credited = 0;
    std::deque<message> waiting;
    std::size_t begun = 0;       ///< bytes of the first of them that are written
    std::uint64_t gathered = 1;  ///< messages that have become the first of them
    std::size_t kept = 0;        ///< bytes that wait
    std::uint64_t queued = 0, delivered = 0;
  };

  std::uint64_t add(rank_t to, line& out, message bytes) {
    if (out.waiting.empty()) stuck_.push_back(to);
    kept_ += bytes.size();
    out.kept += bytes.size();
    out.waiting.push_back(std::move(bytes));
    return ++out.queued;
  }

  line& line_to(rank_t to) {
    if (!lines_[to]) [[unlikely]]
      lines_[to] = open(to);
    return *lines_[to];
  }

  /// Makes a ring at a receiver. One-sided: an allocation there, 1 put, 1 flush, 2 atomics.
  std::unique_ptr<line> open(rank_t to) {
    auto out = std::make_unique<line>();
    rank_t me = c_.link.rank();
    out->credits = alloc<std::uint64_t>();
    ptr<ring_head> block;
    try {
      block = alloc_on<ring_head>(to, 1 + ring_ / sizeof(ring_head));
    } catch (const allocation_error&) {
      dealloc(out->credits);
      throw;
    }
    put(out->credits, std::uint64_t{0});
    flush(me);
    put(block, ring_head{out->credits.raw(), 0});
    flush(to);
    if (FARSIDE_MUTANT(message_ring_freed_early)) dealloc(block);
    out->ring = pointer_cast<std::byte>(block + 1);
    std::uint64_t index = fetch_add(senders_word(to), 1);
    out->arrived = arrived_word(to, index);
    atomic_store(mailbox_word(to, index, c_.link.nprocs()),
                 ptr<std::byte>(me, block.offset()).raw());
    return out;
  }

  std::size_t room(line& out, std::size_t wanted) {
    if (ring_ - (out.written - out.credited) < wanted)
      out.credited = look_at(c_, out.credits.offset());
    if (FARSIDE_MUTANT(message_room_not_asked)) return ring_;
    return ring_ - (out.written - out.credited);
  }

  void write(rank_t to, line& out, const std::byte* bytes, std::size_t n) {
    std::size_t position = out.written % ring_;
    std::size_t first = std::min(n, ring_ - position);
    put(out.ring + static_cast<std::ptrdiff_t>(position), bytes, first);
    if (first < n) put(out.ring, bytes + first, n - first);
    if (!FARSIDE_MUTANT(message_announced_unflushed)) flush(to);
    fetch_add(out.arrived, n);
    out.written += n;
    wake(c_, to);
  }

  /// Messages of up to half a ring wait until they fit as a whole, others go by quarters at least:
  /// a receiver keeps back less than a quarter of the credits, so there comes a time for each.
  bool deliver(rank_t to, line& out) {
    bool moved = false;
    while (!out.waiting.empty()) {
      gather(out);
      message& first = out.waiting.front();
      std::size_t rest = first.size() - out.begun;
      std::size_t least = first.size() <= ring_ / 2 ? rest : std::min(rest, ring_ / 4);
      std::size_t now = std::min(rest, room(out, least));
      if (now < least) break;
      write(to, out, first.data() + out.begun, now);
      moved = true;
      kept_ -= now;
      out.kept -= now;
      out.begun += now;
      if (out.begun < first.size()) continue;
      out.begun = 0;
      out.waiting.pop_front();
      out.delivered += std::exchange(out.gathered, 1);
    }
    return moved;
  }

  /// Small messages that wait behind the first one join it, so that one put and one atomic carry
  /// them: a ring is a stream of messages, whose pieces mean nothing.
  void gather(line& out) {
    constexpr std::size_t enough = 4096;
    if (out.begun != 0) return;
    message together = std::move(out.waiting.front());
    out.waiting.pop_front();
    while (!out.waiting.empty() &&
           together.size() + out.waiting.front().size() <= std::min(enough, ring_ / 2)) {
      const message& next = out.waiting.front();
      together.insert(together.end(), next.begin(), next.end());
      out.waiting.pop_front();
      ++out.gathered;
    }
    out.waiting.push_front(std::move(together));
  }

  context& c_;
  std::size_t ring_;
  std::vector<std::unique_ptr<line>> lines_;  ///< by receiver; null: nothing was sent there
  std::vector<rank_t> stuck_;                 ///< those for which messages wait
  std::size_t kept_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

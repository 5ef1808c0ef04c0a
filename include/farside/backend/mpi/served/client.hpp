// The client: requests of this process that are under way. It never waits either; memory.hpp does.
//
// A request has a slot from its call until nothing of it is under way: its message, its answer and,
// for a long put, its bytes. The slot's generation tells a handle whether its request is complete.
//
//   free --start--> message sending, answer posted, bytes sending --all done--> free,
//                                                                   generation + 1
//
// What is complete at a server. Requests to one server are executed in the order in which they were
// sent, so any answer says that all sent before it are executed. Each request that changes
// something is counted (`sent`); an answer carries the count at its call to `confirmed`. A fence is
// an empty request, for when no answer is due. Long puts land later than their header is executed,
// so each has an answer of its own, and `landing` counts those that are due.
//
// Bounds. After `ask_after` unconfirmed puts the next one asks for an answer, and with `stop_after`
// of them the client waits. So the messages that MPI keeps for a server that does not look are at
// most that many from each client.
#pragma once

#include <farside/backend/mpi/served/message.hpp>
#include <farside/base/mutants.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

/// What names a request: it is complete when its slot has gone on to another generation.
struct ticket {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;
};

/// Where a rank's segment is: the process that serves it, and which of its segments it is.
struct target {
  std::uint32_t server, local;
};

class client {
 public:
  client() = default;
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  void open(MPI_Comm requests, MPI_Comm answers, const limits& limit);

  /// Whether a request may be sent to `server`: there is a slot, and not too much is unconfirmed.
  bool ready(std::uint32_t server) {
    const peer& p = peers_[server];
    if (!free_.empty() && !p.full()) [[likely]]
      return true;
    look();
    return !free_.empty() && !p.full();
  }
  /// Room for a get, which must see this rank's own puts.
  bool ready_to_get(std::uint32_t server) { return landed(server) && ready(server); }

  // All of these: after ready().
  /// Also of an accumulate, which is a put that adds.
  void put(target to, std::size_t offset, const void* from, std::size_t bytes,
           kind what = kind::put, addend type = {});
  ticket long_put(target to, std::size_t offset, const void* from, std::size_t bytes);
  /// Many pieces, which lie one after another at `from`; to be added, if `what` says so.
  void put_runs(target to, std::span<const run> where, const void* from, std::size_t bytes,
                kind what = kind::put_runs, addend type = {});
  ticket get_runs(target from, std::span<const run> where, void* to, std::size_t bytes);
  ticket get(target from, std::size_t offset, void* to, std::size_t bytes) {
    header h = about(kind::get, from, offset);
    h.bytes = bytes;
    return ask(from.server, h, to, bytes);
  }
  /// `h` has everything but the target.
  ticket atomic(header h, target to, std::size_t offset, void* old) {
    h.local = to.local;
    h.offset = offset;
    return ask(to.server, h, old, h.width);
  }
  void signal(target to, std::size_t offset) { send_counted(to, about(kind::signal, to, offset)); }

  /// The puts to `server` so far, for complete().
  std::uint64_t sent(std::uint32_t server) const { return peers_[server].sent; }
  /// Whether no answer is due that would say that so many are complete.
  bool needs_fence(std::uint32_t server, std::uint64_t count) const {
    const peer& p = peers_[server];
    return p.confirmed < count && p.asked < count;
  }
  void fence(std::uint32_t server) { ask(server, about(kind::fence, {server, 0}, 0), nullptr, 0); }
  /// Whether so many puts to `server` are complete there, and all long ones.
  bool complete(std::uint32_t server, std::uint64_t count) {
    const peer& p = peers_[server];
    if (p.confirmed >= count && p.landing == 0) return true;
    look();
    return p.confirmed >= count && p.landing == 0;
  }
  /// Servers that may not be clean. They stay here until forget_clean().
  const std::vector<std::uint32_t>& dirty() const { return dirty_; }
  void forget_clean() {
    std::erase_if(dirty_, [&](std::uint32_t server) {
      peer& p = peers_[server];
      p.listed = p.confirmed != p.sent || p.landing != 0;
      return !p.listed;
    });
  }

  bool done(ticket t) {
    slot& s = table_[t.slot];
    if (s.generation == t.generation) progress(s);
    return s.generation != t.generation;
  }
  /// Whether the source of a long put may be reused.
  bool source_free(ticket t) {
    slot& s = table_[t.slot];
    if (s.generation != t.generation) return true;
    progress(s);
    return s.generation != t.generation || s.data == MPI_REQUEST_NULL;
  }

  bool idle() const { return busy_.empty(); }
  /// Completes some of what can be; the next look begins where this one ended. A test that finds
  /// nothing makes MPI look at all its connections, which over TCP is a system call: a few such
  /// are enough, however many requests are under way.
  void look() {
    constexpr int enough = 4;
    std::size_t left = busy_.size();
    for (int unfinished = 0; left > 0 && unfinished < enough; --left) {
      if (cursor_ == 0 || cursor_ > busy_.size()) cursor_ = busy_.size();
      slot& s = table_[busy_[--cursor_]];
      std::uint64_t generation = s.generation;
      progress(s);
      unfinished += s.generation == generation ? 1 : 0;
    }
  }

 private:
  static constexpr std::uint64_t ask_after = 64, stop_after = 256;
  static constexpr std::size_t ask_after_bytes = std::size_t{256} << 10,
                               stop_after_bytes = std::size_t{1} << 20;

  struct slot {
    MPI_Request answer = MPI_REQUEST_NULL, message = MPI_REQUEST_NULL, data = MPI_REQUEST_NULL;
    std::uint64_t generation = 1;
    std::uint64_t mark = 0, mark_bytes = 0;  ///< what the answer confirms
    std::uint32_t server = 0, number = 0;
    std::uint32_t place = 0;  ///< in busy_
    bool lands = false;       ///< a long put
    header small;             ///< the message, if it is a header alone
    std::unique_ptr<char[]> large;
  };

  struct peer {
    std::uint64_t sent = 0, confirmed = 0, asked = 0;
    std::uint64_t sent_bytes = 0, confirmed_bytes = 0, asked_bytes = 0;
    std::uint32_t landing = 0;
    bool listed = false;  ///< in dirty_

    bool full() const {
      return sent - confirmed >= stop_after || sent_bytes - confirmed_bytes >= stop_after_bytes;
    }
    bool wants_answer() const {
      return sent - asked >= ask_after || sent_bytes - asked_bytes >= ask_after_bytes;
    }
  };

  bool landed(std::uint32_t server) {
    const peer& p = peers_[server];
    if (p.landing == 0) [[likely]]
      return true;
    look();
    return p.landing == 0;
  }

  static header about(kind what, target at, std::size_t offset) {
    header h{};
    h.what = what;
    h.local = at.local;
    h.offset = offset;
    return h;
  }

  slot& take(std::uint32_t server) {
    std::uint32_t number = free_.back();
    free_.pop_back();
    slot& s = table_[number];
    s.server = server;
    s.place = static_cast<std::uint32_t>(busy_.size());
    busy_.push_back(number);
    return s;
  }

  void post_answer(slot& s, void* to, std::size_t bytes) {
    peer& p = peers_[s.server];
    s.mark = p.asked = p.sent;
    s.mark_bytes = p.asked_bytes = p.sent_bytes;
    MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(s.server),
              static_cast<int>(s.number), answers_, &s.answer);
  }

  /// Room for a header and what follows it; `h` is there already.
  char* large_message(slot& s, const header& h) {
    if (!s.large) s.large = std::make_unique_for_overwrite<char[]>(sizeof h + limit_.inline_put);
    std::memcpy(s.large.get(), &h, sizeof h);
    return s.large.get() + sizeof h;
  }
  void send_large(slot& s, std::size_t bytes) {
    MPI_Isend(s.large.get(), static_cast<int>(sizeof(header) + bytes), MPI_BYTE,
              static_cast<int>(s.server), request_tag, requests_, &s.message);
  }

  void send(slot& s, header h) {
    h.slot = s.number;
    s.small = h;
    MPI_Isend(&s.small, sizeof h, MPI_BYTE, static_cast<int>(s.server), request_tag, requests_,
              &s.message);
  }

  ticket ask(std::uint32_t server, header h, void* to, std::size_t bytes) {
    slot& s = take(server);
    h.answered = 1;
    ticket result{s.number, s.generation};
    post_answer(s, to, bytes);
    send(s, h);
    return result;
  }

  void count(std::uint32_t server, std::size_t bytes) {
    peer& p = peers_[server];
    ++p.sent;
    p.sent_bytes += bytes;
    list(server, p);
  }
  void list(std::uint32_t server, peer& p) {
    if (!p.listed) dirty_.push_back(server);
    p.listed = true;
  }

  void send_counted(target to, header h) {
    slot& s = take(to.server);
    count(to.server, sizeof h);
    h.answered = peers_[to.server].wants_answer();
    if (h.answered) post_answer(s, nullptr, 0);
    send(s, h);
    progress(s);
  }

  /// Completes what can be of one request.
  void progress(slot& s) {
    auto finished = [](MPI_Request& request) {
      int done = 1;
      if (request != MPI_REQUEST_NULL) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    };
    if (s.answer != MPI_REQUEST_NULL) {
      if (!finished(s.answer)) {
        if (s.data != MPI_REQUEST_NULL) finished(s.data);
        return;
      }
      peer& p = peers_[s.server];
      p.confirmed = std::max(p.confirmed, s.mark);
      p.confirmed_bytes = std::max(p.confirmed_bytes, s.mark_bytes);
      if (s.lands) --p.landing;
    }
    if (!finished(s.message) || !finished(s.data)) return;
    s.lands = false;
    ++s.generation;
    table_[busy_.back()].place = s.place;
    busy_[s.place] = busy_.back();
    busy_.pop_back();
    free_.push_back(s.number);
  }

  MPI_Comm requests_ = MPI_COMM_NULL, answers_ = MPI_COMM_NULL;
  limits limit_{};
  std::unique_ptr<peer[]> peers_;  ///< by process of the communicators
  std::unique_ptr<slot[]> table_;
  std::vector<std::uint32_t> free_, busy_;
  std::size_t cursor_ = 0;  ///< in busy_: look() has come down to there
  std::vector<std::uint32_t> dirty_;
};

inline void client::open(MPI_Comm requests, MPI_Comm answers, const limits& limit) {
  requests_ = requests;
  answers_ = answers;
  limit_ = limit;
  int processes = 0;
  MPI_Comm_size(requests, &processes);
  peers_ = std::make_unique<peer[]>(static_cast<std::size_t>(processes));
  table_ = std::make_unique<slot[]>(slots);
  for (std::uint32_t i = slots; i > 0; --i) {
    table_[i - 1].number = i - 1;
    free_.push_back(i - 1);
  }
  busy_.reserve(slots);
}

inline void client::put(target to, std::size_t offset, const void* from, std::size_t bytes,
                        kind what, addend type) {
  slot& s = take(to.server);
  count(to.server, sizeof(header) + bytes);
  header h = about(what, to, offset);
  h.op = static_cast<std::uint8_t>(type);
  h.bytes = bytes;
  h.slot = s.number;
  h.answered = peers_[to.server].wants_answer();
  if (h.answered) post_answer(s, nullptr, 0);
  char* body = large_message(s, h);
  if (bytes != 0) std::memcpy(body, from, bytes);
  send_large(s, bytes);
  progress(s);
}

inline void client::put_runs(target to, std::span<const run> where, const void* from,
                             std::size_t bytes, kind what, addend type) {
  slot& s = take(to.server);
  std::size_t length = place_of_runs(bytes) + where.size_bytes();
  count(to.server, sizeof(header) + length);
  header h = about(what, to, 0);
  h.op = static_cast<std::uint8_t>(type);
  h.bytes = bytes;
  h.value = where.size();
  h.slot = s.number;
  h.answered = peers_[to.server].wants_answer();
  if (h.answered) post_answer(s, nullptr, 0);
  char* body = large_message(s, h);
  std::memcpy(body, from, bytes);
  std::memcpy(body + place_of_runs(bytes), where.data(), where.size_bytes());
  send_large(s, length);
  progress(s);
}

inline ticket client::get_runs(target from, std::span<const run> where, void* to,
                               std::size_t bytes) {
  slot& s = take(from.server);
  ticket result{s.number, s.generation};
  header h = about(kind::get_runs, from, 0);
  h.bytes = bytes;
  h.value = where.size();
  h.slot = s.number;
  h.answered = 1;
  post_answer(s, to, bytes);
  std::memcpy(large_message(s, h), where.data(), where.size_bytes());
  send_large(s, where.size_bytes());
  return result;
}

inline ticket client::long_put(target to, std::size_t offset, const void* from, std::size_t bytes) {
  peer& p = peers_[to.server];
  header h = about(kind::long_put, to, offset);
  h.bytes = bytes;
  ++p.landing;
  list(to.server, p);
  ticket result = ask(to.server, h, nullptr, 0);
  slot& s = table_[result.slot];
  s.lands = true;
  MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(to.server),
            data_tag + static_cast<int>(s.number), requests_, &s.data);
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served

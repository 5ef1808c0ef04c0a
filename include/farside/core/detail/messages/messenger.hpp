// All of a rank's messages: sends them, serves those that arrive, and knows when all are done.
// docs/protocols/messages.md has the protocol and why nobody waits for ever.
//
//                     send                                          serve, one thread at a time
//   program  --waits for room, serving meanwhile-->  outbox  ~~>  inbox --> handler --> answer
//   handler  --never waits---------------------->      |              (may send)          |
//   continuation <-- future is ready <-- replies <-----+----------------------------------'
#pragma once

#include <farside/core/detail/crash_report.hpp>
#include <farside/core/detail/messages/attendant.hpp>
#include <farside/core/detail/messages/batch.hpp>
#include <farside/core/detail/messages/inbox.hpp>
#include <farside/core/detail/messages/incoming.hpp>
#include <farside/core/detail/messages/may_not_wait.hpp>
#include <farside/core/detail/messages/message_counts.hpp>
#include <farside/core/detail/messages/outbox.hpp>
#include <farside/core/detail/messages/replies.hpp>
#include <farside/core/detail/messages/served_containers.hpp>
#include <farside/core/engine.hpp>

#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace far::inline FARSIDE_BACKEND::detail {

/// Set before main by programs whose own code sends messages.
inline constinit std::atomic<bool> program_sends{false};

class messenger final : public message_service {
 public:
  explicit messenger(context& c)
      : containers(c),
        c_(c),
        lock_(c.threads == thread_level::multiple),
        out_(c),
        in_(c),
        replies_(c) {
    if (c.attends == attention::thread) attendant_.start(c, *this);
  }
  ~messenger() override { stop(); }

  /// What service() made, for those that send.
  static messenger& of(context& c) { return static_cast<messenger&>(*c.service()); }

  // --- sending ---

  code_address name_of(trampoline code) {
    std::lock_guard lock(lock_);
    return code_.encode(reinterpret_cast<const void*>(code));
  }
  code_address name_of(const void* code) {
    std::lock_guard lock(lock_);
    return code_.encode(code);
  }
  const void* find(code_address code) {
    std::lock_guard lock(lock_);
    return code_.decode(code);
  }

  /// What a message to that rank needs in segments is there on return, or far::allocation_error is
  /// thrown. It comes before anything is counted or sent, none of which fails then.
  void prepare(rank_t to) {
    std::lock_guard lock(lock_);
    out_.prepare(to);
  }
  /// Like prepare(), for a message that is answered.
  void prepare_call(rank_t to) {
    std::lock_guard lock(lock_);
    out_.prepare(to);
    replies_.prepare();
  }
  /// In the handler of an operation, before it changes anything: its answer may be longer than a
  /// reply slot. Gives up where there is no room for it at the caller.
  void prepare_long_answer() {
    try {
      prepare(answering_);
    } catch (const allocation_error&) {
      throw would_wait{};
    }
  }

  reply_place reserve(std::shared_ptr<awaiting> who) {
    std::lock_guard lock(lock_);
    return replies_.reserve(std::move(who));
  }

  /// Sends bytes that begin with room for a header. Waits while there is no room for them, except
  /// in handlers. The message is complete in the receiver's memory, or kept to be sent, on return.
  void send(rank_t to, const message_header& as, std::vector<std::byte> message);

  /// Sends like send(), but never waits: what has no room is kept. Gives a ticket for until_gone().
  std::uint64_t post(rank_t to, const message_header& as, std::vector<std::byte> message) {
    write_header(message, as);
    std::lock_guard lock(lock_);
    return out_.send(to, std::move(message));
  }

  /// Sends it with others to the same rank: when there are 4 KiB of them, when this rank next waits
  /// or makes progress, or with the next message that is sent. Waits as send does, if it sends.
  void send_with_others(rank_t to, const message_header& as, std::vector<std::byte> message);

  void send_batch(rank_t to, std::vector<std::byte> records) {
    send(to, {.code = {0, batched}, .reply = {}}, std::move(records));
  }

  /// The result of a handler, or the text of what it threw. Never waits for room.
  void answer(rank_t to, reply_place place, answer_kind kind, std::vector<std::byte> bytes);

  void count_sent() { counts_.count_sent(); }
  void count_handled() {
    counts_.count_handled();
    c_.count_activity();
  }

  void enlist(gathering* g) {
    std::lock_guard lock(lock_);
    gatherings_.push_back(g);
  }
  void forget(gathering* g) {
    std::lock_guard lock(lock_);
    std::erase(gatherings_, g);
  }
  optional_mutex& lock() { return lock_; }
  /// Bytes of messages that wait for room.
  std::size_t kept() {
    std::lock_guard lock(lock_);
    return out_.kept();
  }

  // --- serving ---

  bool serve() override {
    if (inside_handler()) return false;
    return serve_all();
  }
  /// Also of the thread of attention::thread, which is in no handler.
  bool serve_all() {
    bool moved = look();
    finish_answered();
    return moved;
  }
  bool inside_handler() const override {
    return handler_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  bool may_not_wait() const override { return inside_handler() && no_waiting_; }

  /// As long as it lives, the handler that has made it may not wait (may_not_wait.hpp).
  class no_waiting {
   public:
    explicit no_waiting(messenger& where) : where_(where) { where.no_waiting_ = true; }
    ~no_waiting() { where_.no_waiting_ = false; }
    no_waiting(const no_waiting&) = delete;

   private:
    messenger& where_;
  };

  // --- containers whose operations come as messages (containers/detail/dispatch/choice.hpp) ---

  served_containers containers;
  engine_costs costs{};  ///< as last measured

  /// Containers wait for all of their messages before they end. So only programs that send some
  /// themselves have any to wait for, and those are the same on all ranks.
  void finish() override {
    if (program_sends.load(std::memory_order_acquire)) quiesce();
  }
  void stop() override { attendant_.stop(); }

  /// Collective: returns when no message of any rank is under way.
  void quiesce();

 private:
  static constexpr std::uint64_t result = 0, failure = 1, batched = 2;  ///< offsets in no module
  static constexpr std::size_t most_kept = std::size_t{1} << 20;  ///< bytes; then nothing is taken
  static constexpr std::size_t forward_bytes = 16384;

  static std::vector<std::byte> bytes_of(std::string_view text) {
    auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }
  void until_gone(rank_t to, std::uint64_t ticket);

  bool look();
  bool take(bool one);
  void handle(rank_t from, const inbox::line::message& m);
  void run(code_address code, rank_t from, std::span<const std::byte> arguments, reply_place reply);
  void fail(const incoming& m, const std::exception* why);
  void forward(code_address code, rank_t to, rank_t from, std::span<const std::byte> arguments);
  void finish_answered();
  void ship_all();

  context& c_;
  optional_mutex lock_;  ///< of all that follows down to `counts_`
  outbox out_;
  inbox in_;  ///< of the thread that serves
  replies replies_;
  code_map code_;
  std::deque<std::shared_ptr<awaiting>> answered_;  ///< their futures are to be made ready
  std::vector<gathering*> gatherings_;
  std::map<rank_t, batch> forwards_;  ///< of the thread that serves
  std::size_t first_ = 0;             ///< the line that is taken first; of the thread that serves
  message_counts counts_;             ///< of messages and answers
  std::atomic<bool> serving_{false};
  std::atomic<std::thread::id> handler_{};  ///< the thread that runs a handler
  bool no_waiting_ = false;                 ///< of that thread
  rank_t answering_ = 0;                    ///< whose message that is
  attendant attendant_;                     ///< its thread uses all of the above
};

inline void messenger::send(rank_t to, const message_header& as, std::vector<std::byte> message) {
  until_gone(to, post(to, as, std::move(message)));
}

inline void messenger::send_with_others(rank_t to, const message_header& as,
                                        std::vector<std::byte> message) {
  constexpr std::size_t enough = 4096;
  write_header(message, as);
  std::uint64_t ticket;
  {
    std::lock_guard lock(lock_);
    ticket = out_.keep(to, std::move(message));
    if (out_.kept(to) < enough) {
      wake(c_, c_.link.rank());  // its thread sleeps only while nothing is kept
      return;
    }
  }
  until_gone(to, ticket);
}

inline void messenger::until_gone(rank_t to, std::uint64_t ticket) {
  if (ticket == 0 || (inside_handler() && !FARSIDE_MUTANT(message_handler_waits))) return;
  wait_marker note(c_, job::waiting::room, to);
  auto gone = [&] {
    std::lock_guard lock(lock_);
    out_.deliver();
    return out_.gone(to, ticket);
  };
  while (!gone()) {  // serves, but runs no continuations: they might send, and wait, in turn
    c_.link.progress();
    look();
    c_.quiet_wait_round();
  }
}

inline void messenger::answer(rank_t to, reply_place place, answer_kind kind,
                              std::vector<std::byte> bytes) {
  count_sent();
  if (bytes.size() > reply_chunk::body_bytes) {
    try {
      prepare(to);
    } catch (const allocation_error&) {  // what fits a slot will do
      if (kind == answer_kind::result) {
        bytes = bytes_of(std::to_string(bytes.size()));
        kind = answer_kind::no_room;
      }
      bytes.resize(std::min(bytes.size(), reply_chunk::body_bytes));
    }
  }
  if (bytes.size() > reply_chunk::body_bytes) {
    std::vector<std::byte> message(sizeof(message_header) + bytes.size());
    std::memcpy(message.data() + sizeof(message_header), bytes.data(), bytes.size());
    post(to, {.code = {0, kind == answer_kind::thrown ? failure : result}, .reply = place},
         std::move(message));
    return;
  }
  if (!bytes.empty()) {
    put(ptr<std::byte>(to, reply_chunk::body_of(place.slot)), bytes.data(), bytes.size());
    if (!FARSIDE_MUTANT(reply_unflushed)) flush(to);
  }
  atomic_store(ptr<std::uint64_t>(to, place.slot), answered(place.generation, bytes.size(), kind));
  wake(c_, to);
}

/// One look at everything; whether anything was done. Nothing where another thread, or a handler
/// further up, is at it already.
inline bool messenger::look() {
  if (serving_.exchange(true, std::memory_order_acquire)) return false;
  struct guard {
    std::atomic<bool>& flag;
    ~guard() { flag.store(false, std::memory_order_release); }
  } until_return{serving_};
  bool moved, much;
  {
    std::lock_guard lock(lock_);
    moved = out_.deliver();
    much = out_.kept() > most_kept;
    replies_.look([&](std::shared_ptr<awaiting> who) {
      answered_.push_back(std::move(who));
      moved = true;
    });
  }
  // What handlers send beyond what their receivers take is kept here. When that has become much,
  // nothing more is taken as long as it moves; a message at a time if it does not, as the receivers
  // may wait for just that.
  if (!much || (!moved && !FARSIDE_MUTANT(message_much_kept_takes_none)))
    moved = take(much) || moved;
  for (auto& [to, some] : forwards_)
    if (!some.empty() && !FARSIDE_MUTANT(visits_stay_on_their_way))
      post(to, {.code = {0, batched}, .reply = {}}, some.take());
  return moved;
}

inline bool messenger::take(bool one) {
  in_.look();
  bool any = false;
  std::size_t n = in_.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t i = (first_ + k) % n;
    inbox::line& line = in_[i];
    for (bool fresh : {false, true}) {  // what is left of an earlier look comes first
      if (fresh) in_.take(i);
      while (auto message = line.next()) {
        any = true;
        handle(line.from(), *message);
        if (!one) continue;
        first_ = i + 1;  // the next one of another sender
        line.compact();
        return true;
      }
      line.compact();
    }
  }
  return any;
}

inline void messenger::handle(rank_t from, const inbox::line::message& m) {
  const message_header& as = m.header;
  if (as.code.module != 0) return run(as.code, from, m.arguments, as.reply);
  if (as.code.offset != batched) {
    std::lock_guard lock(lock_);
    answered_.push_back(replies_.take(
        as.reply, as.code.offset == failure ? answer_kind::thrown : answer_kind::result,
        m.arguments));
    return;
  }
  batch::read(m.arguments, [&](code_address code, rank_t to, rank_t origin, auto arguments) {
    if (to == c_.link.rank())
      run(code, origin, arguments, {});
    else
      forward(code, to, origin, arguments);
  });
}

inline void messenger::forward(code_address code, rank_t to, rank_t from,
                               std::span<const std::byte> arguments) {
  try {
    prepare(to);
  } catch (const allocation_error& e) {  // its sender has long gone on
    fail({*this, from, arguments, {}}, &e);
    return;
  }
  batch& some = forwards_[to];
  some.add(code, to, from, arguments);
  if (some.size() >= forward_bytes) post(to, {.code = {0, batched}, .reply = {}}, some.take());
}

inline void messenger::run(code_address code, rank_t from, std::span<const std::byte> arguments,
                           reply_place reply) {
  struct guard {
    std::atomic<std::thread::id>& id;
    ~guard() { id.store(std::thread::id(), std::memory_order_relaxed); }
  } until_return{handler_};
  handler_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  answering_ = from;
  incoming m{*this, from, arguments, reply};
  try {
    reinterpret_cast<trampoline>(const_cast<void*>(find(code)))(m);
  } catch (const rank_failure&) {
    throw;  // of another rank: this one ends for that
  } catch (const std::exception& e) {
    fail(m, &e);
  } catch (...) {
    fail(m, nullptr);
  }
}

/// A handler has thrown. A caller that waits for the answer hears of it; else the job ends.
inline void messenger::fail(const incoming& m, const std::exception* why) {
  std::string what = why != nullptr ? why->what() : "an exception that is no std::exception";
  if (m.reply.slot != 0) {
    answer(m.from, m.reply, answer_kind::thrown, bytes_of(what));
    count_handled();
    return;
  }
  end_job(c_,
          text("farside: rank ", c_.link.rank(), ": the handler of a message from rank ", m.from,
               " threw: ", what,
               " (Nobody waits for an answer who could be told: use far::rpc if it may fail.)"),
          why != nullptr && is_excusable(*why));
}

inline void messenger::finish_answered() {
  for (;;) {
    std::shared_ptr<awaiting> who;
    {
      std::lock_guard lock(lock_);
      if (answered_.empty()) return;
      who = std::move(answered_.front());
      answered_.pop_front();
    }
    who->make_ready();
    count_handled();  // with what its continuations have sent
  }
}

inline void messenger::ship_all() {
  std::vector<gathering*> all;
  {
    std::lock_guard lock(lock_);
    all = gatherings_;
  }
  for (gathering* g : all) g->ship();
}

inline void messenger::quiesce() {
  auto in_flight = [&] {
    std::lock_guard lock(c_.mutex);
    return !c_.in_flight.empty() || c_.polling != 0;
  };
  counts_.until_all_handled([&] {
    ship_all();
    c_.progress();
    while (in_flight()) c_.wait_round();  // their continuations may send
    c_.link.flush();                      // what handlers have put
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail

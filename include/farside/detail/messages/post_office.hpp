// All of a rank's messages: sends them, serves those that arrive, and knows when all are done.
// docs/protocols/messages.md has the protocol and why nobody waits for ever.
//
//                     send                                          serve, one thread at a time
//   program  --waits for room, serving meanwhile-->  outbox  ~~>  inbox --> handler --> answer
//   handler  --never waits---------------------->      |              (may send)          |
//   continuation <-- future is ready <-- replies <-----+----------------------------------'
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/engine.hpp>
#include <farside/detail/engines/hurry.hpp>
#include <farside/detail/last_words.hpp>
#include <farside/detail/messages/batch.hpp>
#include <farside/detail/messages/inbox.hpp>
#include <farside/detail/messages/outbox.hpp>
#include <farside/detail/messages/replies.hpp>

#include <time.h>

#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace far::inline FARSIDE_BACKEND::detail {

class post_office;

/// Set before main by programs whose own code sends messages.
inline constinit std::atomic<bool> program_sends{false};

/// A message whose handler is about to run.
struct incoming {
  post_office& office;
  rank_t from;
  std::span<const std::byte> arguments;
  reply_place reply;
};

/// Reads the arguments of a message, calls its function, and answers: one for each kind of call.
using trampoline = void (*)(incoming&);

/// Messages that wait to be gathered: far::visits.
struct gathering {
  virtual ~gathering() = default;
  virtual void ship() = 0;
};

class post_office final : public message_service {
 public:
  explicit post_office(context& c)
      : c_(c), lock_(c.threads == thread_level::multiple), out_(c), in_(c), replies_(c) {
    if (c.attends == attention::thread) thread_ = std::thread([this] { attend(); });
  }
  ~post_office() override { stop(); }

  /// What service() made, for those that send.
  static post_office& of(context& c) { return static_cast<post_office&>(*c.service()); }

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
  /// The same for a message that is answered.
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
      throw not_at_once{};
    }
  }

  reply_place reserve(std::shared_ptr<awaiting> who) {
    std::lock_guard lock(lock_);
    return replies_.reserve(std::move(who));
  }

  /// Sends bytes that begin with room for a header. Waits while there is no room for them, except
  /// in handlers. The message is complete in the receiver's memory, or kept to be sent, on return.
  void send(rank_t to, const message_header& as, std::vector<std::byte> message);

  /// The same; never waits.
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
  void answer(rank_t to, reply_place place, bool failed, std::vector<std::byte> bytes);

  void count_sent() { sent_.fetch_add(1, std::memory_order_relaxed); }
  void count_handled() {
    handled_.fetch_add(1, std::memory_order_release);
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
    bool moved = look();
    finish_answered();
    return moved;
  }
  bool inside_handler() const override {
    return handler_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  bool in_a_hurry() const override { return inside_handler() && hurry_; }

  /// As long as it lives, the handler that has made it gives up where it would have to wait.
  class hurry {
   public:
    explicit hurry(post_office& office) : office_(office) { office.hurry_ = true; }
    ~hurry() { office_.hurry_ = false; }
    hurry(const hurry&) = delete;

   private:
    post_office& office_;
  };

  // --- containers whose operations come as messages (detail/engines/choice.hpp) ---

  /// A number that no other container of the job has.
  std::uint64_t new_number() {
    std::lock_guard lock(lock_);
    return std::uint64_t{c_.link.rank()} << 32 | ++numbers_;
  }
  void enroll(std::uint64_t number, void* state) {
    std::lock_guard lock(lock_);
    served_[number] = state;
  }
  void strike(std::uint64_t number) {
    std::lock_guard lock(lock_);
    served_.erase(number);
  }
  /// Null: it is no more.
  void* served(std::uint64_t number) {
    std::lock_guard lock(lock_);
    auto found = served_.find(number);
    return found != served_.end() ? found->second : nullptr;
  }
  engine_costs costs{};  ///< as last measured

  /// Containers wait for all of their messages before they end. So only programs that send some
  /// themselves have any to wait for, and those are the same on all ranks.
  void finish() override {
    if (program_sends.load(std::memory_order_acquire)) quiesce();
  }
  void stop() override;

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
  static void write_header(std::vector<std::byte>& message, message_header as) {
    as.bytes = message.size() - sizeof as;
    message.resize(padded(as.bytes));
    std::memcpy(message.data(), &as, sizeof as);
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
  void attend();

  context& c_;
  optional_mutex lock_;  ///< of all that follows down to `sent_`
  outbox out_;
  inbox in_;  ///< of whoever serves
  replies replies_;
  code_map code_;
  std::deque<std::shared_ptr<awaiting>> answered_;  ///< their futures are to be made ready
  std::vector<gathering*> gatherings_;
  std::map<std::uint64_t, void*> served_;  ///< containers, by number
  std::uint64_t numbers_ = 0;
  std::map<rank_t, batch> forwards_;  ///< of whoever serves
  std::size_t first_ = 0;             ///< whose messages are taken first; of whoever serves
  std::atomic<std::uint64_t> sent_{0}, handled_{0};  ///< messages and answers, over all time
  std::atomic<bool> serving_{false};
  std::atomic<std::thread::id> handler_{};  ///< the thread that runs a handler
  bool hurry_ = false;                      ///< of that thread
  rank_t answering_ = 0;                    ///< whose message that is
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

inline void post_office::send(rank_t to, const message_header& as, std::vector<std::byte> message) {
  until_gone(to, post(to, as, std::move(message)));
}

inline void post_office::send_with_others(rank_t to, const message_header& as,
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

inline void post_office::until_gone(rank_t to, std::uint64_t ticket) {
  if (ticket == 0 || (inside_handler() && !FARSIDE_MUTANT(message_handler_waits))) return;
  waits note(c_, job::waiting::room, to);
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

inline void post_office::answer(rank_t to, reply_place place, bool failed,
                                std::vector<std::byte> bytes) {
  count_sent();
  if (bytes.size() > reply_chunk::body_bytes) {
    try {
      prepare(to);
    } catch (const allocation_error&) {  // what fits a slot will do
      static constexpr std::string_view no_room =
          "(its answer is too long for a slot, and the caller has no room for a ring)";
      static_assert(no_room.size() <= reply_chunk::body_bytes);
      if (!failed) bytes = bytes_of(no_room);
      bytes.resize(std::min(bytes.size(), reply_chunk::body_bytes));
      failed = true;
    }
  }
  if (bytes.size() > reply_chunk::body_bytes) {
    std::vector<std::byte> message(sizeof(message_header) + bytes.size());
    std::memcpy(message.data() + sizeof(message_header), bytes.data(), bytes.size());
    post(to, {.code = {0, failed ? failure : result}, .reply = place}, std::move(message));
    return;
  }
  if (!bytes.empty()) {
    put(ptr<std::byte>(to, reply_chunk::body_of(place.slot)), bytes.data(), bytes.size());
    if (!FARSIDE_MUTANT(reply_unflushed)) flush(to);
  }
  atomic_store(ptr<std::uint64_t>(to, place.slot),
               answered(place.generation, bytes.size(), failed));
  wake(c_, to);
}

/// One look at everything; whether anything was done. Nothing where another thread, or a handler
/// further up, is at it already.
inline bool post_office::look() {
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

inline bool post_office::take(bool one) {
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

inline void post_office::handle(rank_t from, const inbox::line::message& m) {
  const message_header& as = m.header;
  if (as.code.module != 0) return run(as.code, from, m.arguments, as.reply);
  if (as.code.offset != batched) {
    std::lock_guard lock(lock_);
    answered_.push_back(replies_.take(as.reply, as.code.offset == failure, m.arguments));
    return;
  }
  batch::read(m.arguments, [&](code_address code, rank_t to, rank_t origin, auto arguments) {
    if (to == c_.link.rank())
      run(code, origin, arguments, {});
    else
      forward(code, to, origin, arguments);
  });
}

inline void post_office::forward(code_address code, rank_t to, rank_t from,
                                 std::span<const std::byte> arguments) {
  try {
    prepare(to);
  } catch (const allocation_error& e) {  // who has sent it has long gone on
    fail({*this, from, arguments, {}}, &e);
    return;
  }
  batch& some = forwards_[to];
  some.add(code, to, from, arguments);
  if (some.size() >= forward_bytes) post(to, {.code = {0, batched}, .reply = {}}, some.take());
}

inline void post_office::run(code_address code, rank_t from, std::span<const std::byte> arguments,
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

/// A handler has thrown. The caller hears of it; where there is none who waits, the job ends.
inline void post_office::fail(const incoming& m, const std::exception* why) {
  std::string what = why != nullptr ? why->what() : "an exception that is no std::exception";
  if (m.reply.slot != 0) {
    answer(m.from, m.reply, true, bytes_of(what));
    count_handled();
    return;
  }
  end_job(c_,
          text("farside: rank ", c_.link.rank(), ": the handler of a message from rank ", m.from,
               " threw: ", what,
               " (Nobody waits for an answer who could be told: use far::rpc if it may fail.)"),
          why != nullptr && is_excusable(*why));
}

inline void post_office::finish_answered() {
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

inline void post_office::ship_all() {
  std::vector<gathering*> all;
  {
    std::lock_guard lock(lock_);
    all = gatherings_;
  }
  for (gathering* g : all) g->ship();
}

/// At rest when all that was sent by this round had been handled by the round before: every
/// member's counts of a round are taken after all of the round before, and only grow, so nothing
/// was under way between the two, and only what is under way makes handlers send
/// (detail/quiescence.hpp argues the same). Members serve while they wait for each other.
inline void post_office::quiesce() {
  struct counts {
    std::uint64_t sent, handled;
  };
  auto in_flight = [&] {
    std::lock_guard lock(c_.mutex);
    return !c_.in_flight.empty() || c_.polling != 0;
  };
  auto sum = [](counts a, counts b) { return counts{a.sent + b.sent, a.handled + b.handled}; };
  for (std::uint64_t before = ~std::uint64_t{0};;) {
    ship_all();
    c_.progress();
    while (in_flight()) c_.wait_round();  // their continuations may send
    c_.link.flush();                      // what handlers have put
    std::uint64_t handled = handled_.load(std::memory_order_acquire);
    counts all = all_reduce(counts{sent_.load(std::memory_order_acquire), handled}, sum);
    if (FARSIDE_MUTANT(quiet_after_one_round) ? all.sent == all.handled : all.sent == before)
      return;
    before = all.handled;
  }
}

/// What the thread of attention::thread does. Where memory is coherent, whoever sends to this rank
/// wakes it; elsewhere it looks again after a nap of 20 microseconds, later up to a millisecond.
inline void post_office::attend() {
  set_current(&c_);
  constexpr long shortest = 20'000, longest = 1'000'000;
  long nap = shortest;
  try {
    while (!stopping_.load(std::memory_order_acquire)) {
      std::uint64_t rung = look_at(c_, bell_word) >> 1;
      c_.link.progress();
      bool busy = look();
      finish_answered();
      if (busy) {
        nap = shortest;
        continue;
      }
      if (c_.link.coherent() && kept() == 0) {
        c_.link.await(bell_word, rung + 1);
      } else {
        timespec time{0, nap};
        nanosleep(&time, nullptr);
        nap = std::min(longest, nap + nap / 4);
      }
    }
  } catch (const std::exception& e) {  // the rank's own threads find out by themselves
    std::fprintf(stderr, "rank %u: its thread for messages ends: %s\n", c_.link.rank(), e.what());
  }
  set_current(nullptr);
}

inline void post_office::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake(c_, c_.link.rank());
  thread_.join();
}

}  // namespace far::inline FARSIDE_BACKEND::detail

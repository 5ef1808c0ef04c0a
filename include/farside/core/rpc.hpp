// Messages: a function that runs on another rank.
//
//   auto sum = far::rpc(3, [](int a, int b) { return a + b; }, 1, 2);    // sum.get() == 3
//
//   far::rpc_ff(3, [](std::string word) { words().insert(word); }, word);  // nobody waits
//
//   far::quiesce();                                                        // all messages are done
//
// Functions: lambdas without captures, functions, and function objects that are serializable.
// Arguments and results: anything serializable (core/serialization.hpp), of any size. They are
// copied: a handler gets values of its own. A handler that returns a far::future<R> is answered for
// when that is ready.
//
// Containers, far::distributed, far::counter and mutexes travel by name: the handler has its own
// rank's handle of the same container, by reference. What it names must live until it has run.
//
//   far::hash_map<int, int> map(100);
//   far::rpc(3, [](far::hash_map<int, int>& m, int key) { m.insert(key, 1); }, map, 7);
//
// Data that belongs to a rank, and to no container, is a far::rank_local (core/rank_local.hpp).
//
// What serves messages (`FARSIDE_ATTENTION`, far::runtime::options::attention):
//   poll     the target's own calls of the library that wait (collectives, future::get, a send
//            that waits for room) and far::progress(). A rank that computes does not serve. The
//            default.
//   thread   also a thread of the target. Handlers, and continuations of rpcs, may then run on that
//            thread, at the same time as the rank's own code. Where memory is coherent it sleeps
//            until a sender wakes it, by an atomic more for each message and answer; elsewhere
//            it looks every 20 microseconds, up to a millisecond when it has been idle for long.
//   rank     refused: see far::attention.
// Handlers of one rank never run at the same time as each other.
//
// Order: messages from one rank to another are handled in the order in which they were sent (by one
// thread of that rank, or one after another by several). Nothing else is ordered: not answers, and
// not messages with puts, which a handler sees if they were flushed before its message was sent.
//
// A handler may use far memory (get, put, atomics, allocation) and send messages, but may not wait
// for another rank: no barrier, no future::get that is not ready. Checked builds report it. What it
// throws goes to the future of its rpc as far::rpc_error; that of an rpc_ff ends the job.
//
// Room: 64 KiB for each pair of ranks that talk, made when the first message is sent, at the
// receiver (less with more than 256 ranks). A send from the program waits while that is full, and
// serves meanwhile. A send from a handler never waits: it is kept until there is room. Where a
// segment has no room for the 64 KiB, the send throws far::allocation_error, and nothing was sent.
#pragma once

#include <farside/core/detail/messages/call.hpp>

#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// Calls f(args...) on rank `to`, which may be this one; a future of its result. One-sided. On
/// return the arguments have been copied, and the message is in the memory of `to`, or kept in a
/// handler. The future is ready after the handler has run and this rank has looked (future::get
/// does). W + A, 2 waits here, and 1 for the future; at `to` W + A, 2 waits, for an answer of up to
/// 112 bytes (A, 1 wait, for void), else W + A for each piece. The first message of a pair makes
/// its ring.
template <class F, class... Args>
auto rpc(rank_t to, F&& f, Args&&... args) {
  using Function = std::decay_t<F>;
  detail::require_call<Function, std::decay_t<Args>...>();
  static_cast<void>(&detail::sends_messages<detail::late_void<F>>::announced);
  detail::messenger& messages = detail::messenger_here("far::rpc", to);
  detail::require_members("far::rpc", to, args...);
  auto send = [&](rank_t there, const detail::message_header& as, std::vector<std::byte> bytes) {
    messages.send(there, as, std::move(bytes));
  };
  return detail::begin_call<decltype(send), Function, std::decay_t<Args>...>(messages, to, send, f,
                                                                             args...);
}

/// Calls without an answer: what `f` returns is dropped, what it throws ends the job.
/// W + A, 2 waits; nothing comes back but an A for each quarter of a ring.
template <class F, class... Args>
void rpc_ff(rank_t to, F&& f, Args&&... args) {
  using Function = std::decay_t<F>;
  detail::require_call<Function, std::decay_t<Args>...>();
  static_cast<void>(&detail::sends_messages<detail::late_void<F>>::announced);
  detail::messenger& messages = detail::messenger_here("far::rpc_ff", to);
  detail::require_members("far::rpc_ff", to, args...);
  detail::message_header as{
      .code = messages.name_of(&detail::run_only<Function, std::decay_t<Args>...>), .reply = {}};
  auto bytes = detail::call_bytes<Function, std::decay_t<Args>...>(messages, f, args...);
  messages.prepare(to);
  messages.count_sent();
  messages.send(to, as, std::move(bytes));
}

/// Collective over all ranks. Returns when every message of every rank has been handled, those that
/// handlers and continuations of rpcs have sent meanwhile too, every rpc's future is ready, and
/// puts of handlers are complete. Ships what far::visits have gathered. The end of the runtime does
/// the same. At least 2 all_reduces, and one more for each round in which something was under way.
template <class Late = void>  // programs that do not call it compile no messages
void quiesce(std::source_location at = std::source_location::current()) {
  detail::calls note(detail::here(), *detail::here().world, detail::named<"quiesce">, at);
  static_cast<void>(&detail::sends_messages<Late>::announced);
  detail::messenger::of(detail::here()).quiesce();
}

}  // namespace far::inline FARSIDE_BACKEND

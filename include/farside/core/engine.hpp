// far::engine: how the operations of a container reach the rank that holds the data.
//
//   using map = far::hash_map<int, int>;
//   map one_sided(1000);                                     // by gets, puts, atomics
//   map asked(1000, {.engine = far::engine::rpc});           // by messages to owners
//   map best(1000, {.engine = far::engine::automatic});      // by what costs less here
//   best.engine_of(far::container_operation::find);          // what was chosen
//
// FARSIDE_ENGINE=rma, rpc or automatic decides for all containers of a program instead.
//
// Results, guarantees and promises are the same by both. The handler at the owner runs the protocol
// of the one-sided operation on its own memory, so operations of both kinds may meet in one
// container. What a handler cannot do without waiting (growth, a bucket that is being moved or
// written, an element whose push is under way) the caller then does one-sided. These operations are
// never sent: those on what lies with the caller itself, those under concurrency::owner_only, and
// those made inside handlers of messages.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <chrono>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

enum class engine {
  rma,       ///< one-sided: gets, puts and atomics of the caller. The owner takes no part.
  rpc,       ///< a message to the owner and its answer; the owner must serve (far::attention)
  automatic  ///< whichever costs less here, for each kind of operation, by measured costs
};

/// "rma" and so on. Local; no communication.
inline const char* to_text(engine which) {
  constexpr const char* names[] = {"rma", "rpc", "automatic"};
  return names[static_cast<int>(which)];
}

/// Nanoseconds that operations take here, as measured for engine::automatic; all zero if nobody
/// asked for it. All members of a container's team have the same.
struct engine_costs {
  double get = 0;         ///< of 64 bytes, from another member
  double put = 0;         ///< of 64 bytes, to another member, with its flush
  double atomic = 0;      ///< a fetch_add at another member
  double own_get = 0;     ///< the same at this rank: what a handler does
  double own_put = 0;     ///< with its flush
  double own_atomic = 0;  ///< a fetch_add
  double rpc = 0;         ///< a message with 16 bytes, and its answer, to a member that serves
};

/// How often one kind of operation gets, puts (and flushes) and makes atomics that it waits for.
struct operation_cost {
  double gets = 0, puts = 0, atomics = 0;
};

/// Predicted nanoseconds of an operation by one-sided communication: R, W and A added up.
constexpr double predict_rma(const operation_cost& of, const engine_costs& c) {
  return of.gets * c.get + of.puts * c.put + of.atomics * c.atomic;
}

/// Predicted nanoseconds by a message: a round trip, the same protocol on the owner's own memory,
/// and half of the time for which members compute between two calls of the library, if no thread
/// serves them.
constexpr double predict_rpc(const operation_cost& of, const engine_costs& c,
                             std::chrono::nanoseconds computes) {
  return c.rpc + of.gets * c.own_get + of.puts * c.own_put + of.atomics * c.own_atomic +
         static_cast<double>(computes.count()) / 2;
}

/// What became of a container's operations on one rank.
struct engine_use {
  std::uint64_t messages = 0;    ///< sent to owners, each with one operation or many
  std::uint64_t operations = 0;  ///< in those messages
  std::uint64_t declined = 0;    ///< of those, what the owner could not do at once: done one-sided
  engine_costs costs{};          ///< what engine::automatic has compared
};

}  // namespace far::inline FARSIDE_BACKEND

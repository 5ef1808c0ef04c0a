// Where the communication of a rank went: operations, bytes and time by kind and by target.
//
// Off (the default) it costs one predictable branch an operation. FARSIDE_STATS=1 prints a
// table when the runtime ends, FARSIDE_STATS=file.json writes it; a program can also count a
// piece of itself:
//
//   far::stats::enable();
//   auto before = far::stats::snapshot();
//   table.insert(1, 2);
//   auto cost = far::stats::snapshot() - before;    // cost[far::operation::atomic].count
#pragma once

#include <farside/backend/concept.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

enum class operation { get, put, atomic, flush, barrier, collective, allocation };
inline constexpr std::size_t operation_kinds = 7;

/// "get", "put" and so on. Local; no communication.
inline const char* name_of(operation kind) {
  constexpr const char* names[operation_kinds] = {"get",     "put",        "atomic",    "flush",
                                                  "barrier", "collective", "allocation"};
  return names[static_cast<std::size_t>(kind)];
}

/// What was counted of one kind of operation.
struct operation_total {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t nanoseconds = 0;

  operation_total& operator+=(const operation_total& o) {
    count += o.count, bytes += o.bytes, nanoseconds += o.nanoseconds;
    return *this;
  }
  friend operation_total operator-(operation_total a, const operation_total& b) {
    a.count -= b.count, a.bytes -= b.bytes, a.nanoseconds -= b.nanoseconds;
    return a;
  }
};

/// All kinds, of one rank.
struct operation_totals {
  std::array<operation_total, operation_kinds> kinds{};
  /// Round trips that were waited for: a blocking get, atomic or flush is one, and so is a wait for
  /// however many that are in flight together.
  std::uint64_t waits = 0;

  operation_total& operator[](operation kind) { return kinds[static_cast<std::size_t>(kind)]; }
  const operation_total& operator[](operation kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
  friend operation_totals operator-(operation_totals a, const operation_totals& b) {
    for (std::size_t i = 0; i < operation_kinds; ++i) a.kinds[i] = a.kinds[i] - b.kinds[i];
    a.waits -= b.waits;
    return a;
  }
};

namespace detail {

/// The counters of one rank.
struct statistics {
  operation_totals totals;
  std::vector<std::uint64_t> messages_to;  ///< gets, puts and atomics, by target
  std::vector<std::uint64_t> bytes_to;

  explicit statistics(rank_t nprocs) : messages_to(nprocs), bytes_to(nprocs) {}

  void add(operation kind, rank_t target, std::size_t bytes, std::uint64_t nanoseconds) {
    totals[kind] += {1, bytes, nanoseconds};
    if (kind <= operation::atomic) {
      messages_to[target] += 1;
      bytes_to[target] += bytes;
    }
  }
};

/// Whether a rank counts, which any thread may ask at any time, and its counters, which are used,
/// and begun and stopped, under the mutex of its context.
class counting {
 public:
  explicit operator bool() const { return on_.load(std::memory_order_relaxed); }
  statistics* operator->() const { return all_.get(); }

  void begin(rank_t nprocs) {
    if (!all_) all_ = kept_ ? std::move(kept_) : std::make_unique<statistics>(nprocs);
    on_.store(true, std::memory_order_relaxed);
  }
  /// Nobody counts any more, until begin() goes on. Whether somebody did.
  bool interrupt() {
    if (!on_.exchange(false, std::memory_order_relaxed)) return false;
    kept_ = std::move(all_);
    return true;
  }
  std::unique_ptr<statistics> stop() {
    interrupt();
    return all_ ? std::move(all_) : std::move(kept_);
  }
  /// For what the library does itself: soon resumed. Whether it counted.
  bool pause() { return on_.exchange(false, std::memory_order_relaxed); }
  void resume() { on_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> on_{false};
  std::unique_ptr<statistics> all_;   ///< there while somebody counts, also during a pause
  std::unique_ptr<statistics> kept_;  ///< while counting is interrupted
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

// Far memory by messages: the same operations as window.hpp, on two-sided MPI.
//
// Ranks whose segments this process has mapped (its own; those of its node, unless
// FARSIDE_MPI_SHARED=0) are reached by loads, stores and CPU atomics. All others are reached by
// requests to the processes that serve them (client.hpp, server.hpp). The strategy says which
// processes these are:
//
//   two_sided        every process, whenever it is in a call of the library: each wait here also
//                    serves, and so does now and then an operation that need not wait
//   progress_thread  a thread of every process, and its ranks while they wait here
//   progress_rank    processes that do nothing else (server_process.hpp)
//   spawned          likewise
//
// Memory order (docs/memory_model.md is the contract):
//  - put: executed at some time after its call. Its bytes are copied into the message, or, if there
//    are many, have left when it returns.
//  - get: the server executes requests of one client in their order, so it sees this rank's earlier
//    puts; long puts, which land later, are waited for first. Copied word by word by the server.
//  - atomics: CPU atomics, sequentially consistent, by the server or by ranks of its node: they
//    have one order.
//  - flush: every server that this rank has sent puts to has said that it executed them, after a
//    sequentially consistent fence, so that ranks of its node that load see them too; and a fence
//    here for this rank's own stores.
//  - signal: a request nobody waits for; flush precedes it in every use, and it is executed after
//    all that was sent to that server before.
//
// No deadlock: nobody waits without serving where it is a server, servers never wait, and answers
// find their receives posted.
#pragma once

#include <farside/backend/mpi/request.hpp>
#include <farside/backend/mpi/served/client.hpp>
#include <farside/backend/mpi/served/patience.hpp>
#include <farside/backend/mpi/served/server.hpp>
#include <farside/backend/mpi/session.hpp>

#include <atomic>
#include <concepts>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

class memory {
 public:
  memory() = default;
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { end_thread(); }

  /// Collective over the whole of `mpi`, servers too (open.hpp).
  void open(session& mpi, const start_options& options);
  /// Serves what has arrived; whether there was anything. For processes that only serve.
  bool serve() { return server_.serve(requests_a_look) != 0; }
  /// Collective over the whole; nobody has requests under way.
  void close();
  bool is_open() const { return requests_ != MPI_COMM_NULL; }

  bool async_progress() const { return mpi_->settings().how != strategy::two_sided; }
  std::size_t segment_size() const { return near_.segment_size(); }
  void* address(rank_t rank, std::size_t offset) const {
    return reach_[rank] >= 0 ? near_.address(local(rank), offset) : nullptr;
  }

  // Functions of their own: nothing is to be inlined where windows are used instead.
  [[gnu::noinline]] void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (reach_[rank] >= 0) {
      near_.put(local(rank), offset, from, bytes);
      return now_and_then();
    }
    far_put(rank, offset, from, bytes);
  }

  [[gnu::noinline]] void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (reach_[rank] >= 0) {
      near_.get(local(rank), offset, to, bytes);
      return now_and_then();
    }
    if (bytes != 0) finish(far_get(rank, offset, to, bytes));
  }

  pending async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  pending async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes);

  // memory_runs.hpp
  /// A put that adds: executed in the order of the other requests, in messages of what a buffer
  /// holds. The source is copied.
  bool accumulates() const { return limit_.inline_put >= 64; }
  template <component C>
  void accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n);

  run_limits limits_of_runs() const;
  void put_runs(rank_t rank, std::span<const run> where, const void* from, std::size_t bytes);
  pending async_get_runs(rank_t rank, std::span<const run> where, void* to, std::size_t bytes);
  template <component C>
  void accumulate_runs(rank_t rank, std::span<const run> where, const C* from, std::size_t n);

  template <atomic_op Op, atomic_word T>
  [[gnu::noinline]] T fetch_op(rank_t rank, std::size_t offset, T value) {
    if (reach_[rank] >= 0) {
      now_and_then();
      return near_.fetch_op<Op>(local(rank), offset, value);
    }
    T old;
    finish(far_atomic(rank, offset, words<T>(kind::atomic, Op, value, T{}), &old));
    return old;
  }

  template <atomic_word T>
  [[gnu::noinline]] T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    if (reach_[rank] >= 0) {
      now_and_then();
      return near_.compare_swap(local(rank), offset, expected, desired);
    }
    T old;
    finish(far_atomic(rank, offset, words<T>(kind::compare_swap, {}, desired, expected), &old));
    return old;
  }

  template <atomic_word T>
  [[gnu::noinline]] T atomic_load(rank_t rank, std::size_t offset) {
    if (reach_[rank] >= 0) {
      now_and_then();
      return near_.atomic_load<T>(local(rank), offset);
    }
    T value;
    finish(far_atomic(rank, offset, words<T>(kind::load, {}, T{}, T{}), &value));
    return value;
  }

  template <atomic_op Op, atomic_word T>
  pending async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    if (reach_[rank] >= 0) return old = fetch_op<Op>(rank, offset, value), pending{};
    return handle(far_atomic(rank, offset, words<T>(kind::atomic, Op, value, T{}), &old));
  }

  template <atomic_word T>
  pending async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    if (reach_[rank] >= 0) return old = compare_swap(rank, offset, expected, desired), pending{};
    return handle(
        far_atomic(rank, offset, words<T>(kind::compare_swap, {}, desired, expected), &old));
  }

  void flush(rank_t rank);
  void flush();

  /// As shared_memory's: the word counts in steps of two.
  void signal(rank_t rank, std::size_t offset) {
    if (reach_[rank] >= 0) return near_.signal(local(rank), offset);
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.ready(targets_[rank].server); });
    client_.signal(targets_[rank], offset);
  }

  bool await(std::size_t offset, std::uint64_t count);

  /// Serves, where this process does, and completes what it has begun.
  /// Whether anything was served.
  bool progress() {
    std::unique_lock lock(gate_, std::try_to_lock);
    return lock && look();
  }

  /// A round of somebody else's wait loop, which may be its first or its last.
  void pause() {
    if (!progress()) patience::rest_in_turns(pauses_began_, oversubscribed_);
  }

  bool test(ticket t) {
    std::unique_lock lock(gate_);
    if (client_.done(t)) return true;
    look();
    return client_.done(t);
  }
  void finish(ticket t) {
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.done(t); });
  }

 private:
  /// A lock where several threads come here, and nothing where one does.
  class gate {
   public:
    void need() { needed_ = true; }
    bool needed() const { return needed_; }
    void lock() {
      if (needed_) mutex_.lock();
    }
    bool try_lock() { return !needed_ || mutex_.try_lock(); }
    void unlock() {
      if (needed_) mutex_.unlock();
    }

   private:
    bool needed_ = false;
    std::mutex mutex_;
  };

  rank_t local(rank_t rank) const { return static_cast<rank_t>(reach_[rank]); }

  template <atomic_word T>
  static header words(kind what, atomic_op op, T value, T expected) {
    header h{};
    h.what = what;
    h.op = static_cast<std::uint8_t>(op);
    h.width = sizeof(T);
    h.is_signed = std::signed_integral<T>;
    std::memcpy(&h.value, &value, sizeof value);
    std::memcpy(&h.expected, &expected, sizeof expected);
    return h;
  }

  pending handle(ticket t) {
    pending result;
    result.messages = this;
    result.number = t.generation;
    result.rank = t.slot;
    return result;
  }

  ticket far_atomic(rank_t rank, std::size_t offset, const header& h, void* old) {
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.ready(targets_[rank].server); });
    return client_.atomic(h, targets_[rank], offset, old);
  }

  void far_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  ticket start_long_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  void put_pieces(rank_t rank, std::size_t offset, const void* from, std::size_t bytes,
                  std::optional<addend> adds = {});
  ticket far_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes);
  ticket start_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes);

  void start_fence(std::unique_lock<gate>& lock, std::uint32_t server, std::uint64_t count) {
    if (!client_.needs_fence(server, count)) return;
    wait_until(lock, [&] { return client_.ready(server); });
    client_.fence(server);
  }

  /// Whether MPI may copy between the segment and this memory without cutting words.
  bool direct(const void* side, std::size_t offset) const {
    return !strict_ && (reinterpret_cast<std::uintptr_t>(side) ^ offset) % 8 == 0;
  }

  /// With the lock: serves and completes.
  bool look() {
    bool served = server_.is_open() && server_.serve(requests_a_look) != 0;
    client_.look();
    if (client_.idle() && !server_.is_open()) {  // MPI may still have to push what it has buffered
      int found;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, answers_, &found, MPI_STATUS_IGNORE);
    }
    return served;
  }

  /// Serves, and gives the core and the lock to others now and then, until `ready()`.
  template <class Ready>
  void wait_until(std::unique_lock<gate>& lock, Ready ready) {
    patience rounds(oversubscribed_);
    for (unsigned round = 0; !ready(); ++round) {
      if (server_.is_open() && server_.serve(requests_a_look) != 0) rounds.worked();
      if (gate_.needed()) lock.unlock();
      rounds.rest();
      if (gate_.needed()) lock.lock();
      if (round % 256 == 255) check_lost();
    }
  }
  void check_lost() {
    if (auto lost = mpi_->lost_rank(); lost >= 0) [[unlikely]]
      raise<rank_failure>("rank ", mpi_->rank(), " waits for an answer, but ",
                          lost < mpi_->nprocs() ? "rank " : "progress rank ", lost, " has died.");
  }

  /// two_sided: a rank that only loads and stores must serve, too, or a rank that polls its own
  /// word would never see what others send there.
  void now_and_then() {
    if (!serves_in_calls_) return;
    constexpr unsigned often = 8;
    if (calls_.load(std::memory_order_relaxed) >= often) {
      calls_.store(0, std::memory_order_relaxed);
      progress();
    } else {
      calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }

  // open.hpp
  bool map_near(const std::vector<seat>& seats, bool by_node, const start_options& options);
  void find_targets(const std::vector<seat>& seats, bool by_node, bool may_share);
  void begin_thread();
  void end_thread();
  void run_thread();

  static constexpr int requests_a_look = 16;

  session* mpi_ = nullptr;
  MPI_Comm requests_ = MPI_COMM_NULL, answers_ = MPI_COMM_NULL;
  shared_memory near_;               ///< the segments that this process has mapped
  std::vector<std::int32_t> reach_;  ///< by rank: its place in near_ if loads may go there, or -1
  std::vector<target> targets_;      ///< by rank: what serves it
  limits limit_{};
  gate gate_;  ///< guards client_, server_ and all calls of MPI here
  client client_;
  server server_;
  bool oversubscribed_ = false, strict_ = false, serves_in_calls_ = false;
  std::atomic<unsigned> calls_ = 0;
  std::atomic<std::uint64_t> pauses_began_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

inline void memory::far_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
  if (bytes <= limit_.inline_put || !direct(from, offset))
    return put_pieces(rank, offset, from, bytes);
  auto* source = static_cast<const char*>(from);
  for (std::size_t begin = 0, length; begin < bytes; begin += length) {
    length = std::min(chunk, bytes - begin);
    ticket t = start_long_put(rank, offset + begin, source + begin, length);
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.source_free(t); });
  }
}

/// By messages that hold their bytes; to be added, if it is said of what type they are.
inline void memory::put_pieces(rank_t rank, std::size_t offset, const void* from, std::size_t bytes,
                               std::optional<addend> adds) {
  kind what = adds ? kind::accumulate : kind::put;
  target to = targets_[rank];
  auto* source = static_cast<const char*>(from);
  std::size_t begin = 0;
  while (begin < bytes) {
    std::size_t length = std::min(limit_.inline_put, bytes - begin);
    if (begin + length < bytes) length -= (offset + begin + length) % 8;  // whole words
    {
      std::unique_lock lock(gate_);
      wait_until(lock, [&] { return client_.ready(to.server); });
      client_.put(to, offset + begin, source + begin, length, what, adds.value_or(addend{}));
    }
    begin += length;
  }
  now_and_then();
}

inline ticket memory::start_long_put(rank_t rank, std::size_t offset, const void* from,
                                     std::size_t bytes) {
  target to = targets_[rank];
  std::unique_lock lock(gate_);
  wait_until(lock, [&] { return client_.ready(to.server); });
  return client_.long_put(to, offset, from, bytes);
}

/// The bytes of a long one must not change until the server has them; all but its last gigabyte are
/// waited for.
inline pending memory::async_put(rank_t rank, std::size_t offset, const void* from,
                                 std::size_t bytes) {
  if (reach_[rank] >= 0 || bytes <= limit_.inline_put || !direct(from, offset)) {
    put(rank, offset, from, bytes);
    return {};
  }
  std::size_t before = (bytes - 1) / chunk * chunk;
  if (before != 0) far_put(rank, offset, from, before);
  return handle(start_long_put(rank, offset + before, static_cast<const char*>(from) + before,
                               bytes - before));
}

inline ticket memory::start_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
  target from = targets_[rank];
  std::unique_lock lock(gate_);
  wait_until(lock, [&] { return client_.ready_to_get(from.server); });
  return client_.get(from, offset, to, bytes);
}

/// Begins a get; all but its last piece are complete on return.
inline ticket memory::far_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
  std::size_t piece = direct(to, offset) ? chunk : limit_.copied_get;
  if (bytes <= piece) [[likely]]
    return start_get(rank, offset, to, bytes);
  auto* place = static_cast<char*>(to);
  constexpr std::size_t together = 8;
  ticket under_way[together];
  std::size_t begun = 0, begin = 0;
  for (;; ++begun) {
    std::size_t length = std::min(piece, bytes - begin);
    if (begin + length < bytes) length -= (offset + begin + length) % 8;  // whole words
    if (begun >= together) finish(under_way[begun % together]);
    under_way[begun % together] = start_get(rank, offset + begin, place + begin, length);
    begin += length;
    if (begin == bytes) break;
  }
  for (std::size_t i = begun >= together ? begun - together + 1 : 0; i < begun; ++i)
    finish(under_way[i % together]);
  return under_way[begun % together];
}

inline pending memory::async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
  if (reach_[rank] >= 0 || bytes == 0) {
    get(rank, offset, to, bytes);
    return {};
  }
  return handle(far_get(rank, offset, to, bytes));
}

[[gnu::noinline]] inline void memory::flush(rank_t rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (reach_[rank] >= 0) return now_and_then();
  std::uint32_t server = targets_[rank].server;
  std::unique_lock lock(gate_);
  std::uint64_t count = client_.sent(server);
  start_fence(lock, server, count);
  wait_until(lock, [&] { return client_.complete(server, count); });
}

/// Fences to all servers are under way together.
[[gnu::noinline]] inline void memory::flush() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::unique_lock lock(gate_);
  if (client_.dirty().empty()) {
    lock.unlock();
    return now_and_then();
  }
  struct due {
    std::uint32_t server;
    std::uint64_t count;
  };
  std::vector<due> all;
  for (std::uint32_t server : client_.dirty()) all.push_back({server, client_.sent(server)});
  for (auto [server, count] : all) start_fence(lock, server, count);
  for (auto [server, count] : all)
    wait_until(lock, [&] { return client_.complete(server, count); });
  client_.forget_clean();
}

inline bool memory::await(std::size_t offset, std::uint64_t count) {
  constexpr unsigned naps = 100;
  std::atomic_ref<std::uint64_t> word(near_.at<std::uint64_t>(local(mpi_->rank()), offset));
  patience rounds(oversubscribed_);
  for (unsigned napped = 0; napped < naps;) {
    if (word.load(std::memory_order_acquire) >> 1 >= count) return true;
    if (progress())
      rounds.worked();
    else
      napped += rounds.rest() ? 1 : 0;
  }
  return false;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served

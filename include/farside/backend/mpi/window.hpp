// The segments of a job on several nodes: an MPI-3 window in one passive epoch from start to end.
//
// Legality. Every atomic on a word uses one MPI datatype (unsigned, of its width), as MPI's
// atomicity holds within one datatype only. Puts and atomics never meet on a word without a flush
// between; that is the caller's part. What we assume beyond the standard is this:
//
//   - the trait `racy_get`: a get may overlap puts, and MPI leaves its result open; we assume that
//     libraries copy aligned blocks by whole words. We hand them no other blocks of 8 bytes or
//     more, see by_words() and out_of_phase().
//   - that a put stores a word once, so that a rank that sees it may change it: see
//     docs/memory_model.md.
//   - that atomics of several kinds (add, swap, compare-and-swap) on a word at one time are atomic,
//     see window::allocate().
//   - that a rank's own loads of its memory see what atomics of others write there, in await() and
//     get(), while those are under way.
//
// FARSIDE_MPI_STRICT=1 does without, at a price: window_strict.hpp.
#pragma once

#include <farside/backend/mpi/blocks.hpp>
#include <farside/backend/mpi/completions.hpp>
#include <farside/backend/mpi/mpich_yield.hpp>
#include <farside/backend/mpi/request.hpp>
#include <farside/backend/mpi/session.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/fetch_by_swaps.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/base/mutants.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

template <atomic_word T>
inline MPI_Datatype word_type() {
  return sizeof(T) == 4 ? MPI_UINT32_T : MPI_UINT64_T;
}

template <atomic_op Op>
inline MPI_Op mpi_op() {
  if constexpr (Op == atomic_op::add) return MPI_SUM;
  if constexpr (Op == atomic_op::bit_and) return MPI_BAND;
  if constexpr (Op == atomic_op::bit_or) return MPI_BOR;
  if constexpr (Op == atomic_op::bit_xor) return MPI_BXOR;
  if constexpr (Op == atomic_op::swap) return MPI_REPLACE;
}

/// The words are unsigned to MPI, so it cannot order signed ones; and MPICH 4.0 takes unsigned ones
/// for signed in MPI_MIN and MPI_MAX.
template <atomic_op Op>
inline constexpr bool needs_loop = Op == atomic_op::min || Op == atomic_op::max;

class window : completions {
 public:
  window() = default;
  window(const window&) = delete;
  window& operator=(const window&) = delete;

  /// Collective.
  void open(const session& mpi, const start_options& options);
  /// Collective.
  void close() {
    MPI_Win_unlock_all(win_);
    MPI_Win_free(&win_);
    if (!library_allocates) munmap(memory_, bytes_);
  }

  std::size_t segment_size() const { return segment_; }
  void* own_address(std::size_t offset) const { return base_ + offset; }

  /// For benchmarks, which compare with MPI's own calls on the same memory.
  MPI_Win raw_window() const { return win_; }
  MPI_Aint raw_place(rank_t rank, std::size_t offset) const { return place(rank, offset); }

  // A rank's own segment is memory like any other in the unified model: loads and stores, which
  // flush orders, unless in strict mode. Atomics always go through MPI, as they may meet those of
  // others.
  [[gnu::noinline]] void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (own(rank)) return copy_words<false>(base_ + offset, from, offset, bytes);
    if (single_ && bytes <= small) [[likely]] {
      start_put(rank, offset, std::memcpy(room_ + offset % 8, from, bytes), bytes);
      use_room(bytes + 8);
    } else if (out_of_phase(from, offset, bytes)) {
      put_by_copies(rank, offset, from, bytes);
    } else {
      start_put(rank, offset, from, bytes);
      complete_local(rank);
    }
  }

  [[gnu::noinline]] void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (own(rank)) {
      copy_words<true>(to, base_ + offset, offset, bytes);
      return acquire_fence();
    }
    if (out_of_phase(to, offset, bytes)) [[unlikely]] {
      get_by_copies(rank, offset, to, bytes);
    } else if (use_request_forms && (bytes < long_get || several_nodes_ || oversubscribed_)) {
      mpi_backend::complete(async_get(rank, offset, to, bytes));
    } else {
      bool nothing_else = plain_ && all_settled();
      start_get(rank, offset, to, bytes);
      if (!nothing_else) return complete_local(rank);
      wait_in_mpi waiting;
      MPI_Win_flush_local(static_cast<int>(rank), win_);
    }
  }

  /// One thread, not strict, and all segments begin at the same place of their windows: then
  /// window_link does what most operations are.
  bool is_plain() const { return plain_; }
  /// So many are copied by a put of any kind, if there is one thread.
  static constexpr std::size_t small = 256;
  /// From so many on MPICH's flushes are no slower than its requests, and soon faster: 9.1 instead
  /// of 8.2 GB/s for 256 KiB. (For 4 KiB its requests reach 1.4 times what flushes do.)
  static constexpr std::size_t long_get = std::size_t{64} << 10;

  pending async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  pending async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes);

  // window_accumulate.hpp
  bool accumulates() const { return !strict_; }
  template <component C>
  void accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n);
  template <component C>
  pending async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n);

  // window_runs.hpp
  run_limits limits_of_runs() const;
  pending async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                         std::size_t bytes);
  pending async_get_runs(rank_t rank, std::span<const run> where, void* to, std::size_t bytes);
  template <component C>
  pending async_accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                                std::size_t n);

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    if constexpr (needs_loop<Op>)
      return fetch_by_swaps<Op>(*this, rank, offset, value);
    else
      return strict_ ? fetch_by_swaps<Op>(*this, rank, offset, value)
                     : fetch(rank, offset, value, mpi_op<Op>());
  }

  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    T old;
    serve_before_own(rank);
    MPI_Compare_and_swap(&desired, &expected, &old, word_type<T>(), static_cast<int>(rank),
                         place(rank, offset), win_);
    complete(rank);
    return old;
  }

  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return fetch(rank, offset, T{}, MPI_NO_OP);
  }

  /// min and max are complete on return: they are loops. In strict mode all are.
  template <atomic_op Op, atomic_word T>
  pending async_fetch_op(rank_t rank, std::size_t offset, T value, T& old);

  template <atomic_word T>
  pending async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old);

  [[gnu::noinline]] void flush(rank_t rank) {
    if (rank != rank_ && dirty(rank)) [[likely]]
      complete(rank);
    else
      flush_own_or_clean(rank);
  }

  void flush() {
    if (started_.load(std::memory_order_relaxed) > flushed_) {
      if (oversubscribed_) [[unlikely]]
        nudge_dirty_targets();
      wait_in_mpi waiting;
      if (single_) {
        flushed_ = started_.load(std::memory_order_relaxed);
        if (!all_settled()) settle_all();
      }
      if (!FARSIDE_MUTANT(mpi_flush_of_all_only_noted)) MPI_Win_flush_all(win_);
    }
    order_own();
  }

  // window_waits.hpp
  /// A barrier of all ranks, after a flush. False: not in this job.
  bool start_barrier();
  /// False: not yet, and time to look around.
  bool await_barrier();
  bool await(std::size_t offset, std::uint64_t count);

  /// As shared_memory's: the word counts in steps of two. Bit 0 stays clear, as nobody sleeps.
  void signal(rank_t rank, std::size_t offset) { fetch(rank, offset, std::uint64_t{2}, MPI_SUM); }

  /// Serves what other ranks ask of this one.
  void progress() {
    job_board::looks_without_yields quietly;
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE);
  }

  /// A rank that polls a word of its own by atomics keeps others from changing it with Open MPI's
  /// `osc ucx` over a network, unless it serves them in between.
  void serve_before_own(rank_t rank) {
    if (several_nodes_ && rank == rank_) [[unlikely]]  // whose it is nobody can predict
      progress();
  }

  /// Completes, at the origin, the operation on `rank` that has this number (see number()).
  void complete_local(rank_t rank, std::uint64_t number) {
    if (FARSIDE_MUTANT(mpi_all_taken_for_settled)) return;
    if (!single_ || !settled(rank, number)) complete_local(rank);
  }

 private:
  friend class window_link;

  void flush_own_or_clean(rank_t rank) {
    if (dirty(rank)) complete(rank);
    order_own();
  }

  /// Whether loads and stores do for this rank's memory. A rank that polls its own memory, for
  /// what another one is to write there, makes no call of MPI and so would never serve the other:
  /// it does now and then.
  bool own(rank_t rank) {
    if (rank != rank_ || strict_) return false;
    serve_now_and_then();
    return true;
  }
  void serve_now_and_then() {
    if (flush_is_a_fence_) return;  // then nobody needs to be served
    constexpr unsigned seldom = 32;
    unsigned calls = own_calls_.load(std::memory_order_relaxed) + 1;  // a lost one does not matter
    own_calls_.store(calls, std::memory_order_relaxed);
    if (calls % seldom == 0) [[unlikely]]
      progress();
  }

  /// This rank's loads and stores of its own memory, before and after. In the unified model a fence
  /// of the CPU does what MPI_Win_sync does, which costs a call; but that serves others as well, in
  /// `osc pt2pt`. MPICH's does not.
  void order_own() {
    if (strict_ || several_nodes_) [[unlikely]]
      MPI_Win_sync(win_);
    serve_now_and_then();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  template <atomic_word T>
  [[gnu::always_inline]] T fetch(rank_t rank, std::size_t offset, T value, MPI_Op op) {
    T old;
    serve_before_own(rank);
    MPI_Fetch_and_op(&value, &old, word_type<T>(), static_cast<int>(rank), place(rank, offset), op,
                     win_);
    complete(rank);
    return old;
  }

  static constexpr std::size_t page = 4096;
  static constexpr std::size_t store_bytes = std::size_t{32} << 10;
#ifdef OPEN_MPI
  static constexpr bool use_request_forms = false;  // see request.hpp
  static constexpr bool library_allocates = true;   // see make_window()
#else
  static constexpr bool use_request_forms = true;
  static constexpr bool library_allocates = false;
#endif

  MPI_Aint place(rank_t rank, std::size_t offset) const {
    return starts_[rank] + static_cast<MPI_Aint>(offset);
  }

  /// All operations of this rank on `rank` are complete there, once it returns; it says so before,
  /// as nobody else asks meanwhile.
  [[gnu::always_inline]] void complete(rank_t rank) {
    if (oversubscribed_) [[unlikely]]
      nudge_target(rank);
    wait_in_mpi waiting;
    if (single_) {
      target& to = targets_[rank];
      clean(rank);
      // If none has a request, all numbers this target ever had are settled.
      if (to.under_way != 0) settle(to);
    }
    MPI_Win_flush(static_cast<int>(rank), win_);
  }

  /// All operations of this rank on `rank` are complete here. In Open MPI's `osc pt2pt` the local
  /// flush never returns if more than one get or atomic is under way; in `sm` and `ucx` the two
  /// kinds of flush take the same time.
  void complete_local(rank_t rank) {
#ifdef OPEN_MPI
    complete(rank);
#else
    if (oversubscribed_) [[unlikely]]
      nudge_target(rank);
    wait_in_mpi waiting;
    MPI_Win_flush_local(static_cast<int>(rank), win_);
    if (single_) targets_[rank].settled = numbered_;
#endif
  }

  /// A small put copies its source and need not wait until MPI has read it: MPI_Win_flush_local is
  /// a round trip on some networks. The copies lie one after another in a store that is emptied
  /// when it is full, 512 at most: each begins a cache line. With several threads there is none.
  /// At room_ there is always room for the next one; once the call that reads it has been made, but
  /// no earlier, use_room() goes on to the one after it.
  [[gnu::always_inline]] void use_room(std::size_t bytes) {
    char* next = room_ + (bytes + 63) / 64 * 64;
    if (next > last_room_) [[unlikely]]
      empty_store();
    else
      room_ = next;
  }

  /// A place for what an atomic reads while it is under way: in the store too, or else on the heap,
  /// and then the second is what must be deleted.
  std::pair<operands*, operands*> place_operands() {
    if (single_) [[likely]]
      return {new (room_) operands, nullptr};
    auto* own = new operands;
    return {own, own};
  }
  void use_operands() {
    if (single_) use_room(sizeof(operands));
  }

  /// Whether words of the segment would not be words of the private side: a copy of such a block
  /// cuts them.
  bool out_of_phase(const void* side, std::size_t offset, std::size_t bytes) const {
    return bytes >= (strict_ ? 4 : 8) && (reinterpret_cast<std::uintptr_t>(side) ^ offset) % 8 != 0;
  }
  void put_by_copies(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  void get_by_copies(rank_t rank, std::size_t offset, void* to, std::size_t bytes);

  [[gnu::always_inline]] void put_block(rank_t rank, std::size_t offset, const void* from,
                                        std::size_t bytes) {
    int count = static_cast<int>(bytes);
    MPI_Put(from, count, MPI_BYTE, static_cast<int>(rank), place(rank, offset), count, MPI_BYTE,
            win_);
  }
  [[gnu::always_inline]] void get_block(rank_t rank, std::size_t offset, void* to,
                                        std::size_t bytes) {
    int count = static_cast<int>(bytes);
    MPI_Get(to, count, MPI_BYTE, static_cast<int>(rank), place(rank, offset), count, MPI_BYTE,
            win_);
  }
  template <component C>
  void start_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n);
  void put_blocks(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  void get_blocks(rank_t rank, std::size_t offset, void* to, std::size_t bytes);
  // window_strict.hpp
  void put_strictly(rank_t rank, std::size_t offset, const void* from, std::size_t bytes);
  void get_strictly(rank_t rank, std::size_t offset, void* to, std::size_t bytes);

  void start_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (strict_) [[unlikely]]
      put_strictly(rank, offset, from, bytes);
    else if (one_block(offset, bytes)) [[likely]]
      put_block(rank, offset, from, bytes);
    else
      put_blocks(rank, offset, from, bytes);
    mark(rank);
  }

  void start_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (dirty(rank) && !FARSIDE_MUTANT(mpi_long_get_before_own_puts))
      complete(rank);  // a rank sees its own puts
    else if (single_)
      clean(rank);  // flush() of all has left its stamp
    if (strict_) [[unlikely]]
      get_strictly(rank, offset, to, bytes);
    else if (one_block(offset, bytes)) [[likely]]
      get_block(rank, offset, to, bytes);
    else
      get_blocks(rank, offset, to, bytes);
  }

  // MPICH serves an operation only when its target calls in, and its flush does not yield
  // meanwhile. Where ranks share cores, wait for the answer to a get of one spare byte, and yield,
  // before the flush: by then the target has run. 3 and 7 ranks on 2 cores are 4 to 6 times as fast
  // by it.
  [[gnu::noinline]] void nudge_target(rank_t rank) {
    char answer;
    MPI_Request request = start_nudge(rank, answer);
    wait_politely(request);
  }
  void nudge_dirty_targets();
  void empty_store();
  MPI_Request start_nudge(rank_t rank, char& answer) {
    MPI_Request request;
    MPI_Rget(&answer, 1, MPI_BYTE, static_cast<int>(rank), spare_byte_, 1, MPI_BYTE, win_,
             &request);
    return request;
  }

  // How it is made: window_memory.hpp.
  std::size_t default_segment(const session& mpi) const;
  void allocate(const session& mpi);
  int make_window(const session& mpi, MPI_Info info);
  void exchange_starts(const session& mpi);
  void zero();

  MPI_Win win_ = MPI_WIN_NULL;
  MPI_Aint start_ = 0;  ///< where segments begin, if that is the same place in all windows
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::unique_ptr<MPI_Aint[]> starts_;  ///< of each rank: where its segment begins in its window
  MPI_Request barrier_ = MPI_REQUEST_NULL;
  bool strict_ = false;
  bool plain_ = true;
  bool several_nodes_ = false;
  std::atomic<unsigned> own_calls_ = 0;
#ifdef OPEN_MPI
  static constexpr bool oversubscribed_ = false;  // it yields by itself
#else
  bool oversubscribed_ = false;
#endif
  std::unique_ptr<char[]> store_;
  char *room_ = nullptr, *last_room_ = nullptr;
  MPI_Aint spare_byte_ = 0;
  char* memory_ = nullptr;  ///< the window's
  std::size_t bytes_ = 0;
  char* base_ = nullptr;  ///< the first page boundary in it: this rank's segment
  std::size_t segment_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

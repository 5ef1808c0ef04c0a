// The fast link of windows that are plain: one thread, not strict, and all segments at the same
// place of their windows.
//
// It saves single nanoseconds, as MPI's calls take some 20 within a node: each store of ours takes
// half a nanosecond, and ten instructions two or three. Their place counts, too. On a Xeon nothing
// runs ahead of the fence that a flush is: 30 instructions between it and the next operation took
// 35 ns, and 100 between an operation and its flush 8. So all that can come behind MPI's call does:
// the marks, and room for the next copy.
#pragma once

#include <farside/backend/mpi/window.hpp>
#include <farside/backend/mpi/window_accumulate.hpp>
#include <farside/base/cpu.hpp>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// MPI_Win_flush, and no value kept in x19 or x20 meanwhile. Open MPI's saves those two, as most
/// functions do first, and loads them again behind its fence: where a loop of gets had its counter
/// or the address of its thread's variables there, a get took 38 ns instead of 33.
[[gnu::always_inline]] inline void flush_target(int rank, MPI_Win win) {
  MPI_Win_flush(rank, win);
#ifdef OPEN_MPI
  forget_first_saved_registers();
#endif
}

/// A copy of what most operations need of the window. To look it up there, one load after another,
/// would come after the fence of the last flush (3 ns of 27, on a Neoverse V1). False, converted to
/// bool, where there is no plain window.
class window_link {
 public:
  static constexpr bool waits_for_nobody = false;

  constexpr window_link() = default;
  explicit window_link(window& of)
      : w_(&of),
        win_(of.win_),
        start_(of.start_),
        lasts_(of.lasts_.get()),
        segment_(of.segment_),
        nprocs_(of.nprocs_),
        own_(of.rank_),
        served_before_(of.several_nodes_ ? of.rank_ : nobody),
        always_flushes_(of.flush_is_a_fence_) {}
  explicit operator bool() const { return w_ != nullptr; }
  std::size_t segment_size() const { return segment_; }
  rank_t nprocs() const { return nprocs_; }

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    if (rank != own_) [[likely]] {
      if (bytes == 8 && is_aligned(offset) && !words_at_once()) [[likely]]
        return put_word(rank, offset, from);
      if ((bytes != 8 || words_at_once()) && is_block(offset, from, bytes) && can_put_at_once())
        return put_at_once(rank, offset, from, bytes);
    }
    w_->put(rank, offset, from, bytes);
  }

  /// With all that was put to that rank before.
  [[gnu::always_inline]] void put_through(rank_t rank, std::size_t offset, const void* from,
                                          std::size_t bytes) {
    if (rank != own_ && is_block(offset, from, bytes)) [[likely]] {
      int count = static_cast<int>(bytes);
      known_behind_calls known = *this;
      MPI_Put(from, count, MPI_BYTE, static_cast<int>(rank), place(offset), count, MPI_BYTE, win_);
      if (!FARSIDE_MUTANT(mpi_put_not_through)) known.complete(rank);
    } else {
      w_->put(rank, offset, from, bytes);
      w_->flush(rank);
    }
  }

  [[gnu::always_inline]] void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (is_block(offset, to, bytes) && can_get_at_once(rank)) [[likely]]
      return get_at_once(rank, offset, to, bytes);
    w_->get(rank, offset, to, bytes);
  }

  template <atomic_op Op, atomic_word T>
  [[gnu::always_inline]] T fetch_op(rank_t rank, std::size_t offset, T value) {
    if constexpr (needs_loop<Op>)
      return w_->fetch_op<Op>(rank, offset, value);
    else
      return fetch(rank, offset, value, mpi_op<Op>());
  }
  template <atomic_word T>
  [[gnu::always_inline]] T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    T old;
    serve_before_own(rank);
    MPI_Compare_and_swap(&desired, &expected, &old, word_type<T>(), static_cast<int>(rank),
                         place(offset), win_);
    complete(rank);
    return old;
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return w_->atomic_load<T>(rank, offset);
  }

  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t) {
    w_->accumulate(rank, offset, from, n);
    return {n};
  }

  [[gnu::always_inline]] void flush(rank_t rank) {
    // Operations that have a number are complete then, too, but will be flushed once more, when
    // they are waited for: to find out whether there are any takes longer than it would save.
    if (rank != own_ && (always_flushes_ || has_puts_alone(rank))) [[likely]] {
      last(rank) = 0;
      complete_clean(rank);
    } else {
      w_->flush(rank);
    }
  }
  void flush() { w_->flush(); }
  bool flush_is_a_fence() const { return always_flushes_; }

 private:
  /// What is needed behind a call of MPI: kept, where there are registers for it, or looked up
  /// again, as what goes to the stack meanwhile is looked up, too, and has to be stored before.
#if defined(__aarch64__)
  using known_behind_calls = const window_link;
#else
  using known_behind_calls = const window_link&;
#endif

  [[gnu::always_inline]] static bool is_aligned(std::size_t offset) { return offset % 8 == 0; }
  [[gnu::always_inline]] static bool is_block(std::size_t offset, const void* side,
                                              std::size_t bytes) {
    return is_aligned(offset | reinterpret_cast<std::uintptr_t>(side) | bytes) &&
           bytes <= longest_block;
  }
  [[gnu::always_inline]] MPI_Aint place(std::size_t offset) const {
    return start_ + static_cast<MPI_Aint>(offset);
  }

  [[gnu::always_inline]] void put_word(rank_t rank, std::size_t offset, const void* from) {
    known_behind_calls known = *this;
    MPI_Put(std::memcpy(w_->room_, from, 8), 8, MPI_BYTE, static_cast<int>(rank), place(offset), 8,
            MPI_BYTE, win_);
    known.mark(rank);
    if (!FARSIDE_MUTANT(mpi_copy_overwritten)) known.w_->use_room(8);
  }

  /// Within a node a local flush costs less than a copy. MPICH's does so for words, too: there each
  /// put that is under way makes the others slower. (To a rank that computes some 60 puts can be
  /// made then, and the next one waits for it; copies let 500 of them be made.)
  bool can_put_at_once() const {
    return !w_->several_nodes_ &&
           (window::use_request_forms ? !w_->oversubscribed_ : w_->all_settled());
  }
  bool words_at_once() const { return window::use_request_forms && can_put_at_once(); }
  [[gnu::always_inline]] void put_at_once(rank_t rank, std::size_t offset, const void* from,
                                          std::size_t bytes) {
    int count = static_cast<int>(bytes), to = static_cast<int>(rank);
    known_behind_calls known = *this;
    MPI_Put(from, count, MPI_BYTE, to, place(offset), count, MPI_BYTE, win_);
    known.mark(rank);
    wait_in_mpi waiting;
    if (!FARSIDE_MUTANT(mpi_source_left_early)) MPI_Win_flush_local(to, win_);
  }

  /// Nothing to that rank is under way that has to come first; see window::clean().
  [[gnu::always_inline]] bool can_get_at_once(rank_t rank) const {
    return !window::use_request_forms &&
           (last(rank) == 0 || FARSIDE_MUTANT(mpi_get_before_own_puts));
  }
  /// Not MPI_Win_flush_local, which in Open MPI's `osc pt2pt` may not return if more is under way;
  /// elsewhere the two take the same time.
  [[gnu::always_inline]] void get_at_once(rank_t rank, std::size_t offset, void* to,
                                          std::size_t bytes) {
    int count = static_cast<int>(bytes), from = static_cast<int>(rank), again = from;
#if !defined(__aarch64__)
    again = in_register(from);  // a copy that may go to the stack: the get need not wait for it
#endif
    MPI_Get(to, count, MPI_BYTE, from, place(offset), count, MPI_BYTE, win_);
    flush_target(again, win_);
  }

  template <atomic_word T>
  [[gnu::always_inline]] T fetch(rank_t rank, std::size_t offset, T value, MPI_Op op) {
    T old;
    serve_before_own(rank);
    MPI_Fetch_and_op(&value, &old, word_type<T>(), static_cast<int>(rank), place(offset), op, win_);
    complete(rank);
    return old;
  }

  [[gnu::always_inline]] void serve_before_own(rank_t rank) {
    if (rank == served_before_) [[unlikely]]
      w_->progress();
  }

  /// window::complete() of one thread.
  [[gnu::always_inline]] void complete(rank_t rank) const {
    if (last(rank) > window::clean_own)  // window::clean()
      last(rank) = rank != own_ || always_flushes_ ? 0 : window::clean_own;
    if (!w_->all_settled()) [[unlikely]]
      w_->settle(w_->targets_[rank]);
    complete_clean(rank);
  }
  [[gnu::always_inline]] void complete_clean(rank_t rank) const {
    if (w_->oversubscribed_) [[unlikely]]
      w_->nudge_target(rank);
    wait_in_mpi waiting;
    if (!FARSIDE_MUTANT(mpi_flush_only_noted)) flush_target(static_cast<int>(rank), win_);
  }

  [[gnu::always_inline]] std::uint64_t& last(rank_t rank) const { return lasts_[rank]; }
  [[gnu::always_inline]] bool has_puts_alone(rank_t rank) const {
    return last(rank) > w_->flushed_ && w_->targets_[rank].under_way == 0;
  }

  /// window::mark() of one thread.
  [[gnu::always_inline]] void mark(rank_t rank) const {
    if (FARSIDE_MUTANT(mpi_put_not_marked)) return;
    std::uint64_t stamp = w_->started_.load(std::memory_order_relaxed) + 1;
    w_->started_.store(stamp, std::memory_order_relaxed);
    last(rank) = stamp;
  }

  window* w_ = nullptr;
  MPI_Win win_{};
  MPI_Aint start_ = 0;
  std::uint64_t* lasts_ = nullptr;
  std::size_t segment_ = 0;
  static constexpr rank_t nobody = ~rank_t{0};
  rank_t nprocs_ = 1, own_ = 0;
  rank_t served_before_ = nobody;  ///< of whom window::serve_before_own() serves others first
  /// Even if there is nothing to flush: a fence of the CPU is what that has to be, too.
  bool always_flushes_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

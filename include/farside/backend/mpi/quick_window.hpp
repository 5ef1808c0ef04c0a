// A window in a job that is plain (one thread, not strict, all segments at the same place of their
// windows): the shortest ways to MPI, which far operations go first.
//
// They are short because MPI's calls are: some 20 ns within a node, of which each store of ours
// takes half a one, and ten instructions two or three. Where they are counts, too. On a Xeon
// nothing runs ahead of the fence that a flush is: 30 instructions between it and the next
// operation took 35 ns, and 100 between an operation and its flush 8. So all that can come behind
// MPI's call does: the marks, and room for the next copy.
#pragma once

#include <farside/backend/mpi/window.hpp>
#include <farside/backend/mpi/window_accumulate.hpp>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// As cheap to copy as a pointer; null where there is no plain window.
class quick_window {
 public:
  constexpr quick_window() = default;
  explicit quick_window(window& of) : w_(&of) {}
  explicit operator bool() const { return w_ != nullptr; }

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    if (rank != w_->rank_) [[likely]] {
      if (bytes == 8 && is_aligned(offset) && !words_at_once()) [[likely]]
        return put_word(rank, offset, from);
      if ((bytes != 8 || words_at_once()) && is_block(offset, from, bytes) && can_put_at_once())
        return put_at_once(rank, offset, from, bytes);
    }
    w_->put(rank, offset, from, bytes);
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
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    return w_->compare_swap(rank, offset, expected, desired);
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return w_->atomic_load<T>(rank, offset);
  }

  template <component C>
  void accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    w_->accumulate(rank, offset, from, n);
  }

  [[gnu::always_inline]] void flush(rank_t rank) {
    // Its own memory is dirty only by operations that have a number.
    if (last(rank) > w_->flushed_ && w_->targets_[rank].under_way == 0) [[likely]] {
      last(rank) = 0;
      complete_clean(rank);
    } else {
      w_->flush(rank);
    }
  }
  void flush() { w_->flush(); }

 private:
  [[gnu::always_inline]] static bool is_aligned(std::size_t offset) { return offset % 8 == 0; }
  [[gnu::always_inline]] static bool is_block(std::size_t offset, const void* side,
                                              std::size_t bytes) {
    return is_aligned(offset | reinterpret_cast<std::uintptr_t>(side) | bytes) &&
           bytes <= window::longest;
  }
  [[gnu::always_inline]] MPI_Aint place(std::size_t offset) const {
    return w_->start_ + static_cast<MPI_Aint>(offset);
  }

  [[gnu::always_inline]] void put_word(rank_t rank, std::size_t offset, const void* from) {
    MPI_Put(std::memcpy(w_->room_, from, 8), 8, MPI_BYTE, static_cast<int>(rank), place(offset), 8,
            MPI_BYTE, w_->win_);
    mark(rank);
    w_->use_room(8);
  }

  /// Within a node a local flush costs less than a copy. MPICH's does so for words, too: there each
  /// put that is under way makes the others slower. (To a rank that computes some 60 puts can be
  /// made then, and the next one waits for it; copies let 500 of them be made.)
  bool can_put_at_once() const {
    return !w_->several_nodes_ && (window::use_request_forms ? !w_->crowded_ : w_->all_settled());
  }
  bool words_at_once() const { return window::use_request_forms && can_put_at_once(); }
  [[gnu::always_inline]] void put_at_once(rank_t rank, std::size_t offset, const void* from,
                                          std::size_t bytes) {
    int count = static_cast<int>(bytes), to = static_cast<int>(rank);
    MPI_Put(from, count, MPI_BYTE, to, place(offset), count, MPI_BYTE, w_->win_);
    mark(rank);
    wait_in_mpi waiting;
    MPI_Win_flush_local(to, w_->win_);
  }

  /// Nothing to that rank is under way that has to come first, and it is another one.
  [[gnu::always_inline]] bool can_get_at_once(rank_t rank) const {
    return !window::use_request_forms && last(rank) == 0;
  }
  /// Not MPI_Win_flush_local, which in Open MPI's `osc pt2pt` may not return if more is under way;
  /// elsewhere the two take the same time.
  [[gnu::always_inline]] void get_at_once(rank_t rank, std::size_t offset, void* to,
                                          std::size_t bytes) {
    int count = static_cast<int>(bytes), from = static_cast<int>(rank);
    MPI_Get(to, count, MPI_BYTE, from, place(offset), count, MPI_BYTE, w_->win_);
    MPI_Win_flush(from, w_->win_);
  }

  template <atomic_word T>
  [[gnu::always_inline]] T fetch(rank_t rank, std::size_t offset, T value, MPI_Op op) {
    T old;
    w_->serve_before_own(rank);
    MPI_Fetch_and_op(&value, &old, word_type<T>(), static_cast<int>(rank), place(offset), op,
                     w_->win_);
    complete(rank);
    return old;
  }

  /// window::complete() of one thread.
  [[gnu::always_inline]] void complete(rank_t rank) {
    if (last(rank) != 0) w_->clean(rank);
    if (window::target& to = w_->targets_[rank]; to.under_way != 0) [[unlikely]]
      w_->settle(to);
    complete_clean(rank);
  }
  [[gnu::always_inline]] void complete_clean(rank_t rank) {
    if (w_->crowded_) [[unlikely]]
      w_->knock(rank);
    wait_in_mpi waiting;
    MPI_Win_flush(static_cast<int>(rank), w_->win_);
  }

  [[gnu::always_inline]] std::uint64_t& last(rank_t rank) const { return w_->lasts_[rank]; }

  /// window::mark() of one thread.
  [[gnu::always_inline]] void mark(rank_t rank) {
    std::uint64_t stamp = w_->started_.load(std::memory_order_relaxed) + 1;
    w_->started_.store(stamp, std::memory_order_relaxed);
    last(rank) = stamp;
  }

  window* w_ = nullptr;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

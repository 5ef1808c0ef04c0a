// Far memory of a job whose ranks do not all share theirs: a window, or messages.
#pragma once

#include <farside/backend/mpi/fast_link.hpp>
#include <farside/backend/mpi/request.hpp>
#include <farside/backend/mpi/served/memory.hpp>
#include <farside/backend/mpi/served/memory_runs.hpp>
#include <farside/backend/mpi/served/open.hpp>
#include <farside/backend/mpi/window.hpp>
#include <farside/backend/mpi/window_accumulate.hpp>
#include <farside/backend/mpi/window_async.hpp>
#include <farside/backend/mpi/window_blocks.hpp>
#include <farside/backend/mpi/window_memory.hpp>
#include <farside/backend/mpi/window_runs.hpp>
#include <farside/backend/mpi/window_strict.hpp>
#include <farside/backend/mpi/window_waits.hpp>
#include <farside/base/give_way.hpp>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

class far_memory {
 public:
  /// Collective over the whole of `mpi`.
  void open(session& mpi, const start_options& options) {
    served_ = mpi.settings().served();
    served_ ? messages_.open(mpi, options) : window_.open(mpi, options);
    rank_ = mpi.rank();
    if (!served_ && window_.is_plain()) fast_ = window_link(window_);
  }
  void close() { served_ ? messages_.close() : window_.close(); }

  const mpi_backend::window& window() const { return window_; }
  bool is_served() const { return served_; }
  served::memory& messages() { return messages_; }

  /// Some windows would progress by themselves (Open MPI's `osc sm`), but none says so.
  bool async_progress() const { return served_ && messages_.async_progress(); }
  std::size_t segment_size() const {
    return served_ ? messages_.segment_size() : window_.segment_size();
  }
  void* address(rank_t rank, std::size_t offset) const {
    if (served_) return messages_.address(rank, offset);
    return rank == rank_ ? window_.own_address(offset) : nullptr;
  }

  /// False in jobs that have none.
  window_link fast_link() const { return fast_; }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (fast_) return fast_.put(rank, offset, from, bytes);
    served_ ? messages_.put(rank, offset, from, bytes) : window_.put(rank, offset, from, bytes);
  }
  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (fast_) return fast_.get(rank, offset, to, bytes);
    served_ ? messages_.get(rank, offset, to, bytes) : window_.get(rank, offset, to, bytes);
  }
  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (fast_ && bytes <= window::small) {  // not worth a request
      fast_.put(rank, offset, from, bytes);
      return {};
    }
    return request(served_ ? messages_.async_put(rank, offset, from, bytes)
                           : window_.async_put(rank, offset, from, bytes));
  }
  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    return request(served_ ? messages_.async_get(rank, offset, to, bytes)
                           : window_.async_get(rank, offset, to, bytes));
  }

  template <component C>
  bool accumulates() const {
    return served_ ? messages_.accumulates() : window_.accumulates();
  }
  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t) {
    served_ ? messages_.accumulate(rank, offset, from, n)
            : window_.accumulate(rank, offset, from, n);
    return {n};
  }
  template <component C>
  request async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    if (!served_) return request(window_.async_accumulate(rank, offset, from, n));
    messages_.accumulate(rank, offset, from, n);
    return {};
  }

  run_limits limits_of_runs() const {
    return served_ ? messages_.limits_of_runs() : window_.limits_of_runs();
  }
  request async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                         std::size_t bytes) {
    if (!served_) return request(window_.async_put_runs(rank, where, from, bytes));
    messages_.put_runs(rank, where, from, bytes);
    return {};
  }
  request async_get_runs(rank_t rank, std::span<const run> where, void* to, std::size_t bytes) {
    return request(served_ ? messages_.async_get_runs(rank, where, to, bytes)
                           : window_.async_get_runs(rank, where, to, bytes));
  }
  template <component C>
  request async_accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                                std::size_t n) {
    if (!served_) return request(window_.async_accumulate_runs(rank, where, from, n));
    messages_.accumulate_runs(rank, where, from, n);
    return {};
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    return served_ ? messages_.fetch_op<Op>(rank, offset, value)
                   : window_.fetch_op<Op>(rank, offset, value);
  }
  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    return served_ ? messages_.compare_swap(rank, offset, expected, desired)
                   : window_.compare_swap(rank, offset, expected, desired);
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return served_ ? messages_.atomic_load<T>(rank, offset) : window_.atomic_load<T>(rank, offset);
  }
  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    return request(served_ ? messages_.async_fetch_op<Op>(rank, offset, value, old)
                           : window_.async_fetch_op<Op>(rank, offset, value, old));
  }
  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    return request(served_ ? messages_.async_compare_swap(rank, offset, expected, desired, old)
                           : window_.async_compare_swap(rank, offset, expected, desired, old));
  }

  void flush(rank_t rank) { served_ ? messages_.flush(rank) : window_.flush(rank); }
  /// After an atomic, which ends with MPI_Win_flush: that orders this CPU's loads, or may not.
  void settle(rank_t rank) {
    if (!fast_)
      flush(rank);
    else if (!fast_.flush_is_a_fence())
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void flush() { served_ ? messages_.flush() : window_.flush(); }
  void signal(rank_t rank, std::size_t offset) {
    served_ ? messages_.signal(rank, offset) : window_.signal(rank, offset);
  }
  bool await(std::size_t offset, std::uint64_t count) {
    return served_ ? messages_.await(offset, count) : window_.await(offset, count);
  }
  bool start_barrier() { return !served_ && window_.start_barrier(); }
  bool await_barrier() { return window_.await_barrier(); }
  void progress() { served_ ? void(messages_.progress()) : window_.progress(); }
  void pause() {
    if (served_) return messages_.pause();
    window_.progress();
    give_way();
  }

 private:
  bool served_ = false;
  window_link fast_;
  rank_t rank_ = 0;
  mpi_backend::window window_;
  served::memory messages_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

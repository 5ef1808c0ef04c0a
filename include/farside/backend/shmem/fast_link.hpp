// The fast link to a symmetric heap, in jobs with one thread a rank.
#pragma once

#include <farside/backend/shmem/operations.hpp>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

/// Behind the fence of a get all loads wait, and one that is found by way of another waits longer.
/// So the address of the segment is here. (Gets of 8 to 256 bytes took 1.10 times as long as
/// OpenSHMEM's without.)
class heap_link {
 public:
  static constexpr bool waits_for_nobody = false;

  constexpr heap_link() = default;
  explicit heap_link(heap_operations& of) : of_(&of), base_(of.base_) {
    if (!of.one_machine_) served_ = of.rank_;
  }
  explicit operator bool() const { return of_ != nullptr; }
  std::size_t segment_size() const { return of_->segment_size(); }
  rank_t nprocs() const { return of_->nprocs(); }
  void* address(rank_t rank, std::size_t offset) const { return of_->address(rank, offset); }

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    if (heap_operations::skewed(from, offset, bytes)) [[unlikely]]
      return of_->put(rank, offset, from, bytes);
    shmem_putmem(base_ + offset, from, bytes, static_cast<int>(rank));
    of_->traffic_.puts.begin(false);
  }

  [[gnu::always_inline]] void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (heap_operations::skewed(to, offset, bytes) || rank == served_ ||
        !of_->traffic_.puts.all_finished(false)) [[unlikely]]
      return of_->get(rank, offset, to, bytes);
    shmem_getmem(to, base_ + offset, bytes, static_cast<int>(rank));
    acquire_fence();
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    return of_->fetch_op<Op>(rank, offset, value);
  }
  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    return of_->compare_swap(rank, offset, expected, desired);
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return of_->atomic_load<T>(rank, offset);
  }
  template <std::unsigned_integral C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t me) {
    return of_->accumulate(rank, offset, from, n, me);
  }
  void flush(rank_t) { of_->flush(); }
  void flush() { of_->flush(); }

 private:
  static constexpr rank_t nobody = ~rank_t{0};

  heap_operations* of_ = nullptr;
  char* base_ = nullptr;
  rank_t served_ = nobody;  ///< this rank, if gets of its own memory serve others first
};

}  // namespace far::inline FARSIDE_BACKEND::detail::shmem_backend

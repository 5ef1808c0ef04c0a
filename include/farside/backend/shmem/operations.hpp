// Puts, gets and atomics on the symmetric heap, in which each rank has its segment at the same
// place.
//
// Memory order. Between ranks of one machine UCX copies and does CPU atomics itself, without the
// fences that a contract of ours needs: a flush ends in a full fence, a get in an acquire fence
// (see backend/shared/segments.hpp for why). UCX's atomics are full fences.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/fetch_by_swaps.hpp>
#include <farside/backend/shmem/request.hpp>
#include <farside/base/give_way.hpp>
#include <farside/base/word_copy.hpp>

#include <dlfcn.h>
#include <shmem.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

class heap_link;

/// What the backend does with segments, and what it has to know of them for that.
class heap_operations {
 public:
  using request = shmem_backend::request;

  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  std::size_t segment_size() const { return segment_; }

  /// Only this rank's own memory: where shmem_ptr reaches others', a CPU's accesses and OpenSHMEM's
  /// need not agree.
  void* address(rank_t rank, std::size_t offset) const {
    return rank == rank_ ? base_ + offset : nullptr;
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (skewed(from, offset, bytes)) [[unlikely]]
      return put_skewed(rank, offset, static_cast<const std::byte*>(from), bytes);
    shmem_putmem(base_ + offset, from, bytes, static_cast<int>(rank));
    traffic_.puts.begin(traffic_.threads);
  }

  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    finish_puts();
    serve_before_own(rank);
    if (skewed(to, offset, bytes)) [[unlikely]]
      get_skewed(rank, offset, static_cast<std::byte*>(to), bytes);
    else
      shmem_getmem(to, base_ + offset, bytes, static_cast<int>(rank));
    acquire_fence();
  }

  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (skewed(from, offset, bytes)) [[unlikely]] {
      put(rank, offset, from, bytes);
      return {};
    }
    shmem_putmem_nbi(base_ + offset, from, bytes, static_cast<int>(rank));
    return {traffic_, traffic_.puts, traffic_.puts.begin(traffic_.threads)};
  }

  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (skewed(to, offset, bytes)) [[unlikely]] {
      get(rank, offset, to, bytes);
      return {};
    }
    finish_puts();
    shmem_getmem_nbi(to, base_ + offset, bytes, static_cast<int>(rank));
    return {traffic_, traffic_.gets, traffic_.gets.begin(traffic_.threads)};
  }

  /// OpenSHMEM adds integers only. Like puts, they are complete after a quiet.
  template <component C>
  static constexpr bool accumulates() {
    return std::integral<C>;
  }
  template <std::unsigned_integral C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t) {
    int pe = static_cast<int>(rank);
    for (std::size_t i = 0; i < n; ++i, offset += sizeof(C))
      if constexpr (sizeof(C) == 8)
        shmem_ulong_atomic_add(at<unsigned long>(offset), from[i], pe);
      else
        shmem_uint_atomic_add(at<unsigned>(offset), from[i], pe);
    traffic_.puts.begin(traffic_.threads);
    return {n};
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value);

  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired);

  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    serve_before_own(rank);
    int pe = static_cast<int>(rank);
    if constexpr (sizeof(T) == 8)
      return static_cast<T>(shmem_ulong_atomic_fetch(at<unsigned long>(offset), pe));
    else
      return static_cast<T>(shmem_uint_atomic_fetch(at<unsigned>(offset), pe));
  }

  // OpenSHMEM has no atomics that return before they are done until 1.5.
  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    old = fetch_op<Op>(rank, offset, value);
    return {};
  }

  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    old = compare_swap(rank, offset, expected, desired);
    return {};
  }

  void flush(rank_t) { flush(); }
  void flush() {
    finish_puts();
    // A rank that only flushes, and loads its own memory, may wait for others, too.
    serve_before_own(rank_);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  /// Counts in steps of two, as all back ends do; bit 0 is not used here.
  void signal(rank_t rank, std::size_t offset) {
    shmem_ulong_atomic_add(at<unsigned long>(offset), 2, static_cast<int>(rank));
  }

  void progress() {
    job_board::looks_without_yields quietly;
    if (opal_progress_ != nullptr) opal_progress_();
  }
  void pause() {
    progress();
    give_way();
  }

 protected:
  friend heap_link;

  /// Whole words of the segment from or to a private buffer that is not aligned as they are: the
  /// library would copy such a block by accesses that cut the words in two (`racy_get`).
  static bool skewed(const void* buffer, std::size_t offset, std::size_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(buffer) & 7) != 0 && ((offset | bytes) & 7) == 0;
  }

  static constexpr std::size_t bounce_bytes = 4096;

  [[gnu::noinline]] void put_skewed(rank_t rank, std::size_t offset, const std::byte* from,
                                    std::size_t bytes) {
    alignas(64) std::byte bounce[bounce_bytes];
    for (std::size_t n; bytes != 0; offset += n, from += n, bytes -= n) {
      n = std::min(bytes, bounce_bytes);
      std::memcpy(bounce, from, n);
      shmem_putmem(base_ + offset, bounce, n, static_cast<int>(rank));
    }
    traffic_.puts.begin(traffic_.threads);
  }

  [[gnu::noinline]] void get_skewed(rank_t rank, std::size_t offset, std::byte* to,
                                    std::size_t bytes) {
    alignas(64) std::byte bounce[bounce_bytes];
    for (std::size_t n; bytes != 0; offset += n, to += n, bytes -= n) {
      n = std::min(bytes, bounce_bytes);
      shmem_getmem(bounce, base_ + offset, n, static_cast<int>(rank));
      std::memcpy(to, bounce, n);
    }
  }

  /// A rank that polls a word of its own keeps others from changing it over a network, unless it
  /// serves them in between.
  void serve_before_own(rank_t rank) {
    if (!one_machine_ && rank == rank_) [[unlikely]]  // whose it is nobody can predict
      progress();
  }

  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  void finish_puts() {
    if (!traffic_.puts.all_finished(traffic_.threads)) traffic_.quiet();
  }

  /// Collective, once there are segments: finds out whether all atomics work.
  void try_bitwise(rank_t neighbour);

  char* base_ = nullptr;
  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
  bool one_machine_ = true;
  bool bitwise_works_ = true;
  std::size_t segment_ = 0;
  traffic traffic_;
  void (*opal_progress_)() = nullptr;
};

template <atomic_op Op, atomic_word T>
T heap_operations::fetch_op(rank_t rank, std::size_t offset, T value) {
  serve_before_own(rank);
  int pe = static_cast<int>(rank);
  constexpr bool bitwise =
      Op == atomic_op::bit_and || Op == atomic_op::bit_or || Op == atomic_op::bit_xor;
  if (bitwise && !bitwise_works_) return fetch_by_swaps<Op>(*this, rank, offset, value);
  if constexpr (Op == atomic_op::min || Op == atomic_op::max) {
    return fetch_by_swaps<Op>(*this, rank, offset, value);
  } else if constexpr (sizeof(T) == 8) {
    auto* word = at<unsigned long>(offset);
    auto operand = static_cast<unsigned long>(value);
    if constexpr (Op == atomic_op::add)
      return static_cast<T>(shmem_ulong_atomic_fetch_add(word, operand, pe));
    if constexpr (Op == atomic_op::bit_and)
      return static_cast<T>(shmem_ulong_atomic_fetch_and(word, operand, pe));
    if constexpr (Op == atomic_op::bit_or)
      return static_cast<T>(shmem_ulong_atomic_fetch_or(word, operand, pe));
    if constexpr (Op == atomic_op::bit_xor)
      return static_cast<T>(shmem_ulong_atomic_fetch_xor(word, operand, pe));
    if constexpr (Op == atomic_op::swap)
      return static_cast<T>(shmem_ulong_atomic_swap(word, operand, pe));
  } else {
    auto* word = at<unsigned>(offset);
    auto operand = static_cast<unsigned>(value);
    if constexpr (Op == atomic_op::add)
      return static_cast<T>(shmem_uint_atomic_fetch_add(word, operand, pe));
    if constexpr (Op == atomic_op::bit_and)
      return static_cast<T>(shmem_uint_atomic_fetch_and(word, operand, pe));
    if constexpr (Op == atomic_op::bit_or)
      return static_cast<T>(shmem_uint_atomic_fetch_or(word, operand, pe));
    if constexpr (Op == atomic_op::bit_xor)
      return static_cast<T>(shmem_uint_atomic_fetch_xor(word, operand, pe));
    if constexpr (Op == atomic_op::swap)
      return static_cast<T>(shmem_uint_atomic_swap(word, operand, pe));
  }
}

/// 32 bits go by way of the 64 around them, 1 load + 1 compare-and-swap: Open MPI 4.1 writes 8
/// bytes of result for 4, and so over its own stack. Changes to the other half only cost another
/// round.
template <atomic_word T>
T heap_operations::compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
  serve_before_own(rank);
  int pe = static_cast<int>(rank);
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(shmem_ulong_atomic_compare_swap(at<unsigned long>(offset),
                                                          static_cast<unsigned long>(expected),
                                                          static_cast<unsigned long>(desired), pe));
  } else {
    bool high = (offset % 8 != 0) == (std::endian::native == std::endian::little);
    int shift = high ? 32 : 0;
    auto* both = at<unsigned long>(offset / 8 * 8);
    unsigned long old = shmem_ulong_atomic_fetch(both, pe);
    for (;;) {
      auto mine = static_cast<std::uint32_t>(old >> shift);
      if (static_cast<T>(mine) != expected) return static_cast<T>(mine);
      unsigned long change = (mine ^ static_cast<std::uint32_t>(desired));
      unsigned long seen = shmem_ulong_atomic_compare_swap(both, old, old ^ change << shift, pe);
      if (seen == old) return expected;
      old = seen;
    }
  }
}

/// Between processes of one machine UCX 1.13 on x86-64 takes the word's old value for the operand
/// of the and, or and xor that return it. So each rank tries them on a word of its own, of the next
/// rank, and of `neighbour`, the next one on this machine. Nobody else tries the same three words.
inline void heap_operations::try_bitwise(rank_t neighbour) {
  auto works = [this](std::size_t offset, rank_t rank) {
    auto* word = at<unsigned long>(offset);
    int pe = static_cast<int>(rank);
    bool right = shmem_ulong_atomic_fetch_or(word, 5, pe) == 0 &&
                 shmem_ulong_atomic_fetch_xor(word, 6, pe) == 5 &&
                 shmem_ulong_atomic_fetch_and(word, 2, pe) == 3 &&
                 shmem_ulong_atomic_fetch(word, pe) == 2;
    shmem_ulong_atomic_set(word, 0, pe);
    return right;
  };
  bool own = works(0, rank_), others = works(8, (rank_ + 1) % nprocs_);
  bool near = neighbour == rank_ || works(16, neighbour);
  bitwise_works_ = own && others && near;
  shmem_barrier_all();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::shmem_backend

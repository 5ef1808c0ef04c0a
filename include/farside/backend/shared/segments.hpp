// Where the segments of ranks lie that share memory, and their loads, stores and CPU atomics: all
// of the smp back end, and the MPI back end's path for jobs on one node.
//
// Memory order (docs/memory_model.md is the contract; these are the reasons):
//  - put: relaxed stores. Nothing orders them but flush.
//  - flush: a sequentially consistent fence. Complete at the target means that any rank that reads
//    afterwards sees it, so a later get of this rank must not run ahead of the put (store
//    buffering): release is not enough.
//  - get: relaxed loads and an acquire fence (nothing on x86, `dmb ishld` or `ldar` on arm64).
//    A get is complete on return, so nothing that follows may run ahead of it.
//  - atomics: sequentially consistent, so that they have one order among all ranks.
#pragma once

#include <farside/backend/optional.hpp>
#include <farside/backend/shared/stripe_locks.hpp>
#include <farside/base/cpu_atomics.hpp>
#include <farside/base/mutants.hpp>
#include <farside/base/word_copy.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail {

/// The order of a get of few words is part of its loads: those of an arm64 let later ones run ahead
/// as if there were none, and take it back if somebody has changed what they read; a fence makes
/// them wait. Words in the first cache took 1.1 ns so, one after another, instead of 3.2.
#ifdef FARSIDE_TSAN
inline constexpr bool loads_acquire = false;
#else
inline constexpr bool loads_acquire = !FARSIDE_MUTANT(get_without_acquire);
#endif

/// put, get, atomics and flush of segments whose addresses `Self` knows.
template <class Self>
class segment_operations {
 public:
  static constexpr bool guarded_by_pages = true;  ///< see shared_memory::guard

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    copy_words<false>(self().address(rank, offset), from, offset, bytes);
  }

  [[gnu::always_inline]] void get(rank_t rank, std::size_t offset, void* to,
                                  std::size_t bytes) const {
    if (is_small(bytes) && (offset | bytes) % 8 == 0 && loads_acquire) {
      for (std::size_t i = 0; i < bytes; i += 8) {
        std::uint64_t word =
            std::atomic_ref(at<std::uint64_t>(rank, offset + i)).load(std::memory_order_acquire);
        std::memcpy(static_cast<char*>(to) + i, &word, 8);
      }
      return;
    }
    copy_words<true>(to, self().address(rank, offset), offset, bytes);
    if (!FARSIDE_MUTANT(get_without_acquire)) acquire_fence();
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    return cpu_fetch<Op>(at<T>(rank, offset), value);
  }

  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    cpu_compare_swap(at<T>(rank, offset), expected, desired);
    return expected;
  }

  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) const {
    return std::atomic_ref<T>(at<T>(rank, offset)).load(atomics_order);
  }

  void flush() {
#ifndef FARSIDE_TSAN
    if (!FARSIDE_MUTANT(flush_without_fence)) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  }
  void flush(rank_t) { flush(); }

  template <component C>
  static constexpr bool accumulates() {
    return true;
  }
  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t me) {
    return add_to_segment(self().address(rank, 0), offset, from, n, me);
  }

  template <class T>
  T& at(rank_t rank, std::size_t offset) const {
    return *static_cast<T*>(self().address(rank, offset));
  }

 private:
  friend Self;
  segment_operations() = default;

  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// The fast link of ranks that share memory: segments at a place that the compiler knows, so that
/// the address of a far pointer waits for no load (docs/decisions/0012-addresses-are-reckoned.md).
/// The place is between the program and what sanitizers keep for themselves. A job that has no room
/// there has its segments elsewhere (mapped_segments).
class fixed_segments : public segment_operations<fixed_segments> {
 public:
  static constexpr bool waits_for_nobody = true;
  static constexpr std::uintptr_t base = std::uintptr_t{1} << 45;
  static constexpr unsigned shift = 38;
  static constexpr std::size_t apart = std::size_t{1} << shift;
  static constexpr rank_t most_ranks = 192;

  constexpr fixed_segments() = default;
  explicit constexpr fixed_segments(bool are_there) : are_there_(are_there) {}
  explicit operator bool() const { return are_there_; }

  [[gnu::always_inline]] static void* address(rank_t rank, std::size_t offset) {
#if defined(__x86_64__)
    // The last addition is the CPU's own when it accesses memory. What follows an atomic waits for
    // it there, and each step to the next one's address is a tenth of its time.
    return reinterpret_cast<char*>(in_register(base + offset)) + (std::uintptr_t{rank} << shift);
#else
    // An offset is less than `apart`: said so, the two halves are put together without a carry.
    return reinterpret_cast<char*>(base) + (std::uintptr_t{rank} << shift | (offset & (apart - 1)));
#endif
  }

 private:
  bool are_there_ = false;
};

/// Where the segments of all ranks lie, wherever that is: one after another, so many bytes apart.
/// False, converted to bool, if ranks share no memory.
class mapped_segments : public segment_operations<mapped_segments> {
 public:
  constexpr mapped_segments() = default;
  constexpr mapped_segments(char* base, std::size_t apart) : base_(base), apart_(apart) {}
  explicit operator bool() const { return base_ != nullptr; }

  /// Whether they are at the place that the compiler knows.
  bool is_fixed() const { return reinterpret_cast<std::uintptr_t>(base_) == fixed_segments::base; }
  /// They are if this is true.
  fixed_segments fixed() const { return fixed_segments(is_fixed()); }

  void* address(rank_t rank, std::size_t offset) const {
    return base_ + rank * apart_ + offset;  // a shift takes three steps of an x86-64
  }

 protected:
  char* base_ = nullptr;
  std::size_t apart_ = 0;  ///< a power of two
};

}  // namespace far::inline FARSIDE_BACKEND::detail

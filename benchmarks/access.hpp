// The same few accesses in several ways: by the library, by the CPU alone on memory that ranks
// share, and by the raw calls of MPI and OpenSHMEM. Each way has a type of its own with the same
// members, so that one loop measures them all.
#pragma once

#include "harness.hpp"

#include <sched.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#if defined(FARSIDE_USE_SHMEM)
#include <shmem.h>
#endif

namespace far::bench {

using word = std::uint64_t;

/// By the library. Forced inline, as the compiler does with the others of itself.
struct by_library {
  using place = ptr<word>;

  place at(ptr<word> p) const { return p; }
  /// `p`, known only once `zero` is: a get of it cannot begin before the last one has ended.
  static place after(place p, word zero) { return place::from_raw(p.raw() ^ zero); }

  [[gnu::always_inline]] word get(place p) { return far::get(p); }
  [[gnu::always_inline]] void put(place p, word value) { far::put(p, value); }
  [[gnu::always_inline]] void put_flush(place p, word value) {
    far::put(p, value);
    far::flush(p.rank());
  }
  [[gnu::always_inline]] word fetch_add(place p, word value) { return far::fetch_add(p, value); }
  [[gnu::always_inline]] word compare_swap(place p, word expected, word desired) {
    return far::compare_swap(p, expected, desired);
  }
  [[gnu::always_inline]] void read(place p, word* to, std::size_t bytes) {
    far::get(p, to, bytes / sizeof(word));
  }
  [[gnu::always_inline]] void write(place p, const word* from, std::size_t bytes) {
    far::put(p, from, bytes / sizeof(word));
  }
  [[gnu::always_inline]] void flush() { far::flush(); }
  void barrier() { far::barrier(); }
};

/// By plain loads and stores, std::atomic and memcpy. Opaque to the compiler as far as the
/// addresses go, and volatile, but without any order: the least that a CPU can do.
class by_cpu {
 public:
  using place = word*;

  explicit by_cpu(ptr<word> barrier_words)
      : arrived_(*barrier_words.local()), round_(*(barrier_words + 8).local()) {}

  place at(ptr<word> p) const { return p.local(); }
  static place after(place p, word zero) {
    return reinterpret_cast<place>(reinterpret_cast<std::uintptr_t>(p) ^ zero);
  }

  word get(place p) { return *const_cast<const volatile word*>(p); }
  void put(place p, word value) { *const_cast<volatile word*>(p) = value; }
  void put_flush(place p, word value) {
    put(p, value);
    flush();
  }
  word fetch_add(place p, word value) { return std::atomic_ref<word>(*p).fetch_add(value); }
  word compare_swap(place p, word expected, word desired) {
    std::atomic_ref<word>(*p).compare_exchange_strong(expected, desired);
    return expected;
  }
  void read(place p, word* to, std::size_t bytes) { std::memcpy(to, opaque(p), opaque(bytes)); }
  void write(place p, const word* from, std::size_t bytes) {
    std::memcpy(opaque(p), from, opaque(bytes));
  }
  void flush() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  /// One counter; the last to arrive starts the next round.
  void barrier() {
    std::atomic_ref<word> arrived(arrived_), round(round_);
    word now = round.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == nprocs()) {
      arrived.store(0, std::memory_order_relaxed);
      round.store(now + 1, std::memory_order_release);
      return;
    }
    for (int i = 0; round.load(std::memory_order_acquire) == now; ++i)
      if (oversubscribed_ || i > 10000) sched_yield();
  }

 private:
  word& arrived_;
  word& round_;
  bool oversubscribed_ = nprocs() > std::thread::hardware_concurrency();
};

/// Whether an atomic of that way takes a lock of the target, and ranks spin for it.
template <class By>
inline constexpr bool atomics_are_locks = false;

#if defined(FARSIDE_USE_MPI)
/// By the one-sided calls of MPI: on the library's own window, or, where it sends messages instead
/// (docs/mpi_progress.md), on one that is made for it. Collective to make, and to end the last copy.
class by_calls {
 public:
  struct place {
    int rank;
    MPI_Aint offset;
  };

  by_calls() : window_(native().raw_window()) {
    if (window_ != nullptr)
      win_ = window_->raw_window();
    else
      make_own();
  }

  place at(ptr<word> p) const {
    auto offset = window_ != nullptr ? window_->raw_place(p.rank(), p.offset())
                                     : static_cast<MPI_Aint>(p.offset() % own_places);
    return {static_cast<int>(p.rank()), offset};
  }
  static place after(place p, word zero) {
    return {p.rank + static_cast<int>(zero), p.offset + static_cast<MPI_Aint>(zero)};
  }

  word get(place p) {
    word value;
    MPI_Get(&value, 8, MPI_BYTE, p.rank, p.offset, 8, MPI_BYTE, win_);
    MPI_Win_flush_local(p.rank, win_);
    return value;
  }
  void put(place p, word value) {
    MPI_Put(&value, 8, MPI_BYTE, p.rank, p.offset, 8, MPI_BYTE, win_);
    MPI_Win_flush_local(p.rank, win_);
  }
  void put_flush(place p, word value) {
    MPI_Put(&value, 8, MPI_BYTE, p.rank, p.offset, 8, MPI_BYTE, win_);
    MPI_Win_flush(p.rank, win_);
  }
  word fetch_add(place p, word value) {
    word old;
    MPI_Fetch_and_op(&value, &old, MPI_UINT64_T, p.rank, p.offset, MPI_SUM, win_);
    MPI_Win_flush(p.rank, win_);
    return old;
  }
  word compare_swap(place p, word expected, word desired) {
    word old;
    MPI_Compare_and_swap(&desired, &expected, &old, MPI_UINT64_T, p.rank, p.offset, win_);
    MPI_Win_flush(p.rank, win_);
    return old;
  }
  void read(place p, word* to, std::size_t bytes) {
    int n = static_cast<int>(bytes);
    MPI_Get(to, n, MPI_BYTE, p.rank, p.offset, n, MPI_BYTE, win_);
    MPI_Win_flush_local(p.rank, win_);
  }
  void write(place p, const word* from, std::size_t bytes) {
    int n = static_cast<int>(bytes);
    MPI_Put(from, n, MPI_BYTE, p.rank, p.offset, n, MPI_BYTE, win_);
    MPI_Win_flush_local(p.rank, win_);
  }
  void flush() { MPI_Win_flush_all(win_); }
  /// What far::barrier promises: all puts are complete and visible to all.
  void barrier() {
    MPI_Win_flush_all(win_);
    MPI_Win_sync(win_);
    MPI_Barrier(native().communicator());
    MPI_Win_sync(win_);
  }

 private:
  static constexpr std::size_t own_places = std::size_t{8} << 20, longest = std::size_t{4} << 20;

  void make_own() {
    void* memory = nullptr;
    MPI_Win_allocate(own_places + longest, 1, MPI_INFO_NULL, native().communicator(), &memory,
                     &win_);
    std::memset(memory, 0, own_places + longest);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win_);
    own_ = std::shared_ptr<void>(memory, [win = win_](void*) mutable {
      MPI_Win_unlock_all(win);
      MPI_Win_free(&win);
    });
    barrier();
  }

  decltype(native().raw_window()) window_;
  MPI_Win win_;
  std::shared_ptr<void> own_;
};
#ifdef OPEN_MPI
template <>
inline constexpr bool atomics_are_locks<by_calls> = true;
#endif
#endif

#if defined(FARSIDE_USE_SHMEM)
/// By the calls of OpenSHMEM on the library's own symmetric memory.
class by_calls {
 public:
  struct place {
    int pe;
    unsigned long* address;  ///< of the same object on this rank
  };

  place at(ptr<word> p) const {
    return {static_cast<int>(p.rank()),
            static_cast<unsigned long*>(native().address(rank(), p.offset()))};
  }
  static place after(place p, word zero) {
    return {p.pe + static_cast<int>(zero), p.address + zero};
  }

  /// What far::get promises: nothing that follows runs ahead of it.
  word get(place p) {
    word value;
    shmem_getmem(&value, p.address, 8, p.pe);
    std::atomic_thread_fence(std::memory_order_acquire);
    return value;
  }
  void put(place p, word value) { shmem_putmem(p.address, &value, 8, p.pe); }
  /// What far::flush promises: no later get of this rank runs ahead of the put.
  void put_flush(place p, word value) {
    shmem_putmem(p.address, &value, 8, p.pe);
    shmem_quiet();
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  word fetch_add(place p, word value) {
    return shmem_ulong_atomic_fetch_add(p.address, value, p.pe);
  }
  word compare_swap(place p, word expected, word desired) {
    return shmem_ulong_atomic_compare_swap(p.address, expected, desired, p.pe);
  }
  void read(place p, word* to, std::size_t bytes) {
    shmem_getmem(to, p.address, bytes, p.pe);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  void write(place p, const word* from, std::size_t bytes) {
    shmem_putmem(p.address, from, bytes, p.pe);
  }
  void flush() { shmem_quiet(); }
  void barrier() { shmem_barrier_all(); }
};
#endif

}  // namespace far::bench

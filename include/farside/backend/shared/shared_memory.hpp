// Loads, stores and CPU atomics on the segments of ranks that share memory: all of the smp back
// end, and the MPI back end's path for jobs on one node.
//
// Memory order (docs/memory_model.md is the contract; these are the reasons):
//  - put: relaxed stores. Nothing orders them but flush.
//  - flush: a sequentially consistent fence. Complete at the target means that whoever reads
//    afterwards sees it, so a later get of this rank must not run ahead of the put (store
//    buffering): release is not enough.
//  - get: relaxed loads and an acquire fence (nothing on x86, `dmb ishld` or `ldar` on arm64).
//    A get is complete on return, so nothing that follows may run ahead of it.
//  - atomics: sequentially consistent, so that they have one order among all ranks.
//  - signal: flush precedes it in every use, and its add is acq_rel; await loads with acquire.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/cpu_atomics.hpp>
#include <farside/base/error.hpp>
#include <farside/base/mutants.hpp>
#include <farside/base/word_copy.hpp>

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// The order of a get of few words is part of its loads: those of an arm64 let later ones run ahead
/// as if there were none, and take it back if somebody has changed what they read; a fence makes
/// them wait. Words in the first cache took 1.1 ns so, one after another, instead of 3.2.
#ifdef FARSIDE_TSAN
inline constexpr bool loads_acquire = false;
#else
inline constexpr bool loads_acquire = !FARSIDE_MUTANT(get_without_acquire);
#endif

/// put, get, atomics and flush where ranks share memory, whose addresses `Self` knows.
template <class Self>
class shared_operations {
 public:
  static constexpr bool guarded_by_pages = true;  ///< see shared_memory::guard

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    racy_copy<false>(self().address(rank, offset), from, offset, bytes);
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
    racy_copy<true>(to, self().address(rank, offset), offset, bytes);
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

  template <class T>
  T& at(rank_t rank, std::size_t offset) const {
    return *static_cast<T*>(self().address(rank, offset));
  }

 private:
  const Self& self() const { return static_cast<const Self&>(*this); }
};

/// Segments at a place that the compiler knows, so that the address of a far pointer waits for no
/// load (docs/decisions/0012-addresses-are-reckoned.md). It is between the program and what
/// sanitizers keep for themselves; a job that has no room there has its segments elsewhere.
class usual_view : public shared_operations<usual_view> {
 public:
  static constexpr std::uintptr_t base = std::uintptr_t{1} << 45;
  static constexpr unsigned shift = 38;
  static constexpr std::size_t apart = std::size_t{1} << shift;
  static constexpr rank_t most_ranks = 192;

  [[gnu::always_inline]] static void* address(rank_t rank, std::size_t offset) {
#if defined(__x86_64__)
    // The last addition is the CPU's own when it accesses memory. What follows an atomic waits for
    // it there, and each step to the next one's address is a tenth of its time.
    std::uintptr_t of_rank_0 = base + offset;
    asm("" : "+r"(of_rank_0));
    return reinterpret_cast<char*>(of_rank_0) + (std::uintptr_t{rank} << shift);
#else
    // An offset is less than `apart`: said so, the two halves are put together without a carry.
    return reinterpret_cast<char*>(base) + (std::uintptr_t{rank} << shift | (offset & (apart - 1)));
#endif
  }
};

/// Where the segments of all ranks lie: one after another, so many bytes apart. All that loads,
/// stores and atomics need, so that a thread can keep a copy at hand. Null if `base` is.
class shared_view : public shared_operations<shared_view> {
 public:
  using usual = usual_view;

  constexpr shared_view() = default;
  constexpr shared_view(char* base, std::size_t apart) : base_(base), apart_(apart) {}
  explicit operator bool() const { return base_ != nullptr; }
  bool is_usual() const { return reinterpret_cast<std::uintptr_t>(base_) == usual_view::base; }

  void* address(rank_t rank, std::size_t offset) const {
    return base_ + rank * apart_ + offset;  // a shift takes three steps of an x86-64
  }

 protected:
  char* base_ = nullptr;
  std::size_t apart_ = 0;  ///< a power of two
};

/// The mapping of the segments as one rank has it, and its signals.
class shared_memory : public shared_view {
 public:
  shared_memory() = default;

  /// Sizes and maps the memory behind `fd`. Every rank calls it with the same arguments.
  shared_memory(int fd, rank_t rank, rank_t nprocs, std::size_t segment);
  shared_memory(shared_memory&& other) noexcept { *this = std::move(other); }
  shared_memory& operator=(shared_memory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(mapped_, other.mapped_);
    std::swap(apart_, other.apart_);
    std::swap(segment_, other.segment_);
    std::swap(rank_, other.rank_);
    std::swap(nprocs_, other.nprocs_);
    std::swap(spins_, other.spins_);
    return *this;
  }
  ~shared_memory() { unmap(mapped_); }

  /// The same mapping as another rank of this process sees it; `*this` must outlive it.
  shared_memory view(rank_t rank) const {
    shared_memory result;
    result.base_ = base_;
    result.apart_ = apart_;
    result.rank_ = rank;
    result.nprocs_ = nprocs_;
    result.spins_ = spins_;
    result.segment_ = segment_;
    return result;
  }

  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  std::size_t segment_size() const { return segment_; }

  // A signal word counts in steps of two; bit 0 says that its owner sleeps on it.
  //
  //   awake, count c   2c   --signal-->  2c+2            no system call
  //   asleep           2c+1 --signal-->  2c+3, wake      the owner clears bit 0 when it wakes
  //
  // Only the owner sets and clears bit 0. The futex compares the whole low half, so a signal
  // between the owner's fetch_or and its sleep makes the sleep return at once: no lost wake-up.
  void signal(rank_t rank, std::size_t offset) {
    std::uint64_t& word = at<std::uint64_t>(rank, offset);
    std::uint64_t old =
        std::atomic_ref<std::uint64_t>(word).fetch_add(2, std::memory_order_acq_rel);
    if (old & 1 && !FARSIDE_MUTANT(sleeper_not_woken)) [[unlikely]]
      futex(word, FUTEX_WAKE, INT_MAX, nullptr);
  }

  bool await(std::size_t offset, std::uint64_t count) {
    std::uint64_t& raw = at<std::uint64_t>(rank_, offset);
    std::atomic_ref<std::uint64_t> word(raw);
    for (int i = 0; i < spins_; ++i) {
      if (word.load(std::memory_order_acquire) >> 1 >= count) return true;
      relax();
    }
    for (int i = 0; i < yields; ++i) {
      if (word.load(std::memory_order_acquire) >> 1 >= count) return true;
      sched_yield();
    }
    std::uint64_t seen = word.fetch_or(1, std::memory_order_acq_rel) | 1;
    if (seen >> 1 < count || FARSIDE_MUTANT(sleeps_without_a_last_look)) {
      timespec limit{0, 200'000'000};
      futex(raw, FUTEX_WAIT, static_cast<int>(seen), &limit);
    }
    return word.fetch_and(~std::uint64_t{1}, std::memory_order_acq_rel) >> 1 >= count;
  }

 private:
  static constexpr int yields = 8;

  bool map(int fd);
  void unmap(rank_t ranks);
  void guard(std::size_t mapped);

  static void futex(std::uint64_t& word, int operation, int value, const timespec* limit) {
    // The low half holds the sleep bit and the low bits of the count.
    auto* low =
        reinterpret_cast<std::uint32_t*>(&word) + (std::endian::native == std::endian::big ? 1 : 0);
    syscall(SYS_futex, low, operation, value, limit, nullptr, 0);
  }

  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
  int spins_ = 0;
  std::size_t segment_ = 0;
  rank_t mapped_ = 0;  ///< how many segments this object has mapped
};

/// Ranks share the cores when there are more of them than cores: then spinning only keeps the
/// rank that is waited for from running.
inline unsigned usable_cores() {
  cpu_set_t set;
  // A rank bound to one core says nothing of the others.
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1)
    return static_cast<unsigned>(CPU_COUNT(&set));
  return static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));
}

inline shared_memory::shared_memory(int fd, rank_t rank, rank_t nprocs, std::size_t segment)
    : rank_(rank), nprocs_(nprocs), segment_(segment) {
  apart_ = std::bit_ceil(segment);
  std::size_t total = nprocs * apart_;
  rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 &&
      files.rlim_cur < total)  // a signal would tell us, too
    raise("cannot size the shared memory of ", nprocs, " ranks to ", total,
          " bytes: files of this process may have ", files.rlim_cur,
          " bytes (ulimit -f), and that counts as one. Raise that limit, or ask for smaller "
          "segments: FARSIDE_SEGMENT=16M.");
  // The file is sparse and the mapping reserves nothing: memory is committed when touched.
  if (ftruncate(fd, static_cast<off_t>(total)) != 0)
    raise("cannot size the shared memory of ", nprocs, " ranks to ", total,
          " bytes: ", std::strerror(errno), ". Ask for smaller segments: FARSIDE_SEGMENT=256M.");
  if (!map(fd))
    raise("cannot map ", total, " bytes of shared memory for ", nprocs,
          " ranks: ", std::strerror(errno), ". Ask for smaller segments: FARSIDE_SEGMENT=256M.");
  spins_ = nprocs <= usable_cores() ? 2000 : 0;
}

/// At the usual place if there is room, else wherever there is.
inline bool shared_memory::map(int fd) {
  constexpr int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
  const std::size_t in_file = apart_;
#ifdef FARSIDE_TSAN
  constexpr bool can = false;  // it keeps that place for itself, and ends programs that ask for it
#else
  constexpr bool can = true;
#endif
  if (can && segment_ <= usual_view::apart && nprocs_ <= usual_view::most_ranks) {
    base_ = reinterpret_cast<char*>(usual_view::base);
    apart_ = usual_view::apart;
    for (; mapped_ < nprocs_; ++mapped_) {
      void* wanted = base_ + mapped_ * apart_;
      void* at = mmap(wanted, segment_, access, flags | MAP_FIXED_NOREPLACE, fd,
                      static_cast<off_t>(mapped_ * in_file));
      if (at == wanted) continue;
      if (at != MAP_FAILED) munmap(at, segment_);  // an old kernel's own choice
      break;
    }
    if (mapped_ == nprocs_) return guard(segment_), true;
    unmap(mapped_);
  }
  apart_ = in_file;
  // Behind the last segment there must be nothing, too: that stays reserved.
  const std::size_t all = nprocs_ * apart_;
  void* at = mmap(nullptr, all + null_guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (at == MAP_FAILED) return base_ = nullptr, false;
  if (mmap(at, all, access, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
    munmap(at, all + null_guard);
    return base_ = nullptr, false;
  }
  base_ = static_cast<char*>(at);
  mapped_ = nprocs_;
  guard(apart_);
  return true;
}

/// Makes the first bytes of each segment inaccessible, and what is mapped behind its end. Of very
/// many ranks only those of rank 0, where null leads to: each piece is one more mapping, of which a
/// process may have some 65,000.
inline void shared_memory::guard(std::size_t mapped) {
  constexpr rank_t many = 4096;
  const std::size_t end = (segment_ + null_guard - 1) / null_guard * null_guard;
  for (rank_t rank = 0; rank < (nprocs_ <= many ? nprocs_ : 1); ++rank) {
    char* begin = base_ + rank * apart_;
    if (segment_ > null_guard) mprotect(begin, null_guard, PROT_NONE);
    if (end < mapped) mprotect(begin + end, mapped - end, PROT_NONE);
  }
}

inline void shared_memory::unmap(rank_t ranks) {
  const std::size_t each = is_usual() ? segment_ : apart_;  // what map() has asked for
  for (rank_t rank = 0; rank < ranks; ++rank) munmap(base_ + rank * apart_, each);
  if (ranks != 0 && !is_usual()) munmap(base_ + ranks * apart_, null_guard);
  mapped_ = 0;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// The mapping of the segments of ranks that share memory, and how they wait for each other.
//
// Memory order: flush precedes a signal in every use, and its add is acq_rel; await loads with
// acquire. (Loads, stores and atomics: segments.hpp.)
#pragma once

#include <farside/backend/shared/segments.hpp>
#include <farside/base/cpu.hpp>
#include <farside/base/error.hpp>
#include <farside/base/give_way.hpp>

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

/// The mapping of the segments as one rank has it, and its signals.
class shared_memory : public mapped_segments {
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
      if (!yield_if_quick()) break;
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

/// At the fixed place if there is room, else wherever there is.
inline bool shared_memory::map(int fd) {
  constexpr int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
  const std::size_t in_file = apart_;
#ifdef FARSIDE_TSAN
  constexpr bool can = false;  // it keeps that place for itself, and ends programs that ask for it
#else
  constexpr bool can = true;
#endif
  if (can && segment_ <= fixed_segments::apart && nprocs_ <= fixed_segments::most_ranks) {
    base_ = reinterpret_cast<char*>(fixed_segments::base);
    apart_ = fixed_segments::apart;
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
  const std::size_t each = is_fixed() ? segment_ : apart_;  // what map() has asked for
  for (rank_t rank = 0; rank < ranks; ++rank) munmap(base_ + rank * apart_, each);
  if (ranks != 0 && !is_fixed()) munmap(base_ + ranks * apart_, null_guard);
  mapped_ = 0;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// Additions of floating point to memory that ranks share, at the speed of a plain loop: under locks
// that lie in the segment which is added to.
//
// A segment is cut into blocks of 16 KiB, and these take turns at its 64 locks. Whoever adds takes
// one lock at a time, for the part that lies in one block.
//
//   free (0) --compare_swap, acquire--> held by rank r (r + 1) --store, release--> free
//
// Invariant: an element changes by an addition only while its block's lock is held, and by whoever
// holds it. So every addition begins with the sums of all earlier ones: its holder has acquired
// what theirs released.
//
// Nobody waits for a lock here. After a few looks the caller is told how many elements were added,
// and who holds the lock: a rank then does what ranks do while they wait, which finds out if that
// one has died; a server goes on with its loop. A holder calls nobody, and is done after 16 KiB. It
// can only be late if it has lost its core.
//
// Puts and gets ask for no lock. Stores and loads are of whole aligned words, as theirs are.
#pragma once

#include <farside/backend/shared/add_in_place.hpp>
#include <farside/base/cpu.hpp>
#include <farside/base/mutants.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// Where the locks lie in each segment.
inline constexpr std::size_t stripe_locks = null_guard + 256;
inline constexpr std::size_t stripe_block = 16384, stripes = 64, stripe_lock_bytes = stripes * 64;

/// The lock of one block.
class stripe_lock {
 public:
  /// `segment`: where a segment begins; `offset`: what the lock is for.
  stripe_lock(void* segment, std::size_t offset)
      : word_(*reinterpret_cast<std::uint32_t*>(static_cast<char*>(segment) + stripe_locks +
                                                offset / stripe_block % stripes * 64)) {}

  /// Takes it for rank `me`, unless another one keeps it for the whole of a few looks.
  bool try_lock(rank_t me) {
    std::atomic_ref<std::uint32_t> word(word_);
    if (FARSIDE_MUTANT(stripe_not_locked)) return true;
    for (int look = 0; look < 64; ++look) {
      std::uint32_t free = 0;
      if (word.load(std::memory_order_relaxed) == 0 &&
          word.compare_exchange_strong(free, me + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed))
        return true;
      relax();
    }
    return false;
  }
  void unlock() {
    std::atomic_ref<std::uint32_t>(word_).store(0, FARSIDE_MUTANT(stripe_unlocked_relaxed)
                                                       ? std::memory_order_relaxed
                                                       : std::memory_order_release);
  }
  /// Who holds it, perhaps; `nobody` if it is free again.
  rank_t holder(rank_t nobody) const {
    std::uint32_t word = std::atomic_ref<std::uint32_t>(word_).load(std::memory_order_relaxed);
    return word == 0 ? nobody : word - 1;
  }

 private:
  std::uint32_t& word_;
};

/// By vectors of so many bytes.
template <std::size_t Bytes, component C>
[[gnu::always_inline]] inline void add_by_vectors(C* to, const C* from, std::size_t n) {
  using several [[gnu::vector_size(Bytes), gnu::aligned(sizeof(C)), gnu::may_alias]] = C;
  constexpr std::size_t many = Bytes / sizeof(C);
  std::size_t i = 0;
  for (; i + 4 * many <= n; i += 4 * many) {
    auto* t = reinterpret_cast<several*>(to + i);
    auto* f = reinterpret_cast<const several*>(from + i);
    const several a = t[0] + f[0], b = t[1] + f[1], c = t[2] + f[2], d = t[3] + f[3];
    t[0] = a, t[1] = b, t[2] = c, t[3] = d;
  }
  for (; i < n; ++i) to[i] += from[i];
}

#if defined(__x86_64__)
/// Programs are compiled for any x86-64, whose vectors have 16 bytes. MPI's own sums use what there
/// is: from memory of the second cache these are a sixth faster, and a fifth faster once more.
template <component C>
[[gnu::target("avx2"), gnu::noinline]] void add_with_wide_vectors(C* to, const C* from,
                                                                  std::size_t n) {
  add_by_vectors<32>(to, from, n);
}
template <component C>
[[gnu::target("avx512f"), gnu::noinline]] void add_with_widest_vectors(C* to, const C* from,
                                                                       std::size_t n) {
  add_by_vectors<64>(to, from, n);
}
/// How many bytes the vectors of this CPU have.
inline std::size_t vector_bytes() {
  static const std::size_t bytes = __builtin_cpu_supports("avx512f") ? 64
                                   : __builtin_cpu_supports("avx2")  ? 32
                                                                     : 16;
  return bytes;
}
#endif

/// to[i] += from[i], of whoever holds the lock. Each element is loaded and stored once, since gets
/// may look.
template <component C>
void add_with_lock(C* to, const C* from, std::size_t n) {
#ifdef FARSIDE_TSAN  // which would see a race with those gets
  for (std::size_t i = 0; i < n; ++i) {
    std::atomic_ref<C> element(to[i]);
    element.store(element.load(std::memory_order_relaxed) + from[i], std::memory_order_relaxed);
  }
#elif defined(__x86_64__)
  constexpr std::size_t worth_a_call = 64;
  if (n >= worth_a_call && vector_bytes() == 64) return add_with_widest_vectors(to, from, n);
  if (n >= worth_a_call && vector_bytes() == 32) return add_with_wide_vectors(to, from, n);
  add_by_vectors<16>(to, from, n);
#else
  add_by_vectors<16>(to, from, n);
#endif
}

/// Adds `n` elements to a segment, block by block, for rank `me`. Fewer if somebody holds a lock.
template <component C>
accumulated add_under_locks(void* segment, std::size_t offset, const C* from, std::size_t n,
                            rank_t me) {
  std::size_t done = 0;
  while (done < n) {
    std::size_t at = offset + done * sizeof(C);
    std::size_t now = std::min(n - done, (stripe_block - at % stripe_block) / sizeof(C));
    stripe_lock lock(segment, at);
    if (!lock.try_lock(me)) [[unlikely]]
      return {done, lock.holder(accumulated::unknown)};
    add_with_lock(reinterpret_cast<C*>(static_cast<char*>(segment) + at), from + done, now);
    lock.unlock();
    done += now;
  }
  return {n};
}

/// Adds to a segment that others add to at the same time: integers by CPU atomics, since far
/// atomics may change them, too, and floating point under locks.
template <component C>
[[gnu::always_inline]] inline accumulated add_to_segment(void* segment, std::size_t offset,
                                                         const C* from, std::size_t n, rank_t me) {
  if constexpr (std::integral<C>) {
    add_atomically(static_cast<char*>(segment) + offset, from, n);
    return {n};
  } else {
    return add_under_locks(segment, offset, from, n, me);
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// Atomics on words for the shortest ways.
//
// On arm64 a compiler that does not know the CPU calls a function for each atomic, which looks
// whether the CPU has the instruction. The call itself is cheap, but all that is in registers
// around it goes to memory and back, and so many instructions less overlap with a miss of the
// cache. Here the look is inline.
#pragma once

#include <farside/detail/shared_memory.hpp>

#include <atomic>
#include <cstdint>

#if defined(__aarch64__) && !defined(__ARM_FEATURE_ATOMICS) && !defined(FARSIDE_TSAN)
#define FARSIDE_INLINE_ATOMICS 1
#include <sys/auxv.h>
#endif

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(FARSIDE_INLINE_ATOMICS)
inline const bool cpu_has_atomics = (getauxval(AT_HWCAP) & (1UL << 8)) != 0;  // HWCAP_ATOMICS
#endif

/// Asks for the line of `at`, to change it. On x86-64 a compiler that does not know the CPU would
/// ask to read it, and the line would come twice from a core that has changed it. CPUs without the
/// instruction ignore it.
[[gnu::always_inline]] inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/// Sequentially consistent, as std::atomic_ref's.
[[gnu::always_inline]] inline std::uint64_t inline_fetch_add(std::uint64_t& word,
                                                             std::uint64_t value) {
#if defined(FARSIDE_INLINE_ATOMICS)
  if (cpu_has_atomics) [[likely]] {
    std::uint64_t old;
    asm volatile(".arch_extension lse\n\tldaddal %2, %0, %1"
                 : "=&r"(old), "+Q"(word)
                 : "r"(value)
                 : "memory");
    return old;
  }
#endif
  return std::atomic_ref<std::uint64_t>(word).fetch_add(value);
}

/// Whether `word` was `expected` and is now `desired`; else `expected` becomes what it is.
[[gnu::always_inline]] inline bool inline_compare_swap(std::uint64_t& word, std::uint64_t& expected,
                                                       std::uint64_t desired) {
#if defined(FARSIDE_INLINE_ATOMICS)
  if (cpu_has_atomics) [[likely]] {
    std::uint64_t seen = expected;
    asm volatile(".arch_extension lse\n\tcasal %0, %2, %1"
                 : "+&r"(seen), "+Q"(word)
                 : "r"(desired)
                 : "memory");
    bool done = seen == expected;
    expected = seen;
    return done;
  }
#endif
  return std::atomic_ref<std::uint64_t>(word).compare_exchange_strong(expected, desired);
}

/// Whether inline_claim<true>() works on this CPU.
inline bool claims_inline() {
#if defined(FARSIDE_INLINE_ATOMICS)
  return cpu_has_atomics;
#else
  return true;
#endif
}

/// The same from zero, in any order that is asked for. `Sure`: claims_inline() is known, so that
/// there is no call beside it, and registers keep what they have.
template <bool Sure = false>
[[gnu::always_inline]] inline bool inline_claim(std::uint64_t& word, std::uint64_t desired,
                                                std::memory_order order) {
#if defined(FARSIDE_INLINE_ATOMICS)
  if ((Sure || cpu_has_atomics) && order == std::memory_order_relaxed) [[likely]] {
    std::uint64_t seen = 0;
    asm volatile(".arch_extension lse\n\tcas %0, %2, %1"
                 : "+&r"(seen), "+Q"(word)
                 : "r"(desired)
                 : "memory");
    return seen == 0;
  }
#endif
  std::uint64_t expected = 0;
  return std::atomic_ref<std::uint64_t>(word).compare_exchange_strong(expected, desired, order);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

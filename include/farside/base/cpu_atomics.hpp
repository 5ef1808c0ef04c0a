// Atomics on words, as far memory has them: sequentially consistent, so that they have one order
// among all ranks.
//
// On arm64 a compiler that does not know the CPU calls a function for each atomic, which looks
// whether the CPU has the instruction. The call itself is cheap, but all that is in registers
// around it goes to memory and back, and so many instructions less overlap with a miss of the
// cache. Here the look is inline. `...al` instructions are what the call would use: acquire and
// release, and in one order with all others of the kind.
#pragma once

#include <farside/base/cpu.hpp>
#include <farside/base/mutants.hpp>
#include <farside/base/types.hpp>

#include <atomic>
#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define FARSIDE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FARSIDE_TSAN 1
#endif
#endif

#if defined(__aarch64__) && !defined(__ARM_FEATURE_ATOMICS) && !defined(FARSIDE_TSAN)
#define FARSIDE_INLINE_ATOMICS 1
#include <sys/auxv.h>
#endif

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(FARSIDE_INLINE_ATOMICS)
inline const bool cpu_has_atomics = (getauxval(AT_HWCAP) & (1UL << 8)) != 0;  // HWCAP_ATOMICS
#endif

inline constexpr std::memory_order atomics_order =
    FARSIDE_MUTANT(atomics_relaxed) ? std::memory_order_relaxed : std::memory_order_seq_cst;

#if defined(FARSIDE_INLINE_ATOMICS)
// One atomic of the CPU: what `word` was goes to `old`.
#define FARSIDE_CPU_ATOMIC(name, register)                                          \
  asm volatile(".arch_extension lse\n\t" name " %" register "2, %" register "0, %1" \
               : "=&r"(old), "+Q"(word)                                             \
               : "r"(value)                                                         \
               : "memory")
#define FARSIDE_CPU_FETCH(condition, name)                                   \
  if constexpr ((condition) && sizeof(T) == 8) FARSIDE_CPU_ATOMIC(name, ""); \
  if constexpr ((condition) && sizeof(T) == 4) FARSIDE_CPU_ATOMIC(name, "w")

template <atomic_op Op, atomic_word T>
[[gnu::always_inline]] inline T inline_fetch(T& word, T value) {
  T old;
  if constexpr (Op == atomic_op::bit_and) value = ~value;  // `ldclr` clears the bits given
  FARSIDE_CPU_FETCH(Op == atomic_op::add, "ldaddal");
  FARSIDE_CPU_FETCH(Op == atomic_op::bit_and, "ldclral");
  FARSIDE_CPU_FETCH(Op == atomic_op::bit_or, "ldsetal");
  FARSIDE_CPU_FETCH(Op == atomic_op::bit_xor, "ldeoral");
  FARSIDE_CPU_FETCH(Op == atomic_op::swap, "swpal");
  FARSIDE_CPU_FETCH(Op == atomic_op::min && std::is_signed_v<T>, "ldsminal");
  FARSIDE_CPU_FETCH(Op == atomic_op::min && std::is_unsigned_v<T>, "lduminal");
  FARSIDE_CPU_FETCH(Op == atomic_op::max && std::is_signed_v<T>, "ldsmaxal");
  FARSIDE_CPU_FETCH(Op == atomic_op::max && std::is_unsigned_v<T>, "ldumaxal");
  return old;
}
#undef FARSIDE_CPU_FETCH
#undef FARSIDE_CPU_ATOMIC
#endif

/// Changes `word` by `value`; what it was before.
template <atomic_op Op, atomic_word T>
[[gnu::always_inline]] inline T cpu_fetch(T& word, T value) {
  constexpr std::memory_order order = atomics_order;
#if defined(FARSIDE_INLINE_ATOMICS)
  if (order == std::memory_order_seq_cst && cpu_has_atomics) [[likely]]
    return inline_fetch<Op>(word, value);
#endif
  std::atomic_ref<T> shared(word);
  if constexpr (Op == atomic_op::add) return shared.fetch_add(value, order);
  if constexpr (Op == atomic_op::bit_and) return shared.fetch_and(value, order);
  if constexpr (Op == atomic_op::bit_or) return shared.fetch_or(value, order);
  if constexpr (Op == atomic_op::bit_xor) return shared.fetch_xor(value, order);
  if constexpr (Op == atomic_op::swap) return shared.exchange(value, order);
  if constexpr (Op == atomic_op::min || Op == atomic_op::max) {
    T old = shared.load(order);
    while (!shared.compare_exchange_weak(
        old, Op == atomic_op::min ? (value < old ? value : old) : (value > old ? value : old),
        order)) {
    }
    return old;
  }
}

/// Whether `word` was `expected` and is now `desired`; else `expected` becomes what it is.
template <atomic_word T>
[[gnu::always_inline]] inline bool cpu_compare_swap(T& word, T& expected, T desired) {
#if defined(FARSIDE_INLINE_ATOMICS)
  if (atomics_order == std::memory_order_seq_cst && cpu_has_atomics) [[likely]] {
    T seen = expected;
    if constexpr (sizeof(T) == 8)
      asm volatile(".arch_extension lse\n\tcasal %0, %2, %1"
                   : "+&r"(seen), "+Q"(word)
                   : "r"(desired)
                   : "memory");
    else
      asm volatile(".arch_extension lse\n\tcasal %w0, %w2, %1"
                   : "+&r"(seen), "+Q"(word)
                   : "r"(desired)
                   : "memory");
    bool done = seen == expected;
    expected = seen;
    return done;
  }
#endif
  T seen = expected;  // so that `expected` may stay in a register
  bool done = std::atomic_ref<T>(word).compare_exchange_strong(seen, desired, atomics_order);
  expected = seen;
  return done;
}

/// Whether inline_claim<true>() works on this CPU.
inline bool claims_inline() {
#if defined(FARSIDE_INLINE_ATOMICS)
  return cpu_has_atomics;
#else
  return true;
#endif
}

/// Changes `word` from zero to `desired`, relaxed if asked for, else sequentially consistent.
/// `Sure`: claims_inline() is known, so that there is no call beside it, and registers keep what
/// they have.
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
  // Not a member of std::atomic_ref, which a compiler may call.
  std::uint64_t expected = 0;
  if (order == std::memory_order_relaxed)
    return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
  return __atomic_compare_exchange_n(&word, &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

/// Relaxed loads and stores. On arm64 GCC needs two instructions to reach an atomic behind a
/// pointer, and one for a volatile word. Aligned words are read and written whole there.
[[gnu::always_inline]] inline std::uint64_t load_relaxed(const std::uint64_t& w) {
#if defined(__aarch64__) && !defined(FARSIDE_TSAN)
  return *const_cast<const volatile std::uint64_t*>(&w);
#else
  return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(w))
      .load(std::memory_order_relaxed);
#endif
}
[[gnu::always_inline]] inline void store_relaxed(std::uint64_t& w, std::uint64_t value) {
#if defined(__aarch64__) && !defined(FARSIDE_TSAN)
  *const_cast<volatile std::uint64_t*>(&w) = value;
#else
  std::atomic_ref<std::uint64_t>(w).store(value, std::memory_order_relaxed);
#endif
}

}  // namespace far::inline FARSIDE_BACKEND::detail

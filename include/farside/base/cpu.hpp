// What a program tells its CPU, or its compiler, in instructions that C++ has no words for.
#pragma once

#include <farside/base/backend_choice.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// A CPU's hint that this is a spin loop.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; isb waits a few cycles
#endif
}

/// Asks for the cache line of `at`, to change it. On x86-64 a compiler that does not know the CPU
/// would ask to read it, and the line would come twice from a core that has changed it. CPUs
/// without the instruction ignore it.
[[gnu::always_inline]] inline void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(at));
#else
  __builtin_prefetch(at, 1);
#endif
}

/// The compiler keeps nothing in x19 and x20 from before this call to after it. Functions save
/// those two first, and load them again behind a fence of theirs.
[[gnu::always_inline]] inline void forget_first_saved_registers() {
#if defined(__aarch64__) && !defined(__clang__)  // clang may need x19 itself
  asm volatile("" ::: "x19", "x20");
#endif
}

/// The same value, computed to the end: what the compiler adds to it later it adds separately.
template <class T>
[[gnu::always_inline]] inline T in_register(T value) {
  asm("" : "+r"(value));
  return value;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

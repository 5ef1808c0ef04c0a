// Loads, stores and atomics of kernels, on addresses of device memory. Atomics are of all devices and relaxed
// but where a name says otherwise: what a kernel has done is complete, and seen by all, when its stream has
// come to its end.
//
// On the GPU they are its own instructions; on the CPU, where stand-in kernels run, those of
// base/cpu_atomics.hpp. Protocols of containers are written over this class as a policy, so that tests can
// put another one in its place.
#pragma once

#include <farside/base/cpu_atomics.hpp>
#include <farside/base/kernel_code.hpp>
#include <farside/base/types.hpp>

#include <cstdint>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(__CUDA_ARCH__)
/// Ends the thread of a kernel that calls it.
__device__ inline void end_kernel() { asm volatile("exit;"); }
#endif

/// Two words that lie side by side, aligned to 16 bytes.
struct alignas(16) word_pair {
  std::uint64_t first, second;
};

struct kernel_atomics {
#if defined(__CUDA_ARCH__)
  static constexpr bool swaps_pairs = __CUDA_ARCH__ >= 900;
#else
  static constexpr bool swaps_pairs = false;
#endif

  template <atomic_word T>
  FARSIDE_KERNEL_CODE static T load(const T* at) {
#if defined(__CUDA_ARCH__)
    T value;
    if constexpr (sizeof(T) == 8)
      asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    else
      asm volatile("ld.relaxed.sys.global.b32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
  }

  template <atomic_word T>
  FARSIDE_KERNEL_CODE static T load_acquire(const T* at) {
#if defined(__CUDA_ARCH__)
    T value;
    if constexpr (sizeof(T) == 8)
      asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    else
      asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
  }

  /// Both words by one load. Each is one that was stored, not always at the same time.
  FARSIDE_KERNEL_CODE static word_pair load(const word_pair* at) {
    word_pair value;
#if defined(__CUDA_ARCH__)
    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                 : "=l"(value.first), "=l"(value.second)
                 : "l"(at)
                 : "memory");
#else
    value.first = __atomic_load_n(&at->first, __ATOMIC_RELAXED);
    value.second = __atomic_load_n(&at->second, __ATOMIC_RELAXED);
#endif
    return value;
  }

  template <atomic_word T>
  FARSIDE_KERNEL_CODE static void store(T* at, T value) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 8)
      asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    else
      asm volatile("st.relaxed.sys.global.b32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELAXED);
#endif
  }

  template <atomic_word T>
  FARSIDE_KERNEL_CODE static void store_release(T* at, T value) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(T) == 8)
      asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    else
      asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
#else
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
  }

  /// What `at` was; it is `desired` now if that was `expected`.
  template <atomic_word T>
  FARSIDE_KERNEL_CODE static T compare_swap(T* at, T expected, T desired) {
#if defined(__CUDA_ARCH__)
    T old;
    if constexpr (sizeof(T) == 8)
      asm volatile("atom.relaxed.sys.global.cas.b64 %0, [%1], %2, %3;"
                   : "=l"(old)
                   : "l"(at), "l"(expected), "l"(desired)
                   : "memory");
    else
      asm volatile("atom.relaxed.sys.global.cas.b32 %0, [%1], %2, %3;"
                   : "=r"(old)
                   : "l"(at), "r"(expected), "r"(desired)
                   : "memory");
    return old;
#else
    cpu_compare_swap(*at, expected, desired);
    return expected;
#endif
  }

#if defined(__CUDACC__)
  /// The same of two words at once; only where swaps_pairs.
  __device__ static word_pair compare_swap(word_pair* at, word_pair expected, word_pair desired) {
    word_pair old = expected;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n\t.reg .b128 wanted, fresh, seen;\n\t"
        "mov.b128 wanted, {%3, %4};\n\t"
        "mov.b128 fresh, {%5, %6};\n\t"
        "atom.relaxed.sys.global.cas.b128 seen, [%2], wanted, fresh;\n\t"
        "mov.b128 {%0, %1}, seen;\n\t}"
        : "=l"(old.first), "=l"(old.second)
        : "l"(at), "l"(expected.first), "l"(expected.second), "l"(desired.first),
          "l"(desired.second)
        : "memory");
#endif
    return old;
  }
#endif

#if defined(__CUDA_ARCH__)
// One atomic of the GPU, if the condition holds: what was there goes to `old`.
#define FARSIDE_GPU_ATOMIC(condition, name, type)                              \
  if constexpr (condition) {                                                   \
    if constexpr (sizeof(T) == 8)                                              \
      asm volatile("atom.relaxed.sys.global." name "." type "64 %0, [%1], %2;" \
                   : "=l"(old)                                                 \
                   : "l"(at), "l"(value)                                       \
                   : "memory");                                                \
    else                                                                       \
      asm volatile("atom.relaxed.sys.global." name "." type "32 %0, [%1], %2;" \
                   : "=r"(old)                                                 \
                   : "l"(at), "r"(value)                                       \
                   : "memory");                                                \
  }
#endif

  /// Changes `at` by `value`; what it was before. 1 atomic.
  template <atomic_op Op, atomic_word T>
  FARSIDE_KERNEL_CODE static T fetch_op(T* at, T value) {
#if defined(__CUDA_ARCH__)
    T old;
    FARSIDE_GPU_ATOMIC(Op == atomic_op::add, "add", "u");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::swap, "exch", "b");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::bit_and, "and", "b");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::bit_or, "or", "b");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::bit_xor, "xor", "b");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::min && std::is_unsigned_v<T>, "min", "u");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::min && std::is_signed_v<T>, "min", "s");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::max && std::is_unsigned_v<T>, "max", "u");
    FARSIDE_GPU_ATOMIC(Op == atomic_op::max && std::is_signed_v<T>, "max", "s");
    return old;
#else
    return cpu_fetch<Op>(*at, value);
#endif
  }
#undef FARSIDE_GPU_ATOMIC

  /// Called by a thread that waits for another one's next step.
  FARSIDE_KERNEL_CODE static void pause() {
#if defined(__CUDA_ARCH__)
    __nanosleep(64);
#else
    yield_thread();
#endif
  }

 private:
  static void yield_thread();
};

}  // namespace far::inline FARSIDE_BACKEND::detail

#include <thread>

inline void far::FARSIDE_BACKEND::detail::kernel_atomics::yield_thread() {
  std::this_thread::yield();
}

// The processor's vectors, for kernels over rows of dense matrices.
//
// A kernel is written once, over "lanes": V is a vector of T, of as many bytes as the instruction
// set has, or T itself where the semiring has no add_product for vectors. It is compiled for each
// instruction set of the architecture, and the best one that this machine has is called:
//
//   struct kernel {
//     template <class Set, class... Args>
//     [[gnu::always_inline]] static void run(Args... args);      // uses Set::bytes, Set::registers
//   };
//   detail::call_for_this_machine<kernel>(args...);
//
// run() and what it calls must be inlined, as only the function around it is compiled for the
// instruction set: so no lambdas in it.
#pragma once

#include <farside/algorithms/semiring.hpp>

#include <cstddef>
#include <cstring>

#if defined(__clang__)
#define FARSIDE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define FARSIDE_UNROLL _Pragma("GCC unroll 32")
#endif

namespace far::inline FARSIDE_BACKEND::detail {

/// A vector of T of the compiler's.
template <class T, std::size_t Bytes>
struct vector_type {
  typedef T type [[gnu::vector_size(Bytes)]];
};

template <class T, class S, std::size_t Bytes>
constexpr bool has_vectors() {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> &&
                !std::is_same_v<T, long double>)
    return adds_products_of<S, T, typename vector_type<T, Bytes>::type>;
  else
    return false;
}

template <class T, class S, std::size_t Bytes, bool = has_vectors<T, S, Bytes>()>
struct lanes_of {
  using type = T;
};
template <class T, class S, std::size_t Bytes>
struct lanes_of<T, S, Bytes, true> {
  using type = typename vector_type<T, Bytes>::type;
};
/// V: a vector of T, or T.
template <class T, class S, std::size_t Bytes>
using lanes = typename lanes_of<T, S, Bytes>::type;

template <class V, class T>
[[gnu::always_inline]] inline void load(V& to, const T* from) {
  if constexpr (std::is_same_v<V, T>)
    to = *from;
  else
    std::memcpy(&to, from, sizeof(V));
}
template <class V, class T>
[[gnu::always_inline]] inline void store(const V& from, T* to) {
  if constexpr (std::is_same_v<V, T>)
    *to = from;
  else
    std::memcpy(to, &from, sizeof(V));
}

/// sum = add(sum, multiply(x, y)), in every lane.
template <class S, class V, class T>
[[gnu::always_inline]] inline void add_product(const S& over, V& sum, const T& x, const V& y) {
  if constexpr (adds_products_of<S, T, V>)
    over.add_product(sum, x, y);
  else
    sum = over.add(sum, over.multiply(x, y));
}

// What every processor of the architecture has, and better ones.
#if defined(__x86_64__)
struct instructions_sse2 {
  static constexpr std::size_t bytes = 16, registers = 16;
};
struct instructions_avx2 {
  static constexpr std::size_t bytes = 32, registers = 16;
};
struct instructions_avx512 {
  static constexpr std::size_t bytes = 64, registers = 32;
};

template <class Kernel, class... Args>
[[gnu::target("avx2,fma")]] void call_with_avx2(Args... args) {
  Kernel::template run<instructions_avx2>(args...);
}
template <class Kernel, class... Args>
[[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,fma")]] void call_with_avx512(Args... args) {
  Kernel::template run<instructions_avx512>(args...);
}
template <class Kernel, class... Args>
void call_for_this_machine(Args... args) {
  static const int best = __builtin_cpu_supports("avx512dq") &&
                                  __builtin_cpu_supports("avx512bw") &&
                                  __builtin_cpu_supports("avx512vl")
                              ? 2
                          : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1
                                                                                            : 0;
  if (best == 2)
    call_with_avx512<Kernel>(args...);
  else if (best == 1)
    call_with_avx2<Kernel>(args...);
  else
    Kernel::template run<instructions_sse2>(args...);
}
#else
/// NEON has 32 registers of 16 bytes; elsewhere the compiler makes of such vectors what it can.
struct instructions_of_all {
  static constexpr std::size_t bytes = 16, registers = 32;
};
template <class Kernel, class... Args>
void call_for_this_machine(Args... args) {
  Kernel::template run<instructions_of_all>(args...);
}
#endif

}  // namespace far::inline FARSIDE_BACKEND::detail

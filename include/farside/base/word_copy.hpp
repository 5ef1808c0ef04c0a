// Copies between private memory and memory that others read and write meanwhile: each aligned word
// is moved by one access, and stored once.
#pragma once

#include <farside/base/cpu_atomics.hpp>
#include <farside/base/mutants.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail {

/// How many bytes are moved word by word: see copy_words().
[[gnu::always_inline]] inline bool is_small(std::size_t bytes) {
  return bytes <= (__builtin_constant_p(bytes) ? 64 : 16);
}

/// Whole words of a put of up to so many bytes are stored once each.
inline constexpr std::size_t stored_once = std::size_t{1} << 20;

#ifdef FARSIDE_TSAN
// The thread sanitizer knows atomics, not memcpy races that are meant, nor fences.
template <bool FromShared>
inline void copy_words(void* to, const void* from, std::size_t, std::size_t bytes) {
  auto* d = static_cast<unsigned char*>(to);
  auto* s = static_cast<unsigned char*>(const_cast<void*>(from));
  auto move = [&]<class Word>(Word word) {
    if constexpr (FromShared) {
      word = std::atomic_ref<Word>(*reinterpret_cast<Word*>(s)).load(std::memory_order_relaxed);
      std::memcpy(d, &word, sizeof word);
    } else {
      std::memcpy(&word, s, sizeof word);
      std::atomic_ref<Word>(*reinterpret_cast<Word*>(d)).store(word, std::memory_order_relaxed);
    }
    d += sizeof(Word), s += sizeof(Word), bytes -= sizeof(Word);
  };
  auto aligned = [&](std::size_t to_what) {
    return (reinterpret_cast<std::uintptr_t>(FromShared ? s : d) & (to_what - 1)) == 0;
  };
  while (bytes > 0 && !aligned(bytes >= 8 ? 8 : 4)) move(static_cast<unsigned char>(0));
  while (bytes >= 8 && aligned(8)) move(std::uint64_t{});
  while (bytes >= 4 && aligned(4)) move(std::uint32_t{});
  while (bytes > 0) move(static_cast<unsigned char>(0));
}
#else
/// Whole words, each by one store. The C library stores some of a block twice, where it ends or is
/// short, and a rank that has seen the first store may have changed the word before the second
/// comes.
[[gnu::noinline]] inline void store_words(char* to, const char* from, std::size_t bytes) {
  if (bytes > stored_once || FARSIDE_MUTANT(words_stored_twice)) {
    std::memcpy(to, from, bytes);
    return;
  }
#if defined(__x86_64__)
  if (bytes > 1024) {  // as the C library does it from there on, mostly
    std::size_t words = bytes / 8;
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    return;
  }
#endif
  using pair [[gnu::vector_size(16), gnu::aligned(8), gnu::may_alias]] = std::uint64_t;
  using word [[gnu::may_alias]] = std::uint64_t;
  auto go_on = [&](std::size_t by) __attribute__((always_inline)) {
    to += by, from += by, bytes -= by;
    asm("" ::: "memory");  // or a compiler makes it a call of the C library again
  };
  while (bytes >= 64) {
    const pair* source = reinterpret_cast<const pair*>(from);  // `auto` forgets how it is aligned
    pair* target = reinterpret_cast<pair*>(to);
    const pair a = source[0], b = source[1], c = source[2], d = source[3];
    target[0] = a, target[1] = b, target[2] = c, target[3] = d;
    go_on(64);
  }
  while (bytes >= 16) {
    *reinterpret_cast<pair*>(to) = *reinterpret_cast<const pair*>(from);
    go_on(16);
  }
  if (bytes != 0) *reinterpret_cast<word*>(to) = *reinterpret_cast<const word*>(from);
}

/// Word by word, whatever the alignment of the private side, and bytes before and after: where the
/// two sides are not aligned alike, the C library's accesses would cut the shared side's words.
template <bool FromShared>
[[gnu::noinline]] inline void misaligned_copy(void* to, const void* from, std::size_t offset,
                                              std::size_t bytes) {
  auto* d = static_cast<char*>(to);
  auto* s = static_cast<char*>(const_cast<void*>(from));
  auto skip = [&](std::size_t n) {
    std::memcpy(d, s, n);
    d += n, s += n, bytes -= n;
  };
  skip(-offset & 7);  // there are at least 8 bytes
  if ((reinterpret_cast<std::uintptr_t>(FromShared ? d : s) & 7) == 0) {
    std::size_t whole = bytes & ~std::size_t{7};
    if constexpr (FromShared)
      skip(whole);
    else
      store_words(d, s, whole), d += whole, s += whole, bytes -= whole;
  }
  for (; bytes >= 8; d += 8, s += 8, bytes -= 8) {
    std::uint64_t word;
    if constexpr (FromShared) {
      word = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(s))
                 .load(std::memory_order_relaxed);
      std::memcpy(d, &word, 8);
    } else {
      std::memcpy(&word, s, 8);
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(d))
          .store(word, std::memory_order_relaxed);
    }
  }
  skip(bytes);
}

/// Copies so that each aligned 8-byte word is moved by one access (the `racy_get` trait), and
/// stored once. Small objects go word by word. Loads of the rest are the C library's, which makes
/// accesses of 8 bytes or more on aligned blocks: from 3 words on it is faster than a loop whose
/// length only runs tell (64 bytes: twice the bandwidth). `offset` is that of the shared side in
/// its segment, which begins on a page: its alignment is known to the compiler where that of the
/// address is not.
template <bool FromShared>
inline void copy_words(void* to, const void* from, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;  // the pointers may be null
  if (!is_small(bytes) || ((offset | bytes) & 7) != 0) {
    auto privately = reinterpret_cast<std::uintptr_t>(FromShared ? to : from);
    bool whole_words = ((offset | bytes | privately) & 7) == 0;
    if (!FromShared && whole_words)
      store_words(static_cast<char*>(to), static_cast<const char*>(from), bytes);
    else if (bytes < 8 || whole_words || FARSIDE_MUTANT(words_cut_at_odd_addresses))
      std::memcpy(to, from, bytes);
    else
      misaligned_copy<FromShared>(to, from, offset, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word;
    if constexpr (FromShared) {
      auto* source = static_cast<std::uint64_t*>(const_cast<void*>(from)) + i / 8;
      word = std::atomic_ref<std::uint64_t>(*source).load(std::memory_order_relaxed);
      std::memcpy(static_cast<char*>(to) + i, &word, 8);
    } else {
      std::memcpy(&word, static_cast<const char*>(from) + i, 8);
      auto* target = static_cast<std::uint64_t*>(to) + i / 8;
      std::atomic_ref<std::uint64_t>(*target).store(word, std::memory_order_relaxed);
    }
  }
}
#endif

inline void acquire_fence() {
#ifndef FARSIDE_TSAN
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

inline void release_fence() {
#ifndef FARSIDE_TSAN
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

}  // namespace far::inline FARSIDE_BACKEND::detail

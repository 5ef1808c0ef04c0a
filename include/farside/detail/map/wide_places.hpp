// Where many keys belong: four at a time on x86-64, if the CPU has AVX2 (it is asked when the
// program runs). What comes out is what `place` says of each; only words that far::hash mixes.
#pragma once

#include <farside/detail/map/bucket.hpp>

#include <cstddef>

#if defined(__x86_64__)

namespace far::inline FARSIDE_BACKEND::detail::map {

[[gnu::always_inline]] inline bool has_wide_words() {
#if defined(__AVX2__)
  return true;
#else
  return __builtin_cpu_supports("avx2");
#endif
}

using four_words = word __attribute__((vector_size(32)));

#define FARSIDE_WIDE [[gnu::target("avx2"), gnu::always_inline]] inline

/// Of their lower halves.
FARSIDE_WIDE four_words product_of_halves(four_words a, four_words b) {
  four_words product;
  asm("vpmuludq %2, %1, %0" : "=x"(product) : "x"(a), "x"(b));
  return product;
}
FARSIDE_WIDE four_words four_times(word w) { return four_words{w, w, w, w}; }

/// There is no multiplication of whole words.
FARSIDE_WIDE four_words product_of_words(four_words a, word b) {
  four_words lower = four_times(b), upper = four_times(b >> 32);
  return product_of_halves(a, lower) +
         ((product_of_halves(a, upper) + product_of_halves(a >> 32, lower)) << 32);
}

/// detail::mix
FARSIDE_WIDE four_words mix_four(four_words x) {
  x += 0x9e37'79b9'7f4a'7c15;
  x = product_of_words(x ^ x >> 30, 0xbf58'476d'1ce4'e5b9);
  x = product_of_words(x ^ x >> 27, 0x94d0'49bb'1331'11eb);
  return x ^ x >> 31;
}

/// Of `n` keys, a multiple of four: the member, where its home begins, in bytes, and the
/// head `fresh` with the key's fingerprint.
[[gnu::target("avx2")]] inline void place_words(const word* keys, std::size_t n, rank_t members,
                                                word capacity, std::size_t bucket_bytes, head fresh,
                                                word* member, word* home, word* wanted) {
  const four_words many = four_times(members), buckets = four_times(capacity),
                   bytes = four_times(bucket_bytes), without_key = four_times(fresh.raw()),
                   half = four_times(0xffff'ffff);
  auto store = [](word* to, const four_words& from) { __builtin_memcpy(to, &from, sizeof from); };
  for (std::size_t i = 0; i < n; i += 4) {
    four_words hashes;
    __builtin_memcpy(&hashes, keys + i, sizeof hashes);
    hashes = mix_four(hashes);
    store(member + i, product_of_halves(hashes >> 32, many) >> 32);
    store(home + i, product_of_halves(product_of_halves(hashes << 20 >> 32, buckets) >> 32, bytes));
    store(wanted + i, (hashes << 4 & half) | without_key);
  }
}

#undef FARSIDE_WIDE

}  // namespace far::inline FARSIDE_BACKEND::detail::map

#endif

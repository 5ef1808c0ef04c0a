// Where many keys belong, four at a time. What comes out is what `place` says of each; only words
// that far::hash mixes.
//
//   x86-64   by AVX2, if the CPU has it (it is asked when the program runs)
//   arm64    step by step, as each step waits for the one before, and a CPU does not seem to look
//            far enough ahead to fill that with keys which come one after another: of
//            bench_containers `hash_map find, 512 at once, in the cache` took 5.9 ns instead of 6.2
//            (Neoverse V1)
#pragma once

#include <farside/containers/detail/map/bucket.hpp>

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
  x += mix_offset;
  x = product_of_words(x ^ x >> 30, mix_first);
  x = product_of_words(x ^ x >> 27, mix_second);
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

#elif defined(__aarch64__)

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Four words, in registers.
struct side_by_side {
  word a, b, c, d;

  /// Does `step` to each of them, and nothing of the next step before.
  template <class Step>
  FARSIDE_HOT side_by_side& then(Step step) {
    step(a), step(b), step(c), step(d);
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    return *this;
  }
};

/// Calls `found(i, member, home, wanted)` for `n` keys, a multiple of four: the member, where its
/// home begins, in bytes, and the head `fresh` with the key's fingerprint.
template <std::size_t BucketBytes, class Found>
FARSIDE_HOT inline void place_words(const word* keys, std::size_t n, word members, word capacity,
                                    head fresh, Found found) {
  for (std::size_t i = 0; i < n; i += 4) {
    side_by_side hash{keys[i], keys[i + 1], keys[i + 2], keys[i + 3]};
    // detail::mix
    hash.then([](word& x) { x += mix_offset; })
        .then([](word& x) { x ^= x >> 30; })
        .then([](word& x) { x *= mix_first; })
        .then([](word& x) { x ^= x >> 27; })
        .then([](word& x) { x *= mix_second; })
        .then([](word& x) { x ^= x >> 31; });
    side_by_side member = hash, home = hash;
    member.then([&](word& x) { x = reduce_hash(x, members); });
    home.then([&](word& x) { x = reduce_hash(x << 20, capacity); });
    auto wanted = [&](word x) { return word{static_cast<std::uint32_t>(x << 4)} | fresh.raw(); };
    found(i, member.a, home.a * BucketBytes, wanted(hash.a));
    found(i + 1, member.b, home.b * BucketBytes, wanted(hash.b));
    found(i + 2, member.c, home.c * BucketBytes, wanted(hash.c));
    found(i + 3, member.d, home.d * BucketBytes, wanted(hash.d));
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

#endif

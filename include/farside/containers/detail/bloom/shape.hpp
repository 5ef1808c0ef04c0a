// How large a Bloom filter must be, and what false positives to expect of one.
//
// Plain, m bits for n keys: k = m/n ln 2 bits a key, and m = -n ln p / (ln 2)^2.
//
// Blocked, 64 bits a block: keys fall into blocks at random, so some blocks hold more keys than
// others, and those answer wrongly most often. A factor of |ln p| over the plain size is known to
// be enough by experiment (44 bits a key for 1 %). Here the rate is computed instead, and the
// smallest size that holds it is taken (12 bits a key for 1 %, 23 for 0.1 %, 43 for 0.01 %):
//
//   rate(mean, k) = sum over j of Poisson(j; mean) x hits(j)
//   hits(j)       = sum over s of P(j keys have set s bits) x C(s, k) / C(64, k)
//
// Each key sets k different bits, so going from j keys to j + 1 is a step of a Markov chain on s
// with hypergeometric transitions.
#pragma once

#include <farside/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

struct bloom_shape {
  std::uint64_t bits;     ///< in all; a multiple of 64
  unsigned bits_per_key;  ///< k
};

/// As a whole number; there are no segments for 2^60 bits and more.
inline std::uint64_t require_bloom_bits(std::uint64_t keys, double bits) {
  if (!(bits < 0x1p60))
    raise<allocation_error>("a Bloom filter for ", keys,
                            " keys: its bits are more than can be. Has a negative number become "
                            "such a large one?");
  return static_cast<std::uint64_t>(bits);
}

inline void require_bloom_sizes(double rate) {
  if (!(rate >= 1e-9 && rate <= 0.5))
    raise("a Bloom filter with a false-positive rate of ", rate,
          ": rates from 0.000000001 to 0.5 make sense. Below, use a set.");
}

inline bloom_shape plain_bloom_shape(std::uint64_t keys, double rate) {
  require_bloom_sizes(rate);
  double n = static_cast<double>(std::max<std::uint64_t>(keys, 1));
  double ln2 = std::log(2.0);
  double bits = std::ceil(-n * std::log(rate) / (ln2 * ln2));
  auto k = static_cast<unsigned>(std::max(1L, std::lround(bits / n * ln2)));
  return {(require_bloom_bits(keys, bits) + 63) / 64 * 64, k};
}

/// n over k, for n <= 64.
inline double choose(unsigned n, unsigned k) {
  if (k > n) return 0;
  double result = 1;
  for (unsigned i = 0; i < k; ++i) result = result * (n - i) / (i + 1);
  return result;
}

/// hits(j) for j = 0, 1, ... keys in one block, until nearly every question is answered by yes.
inline std::vector<double> blocked_hits(unsigned k) {
  std::array<std::array<double, 65>, 65> choices;
  for (unsigned n = 0; n <= 64; ++n)
    for (unsigned i = 0; i <= 64; ++i) choices[n][i] = i <= k ? choose(n, i) : 0;
  double all = choices[64][k];
  std::array<double, 65> set{1};  // P(s bits are set)
  std::vector<double> hits;
  while (hits.size() < 512 && (hits.empty() || hits.back() < 0.9999)) {
    double hit = 0;
    for (unsigned s = 0; s <= 64; ++s) hit += set[s] * choices[s][k] / all;
    hits.push_back(hit);
    std::array<double, 65> next{};
    for (unsigned s = 0; s <= 64; ++s)
      for (unsigned fresh = 0; set[s] > 1e-15 && fresh <= k && s + fresh <= 64; ++fresh)
        next[s + fresh] += set[s] * choices[64 - s][fresh] * choices[s][k - fresh] / all;
    set = next;
  }
  return hits;
}

/// The rate of false positives with `mean` keys a block.
inline double blocked_rate(const std::vector<double>& hits, double mean) {
  double chance = std::exp(-mean), left = 1, rate = 0;
  for (std::size_t j = 0; j < hits.size(); chance *= mean / static_cast<double>(++j)) {
    rate += chance * hits[j];
    left -= chance;
  }
  return rate + std::max(0.0, left);  // more keys than were looked at: taken for hits
}

inline bloom_shape blocked_bloom_shape(std::uint64_t keys, double rate) {
  require_bloom_sizes(rate);
  double most = 0;  // keys a block
  unsigned best = 1;
  for (unsigned k = 1; k <= 20; ++k) {
    std::vector<double> hits = blocked_hits(k);
    double low = 0, high = 64;
    for (int i = 0; i < 50; ++i) {
      double middle = (low + high) / 2;
      (blocked_rate(hits, middle) <= rate ? low : high) = middle;
    }
    if (low < most) break;  // it has one maximum
    most = low, best = k;
  }
  double blocks = std::ceil(static_cast<double>(std::max<std::uint64_t>(keys, 1)) / most);
  return {require_bloom_bits(keys, blocks * 64), best};
}

}  // namespace far::inline FARSIDE_BACKEND::detail

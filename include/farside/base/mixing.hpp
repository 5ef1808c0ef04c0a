// Mixing bits: from keys, or from numbers that count up, to words whose bits are all as good as
// random. <farside/base/random.hpp> makes a stream of pseudo-random numbers of it.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// What mix() adds and multiplies by. Key locations of hash maps are computed four at a time by the
/// same steps.
inline constexpr std::uint64_t mix_offset = 0x9e37'79b9'7f4a'7c15,
                               mix_first = 0xbf58'476d'1ce4'e5b9,
                               mix_second = 0x94d0'49bb'1331'11eb;

/// A bijection of 64 bits in which each bit of the result depends on each bit of `x`. Of 0 it makes 0.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ x >> 30) * mix_first;
  x = (x ^ x >> 27) * mix_second;
  return x ^ x >> 31;
}

}  // namespace detail

/// A bijection of 64 bits in which each bit of the result depends on each bit of `x`. Local; no
/// communication.
constexpr std::uint64_t mix(std::uint64_t x) { return detail::scramble(x + detail::mix_offset); }

/// Maps a hash to 0 .. n - 1 by its high bits, evenly. Its low bits stay good for other uses.
/// Local; no communication.
constexpr std::uint64_t reduce_hash(std::uint64_t hash, std::uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(hash) * n >> 64);
}

namespace detail {

/// Both halves of a 128-bit product, one over the other.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  wide product = static_cast<wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// The seal over `n` words, bound to `salt`.
[[gnu::always_inline]] inline std::uint64_t seal_of(const std::uint64_t* words, std::size_t n,
                                                    std::uint64_t salt) {
  std::uint64_t h = salt;
  for (std::size_t i = 0; i < n; ++i)
    h = folded_product(h ^ words[i], 0x9e6c'63d0'876a'5b11) + 0x632b'e59b'd9b4'e019 * (i + 1);
  return h ^ h >> 29;
}

/// The hash of a sequence from that of its beginning and of its next element.
constexpr std::uint64_t hash_append(std::uint64_t before, std::uint64_t next) {
  return mix(before * 0xa076'1d64'78bd'642f + next);
}

template <class Word>
std::uint64_t read_word(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t hash_bytes(const void* data, std::size_t n) {
  constexpr std::uint64_t a = 0xe703'7ed1'a0b4'28db, b = 0x8ebc'6af0'9c88'c6e3;
  auto* at = static_cast<const std::byte*>(data);
  std::uint64_t h = n * 0x5899'65cc'7537'4cc3;
  std::uint64_t first = 0, last = 0;  // the last 16 bytes, or all if there are fewer
  if (n > 16) {
    const std::byte* end = at + n;
    for (; end - at > 16; at += 16)
      h = folded_product(read_word<std::uint64_t>(at) ^ a, read_word<std::uint64_t>(at + 8) ^ h);
    first = read_word<std::uint64_t>(end - 16);
    last = read_word<std::uint64_t>(end - 8);
  } else if (n >= 8) {
    first = read_word<std::uint64_t>(at);
    last = read_word<std::uint64_t>(at + n - 8);
  } else if (n >= 4) {
    first = read_word<std::uint32_t>(at);
    last = read_word<std::uint32_t>(at + n - 4);
  } else if (n > 0) {
    first = read_word<std::uint8_t>(at) << 16 | read_word<std::uint8_t>(at + n / 2) << 8 |
            read_word<std::uint8_t>(at + n - 1);
  }
  return mix(folded_product(first ^ b, last ^ h));
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

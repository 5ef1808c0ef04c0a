// A k-mer: k bases of two bits each (A 0, C 1, G 2, T 3), so that numbers and texts have the same
// order. Words are those of one large number, the most significant first.
//
//   k = 5, one word:   0 ... 0 | b0 b1 b2 b3 b4 |
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace genome {

inline constexpr unsigned longest_k = 127;

/// 0 to 3 for acgtACGT, 4 for anything else.
inline constexpr std::array<std::uint8_t, 256> code_of = [] {
  std::array<std::uint8_t, 256> codes{};
  codes.fill(4);
  for (unsigned i = 0; i < 4; ++i) {
    codes[static_cast<unsigned char>("ACGT"[i])] = static_cast<std::uint8_t>(i);
    codes[static_cast<unsigned char>("acgt"[i])] = static_cast<std::uint8_t>(i);
  }
  return codes;
}();

/// The 32 bases of a word in opposite order, each complemented.
constexpr std::uint64_t reverse_complement(std::uint64_t x) {
  x = ~x;
  x = (x >> 2 & 0x3333'3333'3333'3333) | (x & 0x3333'3333'3333'3333) << 2;
  x = (x >> 4 & 0x0f0f'0f0f'0f0f'0f0f) | (x & 0x0f0f'0f0f'0f0f'0f0f) << 4;
  return __builtin_bswap64(x);
}

template <unsigned Words>
struct kmer {
  static constexpr unsigned most = 32 * Words;  ///< bases

  std::array<std::uint64_t, Words> words{};

  // By hand: those of std::array call memcmp.
  friend constexpr bool operator==(const kmer& a, const kmer& b) {
    std::uint64_t differ = 0;
    for (unsigned i = 0; i < Words; ++i) differ |= a.words[i] ^ b.words[i];
    return differ == 0;
  }
  friend constexpr std::strong_ordering operator<=>(const kmer& a, const kmer& b) {
    for (unsigned i = 0; i + 1 < Words; ++i)
      if (a.words[i] != b.words[i]) return a.words[i] <=> b.words[i];
    return a.words[Words - 1] <=> b.words[Words - 1];
  }

  /// No canonical k-mer: that of T...T is A...A.
  static constexpr kmer none() {
    kmer result;
    result.words.fill(~std::uint64_t{0});
    return result;
  }

  constexpr void shift_left(unsigned bits) {
    if constexpr (Words == 1) {
      words[0] = bits < 64 ? words[0] << bits : 0;
    } else {
      for (; bits >= 64; bits -= 64) {
        for (unsigned i = 0; i + 1 < Words; ++i) words[i] = words[i + 1];
        words[Words - 1] = 0;
      }
      if (bits == 0) return;
      for (unsigned i = 0; i + 1 < Words; ++i)
        words[i] = words[i] << bits | words[i + 1] >> (64 - bits);
      words[Words - 1] <<= bits;
    }
  }
  constexpr void shift_right(unsigned bits) {
    if constexpr (Words == 1) {
      words[0] = bits < 64 ? words[0] >> bits : 0;
    } else {
      for (; bits >= 64; bits -= 64) {
        for (unsigned i = Words - 1; i > 0; --i) words[i] = words[i - 1];
        words[0] = 0;
      }
      if (bits == 0) return;
      for (unsigned i = Words - 1; i > 0; --i)
        words[i] = words[i] >> bits | words[i - 1] << (64 - bits);
      words[0] >>= bits;
    }
  }

  /// 64 good bits.
  constexpr std::uint64_t hash() const {
    std::uint64_t h = words[Words - 1];
    for (unsigned i = 0; i + 1 < Words; ++i) h = (h ^ h >> 29) * 0x9fb2'1c65'1e98'df25 ^ words[i];
    h = (h ^ h >> 32) * 0x9e37'79b9'7f4a'7c15;
    return h ^ h >> 29;
  }
};

/// What all k-mers of one length have in common.
template <unsigned Words>
class kmer_shape {
 public:
  using kmer_type = kmer<Words>;

  explicit constexpr kmer_shape(unsigned k) : k_(k) {
    mask_ = kmer_type::none();
    mask_.shift_right(2 * (kmer_type::most - k));
    top_word_ = Words - 1 - (k - 1) / 32;
    top_shift_ = 2 * ((k - 1) % 32);
  }

  constexpr unsigned k() const { return k_; }

  /// Drops the first base and adds one at the end.
  constexpr void append(kmer_type& x, unsigned code) const {
    if constexpr (Words == 1) {
      x.words[0] = (x.words[0] << 2 | code) & mask_.words[0];
    } else {
      x.shift_left(2);
      x.words[Words - 1] |= code;
      for (unsigned i = 0; i < Words; ++i) x.words[i] &= mask_.words[i];
    }
  }
  /// Drops the last base and adds one at the front.
  constexpr void prepend(kmer_type& x, unsigned code) const {
    x.shift_right(2);
    x.words[top_word_] |= std::uint64_t{code} << top_shift_;
  }

  constexpr kmer_type reverse(const kmer_type& x) const {
    kmer_type result;
    for (unsigned i = 0; i < Words; ++i)
      result.words[i] = reverse_complement(x.words[Words - 1 - i]);
    result.shift_right(2 * (kmer_type::most - k_));
    return result;
  }
  constexpr kmer_type canonical(const kmer_type& x) const {
    kmer_type other = reverse(x);
    return other < x ? other : x;
  }

  constexpr unsigned first(const kmer_type& x) const {
    return static_cast<unsigned>(x.words[top_word_] >> top_shift_ & 3);
  }
  constexpr unsigned last(const kmer_type& x) const {
    return static_cast<unsigned>(x.words[Words - 1] & 3);
  }
  constexpr unsigned base(const kmer_type& x, unsigned i) const {
    unsigned from_end = k_ - 1 - i;
    return static_cast<unsigned>(x.words[Words - 1 - from_end / 32] >> 2 * (from_end % 32) & 3);
  }

  std::string text(const kmer_type& x) const {
    std::string result(k_, 'A');
    for (unsigned i = 0; i < k_; ++i) result[i] = "ACGT"[base(x, i)];
    return result;
  }

  /// The first k bases of four bases a byte, the first one in the highest bits. Reads whole words:
  /// 8 * Words bytes must be there.
  kmer_type unpack(const std::byte* packed) const {
    kmer_type result;
    for (unsigned i = 0; i < Words; ++i) {
      std::uint64_t word;
      std::memcpy(&word, packed + 8 * i, sizeof word);
      if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
      result.words[i] = word;
    }
    result.shift_right(2 * (kmer_type::most - k_));
    return result;
  }
  /// The opposite, into packed_bytes() bytes.
  void pack(kmer_type x, std::byte* to) const {
    x.shift_left(2 * (kmer_type::most - k_));
    for (unsigned i = 0; i < packed_bytes(); ++i)
      to[i] = static_cast<std::byte>(x.words[i / 8] >> (56 - 8 * (i % 8)));
  }
  constexpr unsigned packed_bytes() const { return (k_ + 3) / 4; }

 private:
  unsigned k_;
  kmer_type mask_;
  unsigned top_word_;
  unsigned top_shift_;
};

}  // namespace genome

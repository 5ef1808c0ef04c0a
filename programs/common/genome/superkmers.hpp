// Super-k-mers: consecutive k-mers of a sequence that belong to the same partition, as one run of
// packed bases. A k-mer belongs to the partition of its minimizer, the m-mer in it (of either
// strand) whose hash is least; neighbours mostly share it, so that a k-mer takes little more than a
// byte on its way.
//
//   a record:   | k-mers - 1 | flanks, if asked for | bases, four a byte, the first one highest |
//   a block:    | partition | bytes | k-mers | record | record | ... |
//
//   flanks:     bit 2: there is a base before, bits 0-1; bit 6: there is one after, bits 4-5
#pragma once

#include "kmer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

namespace genome {

/// Which partition a k-mer belongs to, and who counts a partition.
///
/// Partitions are counted in rounds, so that what comes out can be written while the rest is still
/// waiting; in each round every rank has some that follow each other. Their number does not depend
/// on that of ranks: they give a file its order.
struct partitioning {
  static constexpr unsigned bits = 10;
  static constexpr unsigned count = 1u << bits;
  static constexpr unsigned rounds = 16;
  static constexpr unsigned a_round = count / rounds;

  explicit constexpr partitioning(unsigned length)
      : k(length), m(std::min(11u, (length + 1) / 2)), window(length - m + 1) {}

  /// Orders m-mers at random: an order of letters would make poly-A a minimizer everywhere.
  static constexpr std::uint32_t hash_of(std::uint32_t mmer) {
    std::uint32_t h = mmer * 0x9e37'79b1u;
    return (h ^ h >> 15) * 0x85eb'ca77u;
  }
  static constexpr unsigned of(std::uint32_t least_hash) {
    return (least_hash ^ least_hash >> 16) * 0xc2b2'ae3du >> (32 - bits);
  }
  static constexpr std::uint32_t owner(unsigned partition, std::uint32_t ranks) {
    return static_cast<std::uint32_t>(std::uint64_t{partition % a_round} * ranks / a_round);
  }

  unsigned k, m, window;
};

/// The partitions of the eight possible neighbours of a k-mer: with A, C, G, T after it, and with
/// A, C, G, T before it. All but one of their m-mers are also in the k-mer.
template <unsigned Words>
std::array<unsigned, 8> neighbour_partitions(const partitioning& of, const kmer_shape<Words>& shape,
                                             const kmer<Words>& x) {
  const unsigned m = of.m, top = 2 * (m - 1);
  const std::uint32_t mask = (1u << 2 * m) - 1;
  std::uint32_t forward = 0, backward = 0, first_forward = 0, first_backward = 0;
  std::uint32_t least_after = ~0u, least_before = ~0u;
  for (unsigned i = 0; i < of.k; ++i) {
    unsigned code = shape.base(x, i);
    forward = (forward << 2 | code) & mask;
    backward = backward >> 2 | (3u - code) << top;
    if (i + 2 == m) first_forward = forward, first_backward = backward;
    if (i + 1 < m) continue;
    std::uint32_t hash = partitioning::hash_of(std::min(forward, backward));
    if (i + 1 > m) least_after = std::min(least_after, hash);
    if (i + 1 < of.k) least_before = std::min(least_before, hash);
  }
  std::array<unsigned, 8> result;
  for (unsigned code = 0; code < 4; ++code) {
    std::uint32_t after =
        std::min((forward << 2 | code) & mask, backward >> 2 | (3u - code) << top);
    std::uint32_t before = std::min(code << top | first_forward, first_backward | (3u - code));
    result[code] = partitioning::of(std::min(least_after, partitioning::hash_of(after)));
    result[4 + code] = partitioning::of(std::min(least_before, partitioning::hash_of(before)));
  }
  return result;
}

struct superkmer_block {
  static constexpr std::size_t room = 504;
  std::uint16_t partition = 0;
  std::uint16_t used = 0;
  std::uint32_t kmers = 0;
  std::array<std::byte, room> data;
};

/// Eight codes, a byte each, as 16 bits.
inline std::uint16_t pack_eight(const std::uint8_t* codes) {
  std::uint64_t x;
  std::memcpy(&x, codes, sizeof x);
  x = __builtin_bswap64(x);  // the first one highest
  x = (x | x >> 6) & 0x000f'000f'000f'000f;
  x = (x | x >> 12) & 0x0000'00ff'0000'00ff;
  x = x | x >> 24;
  return __builtin_bswap16(static_cast<std::uint16_t>(x));
}

/// Cuts sequences into super-k-mers and hands full blocks to `send(block)`.
template <class Send>
class superkmer_splitter {
 public:
  /// Only partitions of [first, end).
  superkmer_splitter(partitioning shape, bool flanks, unsigned first, unsigned end, Send send)
      : shape_(shape),
        flanks_(flanks),
        first_(first),
        end_(end),
        send_(std::move(send)),
        blocks_(partitioning::count) {
    for (unsigned p = 0; p < partitioning::count; ++p)
      blocks_[p].partition = static_cast<std::uint16_t>(p);
  }

  void add(const char* bases, std::size_t n) {
    if (codes_.size() < n + slack) {
      codes_.resize(n + slack);
      hashes_.resize(n + slack);
    }
    for (std::size_t at = 0; at < n;) {
      std::size_t length = 0;
      std::uint8_t* codes = codes_.data() + 1;  // one before the run for its flank
      while (at + length < n) {
        std::uint8_t code = code_of[static_cast<unsigned char>(bases[at + length])];
        codes[length] = code & 3;  // what lies behind a run is packed with its end
        if (code > 3) break;
        ++length;
      }
      if (length >= shape_.k) add_run(codes, length);
      at += length + 1;
    }
  }

  /// Hands over the blocks that are not full.
  void finish() {
    for (superkmer_block& block : blocks_)
      if (block.used > 0) give(block);
  }

 private:
  static constexpr std::size_t slack = 32;
  static constexpr std::size_t most = 256;  ///< k-mers of a record

  void add_run(const std::uint8_t* codes, std::size_t length) {
    const unsigned m = shape_.m, window = shape_.window;
    const std::uint32_t mask = (1u << 2 * m) - 1;
    std::uint32_t forward = 0, backward = 0;
    for (std::size_t i = 0; i + 1 < m; ++i) {
      forward = forward << 2 | codes[i];
      backward = backward >> 2 | (3u - codes[i]) << 2 * (m - 1);
    }
    std::uint32_t* hashes = hashes_.data();
    for (std::size_t i = m - 1; i < length; ++i) {
      forward = (forward << 2 | codes[i]) & mask;
      backward = backward >> 2 | (3u - codes[i]) << 2 * (m - 1);
      hashes[i - (m - 1)] = partitioning::hash_of(std::min(forward, backward));
    }

    std::size_t kmers = length - shape_.k + 1, least = 0, begin = 0;
    for (std::size_t i = 1; i < window; ++i)
      if (hashes[i] < hashes[least]) least = i;
    unsigned partition = partitioning::of(hashes[least]);
    for (std::size_t j = 1; j < kmers; ++j) {
      std::size_t newest = j + window - 1;
      if (hashes[newest] < hashes[least]) {
        least = newest;
      } else if (least < j) {
        least = j;
        for (std::size_t i = j + 1; i <= newest; ++i)
          if (hashes[i] <= hashes[least]) least = i;
      } else {
        continue;
      }
      unsigned now = partitioning::of(hashes[least]);
      if (now == partition) continue;
      add_superkmers(codes, length, partition, begin, j);
      begin = j;
      partition = now;
    }
    add_superkmers(codes, length, partition, begin, kmers);
  }

  /// The k-mers [begin, end) of a run.
  void add_superkmers(const std::uint8_t* codes, std::size_t length, unsigned partition,
                      std::size_t begin, std::size_t end) {
    if (partition < first_ || partition >= end_) return;
    for (; begin < end; begin += most)
      add_superkmer(codes, length, partition, begin, std::min(end - begin, most));
  }

  void add_superkmer(const std::uint8_t* codes, std::size_t length, unsigned partition,
                     std::size_t begin, std::size_t kmers) {
    superkmer_block& block = blocks_[partition];
    std::size_t bases = kmers + shape_.k - 1;
    std::size_t bytes = 1 + flanks_ + (bases + 3) / 4;
    if (block.used + bytes > superkmer_block::room) give(block);
    std::byte* to = block.data.data() + block.used;
    *to++ = static_cast<std::byte>(kmers - 1);
    if (flanks_) {
      unsigned before = begin > 0 ? 4u | codes[begin - 1] : 0;
      unsigned after = begin + bases < length ? 4u | codes[begin + bases] : 0;
      *to++ = static_cast<std::byte>(before | after << 4);
    }
    std::size_t whole = bases / 8;
    for (std::size_t i = 0; i < whole; ++i) {
      std::uint16_t eight = pack_eight(codes + begin + 8 * i);
      std::memcpy(to + 2 * i, &eight, 2);
    }
    if (std::size_t rest = bases % 8; rest != 0) {
      std::uint16_t eight = pack_eight(codes + begin + 8 * whole);  // some too many, see slack
      std::memcpy(to + 2 * whole, &eight, rest > 4 ? 2 : 1);
    }
    block.used = static_cast<std::uint16_t>(block.used + bytes);
    block.kmers += static_cast<std::uint32_t>(kmers);
  }

  void give(superkmer_block& block) {
    send_(block);
    block.used = 0;
    block.kmers = 0;
  }

  partitioning shape_;
  bool flanks_;
  unsigned first_, end_;
  Send send_;
  std::vector<superkmer_block> blocks_;
  std::vector<std::uint8_t> codes_;
  std::vector<std::uint32_t> hashes_;
};

/// The blocks that a rank holds, partition by partition.
class superkmer_store {
 public:
  superkmer_store() : first_(partitioning::count, none), kmers_(partitioning::count) {}

  void add(const superkmer_block& block) {
    if (used_ == slabs_.size() * slab) slabs_.push_back(std::make_unique<kept[]>(slab));
    kept& k = at(used_);
    k.next = first_[block.partition];
    std::memcpy(&k.block, &block, sizeof block);
    first_[block.partition] = used_++;
    kmers_[block.partition] += block.kmers;
  }
  std::uint64_t bytes() const { return std::uint64_t{slabs_.size()} * slab * sizeof(kept); }
  std::uint64_t kmers(unsigned partition) const { return kmers_[partition]; }

  template <class Use>
  void for_each(unsigned partition, Use use) const {
    for (std::uint32_t i = first_[partition]; i != none; i = at(i).next) {
      const kept& k = at(i);
      if (k.next != none) {
        const char* next = reinterpret_cast<const char*>(&at(k.next));
        for (std::size_t line = 0; line < sizeof(kept); line += 64) __builtin_prefetch(next + line);
      }
      use(k.block);
    }
  }

 private:
  struct kept {
    std::uint32_t next;
    superkmer_block block;
    std::array<std::byte, 32> slack;  ///< whole words are read at the end of a record
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t slab = 1 << 12;

  kept& at(std::uint32_t i) const { return slabs_[i / slab][i % slab]; }

  std::vector<std::unique_ptr<kept[]>> slabs_;
  std::uint32_t used_ = 0;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint64_t> kmers_;
};

}  // namespace genome

// Counting the k-mers of one partition: a table of open addressing that fits into a cache, as
// partitions are small.
#pragma once

#include "superkmers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace genome {

/// How often each base was seen before and after a k-mer: [0] to [3] before, [4] to [7] after.
struct neighbours {
  std::array<std::uint16_t, 8> seen{};
  void add(unsigned which) { seen[which] += seen[which] != 0xffff; }
};
struct no_neighbours {
  void add(unsigned) {}
};

template <unsigned Words, bool Extended>
struct counted {
  kmer<Words> key;
  std::uint32_t count;
  [[no_unique_address]] std::conditional_t<Extended, neighbours, no_neighbours> extensions;
};

template <unsigned Words, bool Extended>
class count_table {
 public:
  using entry = counted<Words, Extended>;
  using kmer_type = kmer<Words>;

  explicit count_table(unsigned k) : shape_(k) {}

  /// Counts all k-mers of a partition; of those seen once only some, if `filter`: a Bloom filter
  /// keeps most of them out, and counts are exact nevertheless.
  void count(const superkmer_store& store, unsigned partition, bool filter) {
    std::uint64_t all = store.kmers(partition);
    prepare(static_cast<std::uint64_t>(static_cast<double>(all) * (filter ? 0.1 : share_)) + 16);
    if (!filter) {
      for_each_kmer(store, partition,
                    [&](const kmer_type& key, unsigned flanks) { insert(key, flanks); });
      share_ = std::max(share_, static_cast<double>(size_) / static_cast<double>(all + 1));
      return;
    }
    // Whatever the filter has seen before becomes an entry, and then all are counted.
    filter_.assign(std::bit_ceil(all / 4 + 64), 0);
    for_each_kmer(store, partition, [&](const kmer_type& key, unsigned) {
      if (seen_before(key)) add_key(key);
    });
    for_each_kmer(store, partition, [&](const kmer_type& key, unsigned flanks) {
      entry& found = slot(key);
      if (found.key == key) add_to(found, flanks);
    });
  }

  /// Those seen at least and at most so often, sorted if asked for. Valid until the next call.
  const std::vector<entry>& result(std::uint32_t least, std::uint32_t most, bool sorted) {
    result_.clear();
    for (const entry& e : slots_)
      if (e.key != kmer_type::none() && e.count >= least && e.count <= most) result_.push_back(e);
    if (sorted) sort();
    return result_;
  }

  /// use(count) for each k-mer.
  template <class Use>
  void for_each_count(Use use) const {
    for (const entry& e : slots_)
      if (e.key != kmer_type::none()) use(e.count);
  }

  /// Whether a k-mer of the partition was seen at least so often.
  bool holds(const kmer_type& key, std::uint32_t least) {
    const entry& found = slot(key);
    return found.key == key && found.count >= least;
  }

  std::uint64_t bytes() const {
    return slots_.capacity() * sizeof(entry) + result_.capacity() * sizeof(entry) +
           filter_.capacity() * 8;
  }

 private:
  static constexpr std::size_t batch = 64;

  /// A k-mer is looked for some time after its slot was asked of the memory.
  template <class Use>
  void for_each_kmer(const superkmer_store& store, unsigned partition, Use use) {
    std::array<kmer_type, batch + 256> keys;
    std::array<std::uint8_t, batch + 256> flanks;
    std::size_t n = 0;
    auto flush = [&] {
      for (std::size_t i = 0; i < n; ++i) use(keys[i], Extended ? flanks[i] : 0);
      n = 0;
    };
    store.for_each(partition, [&](const superkmer_block& block) {
      const std::byte* at = block.data.data();
      const std::byte* end = at + block.used;
      while (at < end) {
        std::size_t kmers = static_cast<std::size_t>(*at++) + 1;
        unsigned outer = 0;
        if constexpr (Extended) outer = static_cast<unsigned>(*at++);
        kmer_type forward = shape_.unpack(at), backward = shape_.reverse(forward);
        unsigned k = shape_.k();
        for (std::size_t i = 0;; ++i) {
          bool same = !(backward < forward);
          const kmer_type& key = same ? forward : backward;
          keys[n] = key;
          __builtin_prefetch(&slots_[place(key)], 1);
          unsigned next = 0;
          if (i + 1 < kmers)
            next = static_cast<unsigned>(at[(i + k) / 4]) >> (6 - 2 * ((i + k) % 4)) & 3;
          if constexpr (Extended) {
            unsigned before = i > 0 ? 4u | base_at(at, i - 1) : outer & 7;
            unsigned after = i + 1 < kmers ? 4u | next : outer >> 4;
            flanks[n] = static_cast<std::uint8_t>(
                same ? before | after << 4 : complement(after) | complement(before) << 4);
          }
          ++n;
          if (i + 1 == kmers) break;
          shape_.append(forward, next);
          shape_.prepend(backward, 3 - next);
        }
        at += (k + kmers - 1 + 3) / 4;
        if (n >= batch) flush();
      }
    });
    flush();
  }

  static unsigned base_at(const std::byte* packed, std::size_t i) {
    return static_cast<unsigned>(packed[i / 4]) >> (6 - 2 * (i % 4)) & 3;
  }
  static unsigned complement(unsigned flank) { return flank & 4 ? flank ^ 3 : 0; }

  std::size_t place(const kmer_type& key) const { return key.hash() >> shift_; }

  /// The slot of a key, or the empty one where it would be.
  entry& slot(const kmer_type& key) {
    std::size_t i = place(key), mask = slots_.size() - 1;
    while (slots_[i].key != key && slots_[i].key != kmer_type::none()) i = (i + 1) & mask;
    return slots_[i];
  }
  static void add_to(entry& e, unsigned flanks) {
    e.count += e.count != ~std::uint32_t{0};
    if constexpr (Extended) {
      if (flanks & 4) e.extensions.add(flanks & 3);
      if (flanks & 64) e.extensions.add(4 + (flanks >> 4 & 3));
    }
  }
  void insert(const kmer_type& key, unsigned flanks) { add_to(add_key(key), flanks); }
  entry& add_key(const kmer_type& key) {
    entry* found = &slot(key);
    if (found->key != key) {
      if (size_ >= limit_) {
        grow();
        found = &slot(key);
      }
      found->key = key;
      ++size_;
    }
    return *found;
  }

  void prepare(std::uint64_t expected) {
    std::size_t capacity = std::bit_ceil(expected + expected / 2);
    slots_.assign(capacity, entry{kmer_type::none(), 0, {}});
    set_limits();
    size_ = 0;
  }
  void grow() {
    std::vector<entry> old(2 * slots_.size(), entry{kmer_type::none(), 0, {}});
    old.swap(slots_);
    set_limits();
    for (const entry& e : old)
      if (e.key != kmer_type::none()) slot(e.key) = e;
  }
  void set_limits() {
    shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
    limit_ = slots_.size() / 4 * 3;
  }

  /// All bits of a key lie in one word.
  bool seen_before(const kmer_type& key) {
    std::uint64_t h = key.hash() * 0xa076'1d64'78bd'642f;
    std::uint64_t pattern = std::uint64_t{1} << (h & 63) | std::uint64_t{1} << (h >> 6 & 63) |
                            std::uint64_t{1} << (h >> 12 & 63);
    std::uint64_t& word = filter_[(h >> 20) & (filter_.size() - 1)];
    bool seen = (word & pattern) == pattern;
    word |= pattern;
    return seen;
  }

  /// One pass by the first bits of the keys, then each small group.
  void sort() {
    unsigned k = shape_.k(), digits = std::min(2 * k, 10u);
    std::array<std::uint32_t, (1u << 10) + 1> begins{};
    auto digit = [&](const entry& e) {
      kmer_type x = e.key;
      x.shift_right(2 * k - digits);
      return static_cast<std::size_t>(x.words[Words - 1]);
    };
    for (const entry& e : result_) ++begins[digit(e) + 1];
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
    other_.resize(result_.size());
    auto to = begins;
    for (const entry& e : result_) other_[to[digit(e)]++] = e;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i)
      std::sort(other_.begin() + begins[i], other_.begin() + begins[i + 1],
                [](const entry& a, const entry& b) { return a.key < b.key; });
    result_.swap(other_);
  }

  kmer_shape<Words> shape_;
  std::vector<entry> slots_, result_, other_;
  std::vector<std::uint64_t> filter_;
  std::size_t size_ = 0, limit_ = 0;
  unsigned shift_ = 0;
  double share_ = 0.1;  ///< of k-mers that were different, in partitions so far
};

}  // namespace genome

// The file of counted k-mers that `kmers --output` writes and `contigs` reads. All numbers are
// little endian.
//
//   0     "FARKMERS"
//   8     u32 version, 1
//   12    u32 k
//   16    u32 bytes of a record
//   20    u32 flags: 1, records have neighbours
//   24    u64 how many k-mers
//   32    u64 the sum of their counts
//   40    u32 the least count that was kept
//   44    u32 how many partitions
//   48    u64 for each partition: how many k-mers
//   then the records, partition by partition, in each sorted by k-mer:
//         k-mer, (k + 3) / 4 bytes: four bases a byte, A 0, C 1, G 2, T 3, the first one highest
//         u32 count
//         with neighbours: 8 u16, how often A, C, G, T were seen before it, and after it
//
// A k-mer is the lesser of itself and its reverse complement. Its partition is that of its
// minimizer (superkmers.hpp), so that a reader who looks for one knows where to search.
#pragma once

#include "count_table.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace genome {

struct kmer_file_header {
  static constexpr std::array<char, 8> right_magic = {'F', 'A', 'R', 'K', 'M', 'E', 'R', 'S'};
  static constexpr std::uint32_t right_version = 1;

  std::array<char, 8> magic = right_magic;
  std::uint32_t version = right_version;
  std::uint32_t k = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t flags = 0;
  std::uint64_t kmers = 0;
  std::uint64_t total = 0;
  std::uint32_t least_count = 0;
  std::uint32_t partitions = partitioning::count;
};
static_assert(sizeof(kmer_file_header) == 48);

inline constexpr std::uint64_t records_begin = sizeof(kmer_file_header) + 8 * partitioning::count;

template <unsigned Words, bool Extended>
class kmer_records {
 public:
  using entry = counted<Words, Extended>;
  explicit kmer_records(unsigned k)
      : shape_(k), bytes_(shape_.packed_bytes() + 4 + (Extended ? 16 : 0)) {}

  std::uint32_t bytes() const { return bytes_; }

  void append(std::vector<char>& to, const entry& e) const {
    std::size_t at = to.size();
    to.resize(at + bytes_);
    shape_.pack(e.key, reinterpret_cast<std::byte*>(to.data() + at));
    at += shape_.packed_bytes();
    std::memcpy(to.data() + at, &e.count, 4);
    if constexpr (Extended) std::memcpy(to.data() + at + 4, e.extensions.seen.data(), 16);
  }

 private:
  kmer_shape<Words> shape_;
  std::uint32_t bytes_;
};

}  // namespace genome

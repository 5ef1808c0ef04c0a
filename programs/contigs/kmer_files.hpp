// What files of k-mers say of themselves.
#pragma once

#include <common/genome/kmer_file.hpp>
#include <common/genome/text_source.hpp>

#include <sys/stat.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace graph {

inline std::uint64_t size_of_file(const std::string& name) {
  struct stat found;
  if (stat(name.c_str(), &found) != 0) genome::fail_with_errno(name, errno);
  if (S_ISDIR(found.st_mode)) genome::fail(name, ": is a directory, not a file of k-mers");
  return static_cast<std::uint64_t>(found.st_size);
}

/// What a file of `kmers --output` says of itself. Throws if it is none.
inline genome::kmer_file_header header_of(const std::string& name) {
  std::uint64_t size = size_of_file(name);
  genome::kmer_file_header header;
  genome::text_source source(name);
  if (size < genome::records_begin ||
      source.read(reinterpret_cast<char*>(&header), sizeof header) != sizeof header ||
      header.magic != header.right_magic)
    genome::fail(name, ": is no file that 'farside kmers --output' writes");
  if (header.version != header.right_version)
    genome::fail(name, ": has version ", header.version,
                 " of its format, this program knows version ", header.right_version);
  if (header.k == 0 || header.k > genome::longest_k ||
      header.partitions != genome::partitioning::count ||
      size != genome::records_begin + header.kmers * header.record_bytes)
    genome::fail(name, ": is truncated or damaged: ", size, " bytes for ", header.kmers, " k-mers");
  return header;
}

/// Throws if one of the files lacks k-mers that were seen `least` times: they are lost.
inline void require_counts(const std::vector<std::string>& names, std::uint32_t least) {
  for (const std::string& name : names)
    if (auto header = header_of(name); least < header.least_count)
      genome::fail("--min-count ", least, ": ", name, " holds only k-mers that were seen ",
                   header.least_count,
                   " times or more; count with a lower --min-count, or leave it "
                   "out here");
}

/// The length of k-mers, by the first line.
inline unsigned k_of_ufx(const std::string& name) {
  genome::text_source source(name);
  char begin[genome::longest_k + 1] = {};
  std::size_t got = source.read(begin, sizeof begin);
  const void* tab = std::memchr(begin, '\t', got);
  if (tab == nullptr || tab == begin)
    genome::fail(name, ": record 1: is not 'KMER tab two of ACGTFX'");
  return static_cast<unsigned>(static_cast<const char*>(tab) - begin);
}

}  // namespace graph

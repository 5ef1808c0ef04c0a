// What `contigs` was asked to do.
#pragma once

#include <common/genome/input_files.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Where k-mers come from.
enum class origin { reads, kmers, ufx_text, ufx_binary };

struct contig_job {
  origin from = origin::reads;
  unsigned k = 31;
  std::uint32_t least = 2;     ///< reads: how often a k-mer must be seen
  std::uint64_t shortest = 0;  ///< contigs of fewer bases are left out
  std::uint64_t memory = 0;    ///< reads: of all ranks together; 0: no limit
  bool in_store = false;       ///< the graph is in a far::store, not a far::hash_map
  bool collisions = false;     ///< how keys lie in it is counted
  std::string output{};
  std::vector<genome::input_file> files{};  ///< reads
  std::vector<std::string> names{};         ///< else
};

/// Collective. k <= 32 * Words.
template <unsigned Words>
void make_contigs(const contig_job& job);

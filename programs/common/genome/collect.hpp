// From files to the super-k-mers that each rank shall count: every rank reads its share.
#pragma once

#include "input_files.hpp"
#include "superkmers.hpp"

#include <cstdint>
#include <vector>

namespace genome {

struct collecting {
  unsigned k = 31;
  bool flanks = false;
  std::uint64_t memory = 0;  ///< bytes that a rank may use; 0: no limit
  unsigned first = 0, end = partitioning::count;
  unsigned passes = 1;
};

/// Collective: the super-k-mers of partitions [first, end) that this rank owns. `records` becomes
/// the number of sequences that this rank has read; `files` may change their kind, see
/// input_reader.
superkmer_store collect(std::vector<input_file>& files, const collecting& with,
                        std::uint64_t& records);

}  // namespace genome

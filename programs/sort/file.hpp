// A file as records, and the share of each rank.
#pragma once

#include <common/files.hpp>
#include <farside/core/runtime.hpp>
#include <sort/keys.hpp>

#include <cstdint>

namespace programs {

/// A key and where its record lies in the file: no two are equal, so neither are splitters, and
/// records with equal keys go to as many ranks as it takes, in their order.
struct place {
  std::uint64_t bits, position;
  friend auto operator<=>(const place&, const place&) = default;
};

/// The records [first, first + count) are this rank's to read.
struct share {
  std::uint64_t first, count, all;
};

inline share share_of(const input_file& file, const record_form& form) {
  std::uint64_t all = file.size() / form.size, ranks = far::nprocs(), me = far::rank();
  if (std::uint64_t rest = file.size() % form.size; rest != 0)
    refuse("sort", file.path(), ": its ", file.size(), " bytes are no whole number of records of ",
           form.size, "; ", rest, " are left over behind record ", all);
  // Without a product that might not fit.
  auto begin = [&](std::uint64_t rank) { return all / ranks * rank + std::min(all % ranks, rank); };
  return {begin(me), begin(me + 1) - begin(me), all};
}

}  // namespace programs

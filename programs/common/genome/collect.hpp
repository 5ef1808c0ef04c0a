// From files to the super-k-mers that each rank shall count: every rank reads its share.
#pragma once

#include "collector.hpp"
#include "input.hpp"
#include "progress.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace genome {

/// Collective: the super-k-mers of partitions [first, end) that this rank owns. `records` becomes
/// the number of sequences that this rank has read.
inline superkmer_store collect(const std::vector<input_file>& files, const collecting& with,
                               std::uint64_t& records) {
  collector all(with);
  std::uint64_t bytes = 0;
  for (const input_file& file : files) {
    if (file.kind != input_kind::fastq && file.kind != input_kind::fasta) {
      bytes = 0;
      break;
    }
    bytes += file.bytes / far::nprocs();
  }
  progress bar(bytes);
  input_reader reader(files, with.k);
  records = reader.read(
      [&](const char* bases, std::size_t n) { all.add(bases, n); },
      [&](std::uint64_t more, std::uint64_t so_far) {
        bar.add(more, so_far);
        all.receive();
        return !all.full();
      },
      [&] {
        all.finish();
        bar.finish();
        return all.full() ? far::detail::text("the k-mers of these files take more than the ",
                                              with.memory * far::nprocs() >> 20,
                                              " MiB that --memory allows; give more, or --passes ",
                                              2 * with.passes, " to read the files so often")
                          : std::string();
      });
  return all.take();
}

}  // namespace genome

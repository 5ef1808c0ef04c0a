// From files to the super-k-mers that each rank shall count: every rank reads its share, cuts it,
// and sends blocks to those who count their partitions.
#pragma once

#include "input.hpp"
#include "progress.hpp"
#include "superkmers.hpp"

#include <farside/algorithms/exchange.hpp>

#include <cstdint>
#include <span>
#include <string>
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
/// the number of sequences that this rank has read.
inline superkmer_store collect(const std::vector<input_file>& files, const collecting& with,
                               std::uint64_t& records) {
  superkmer_store store;
  bool full = false;
  far::exchange<superkmer_block> mail;
  auto keep = [&](const superkmer_block& block) {
    if (full) return;
    store.add(block);
    full = with.memory != 0 && store.bytes() > with.memory;
  };
  auto handle = [&](std::span<const superkmer_block> blocks) {
    for (const superkmer_block& block : blocks) keep(block);
  };
  superkmer_splitter splitter(partitioning(with.k), with.flanks, with.first, with.end,
                              [&](const superkmer_block& block) {
                                auto to = partitioning::owner(block.partition, far::nprocs());
                                if (to == far::rank())
                                  keep(block);
                                else
                                  mail.send(to, block, handle);
                              });
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
  records = reader.read([&](const char* bases, std::size_t n) { splitter.add(bases, n); },
                        [&](std::uint64_t more, std::uint64_t so_far) {
                          bar.add(more, so_far);
                          mail.receive(handle);
                          return !full;
                        },
                        [&] {
                          splitter.finish();
                          mail.finish(handle);
                          bar.finish();
                          return full ? far::detail::text(
                                            "the k-mers of these files take more than the ",
                                            with.memory * far::nprocs() >> 20,
                                            " MiB that --memory allows; give more, or --passes ",
                                            2 * with.passes, " to read the files so often")
                                      : std::string();
                        });
  return store;
}

}  // namespace genome

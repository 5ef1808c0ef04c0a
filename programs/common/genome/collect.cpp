#include "collect.hpp"
#include "collector.hpp"
#include "input.hpp"
#include "progress.hpp"

#include <string>

namespace genome {

namespace {

/// Of plain files; 0 if others are among them.
std::uint64_t bytes_to_read(const std::vector<input_file>& files) {
  std::uint64_t bytes = 0;
  for (const input_file& file : files) {
    if (file.kind != input_kind::fastq && file.kind != input_kind::fasta) return 0;
    bytes += file.bytes / far::nprocs();
  }
  return bytes;
}

}  // namespace

superkmer_store collect(std::vector<input_file>& files, const collecting& with,
                        std::uint64_t& records) {
  for (;;) {
    collector all(with.k, with.flanks, with.memory, with.first, with.end);
    progress bar(bytes_to_read(files));
    input_reader reader(files, with.k);
    auto add = [&](const char* bases, std::size_t n) { all.add(bases, n); };
    auto poll = [&](std::uint64_t more, std::uint64_t so_far) {
      bar.add(more, so_far);
      all.receive();
      return !all.full();
    };
    auto complete = [&] {
      all.finish();
      bar.finish();
      if (!all.full()) return std::string();
      return far::text("the k-mers of these files take more than the ",
                       with.memory * far::nprocs() >> 20,
                       " MiB that --memory allows; give more, or --passes ", 2 * with.passes,
                       " to read the files so often");
    };
    if (auto done = reader.read(add, poll, complete)) {
      records = *done;
      return all.take();
    }
  }
}

}  // namespace genome

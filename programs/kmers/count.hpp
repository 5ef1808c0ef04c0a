// Counting, written once for all lengths of k-mers; count_*.cpp make it for some.
#pragma once

#include <common/genome/collect.hpp>
#include <common/genome/histogram.hpp>
#include <common/genome/kmer_file.hpp>
#include <common/genome/output_file.hpp>
#include "job.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace counting {

/// The base that follows or precedes a k-mer, as UFX files have it: X if none was seen `least`
/// times, F if several were.
inline char extension_of(std::span<const std::uint16_t, 4> seen, std::uint32_t least) {
  char found = 'X';
  for (unsigned i = 0; i < 4; ++i)
    if (seen[i] >= least) found = found == 'X' ? "ACGT"[i] : 'F';
  return found;
}

/// The files that k-mers go to, a round at a time.
template <unsigned Words, bool Extended>
class writers {
 public:
  using entry = genome::counted<Words, Extended>;

  explicit writers(const count_job& job)
      : job_(job), shape_(job.k), records_(job.k), sizes_(genome::partitioning::count) {
    if (!job.histogram.empty()) histogram_.emplace(job.histogram);
    if (!job.tsv.empty()) tsv_.emplace(job.tsv);
    if (!job.ufx.empty()) ufx_.emplace(job.ufx);
    if (!job.output.empty()) output_.emplace(job.output);
  }
  bool wants_kmers() const { return tsv_ || ufx_ || output_; }

  void add(unsigned partition, const std::vector<entry>& entries) {
    sizes_[partition] = entries.size();
    for (const entry& e : entries) {
      total_ += e.count;
      if (output_) records_.append(output_bytes_, e);
      if (!tsv_ && !ufx_) continue;
      std::string kmer = shape_.text(e.key);
      if (tsv_) append(tsv_bytes_, kmer + "\t" + std::to_string(e.count) + "\n");
      if constexpr (Extended) {
        std::span<const std::uint16_t, 8> seen(e.extensions.seen);
        char before = extension_of(seen.template first<4>(), job_.least_extension);
        char after = extension_of(seen.template last<4>(), job_.least_extension);
        if (ufx_) append(ufx_bytes_, kmer + "\t" + before + after + "\n");
      }
    }
  }
  /// Collective: what all ranks have added since the last time is in the files.
  void end_round() {
    auto write = [](auto& file, std::uint64_t& at, std::vector<char>& bytes) {
      if (file) at = file->write_in_order(at, bytes);
      bytes.clear();
    };
    write(output_, output_at_, output_bytes_);
    write(tsv_, tsv_at_, tsv_bytes_);
    write(ufx_, ufx_at_, ufx_bytes_);
  }

  /// Collective: the files have their names.
  void finish(const genome::histogram& seen) {
    if (histogram_) {
      std::string text = far::rank() == 0 ? seen.text() : "";
      histogram_->write_in_order(0, text);
    }
    if (output_) write_header();
    for (auto* file : {&histogram_, &tsv_, &ufx_, &output_})
      if (*file) (*file)->publish();
  }

 private:
  static void append(std::vector<char>& to, const std::string& text) {
    to.insert(to.end(), text.begin(), text.end());
  }
  void write_header() {
    far::all_reduce(std::span(sizes_));
    genome::kmer_file_header header;
    header.k = job_.k;
    header.record_bytes = records_.bytes();
    header.flags = Extended ? 1 : 0;
    for (std::uint64_t n : sizes_) header.kmers += n;
    header.total = far::all_reduce(total_);
    header.least_count = job_.least;
    genome::on_first_rank([&] {
      output_->write_at(0, {reinterpret_cast<const char*>(&header), sizeof header});
      output_->write_at(sizeof header,
                        {reinterpret_cast<const char*>(sizes_.data()), 8 * sizes_.size()});
    });
  }

  const count_job& job_;
  genome::kmer_shape<Words> shape_;
  genome::kmer_records<Words, Extended> records_;
  std::optional<genome::output_file> histogram_, tsv_, ufx_, output_;
  std::vector<char> tsv_bytes_, ufx_bytes_, output_bytes_;
  std::uint64_t tsv_at_ = 0, ufx_at_ = 0, output_at_ = genome::records_begin;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t total_ = 0;
};

}  // namespace counting

template <unsigned Words, bool Extended>
void count_kmers(const count_job& job) {
  using genome::partitioning;
  counting::writers<Words, Extended> writers(job);
  genome::histogram seen(job.longest_histogram);
  std::uint64_t kept = 0, records = 0;
  double reading = 0, counting_time = 0;
  std::vector<genome::input_file> files = job.files;
  for (unsigned pass = 0; pass < job.passes; ++pass) {
    unsigned first_round = partitioning::rounds * pass / job.passes;
    unsigned end_round = partitioning::rounds * (pass + 1) / job.passes;
    genome::collecting with{.k = job.k,
                            .flanks = Extended,
                            .memory = job.memory / far::nprocs(),
                            .first = first_round * partitioning::a_round,
                            .end = end_round * partitioning::a_round,
                            .passes = job.passes};
    genome::superkmer_store store = [&] {
      timed until_here(reading);
      return genome::collect(files, with, records);
    }();
    genome::count_table<Words, Extended> table(job.k);
    for (unsigned round = first_round; round < end_round; ++round) {
      for (unsigned i = 0; i < partitioning::a_round; ++i) {
        unsigned partition = round * partitioning::a_round + i;
        if (partitioning::owner(partition, far::nprocs()) != far::rank()) continue;
        std::optional<timed> watch(counting_time);
        table.count(store, partition, job.bloom);
        table.for_each_count([&](std::uint32_t count) {
          if (job.bloom && count < 2) return;
          seen.add(count);
          kept += count >= job.least && count <= job.most;
        });
        watch.reset();
        if (writers.wants_kmers()) writers.add(partition, table.result(job.least, job.most, true));
      }
      if (writers.wants_kmers()) writers.end_round();
    }
  }
  seen.gather();
  writers.finish(seen);
  print_times(job, reading, counting_time);
  kept = far::all_reduce(kept);
  records = far::all_reduce(records);
  if (far::rank() != 0 || job.to_standard_output()) return;
  std::printf("sequences        %12" PRIu64 "\n", records);
  std::printf("k-mers           %12" PRIu64 "%s\n", seen.total(),
              job.bloom ? "  (without those seen once)" : "");
  std::printf("different        %12" PRIu64 "\n", seen.different());
  if (!job.bloom) std::printf("seen once        %12" PRIu64 "\n", seen.at(1));
  std::printf("kept             %12" PRIu64 "\n", kept);
}

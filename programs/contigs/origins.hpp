// k-mers of a graph from reads, from files of counted k-mers, and from UFX files of Meraculous.
#pragma once

#include <common/genome/collect.hpp>
#include <common/genome/kmer_file.hpp>
#include "job.hpp"
#include "kmer_files.hpp"
#include "nodes.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace graph {

/// Collective: what this rank has counted and found often enough.
template <unsigned Words>
node_list<Words> nodes_from_reads(const contig_job& job) {
  genome::collecting with{.k = job.k, .memory = job.memory / far::nprocs()};
  std::uint64_t records = 0;
  std::vector<genome::input_file> files = job.files;
  return counted_nodes<Words>(genome::collect(files, with, records), job.k, job.least);
}

/// A file of records of one size; reads those of this rank's share.
class record_file {
 public:
  record_file(const std::string& name, std::uint64_t begin, std::uint64_t record_bytes,
              std::uint64_t records)
      : name_(name), bytes_(record_bytes) {
    far::rank_t me = far::rank(), all = far::nprocs();
    first_ = records * me / all;
    left_ = records * (me + 1) / all - first_;
    source_.emplace(name, begin + first_ * record_bytes);
  }
  /// The next one, or nullptr; valid until the next call.
  const std::byte* next() {
    if (left_ == 0) return nullptr;
    if (at_ == end_) fill();
    const std::byte* result = buffer_.data() + at_;
    at_ += bytes_;
    --left_, ++first_;
    return result;
  }
  /// Number of the record that was returned last, from 1.
  std::uint64_t number() const { return first_; }

 private:
  void fill() {
    std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(left_, 4096) * bytes_);
    buffer_.resize(want + 64);  // whole words are read at the end of a record
    std::size_t got = 0;
    while (got < want) {
      std::size_t some = source_->read(reinterpret_cast<char*>(buffer_.data()) + got, want - got);
      if (some == 0) genome::fail(name_, ": record ", first_ + 1, ": the file is truncated");
      got += some;
    }
    at_ = 0, end_ = want;
  }

  std::string name_;
  std::uint64_t bytes_, first_ = 0, left_ = 0;
  std::optional<genome::text_source> source_;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0, end_ = 0;
};

/// Not collective: this rank's share of a file of counted k-mers.
template <unsigned Words>
node_list<Words> nodes_from_kmer_file(const contig_job& job) {
  node_list<Words> result;
  genome::kmer_shape<Words> shape(job.k);
  for (const std::string& name : job.names) {
    genome::kmer_file_header header = header_of(name);
    if (header.k != job.k) genome::fail(name, ": has k ", header.k, ", the first file ", job.k);
    record_file records(name, genome::records_begin, header.record_bytes, header.kmers);
    while (const std::byte* record = records.next()) {
      std::uint32_t count;
      std::memcpy(&count, record + shape.packed_bytes(), 4);
      if (count >= job.least)
        result.push_back({shape.unpack(record), with_count(none_looked_up, count)});
    }
  }
  return result;
}

/// A node of a k-mer, as it is written, and the bases around it, if both are known: others (F, X)
/// are in no contig.
template <unsigned Words>
void add_ufx(node_list<Words>& to, const genome::kmer_shape<Words>& shape, genome::kmer<Words> key,
             char before, char after, std::uint64_t count) {
  unsigned left = genome::code_of[static_cast<unsigned char>(before)];
  unsigned right = genome::code_of[static_cast<unsigned char>(after)];
  if (left > 3 || right > 3) return;
  genome::kmer<Words> reverse = shape.reverse(key);
  std::uint64_t facts = std::uint64_t{1} << right | std::uint64_t{16} << left;
  if (reverse < key) facts = std::uint64_t{1} << (3 - left) | std::uint64_t{16} << (3 - right);
  to.push_back({std::min(key, reverse), with_count(facts, count)});
}

inline bool is_extension(char c) { return c != '\0' && std::strchr("ACGTFX", c) != nullptr; }

/// Not collective: this rank's share of lines "KMER tab two bases", all of one length.
template <unsigned Words>
node_list<Words> nodes_from_ufx_text(const contig_job& job) {
  node_list<Words> result;
  genome::kmer_shape<Words> shape(job.k);
  for (const std::string& name : job.names) {
    std::uint64_t size = size_of_file(name), line = job.k + 4;
    if (size % line == line - 1) ++size;  // without a line's end at the end
    record_file records(name, 0, line, size / line);
    if (size % line != 0)
      genome::fail(name, ": its lines are not all 'KMER tab two bases' of k ", job.k);
    while (const std::byte* record = records.next()) {
      auto* text = reinterpret_cast<const char*>(record);
      genome::kmer<Words> key;
      bool good =
          text[job.k] == '\t' && is_extension(text[job.k + 1]) && is_extension(text[job.k + 2]);
      for (unsigned i = 0; i < job.k; ++i) {
        unsigned code = genome::code_of[static_cast<unsigned char>(text[i])];
        good = good && code < 4;
        shape.append(key, code & 3);
      }
      if (!good)
        genome::fail(name, ": record ", records.number(), ": is not 'KMER tab two of ACGTFX'");
      add_ufx(result, shape, key, text[job.k + 1], text[job.k + 2], 0);
    }
  }
  return result;
}

/// Not collective: this rank's share of binary records, as UFX writes them from memory:
/// 64-bit words of 32 bases each, the first base highest; int count; char before, after; padding;
/// int least and most counts before and after.
template <unsigned Words>
node_list<Words> nodes_from_ufx_binary(const contig_job& job) {
  node_list<Words> result;
  genome::kmer_shape<Words> shape(job.k);
  std::uint64_t words = (job.k + 31) / 32, bytes = (8 * words + 24 + 7) / 8 * 8;
  for (const std::string& name : job.names) {
    std::uint64_t size = size_of_file(name);
    if (size % bytes != 0)
      genome::fail(name, ": has ", size, " bytes, which are no whole records of ", bytes, " for k ",
                   job.k);
    record_file records(name, 0, bytes, size / bytes);
    while (const std::byte* record = records.next()) {
      genome::kmer<Words> key;
      for (std::uint64_t i = 0; i < words; ++i) std::memcpy(&key.words[i], record + 8 * i, 8);
      key.shift_right(2 * (genome::kmer<Words>::most - job.k));
      std::int32_t count;
      std::memcpy(&count, record + 8 * words, 4);
      char before = static_cast<char>(record[8 * words + 4]);
      char after = static_cast<char>(record[8 * words + 5]);
      if (!is_extension(before) || !is_extension(after) || count < 0)
        genome::fail(name, ": record ", records.number(), ": is no UFX record of k ", job.k);
      add_ufx(result, shape, key, before, after, static_cast<std::uint64_t>(count));
    }
  }
  return result;
}

}  // namespace graph

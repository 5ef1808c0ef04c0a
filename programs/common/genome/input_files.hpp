// The files that sequences come from, and what they are.
#pragma once

#include "text_source.hpp"

#include <sys/stat.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace genome {

/// whole: to be read from its beginning to its end, as it is compressed, or has FASTQ records of
/// more than four lines, which cannot be told apart from the middle.
enum class input_kind : std::uint8_t { empty, fastq, fasta, whole, stream };

struct input_file {
  std::string name;
  input_kind kind = input_kind::empty;
  std::uint64_t bytes = 0;
};

/// What a file is, by its first bytes. Throws if it cannot be read.
inline input_file look_at(const std::string& name) {
  struct stat found;
  if (name == "-") return {name, input_kind::stream, 0};
  if (stat(name.c_str(), &found) != 0) fail_with_errno(name, errno);
  if (S_ISDIR(found.st_mode)) fail(name, ": is a directory, not a file of sequences");
  if (access(name.c_str(), R_OK) != 0) fail_with_errno(name, errno);
  if (!S_ISREG(found.st_mode)) return {name, input_kind::stream, 0};
  auto bytes = static_cast<std::uint64_t>(found.st_size);
  if (bytes == 0) return {name, input_kind::empty, 0};
  text_source source(name);
  if (source.compressed()) return {name, input_kind::whole, bytes};
  char first = 0;
  source.read(&first, 1);
  if (first == '@') return {name, input_kind::fastq, bytes};
  if (first == '>') return {name, input_kind::fasta, bytes};
  fail(name, ": record 1: begins with neither '@' (FASTQ) nor '>' (FASTA)");
}

/// Collective.
inline std::vector<input_file> look_at_all(const std::vector<std::string>& names) {
  std::vector<std::pair<std::uint8_t, std::uint64_t>> kinds(names.size());
  on_first_rank([&] {
    for (std::size_t i = 0; i < names.size(); ++i) {
      input_file file = look_at(names[i]);
      kinds[i] = {static_cast<std::uint8_t>(file.kind), file.bytes};
    }
  });
  kinds = far::broadcast(kinds, 0);
  std::vector<input_file> files;
  for (std::size_t i = 0; i < names.size(); ++i)
    files.push_back({names[i], static_cast<input_kind>(kinds[i].first), kinds[i].second});
  return files;
}

}  // namespace genome

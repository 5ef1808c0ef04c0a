// Files that all ranks read and write together. What goes wrong is refused, with the file's name.
#pragma once

#include <common/big_array.hpp>
#include <common/draft.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace programs {

/// A regular file, opened by each rank for itself.
class input_file {
 public:
  /// `program` is the name that a refusal begins with.
  input_file(const char* program, std::string path);
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// All of `into`, from byte `offset` on.
  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  const char* program_;
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// A file that all ranks write; under its own name there is never half of it (draft.hpp). The name
/// - is standard output.
class output_file {
 public:
  /// Collective. Takes the space for `bytes`, as far as the file system knows how to.
  output_file(const char* program, std::string path, std::uint64_t bytes);

  /// One-sided.
  void write(std::uint64_t offset, std::span<const std::byte> from);
  /// Collective: gives it its name.
  void finish();

 private:
  std::string name() const { return is_standard_output(path_) ? "standard output" : path_; }

  const char* program_;
  std::string path_;
  draft draft_;
};

/// Collective: a file that rank 0 alone writes, of text that it has.
void write_whole(const char* program, const std::string& path, const std::string& text);

}  // namespace programs

// Files that all ranks read and write together. What goes wrong is refused, with the file's name.
#pragma once

#include <common/big_array.hpp>

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

/// Removes a file, unless told that it is wanted: at the end of its scope, and also when a signal
/// that can be caught ends the process. One at a time in a process is looked after that well.
class doomed_file {
 public:
  doomed_file() = default;
  doomed_file(const doomed_file&) = delete;
  doomed_file& operator=(const doomed_file&) = delete;
  ~doomed_file();
  void doom(std::string path);
  void spare();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A file that all ranks write. It has another name, in the same folder, until it is complete, so
/// under its own there is never half of it.
class output_file {
 public:
  /// Collective. Takes the space for `bytes`, as far as the file system knows how to.
  output_file(const char* program, std::string path, std::uint64_t bytes);
  ~output_file();

  /// One-sided.
  void write(std::uint64_t offset, std::span<const std::byte> from);
  /// Collective: gives it its name.
  void finish();

 private:
  std::string create(std::uint64_t bytes);

  const char* program_;
  std::string path_;  ///< what a link points to
  doomed_file temporary_;
  int file_ = -1;
};

}  // namespace programs

// Saving a hash map to a file and loading it, also on another number of ranks.
//
//   | magic | key bytes | value bytes | entries | blocks | index |  block 0 | block 1 | ... |
//   index: {offset, bytes, entries, checksum} of each block |
//
// Blocks hold serialized pairs. It is written under another name and renamed when all of it is on
// the disk.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/detail/hashing.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct file_header {
  std::uint64_t magic = 0x31'50'41'4d'52'41'46'0a;  // "\nFARMAP1"
  std::uint64_t key_bytes = 0;                      ///< zero: of variable length
  std::uint64_t value_bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t blocks = 0;
  std::uint64_t index = 0;
};

struct file_block {
  std::uint64_t offset, bytes, entries, checksum;
};

/// How many bytes a key or value takes in the file: zero if that varies.
template <class T>
inline constexpr std::uint64_t file_bytes = 0;
template <fixed_length T>
inline constexpr std::uint64_t file_bytes<T> = sizeof(typename fixed_form<T>::type);

/// A file that is closed at the end. Calls that fail leave a message in `problem`.
class open_file {
 public:
  open_file(const std::string& path, int flags)
      : path_(path), fd_(open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) fail("cannot open");
  }
  ~open_file() {
    if (fd_ >= 0) close(fd_);
  }
  open_file(const open_file&) = delete;

  void write_at(std::uint64_t offset, const void* from, std::size_t bytes) {
    auto* at = static_cast<const char*>(from);
    while (problem.empty() && bytes != 0) {
      ssize_t n = pwrite(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return fail("cannot write to");
      at += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
  }
  void read_at(std::uint64_t offset, void* to, std::size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (problem.empty() && bytes != 0) {
      ssize_t n = pread(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail("cannot read");
      if (n == 0) {
        problem = text(path_, " ends too early, after ", offset, " bytes: it was cut off");
        return;
      }
      at += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
  }
  void sync() {
    if (problem.empty() && fsync(fd_) != 0 && errno != EINVAL) fail("cannot write to");
  }
  std::uint64_t size() {
    struct stat status{};
    if (problem.empty() && fstat(fd_, &status) != 0) fail("cannot look at");
    return static_cast<std::uint64_t>(status.st_size);
  }
  void fail(const char* what) { problem = text(what, " ", path_, ": ", std::strerror(errno)); }

  std::string problem;

 private:
  std::string path_;
  int fd_;
};

/// Collective: throws on all members if one of them has a problem.
inline void agree(const team& over, const std::string& what, const std::string& problem) {
  if (all_reduce(problem.empty() ? 0 : 1, std::plus<>(), over) == 0) return;
  auto all = all_gather(problem, over);
  for (rank_t m = 0; m < all.size(); ++m)
    if (!all[m].empty())
      raise<error>(what, ": rank ", over.world_rank(m), " ", all[m],
                   ". No file of that name was changed.");
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

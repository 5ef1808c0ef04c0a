// Files that members of a team read or write together, and what becomes of failures.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/detail/file_size_limit.hpp>
#include <farside/core/draft.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace far::inline FARSIDE_BACKEND::detail {

/// What the index of a file says of a part of it.
struct file_block {
  std::uint64_t offset, bytes, entries, checksum;
};

/// A file that is open. Calls that fail leave a message in `problem`, and do nothing if there is
/// one already.
class open_file {
 public:
  /// For reading, closed at the end. Not to be waited for: somebody may mean a FIFO.
  explicit open_file(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), own_(true) {
    struct stat status{};
    if (fd_ < 0)
      fail("cannot open");
    else if (fstat(fd_, &status) != 0)
      fail("cannot look at");
    else if (!S_ISREG(status.st_mode))
      problem = "cannot read " + path + ": it is no regular file";
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  /// A draft of `path`, for writing.
  open_file(const std::string& path, int descriptor) : path_(path), fd_(descriptor) {}
  ~open_file() {
    if (own_ && fd_ >= 0) close(fd_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void write_at(std::uint64_t offset, const void* from, std::size_t bytes) {
    file_size_limit_as_error limit;
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
        problem =
            text(path_, " became shorter while it was read: it ends after ", offset, " bytes");
        return;
      }
      at += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
  }
  void sync() {
    if (problem.empty() && fsync(fd_) != 0 && errno != EINVAL) fail("cannot write to");
  }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return fd_; }
  const std::string& path() const { return path_; }
  void fail(const char* what) { problem = text(what, " ", path_, ": ", std::strerror(errno)); }

  std::string problem;

 private:
  std::string path_;
  int fd_;
  bool own_ = false;
  std::uint64_t size_ = 0;
};

/// Does what may fail on this member alone; returns why it did. The death of another rank is not
/// such a failure.
template <class Work>
std::string problem_of(Work work) {
  try {
    return work();
  } catch (const rank_failure&) {
    throw;
  } catch (const std::bad_alloc&) {
    return "has not enough memory";
  } catch (const std::exception& e) {
    std::string_view words = e.what();
    if (words.starts_with("farside: ")) words.remove_prefix(9);
    return std::string(words);
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// Collective: throws on all members if one of them has a problem. `state` says what has become of
/// things.
inline void agree(const team& over, const std::string& what, const std::string& problem,
                  const char* state) {
  std::string mine =
      problem.empty() ? "" : text("rank ", over.world_rank(over.rank()), ": ", problem);
  std::string first = first_problem(mine, over);
  if (!first.empty()) raise<error>(what, ": ", first, ". ", state);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

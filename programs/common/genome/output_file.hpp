// A file that all ranks write to, and that appears under its name only when it is whole.
//
//   made:       NAME.partial.PID exists and can be written, or it is told why not
//   write_at:   any rank, any place
//   publish:    on the disk, renamed to NAME
//   destroyed before that: removed
//
// A job that is killed leaves at most NAME.partial.PID behind, never half of NAME. What exists and
// is no file (/dev/null) is written to directly.
#pragma once

#include "failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace genome {

class output_file {
 public:
  /// Collective. The folder must be one that all ranks see.
  explicit output_file(const std::string& name) : name_(name) {
    partial_ = name + ".partial." + std::to_string(far::broadcast(static_cast<long>(getpid()), 0));
    struct stat found;
    if (far::broadcast(stat(name.c_str(), &found) == 0 && !S_ISREG(found.st_mode), 0))
      partial_ = name;
    on_first_rank([&] {
      if (access(name_.c_str(), W_OK) != 0 && errno != ENOENT)
        fail_with_errno("cannot write " + name_, errno);
      open(partial_ == name_ ? 0 : O_CREAT | O_TRUNC);
    });
    std::string reason = far::rank() == 0 ? "" : reason_of([&] { open(0); });
    try {
      agree(reason);
    } catch (...) {
      remove();
      throw;
    }
  }

  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file() {
    if (!published_) remove();
  }

  /// Not collective. Throws failure: the disk is full, ...
  void write_at(std::uint64_t place, std::span<const char> bytes) {
    while (!bytes.empty()) {
      ssize_t done = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(place));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail_with_errno("cannot write " + name_, done < 0 ? errno : ENOSPC);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      place += static_cast<std::uint64_t>(done);
    }
  }

  /// Collective: what every rank has to say, in their order, from `place` on. Returns where it
  /// ends.
  std::uint64_t write_in_order(std::uint64_t place, std::span<const char> mine) {
    auto before = far::exclusive_scan<std::uint64_t>(mine.size());
    auto all = far::all_reduce<std::uint64_t>(mine.size());
    together([&] { write_at(place + before, mine); });
    return place + all;
  }

  /// Collective: the file has its name, whole.
  void publish() {
    together([&] {
      int closed = close(descriptor_);
      descriptor_ = -1;
      if (closed != 0) fail_with_errno("cannot write " + name_, errno);
    });
    on_first_rank([&] {
      if (partial_ != name_ && rename(partial_.c_str(), name_.c_str()) != 0)
        fail_with_errno("cannot write " + name_, errno);
    });
    published_ = true;
  }

 private:
  void open(int how) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CLOEXEC | how, 0666);
    if (descriptor_ < 0) fail_with_errno("cannot write " + name_, errno);
  }
  void remove() {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = -1;
    if (far::rank() == 0 && partial_ != name_) unlink(partial_.c_str());
  }

  std::string name_;
  std::string partial_;
  int descriptor_ = -1;
  bool published_ = false;
};

}  // namespace genome

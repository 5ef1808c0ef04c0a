// A file that all ranks write to, and that appears under its name only when it is whole.
//
//   made:       it can be written, or it is told why not
//   write_at:   any rank, any place
//   publish:    it has its name
//   destroyed before that: it never was
//
// What exists and is no file (/dev/null) is written to directly. The name - is standard output.
#pragma once

#include <common/draft.hpp>
#include "failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace genome {

class output_file {
 public:
  /// Collective. The folder must be one that all ranks see.
  explicit output_file(const std::string& name)
      : name_(programs::is_standard_output(name) ? "standard output" : name) {
    struct stat found;
    bool file = programs::is_standard_output(name) || stat(name.c_str(), &found) != 0 ||
                S_ISREG(found.st_mode);
    device_ = !far::broadcast(file, 0);
    on_first_rank([&] {
      if (!programs::is_standard_output(name) && access(name.c_str(), W_OK) != 0 && errno != ENOENT)
        cannot_write(errno);
    });
    if (device_)
      together([&] {
        if ((descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CLOEXEC)) < 0) cannot_write(errno);
      });
    else if (std::string problem = draft_.create(name); !problem.empty())
      fail("cannot write ", name_, ": ", problem);
    else
      descriptor_ = draft_.descriptor();
  }

  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file() {
    if (device_ && descriptor_ >= 0) close(descriptor_);
  }

  /// Not collective. Throws failure: the disk is full, ...
  void write_at(std::uint64_t place, std::span<const char> bytes) {
    while (!bytes.empty()) {
      ssize_t done = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(place));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) cannot_write(done < 0 ? errno : ENOSPC);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      place += static_cast<std::uint64_t>(done);
    }
  }

  /// Collective: what every rank has to say, in their order, from `place` on. Returns where it
  /// ends.
  std::uint64_t write_in_order(std::uint64_t place, std::span<const char> mine) {
    auto before = far::exclusive_scan<std::uint64_t>(mine.size());
    auto all = far::all_reduce<std::uint64_t>(mine.size());
    together([&, this] { write_at(place + before, mine); });
    return place + all;
  }

  /// Collective: the file has its name, whole.
  void publish() {
    if (device_)
      together([&] {
        if (close(std::exchange(descriptor_, -1)) != 0) cannot_write(errno);
      });
    else if (std::string problem = draft_.publish(); !problem.empty())
      fail("cannot write ", name_, ": ", problem);
  }

 private:
  [[noreturn]] void cannot_write(int number) const {
    fail_with_errno("cannot write " + name_, number);
  }

  std::string name_;
  programs::draft draft_;
  bool device_ = false;
  int descriptor_ = -1;
};

}  // namespace genome

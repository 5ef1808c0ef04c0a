// The bytes of a file or of standard input, inflated if they are compressed by gzip (several
// members too, as bgzip and `cat a.gz b.gz` make them), and a window over them for scanners.
#pragma once

#include "failure.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace genome {

/// Throws failure, with text that does not name the file: its user knows the record, too.
class text_source {
 public:
  /// `name` "-" is standard input. `from`: the byte to begin with, in a file that is not
  /// compressed. `bytes`: how many the file had when it was looked at; fewer are an error.
  explicit text_source(const std::string& name, std::uint64_t from = 0, std::uint64_t bytes = 0)
      : descriptor_(name == "-" ? dup(0) : open(name.c_str(), O_RDONLY | O_CLOEXEC)),
        raw_(from == 0 ? raw_bytes : 0),
        position_(from),
        bytes_(bytes) {
    if (descriptor_ < 0) fail(std::strerror(errno));
    if (from != 0) {
      lseek(descriptor_, static_cast<off_t>(from), SEEK_SET);
      return;
    }
    while (raw_end_ < 2 && read_raw()) {
    }
    compressed_ = raw_end_ >= 2 && raw_[0] == 0x1f && raw_[1] == 0x8b;
    if (compressed_ && inflateInit2(&state_, 15 + 16) != Z_OK) fail("not enough memory to inflate");
  }
  text_source(const text_source&) = delete;
  text_source& operator=(const text_source&) = delete;
  ~text_source() {
    if (compressed_) inflateEnd(&state_);
    if (descriptor_ >= 0) close(descriptor_);
  }

  bool compressed() const { return compressed_; }

  /// At most `n` bytes; 0 at the end only.
  std::size_t read(char* to, std::size_t n) {
    if (compressed_) return inflate_some(to, n);
    if (raw_at_ < raw_end_) {
      std::size_t rest = std::min(n, raw_end_ - raw_at_);
      std::memcpy(to, raw_.data() + raw_at_, rest);
      raw_at_ += rest;
      return rest;
    }
    return read_descriptor(to, n);
  }

 private:
  static constexpr std::size_t raw_bytes = std::size_t{1} << 18;

  std::size_t read_descriptor(void* to, std::size_t n) {
    for (;;) {
      ssize_t done = ::read(descriptor_, to, n);
      if (done == 0 && position_ < bytes_)
        fail("the file ended at byte ", position_, " of ", bytes_,
             ": it became shorter while it was read");
      if (done >= 0) {
        position_ += static_cast<std::uint64_t>(done);
        return static_cast<std::size_t>(done);
      }
      if (errno != EINTR) fail("cannot be read: ", std::strerror(errno));
    }
  }
  /// Adds to the raw bytes; false at the end.
  bool read_raw() {
    if (raw_at_ == raw_end_) raw_at_ = raw_end_ = 0;
    std::size_t done = read_descriptor(raw_.data() + raw_end_, raw_.size() - raw_end_);
    raw_end_ += done;
    return done != 0;
  }

  std::size_t inflate_some(char* to, std::size_t n) {
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = static_cast<uInt>(std::min<std::size_t>(n, 1u << 30));
    auto room = state_.avail_out;
    while (state_.avail_out == room) {
      if (raw_at_ == raw_end_ && !read_raw()) {
        if (within_member_) fail("the compressed data ends too early: the file is truncated");
        return 0;
      }
      if (!within_member_) {
        // Zeros after the last member are padding, as tape archives have it.
        while (raw_at_ < raw_end_ && members_ > 0 && raw_[raw_at_] == 0) ++raw_at_;
        if (raw_at_ == raw_end_) continue;
        if (members_++ > 0) inflateReset(&state_);
        within_member_ = true;
      }
      state_.next_in = raw_.data() + raw_at_;
      state_.avail_in = static_cast<uInt>(raw_end_ - raw_at_);
      int result = inflate(&state_, Z_NO_FLUSH);
      raw_at_ = raw_end_ - state_.avail_in;
      if (result == Z_STREAM_END)
        within_member_ = false;
      else if (result != Z_OK && result != Z_BUF_ERROR)
        fail("the compressed data is damaged", state_.msg ? ": " : "",
             state_.msg ? state_.msg : "");
    }
    return room - state_.avail_out;
  }

  int descriptor_;
  std::vector<unsigned char> raw_;
  std::uint64_t position_, bytes_;  ///< in the file, as it is on the disk
  std::size_t raw_at_ = 0, raw_end_ = 0;
  bool compressed_ = false;
  bool within_member_ = false;
  std::uint64_t members_ = 0;
  z_stream state_{};
};

/// A window over a source that scanners look into and move on. It grows when what they look for is
/// longer.
class text_window {
 public:
  explicit text_window(text_source& source, std::uint64_t offset = 0)
      : source_(source), bytes_(first_size), offset_(offset) {}

  const char* begin() const { return bytes_.data() + at_; }
  const char* end() const { return bytes_.data() + end_; }
  std::size_t size() const { return end_ - at_; }
  /// Of begin(), in the source.
  std::uint64_t offset() const { return offset_; }

  void skip(std::size_t n) {
    at_ += n;
    offset_ += n;
  }
  /// Adds bytes at the end, and moves all to another place; false if the source has no more.
  bool more() {
    if (ended_) return false;
    if (at_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + at_, end_ - at_);
      end_ -= at_;
      at_ = 0;
    }
    if (end_ == bytes_.size()) bytes_.resize(2 * bytes_.size());
    std::size_t got = source_.read(bytes_.data() + end_, bytes_.size() - end_);
    end_ += got;
    ended_ = got == 0;
    return !ended_;
  }

 private:
  static constexpr std::size_t first_size = std::size_t{1} << 18;

  text_source& source_;
  std::vector<char> bytes_;
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t offset_;
  bool ended_ = false;
};

}  // namespace genome

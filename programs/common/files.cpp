#include <common/files.hpp>
#include <farside/core/collectives.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace programs {

input_file::input_file(const char* program, std::string path)
    : program_(program), path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) refuse(program_, path_, ": cannot be read: ", std::strerror(errno));
  struct stat info{};
  fstat(file_, &info);
  if (!S_ISREG(info.st_mode)) {
    close(file_);
    refuse(program_, path_, S_ISDIR(info.st_mode) ? ": is a directory" : ": is no regular file",
           "; ranks read their parts of a file side by side");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

input_file::~input_file() { close(file_); }

void input_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    ssize_t n = pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(program_, path_, ": cannot be read: ", std::strerror(errno));
    if (n == 0)
      refuse(program_, path_, ": ended at byte ", offset, " of ", size_,
             "; it became shorter while it was read");
    offset += static_cast<std::uint64_t>(n);
    into = into.subspan(static_cast<std::size_t>(n));
  }
}

namespace {

/// Takes the space, as far as the file system knows how to.
std::string no_room(int file, const std::string& path, std::uint64_t bytes) {
  if (bytes == 0 || fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0 ||
      (errno != ENOSPC && errno != EFBIG && errno != EDQUOT))
    return {};
  return path + ": there is no room for its " + std::to_string(bytes) +
         " bytes: " + std::strerror(errno);
}

}  // namespace

output_file::output_file(const char* program, std::string path, std::uint64_t bytes)
    : program_(program), path_(std::move(path)) {
  refuse_together(program_, far::rank() == 0 && !is_standard_output(path_)
                                ? far::objection_to_writing(path_)
                                : "");
  if (std::string problem = draft_.create(path_); !problem.empty())
    refuse(program_, name(), ": cannot be written: ", problem);
  refuse_together(program_, far::rank() == 0 ? no_room(draft_.descriptor(), name(), bytes) : "");
}

void output_file::write(std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    ssize_t n = pwrite(draft_.descriptor(), from.data(), from.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(program_, name(), ": cannot be written: ", std::strerror(errno));
    offset += static_cast<std::uint64_t>(n);
    from = from.subspan(static_cast<std::size_t>(n));
  }
}

void output_file::finish() {
  if (std::string problem = draft_.publish(); !problem.empty())
    refuse(program_, name(), ": cannot be written: ", problem);
}

void write_whole(const char* program, const std::string& path, const std::string& text) {
  output_file out(program, path, text.size());
  if (far::rank() == 0) out.write(0, std::as_bytes(std::span(text)));
  out.finish();
}

}  // namespace programs

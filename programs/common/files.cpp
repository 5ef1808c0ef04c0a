#include <common/files.hpp>
#include <farside/core/collectives.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
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

/// What a signal handler may look at: the name of a file to remove.
std::atomic<const char*> to_remove = nullptr;

constexpr int ending_signals[] = {SIGTERM, SIGINT, SIGHUP};
struct sigaction previous[std::size(ending_signals)];

/// Removes it, and leaves the rest to whoever was there before: OpenSHMEM has a handler, too.
void remove_and_end(int signal) {
  if (const char* path = to_remove.load()) unlink(path);
  for (std::size_t i = 0; i < std::size(ending_signals); ++i)
    if (ending_signals[i] == signal) sigaction(signal, &previous[i], nullptr);
  raise(signal);
}

/// Once a process; ranks may be threads of one.
void catch_signals() {
  for (std::size_t i = 0; i < std::size(ending_signals); ++i) {
    struct sigaction ours{};
    ours.sa_handler = remove_and_end;
    sigaction(ending_signals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN) sigaction(ending_signals[i], &ours, nullptr);
  }
  signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error like others
}

std::once_flag caught;

}  // namespace

doomed_file::~doomed_file() {
  if (path_.empty()) return;
  unlink(path_.c_str());
  spare();
}

void doomed_file::doom(std::string path) {
  path_ = std::move(path);
  const char* none = nullptr;
  to_remove.compare_exchange_strong(none, path_.c_str());
  std::call_once(caught, catch_signals);
}

void doomed_file::spare() {
  const char* mine = path_.c_str();
  to_remove.compare_exchange_strong(mine, nullptr);
  path_.clear();
}

namespace {

/// In the same folder, so that it can be renamed.
std::string temporary_beside(const std::string& path) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<std::uint64_t>(getpid());
  return path.substr(0, path.rfind('/') + 1) + ".farside-" + std::to_string(random) + ".part";
}

}  // namespace

output_file::output_file(const char* program, std::string path, std::uint64_t bytes)
    : program_(program), path_(std::move(path)) {
  std::error_code failed;
  if (auto target = std::filesystem::canonical(path_, failed); !failed) path_ = target.string();
  path_ = far::broadcast(path_, 0);
  temporary_.doom(far::broadcast(temporary_beside(path_), 0));
  far::barrier();  // whoever dies from now on, another rank removes it
  std::string problem = far::rank() == 0 ? create(bytes) : "";
  refuse_together(program_, problem);
  file_ = ::open(temporary_.path().c_str(), O_WRONLY | O_CLOEXEC);
  if (file_ < 0) refuse(program_, path_, ": cannot be written: ", std::strerror(errno));
}

output_file::~output_file() {
  if (file_ >= 0) close(file_);
}

/// Rank 0's part; what is wrong, if anything.
std::string output_file::create(std::uint64_t bytes) {
  struct stat info{};
  if (stat(path_.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return path_ + ": is a directory; name a file in it";
    if (!S_ISREG(info.st_mode))
      return path_ + ": is no regular file; ranks write their parts of a file side by side";
    if (access(path_.c_str(), W_OK) != 0)
      return path_ + ": cannot be replaced: " + std::strerror(errno);
  }
  int file = ::open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return path_ + ": cannot be written: " + std::strerror(errno);
  int reason = 0;
  if (bytes > 0 && fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
    reason = errno;
  close(file);
  return reason == 0 ? ""
                     : path_ + ": there is no room for its " + std::to_string(bytes) +
                           " bytes: " + std::strerror(reason);
}

void output_file::write(std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    ssize_t n = pwrite(file_, from.data(), from.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(program_, path_, ": cannot be written: ", std::strerror(errno));
    offset += static_cast<std::uint64_t>(n);
    from = from.subspan(static_cast<std::size_t>(n));
  }
}

void output_file::finish() {
  std::string problem;
  if (close(std::exchange(file_, -1)) != 0)
    problem = path_ + ": cannot be written: " + std::strerror(errno);
  refuse_together(program_, problem);
  if (far::rank() == 0 && rename(temporary_.path().c_str(), path_.c_str()) != 0)
    problem = path_ + ": cannot get its name: " + std::strerror(errno);
  refuse_together(program_, problem);
  temporary_.spare();
}

}  // namespace programs

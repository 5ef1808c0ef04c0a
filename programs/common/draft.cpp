#include <common/draft.hpp>

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace programs {

namespace {

/// What a signal handler may look at: names of files to remove.
std::array<std::atomic<const char*>, 8> to_remove{};

constexpr int ending_signals[] = {SIGTERM, SIGINT, SIGHUP};
struct sigaction previous[std::size(ending_signals)];

/// Removes them, and leaves the rest to whoever was there before: OpenSHMEM has a handler, too.
void remove_and_end(int signal) {
  for (auto& one : to_remove)
    if (const char* path = one.load()) unlink(path);
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
}

std::once_flag caught, limits_ignored;

}  // namespace

doomed_file::~doomed_file() {
  if (path_.empty()) return;
  unlink(path_.c_str());
  spare();
}

void doomed_file::doom(std::string path) {
  path_ = std::move(path);
  for (auto& one : to_remove) {
    const char* none = nullptr;
    if (one.compare_exchange_strong(none, path_.c_str())) break;
  }
  std::call_once(caught, catch_signals);
}

void doomed_file::spare() {
  for (auto& one : to_remove) {
    const char* mine = path_.c_str();
    one.compare_exchange_strong(mine, nullptr);
  }
  path_.clear();
}

std::string draft::create(const std::string& path) {
  // A limit on the size of files is an error like others.
  std::call_once(limits_ignored, [] { signal(SIGXFSZ, SIG_IGN); });
  auto doom = [this](const std::string& name) { doomed_.doom(name); };
  if (!is_standard_output(path)) return file_.create(path, doom);
  standard_output_ = true;
  std::error_code none;
  auto folder = far::broadcast(std::filesystem::temp_directory_path(none).string(), 0);
  std::string problem = file_.create(folder + "/farside-output", doom);
  if (problem.empty()) return {};
  return problem + ", in " + folder +
         ". Ranks gather there what goes to standard output; let TMPDIR name a folder that all "
         "hosts see, or write to a file";
}

std::string draft::copy_to_standard_output() const {
  std::vector<char> some(std::size_t{1} << 18);
  for (off_t at = 0;;) {
    ssize_t got = pread(file_.descriptor(), some.data(), some.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return {};
    at += got;
    for (const char* from = some.data(); got > 0;) {
      ssize_t put = ::write(STDOUT_FILENO, from, static_cast<std::size_t>(got));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return std::strerror(errno);
      from += put;
      got -= put;
    }
  }
}

std::string draft::publish() {
  if (standard_output_) {
    far::barrier();  // all have written
    return far::first_problem(far::rank() == 0 ? copy_to_standard_output() : "", far::world());
  }
  std::string problem = file_.publish();
  if (problem.empty()) doomed_.spare();
  return problem;
}

}  // namespace programs

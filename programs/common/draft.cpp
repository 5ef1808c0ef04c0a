#include <common/draft.hpp>
#include <common/refuse.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <utility>

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

/// How other ranks find an unnamed file, and know that it is the one: on another machine the same
/// process and descriptor may be anything.
struct invitation {
  std::int64_t process = 0;
  int descriptor = -1;
  std::array<std::uint64_t, 2> token{};
};

std::uint64_t random_number() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random)
    random = static_cast<std::uint64_t>(getpid());
  return random;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string link_of(std::int64_t process, int descriptor) {
  return "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
}

/// Gives an unnamed file a name.
bool name_it(int file, const std::string& name) {
  return linkat(AT_FDCWD, link_of(getpid(), file).c_str(), AT_FDCWD, name.c_str(),
                AT_SYMLINK_FOLLOW) == 0;
}

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

draft::~draft() {
  if (file_ >= 0) close(file_);
}

std::string draft::create(const std::string& path) {
  // A limit on the size of files is an error like others.
  std::call_once(limits_ignored, [] { signal(SIGXFSZ, SIG_IGN); });
  std::error_code failed;
  auto target = std::filesystem::canonical(path, failed);
  path_ = far::broadcast(failed ? path : target.string(), 0);
  temporary_ =
      far::broadcast(folder_of(path_) + ".farside-" + std::to_string(random_number()) + ".part", 0);
  if (open_unnamed()) return {};
  named_ = true;
  doomed_.doom(temporary_);
  far::barrier();  // whoever dies from now on, another rank removes it
  std::string problem = far::rank() == 0 ? open_named(O_CREAT | O_EXCL) : "";
  problem = first_problem(problem);
  if (!problem.empty()) return problem;
  return first_problem(far::rank() == 0 ? "" : open_named(0));
}

/// Rank 0's part; -1 if that cannot be done here. Another one shows whether it can be named later.
int draft::make_unnamed() const {
  std::string folder = folder_of(path_);
  if (folder.empty()) folder = ".";
  auto make = [&] { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666); };
  int probe = make();
  if (probe < 0) return -1;
  bool can_be_named = name_it(probe, temporary_);
  if (can_be_named) unlink(temporary_.c_str());
  close(probe);
  return can_be_named ? make() : -1;
}

/// Collective: whether all ranks have it open.
bool draft::open_unnamed() {
  invitation to;
  if (far::rank() == 0 && (file_ = make_unnamed()) >= 0) {
    to = {getpid(), file_, {random_number(), random_number()}};
    if (pwrite(file_, to.token.data(), sizeof to.token, 0) != sizeof to.token) to.descriptor = -1;
  }
  to = far::broadcast(to, 0);
  bool mine = to.descriptor >= 0;
  if (mine && far::rank() != 0) {
    file_ = ::open(link_of(to.process, to.descriptor).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    auto token = to.token;
    token.fill(0);
    mine = file_ >= 0 && pread(file_, token.data(), sizeof token, 0) == sizeof token &&
           token == to.token;
  }
  bool all = far::all_reduce(mine ? 1 : 0, far::minimum{}) == 1;
  if (all && far::rank() == 0) all = ftruncate(file_, 0) == 0;
  all = far::broadcast(all, 0);
  if (!all && file_ >= 0) close(std::exchange(file_, -1));
  return all;
}

std::string draft::open_named(int how) {
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC | how, 0666);
  return file_ >= 0 ? "" : std::strerror(errno);
}

std::string draft::publish() {
  bool first = far::rank() == 0;
  std::string problem;
  // What a network's file system could not write it may tell when the file is closed.
  if ((!first || named_) && close(std::exchange(file_, -1)) != 0) problem = std::strerror(errno);
  problem = first_problem(problem);
  if (!problem.empty()) return problem;
  if (first) {
    bool there = named_ || name_it(file_, temporary_);
    if (!there || rename(temporary_.c_str(), path_.c_str()) != 0) {
      problem = std::strerror(errno);
      unlink(temporary_.c_str());
    }
  }
  problem = first_problem(problem);
  if (problem.empty()) doomed_.spare();
  return problem;
}

}  // namespace programs

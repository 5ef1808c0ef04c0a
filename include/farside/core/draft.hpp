// far::draft: a file that all members of a team write, and that gets its name when it is whole.
//
//   far::draft file(far::world());
//   std::string problem = file.create("result.bin");          // collective
//   ... each rank writes its part: pwrite(file.descriptor(), ...) ...
//   if (problem.empty()) problem = file.publish();            // collective
//
//   create    unnamed --------------------------------------------- publish --> has its name
//        \    (O_TMPFILE: member 0 makes it, others open it by /proc)      /
//         \-> named .farside-*.part, in the same folder ------------------/
//             (where the file system, or members on several machines, do not allow the other)
//
// Until then nobody sees it under its own name, and what was there before stays. Two jobs may write
// one file at the same time: it becomes the one or the other. An unnamed draft is gone with the
// last process that has it open, however that ends. A named one has a name that nobody
// else has, and is removed by each member that ends before it is published; only a job of which no
// process lives to do that leaves it behind.
//
//   far::draft file(far::world());
//   std::string problem = file.create("result.dat");
//   if (problem.empty()) problem = far::first_problem(write_my_part(file.descriptor()), far::world());
//   if (problem.empty()) problem = file.publish();
//   if (!problem.empty()) throw far::refusal("result.dat: " + problem);
#pragma once

#include <farside/core/collectives.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// Collective: the words of the first member that has any, on all of them. Costs an all_reduce, and
/// a broadcast if there is a problem.
inline std::string first_problem(const std::string& problem, const team& over) {
  rank_t none = over.size();
  rank_t first = all_reduce(problem.empty() ? none : over.rank(), minimum{}, over);
  return first == none ? std::string() : broadcast(problem, first, over);
}

/// What is wrong with a name for a file that members write together, if it exists. Local; no
/// communication.
inline std::string objection_to_writing(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return {};
  if (S_ISDIR(info.st_mode)) return path + ": is a directory; name a file in it";
  if (!S_ISREG(info.st_mode))
    return path + ": is no regular file; ranks write their parts of a file side by side";
  if (::access(path.c_str(), W_OK) != 0)
    return path + ": cannot be replaced: " + std::strerror(errno);
  return {};
}

/// Its constructor and destructor are local; the destructor drops a draft that was not published.
class draft {
 public:
  /// `unnamed` false: as where no file can be without a name. Local; no communication.
  explicit draft(team over, bool unnamed = true)
      : members_(std::move(over)), may_be_unnamed_(unnamed) {}
  draft(const draft&) = delete;
  draft& operator=(const draft&) = delete;
  ~draft() {
    if (file_ >= 0) close(file_);
    if (named_) unlink(temporary_.c_str());
  }

  /// Collective. Returns why it cannot be, on all members alike, or nothing. A link is followed.
  /// `prepare(name)` is called on all members before there is a named draft. Costs some broadcasts
  /// and all_reduces.
  template <class Prepare>
  std::string create(const std::string& path, Prepare prepare) {
    std::error_code failed;
    auto target = std::filesystem::canonical(path, failed);
    path_ = broadcast(failed ? path : target.string(), 0, members_);
    // To give a draft the name of a device would replace the device.
    if (std::string wrong = broadcast(members_.rank() == 0 ? kind_objection() : "", 0, members_);
        !wrong.empty())
      return wrong;
    temporary_ =
        broadcast(folder() + ".farside-" + std::to_string(random_number()) + ".part", 0, members_);
    if (may_be_unnamed_ && open_unnamed()) return {};
    prepare(temporary_);
    barrier(members_);  // if a member dies from now on, another one removes it
    named_ = true;
    bool first = members_.rank() == 0;
    std::string problem = first_problem(first ? open_named(O_CREAT | O_EXCL) : "", members_);
    if (!problem.empty()) return problem;
    return first_problem(first ? "" : open_named(0), members_);
  }
  std::string create(const std::string& path) {
    return create(path, [](const std::string&) {});
  }

  /// This member's; -1 before create() and after publish(). Local; no communication.
  int descriptor() const { return file_; }

  /// Collective. Returns why it could not get its name, on all members alike, or nothing. Costs 3
  /// all_reduces.
  std::string publish() {
    bool first = members_.rank() == 0;
    std::string problem;
    // What a network's file system could not write it may tell when the file is closed.
    if ((!first || named_) && close(std::exchange(file_, -1)) != 0) problem = std::strerror(errno);
    problem = first_problem(problem, members_);
    if (!problem.empty()) return problem;
    if (first) {
      bool there = named_ || name_it(file_);
      if (!there || rename(temporary_.c_str(), path_.c_str()) != 0) {
        problem = std::strerror(errno);
        unlink(temporary_.c_str());
      }
    }
    problem = first_problem(problem, members_);
    if (problem.empty()) named_ = false;
    return problem;
  }

 private:
  std::string kind_objection() const {
    struct stat info{};
    if (stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
    return S_ISDIR(info.st_mode)
               ? "is a directory; name a file in it"
               : "is no regular file; ranks write their parts of a file side by side";
  }

  /// How other members find an unnamed file, and know that it is the one: on another machine the
  /// same process and descriptor may be anything.
  struct invitation {
    std::int64_t process = 0;
    int descriptor = -1;
    std::array<std::uint64_t, 2> token{};
  };

  static std::uint64_t random_number() {
    std::uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
      random = static_cast<std::uint64_t>(getpid());
    return random;
  }
  static std::string link_of(std::int64_t process, int descriptor) {
    return "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  }

  std::string folder() const { return path_.substr(0, path_.rfind('/') + 1); }

  /// Gives an unnamed file the temporary name.
  bool name_it(int file) const {
    return linkat(AT_FDCWD, link_of(getpid(), file).c_str(), AT_FDCWD, temporary_.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
  }

  /// Member 0's part; -1 if that cannot be done here. Another one shows whether it can be named
  /// later.
  int make_unnamed() const {
    std::string in = folder().empty() ? "." : folder();
    auto make = [&] { return ::open(in.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666); };
    int probe = make();
    if (probe < 0) return -1;
    bool can_be_named = name_it(probe);
    if (can_be_named) unlink(temporary_.c_str());
    close(probe);
    return can_be_named ? make() : -1;
  }

  /// Collective: whether all members have it open.
  bool open_unnamed() {
    invitation to;
    bool first = members_.rank() == 0;
    if (first && (file_ = make_unnamed()) >= 0) {
      to = {getpid(), file_, {random_number(), random_number()}};
      if (pwrite(file_, to.token.data(), sizeof to.token, 0) != sizeof to.token) to.descriptor = -1;
    }
    to = broadcast(to, 0, members_);
    bool mine = to.descriptor >= 0;
    if (mine && !first) {
      file_ = ::open(link_of(to.process, to.descriptor).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
      auto token = to.token;
      token.fill(0);
      mine = file_ >= 0 && pread(file_, token.data(), sizeof token, 0) == sizeof token &&
             token == to.token;
    }
    bool all = all_reduce(mine ? 1 : 0, minimum{}, members_) == 1;
    if (all && first) all = ftruncate(file_, 0) == 0;
    all = broadcast(all, 0, members_);
    if (!all && file_ >= 0) close(std::exchange(file_, -1));
    return all;
  }

  std::string open_named(int how) {
    file_ = ::open(temporary_.c_str(), O_RDWR | O_CLOEXEC | how, 0666);
    return file_ >= 0 ? "" : std::strerror(errno);
  }

  team members_;
  bool may_be_unnamed_;
  std::string path_;       ///< its own name
  std::string temporary_;  ///< another one, in the same folder
  bool named_ = false;     ///< there may be a file of the temporary name
  int file_ = -1;
};

}  // namespace far::inline FARSIDE_BACKEND

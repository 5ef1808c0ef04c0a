// The descriptors 0, 1 and 2 of a rank, and whether what it printed has been written.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/environment.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

/// Why a write past stdio has failed; zero if none has.
inline std::atomic<int> output_lost_by{0};

/// At the program's exit. A rank that ends well although its output is lost would be taken for one
/// that has done its work.
inline void check_output(int status, void*) {
  errno = 0;
  bool written = !std::cout.flush().bad() && std::fflush(stdout) == 0;
  int reason = errno;
  if (output_lost_by != 0) reason = output_lost_by;
  if (written && std::ferror(stdout) == 0 && output_lost_by == 0) return;
  std::fprintf(
      stderr,
      "what this program printed could not be written to standard output%s%s; some of it is lost\n",
      reason != 0 ? ": " : "", reason != 0 ? std::strerror(reason) : "");
  if (status == 0) _exit(1);
}

/// `farside run` has preloaded its guard (farside_guard.so) into this process. What the process
/// starts shall not inherit it: that may be a job of its own.
inline void leave_guard() {
  if (std::getenv("FARSIDE_GUARD") == nullptr) return;
  std::string rest, list = setting("LD_PRELOAD").value_or("");
  for (std::size_t begin = 0; begin < list.size();) {
    std::size_t end = std::min(list.find_first_of(" :", begin), list.size());
    std::string name = list.substr(begin, end - begin);
    if (!name.empty() && name.find("farside_guard.so") == std::string::npos)
      rest += (rest.empty() ? "" : ":") + name;
    begin = end + 1;
  }
  if (rest.empty())
    unsetenv("LD_PRELOAD");
  else
    setenv("LD_PRELOAD", rest.c_str(), 1);
  unsetenv("FARSIDE_GUARD");
}

/// Once in a process, before it opens anything. Where a shell has closed one of the three (`program
/// >&-`), the shared memory would get its number, and what the program prints would be written
/// there.
inline void keep_standard_streams() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (int wanted = 0; wanted <= 2; ++wanted) {
      if (fcntl(wanted, F_GETFD) >= 0) continue;
      int fd = open("/dev/null", O_RDONLY);  // so that writes fail, as they would have done
      if (fd >= 0 && fd != wanted) dup2(fd, wanted), close(fd);
    }
    on_exit(check_output, nullptr);
    leave_guard();
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail

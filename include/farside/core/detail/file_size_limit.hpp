// Files and RLIMIT_FSIZE.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <signal.h>

#include <ctime>

namespace far::inline FARSIDE_BACKEND::detail {

/// While it lives, a file that would become larger than RLIMIT_FSIZE makes write fail with EFBIG in
/// this thread, and does not end the process by SIGXFSZ.
class file_size_limit_as_error {
 public:
  file_size_limit_as_error() {
    sigemptyset(&limit_);
    sigaddset(&limit_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &limit_, &before_);
  }
  file_size_limit_as_error(const file_size_limit_as_error&) = delete;
  file_size_limit_as_error& operator=(const file_size_limit_as_error&) = delete;
  ~file_size_limit_as_error() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;
    timespec at_once{};
    while (sigtimedwait(&limit_, nullptr, &at_once) == SIGXFSZ) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t limit_, before_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

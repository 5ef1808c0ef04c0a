// A put stores each word once: whoever sees a word may change it by an atomic, and a second store
// would undo that. No race shows it often enough, so a child process makes the put, and its parent
// lets it run instruction by instruction and watches the words.
#include "harness.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <numeric>
#include <optional>

namespace stores_tests {

namespace {

using word = std::uint64_t;

// What a sanitizer does at each access would be stepped through.
#if defined(FARSIDE_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr bool can_step = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool can_step = false;
#else
constexpr bool can_step = true;
#endif
#else
constexpr bool can_step = true;
#endif

/// What has become of the child since it was let run.
int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return status;
}

/// How often each of the words at `shared` became that of `fresh` while a child ran `work`. Nothing
/// where no process may watch another so.
template <class Work>
std::optional<std::vector<int>> count_stores(volatile word* shared, const std::vector<word>& fresh,
                                             Work work) {
  pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    work();
    _exit(0);
  }
  if (child < 0 || !WIFSTOPPED(status_of(child))) return std::nullopt;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
  std::vector<int> stores(fresh.size());
  for (int steps = 0; steps < 200'000; ++steps) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    int status = status_of(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return stores;
    if (!WIFSTOPPED(status)) return std::nullopt;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (shared[i] != fresh[i]) continue;
      ++stores[i];
      shared[i] = 0;
    }
  }
  kill(child, SIGKILL);
  status_of(child);
  return std::nullopt;
}

/// The longest is beyond what goes by pairs of words on x86-64.
constexpr std::size_t lengths[] = {1,  2,  3,  4,  5,  6,  7,  9,   11,  12,
                                   13, 15, 17, 23, 31, 33, 63, 100, 128, 130};
constexpr std::size_t room = 136;

}  // namespace

FAR_TEST(each_word_is_stored_once) {
  const far::rank_t next = (far::rank() + 1) % far::nprocs();
  auto all = far_test::objects_on_each_rank<word>(room, word{0});
  auto* shared =
      static_cast<word*>(far::detail::here().link.address(all[next].rank(), all[next].offset()));
  bool watches = can_step && far::rank() == 0 && far::detail::here().link.coherent();
  word number = 1000;  // none that is there already
  for (std::size_t n : lengths) {
    // Either side on an odd word or an even one, and with some bytes behind the last word.
    for (unsigned how = 0; how < 8; ++how) {
      if (n > 7 && how != n % 8) continue;
      const std::size_t at = how & 1, from = how >> 1 & 1, more = how & 4 ? 3 : 0;
      alignas(16) word source[room];
      std::iota(source, source + room, number += room);
      const std::vector<word> words(source + from, source + from + n);
      auto to = far::pointer_cast<std::byte>(all[next] + static_cast<std::ptrdiff_t>(at));
      auto put = [&] {
        far::put(to, reinterpret_cast<const std::byte*>(source + from), n * 8 + more);
      };
      if (watches) {
        if (auto stores = count_stores(shared + at, words, put)) {
          CHECK(*stores == std::vector<int>(n, 1));
        } else {
          std::printf("each_word_is_stored_once: no process can watch another here\n");
          watches = false;
        }
      }
      // All of it, be it watched or not.
      put();
      far::flush();
      std::vector<word> seen(n);
      far::get(all[next] + static_cast<std::ptrdiff_t>(at), seen.data(), n);
      CHECK(seen == words);
    }
  }
  far_test::release(all);
}

}  // namespace stores_tests

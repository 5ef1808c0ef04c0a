// A put stores each word once: whoever sees a word may change it by an atomic, and a second store
// would undo that. No race shows it often enough, so a child process makes the put, and its parent
// lets it run instruction by instruction and watches the words.
#include "harness.hpp"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <optional>

namespace stores_tests {

namespace {

using word = std::uint64_t;

#if defined(FARSIDE_TSAN) || defined(__SANITIZE_ADDRESS__)
constexpr bool can_step = false;  // what a sanitizer does at each access would be stepped through
#else
constexpr bool can_step = true;
#endif

/// Whether `child` stopped, instead of ending.
bool stopped(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSTOPPED(status);
}

/// How often each of the words at `shared` became that of `fresh` while a child ran `work`. Nothing
/// where no process may watch another.
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
  if (child < 0 || !stopped(child)) return std::nullopt;
  std::vector<int> stores(fresh.size());
  for (int steps = 0; steps < 200'000; ++steps) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || !stopped(child)) return stores;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (shared[i] != fresh[i]) continue;
      ++stores[i];
      shared[i] = 0;
    }
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return std::nullopt;
}

}  // namespace

FAR_TEST(each_word_is_stored_once) {
  const far::rank_t next = (far::rank() + 1) % far::nprocs();
  auto mine = far_test::objects_on_each_rank<word>(128, word{0});
  auto* shared =
      static_cast<word*>(far::detail::here().link.address(mine[next].rank(), mine[next].offset()));
  const bool watches = can_step && far::rank() == 0 && far::detail::here().link.coherent();
  for (std::size_t n : {1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 15, 17, 23, 31, 33, 63, 100, 128}) {
    std::vector<word> words(n);
    std::iota(words.begin(), words.end(), 1000 * n);  // none that is there already
    auto put = [&] { far::put(mine[next], words.data(), n); };
    if (watches) {
      auto stores = count_stores(shared, words, put);
      if (!stores) {
        std::printf("each_word_is_stored_once: no process may watch another here\n");
        break;
      }
      CHECK(*stores == std::vector<int>(n, 1));
    }
    // All of it, be it watched or not.
    put();
    far::flush();
    std::vector<word> seen(n);
    far::get(mine[next], seen.data(), n);
    CHECK(seen == words);
  }
  far_test::release(mine);
}

}  // namespace stores_tests

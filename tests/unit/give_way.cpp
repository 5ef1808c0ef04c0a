// Waits sleep for a while when yields take long, and then try yields again.
#include <farside/base/give_way.hpp>

#include <chrono>
#include <thread>

#include "check.hpp"

namespace {

int yields = 0;
std::chrono::milliseconds each{0};

}  // namespace

// Instead of the C library's: as if other threads had the core for so long.
extern "C" int sched_yield() noexcept {
  ++yields;
  if (each.count() != 0) std::this_thread::sleep_for(each);
  return 0;
}

int main() {
  using clock = std::chrono::steady_clock;
  for (int i = 0; i < 100; ++i) far::detail::yield_if_quick();
  CHECK(yields >= 1);  // all 100, unless one was interrupted for a millisecond

  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  each = std::chrono::milliseconds(20), yields = 0;
  CHECK(far::detail::yield_if_quick());
  const auto begin = clock::now();
  int slept = 0;
  while (yields == 1) far::detail::give_way(), ++slept;
  CHECK(slept > 1);
  CHECK(clock::now() - begin > 5 * each);
  CHECK(!far::detail::yield_if_quick());
  CHECK(yields == 2);
  return verdict("give_way");
}

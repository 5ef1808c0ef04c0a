// How jobs end that send messages: message_ends CASE. message_ends_test.sh runs the cases.
#include <farside/containers/hash_map.hpp>
#include <farside/core/rpc.hpp>
#include <farside/farside.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

/// From rank to rank, long after all of them have come to the end of their main.
void pass(int left) {
  if (left > 0)
    far::rpc_ff((far::rank() + 1) % far::nprocs(), pass, left - 1);
  else
    std::printf("the last message is on rank %u\n", far::rank());
}

/// Until nothing is left of this rank's segment.
void fill_segment() {
  for (std::size_t bytes = std::size_t{1} << 30; bytes >= 16; bytes /= 2) try {
      while (true) far::alloc<std::byte>(bytes);
    } catch (const far::allocation_error&) {
    }
}

/// Operations by messages for which there is no room are done one-sided.
void no_room() {
  far::hash_map<int, int> map(1000, {.engine = far::engine::rpc});
  fill_segment();
  far::barrier();
  for (int key = 0; key < 100; ++key) map.accumulate(key, 1);
  far::barrier();
  int right = 0;
  for (int key = 0; key < 100; ++key) right += map.find(key) == static_cast<int>(far::nprocs());
  far::barrier();
  std::printf("%d right, %d messages\n", right, static_cast<int>(map.engine_use().messages));
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** arguments) {
    std::string what = count > 1 ? arguments[1] : "";
    if (what == "end") {  // the end of the runtime waits for messages
      if (far::rank() == 0) pass(100);
    } else if (what == "throw") {
      if (far::rank() == 0)
        far::rpc_ff(1, [](int x) { throw std::runtime_error("no " + std::to_string(x)); }, 42);
      far::quiesce();
    } else if (what == "error") {  // one that nobody catches
      if (far::rank() == 0) far::rpc(1, [] { throw std::runtime_error("no good"); }).get();
      far::quiesce();
    } else if (what == "no_room") {
      no_room();
    } else {
      far::rpc((far::rank() + 1) % far::nprocs(), [] {}).get();
    }
  });
}

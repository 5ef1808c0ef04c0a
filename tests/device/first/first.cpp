// What is refused before there is device memory, what the host may not touch, and the end of what outlives its
// runtime. A program of its own: a job makes its device memory once.
#include <farside/device.hpp>
#include <farside/farside.hpp>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace {

int failed = 0;

void check(bool right, const char* what) {
  if (right) return;
  ++failed;
  std::fprintf(stderr, "FAILED: %s\n", what);
}
template <class F>
void refused(const char* part, F f) {
  std::string said = "nothing was thrown";
  try {
    f();
  } catch (const std::exception& e) {
    said = e.what();
  }
  check(said.find(part) != said.npos, (std::string(part) + ": " + said).c_str());
}

sigjmp_buf before_touch;
/// Whether the CPU that loads from there gets a fault.
bool faults(const volatile long* at) {
  auto on_fault = [](int) { siglongjmp(before_touch, 1); };
  auto* old_segv = std::signal(SIGSEGV, on_fault);
  auto* old_bus = std::signal(SIGBUS, on_fault);
  bool faulted = true;
  if (sigsetjmp(before_touch, 1) == 0) {
    static_cast<void>(*at);
    faulted = false;
  }
  std::signal(SIGSEGV, old_segv);
  std::signal(SIGBUS, old_bus);
  return faulted;
}

using dense = far::matrix<double, far::device_memory>;

void run() {
  // A matrix of a part of the ranks cannot make the device memory of all.
  if (far::nprocs() > 1) {
    const far::team part = far::world().split(far::rank() == 0 ? 0 : 1, far::rank());
    refused("Make a far::device on all ranks first", [&] { dense({10, 10}, {.over = part}); });
  }
  for (std::size_t bytes : {~std::size_t{0}, std::size_t{1} << 62, (std::size_t{1} << 44) + 1})
    refused("are too large", [&] { far::device({.segment = bytes}); });
  setenv("FARSIDE_DEVICE_TILES", "Copy", 1);
  refused("FARSIDE_DEVICE_TILES='Copy' is neither copy nor view", [] { far::device(); });
  unsetenv("FARSIDE_DEVICE_TILES");

  far::device gpu({.segment = std::size_t{1} << 20});
  check(gpu.segment_size() == std::size_t{1} << 20, "a segment of 1 MiB has 1 MiB");
  const auto at = gpu.alloc<long>();
  long value = 17, seen = 0;
  gpu.put(at, &value);
  check(faults(at.local()), "the host must not reach device memory");
  gpu.get(at, &seen);
  check(seen == 17, "a touch by the host has changed device memory");
  far::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  setenv("FARSIDE_DEVICE", "stand-in", 1);
  std::optional<far::device> gpu;
  std::optional<far::device_stream> stream;
  std::optional<far::device_block> block;
  std::optional<far::device_hash_map<std::uint64_t, int>> map;
  std::optional<far::device_queue<int>> queue;
  std::optional<dense> matrix;
  {
    far::runtime world(argc, argv);
    run();
    gpu.emplace();
    stream.emplace(*gpu);
    block.emplace(*gpu, 10);
    map.emplace(*gpu, 10);
    queue.emplace(*gpu, 0, 10);
    matrix.emplace(far::matrix_shape{4, 4});
  }
  refused("after its far::runtime has ended", [&] { stream->synchronize(); });
  refused("after its far::runtime has ended", [&] { gpu->alloc<int>(); });
  matrix.reset();
  queue.reset();
  map.reset();
  block.reset();
  stream.reset();
  return failed != 0;
}

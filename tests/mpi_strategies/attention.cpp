// Who serves a rank that computes and does not call the library? Rank 0 makes fetch-and-adds on
// rank 1, at first while that one waits in the library, then while it computes. Prints how long the
// worst of the latter took, against the time of the computation.
//
//   attention served      the worst took a small part of the computation (progress_thread,
//                         progress_rank, spawned, and wherever memory is shared)
//   attention neglected   one took as long as what was left of the computation (two_sided)
//   attention idle        something else, for the figures in docs/mpi_progress.md: all ranks sleep
//   for
//                         ten seconds; prints what their processes, and who serves them, took of
//                         the CPU meanwhile
//
// Ratios, not times: on two cores with others at work a message may take milliseconds.
#include <farside/farside.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Computes for so long, and calls nobody.
double compute(double length) {
  double end = seconds() + length, x = 0;
  while (seconds() < end)
    for (int i = 0; i < 1000; ++i) x = x * 0.5 + i;
  return x;
}

constexpr double computation = 1.0;

int attention(const std::string& expected) {
  auto word = far::broadcast(far::rank() == 1 ? far::make<long>(0) : far::ptr<long>(), 1);
  far::barrier();
  double worst = 0;
  long made = 0;
  if (far::rank() == 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(computation / 10));
    double end = seconds() + computation / 2;
    while (seconds() < end) {
      double begin = seconds();
      far::fetch_add(word, 1L);
      ++made;
      worst = std::max(worst, seconds() - begin);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  } else if (far::rank() == 1) {
    if (compute(computation) < 0) std::printf("impossible\n");
  }
  far::barrier();
  bool exact = far::get(word) == far::broadcast(made, 0);
  far::barrier();
  if (far::rank() != 0) return exact ? 0 : 1;
  bool served = worst < computation / 4;
  std::printf(
      "attention %s: the worst of %ld fetch-and-adds took %.2f ms of a computation of %.0f "
      "ms\n",
      served ? "served" : "neglected", made, worst * 1e3, computation * 1e3);
  bool good = exact && (expected.empty() || expected == (served ? "served" : "neglected"));
  if (!good) std::printf("expected: %s, and an exact count\n", expected.c_str());
  return good ? 0 : 1;
}

/// Nanoseconds on the CPU of all threads of all processes on this host that run this program.
std::uint64_t time_on_cpu() {
  namespace fs = std::filesystem;
  std::error_code none;  // processes come and go, and some are not ours to look at
  fs::path program = fs::read_symlink("/proc/self/exe", none);
  std::uint64_t sum = 0;
  for (const auto& process : fs::directory_iterator("/proc", none)) {
    if (fs::read_symlink(process.path() / "exe", none) != program) continue;
    for (const auto& thread : fs::directory_iterator(process.path() / "task", none)) {
      std::uint64_t time = 0;
      std::ifstream(thread.path() / "schedstat") >> time;
      sum += time;
    }
  }
  return sum;
}

int idle() {
  constexpr int length = 10;
  far::barrier();
  std::this_thread::sleep_for(std::chrono::seconds(1));  // what the barrier began has ended
  std::uint64_t before = time_on_cpu();
  std::this_thread::sleep_for(std::chrono::seconds(length));
  std::uint64_t after = time_on_cpu();
  if (far::rank() == 0)
    std::printf("attention idle: all processes of this host took %.0f ms of the CPU in %d s\n",
                1e-6 * static_cast<double>(after - before), length);
  far::barrier();
  return 0;
}

}  // namespace

/// The argument says what must be so: served or neglected.
int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    if (far::nprocs() < 2) {
      std::printf("attention: needs two ranks\n");
      return 1;
    }
    std::string what = count > 1 ? words[1] : "";
    return what == "idle" ? idle() : attention(what);
  });
}

// where [ping | files NAME]: what the ranks of a job find out about each other's hosts.
//
//   (nothing)  each rank says on which host it is, and whether all ranks share memory
//   ping       rank 0 measures round trips to the last rank, which does nothing but serve them
//   files NAME each rank makes a file in /dev/shm, and says how many are there
#include <farside/core.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

std::string host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

void introduce() {
  auto& link = far::detail::here().link;
  // On one host every transport reaches the others' memory without their help.
  far::print("rank ", far::rank(), " is on ", host(), ", memory is ",
             link.async_progress() ? "shared" : "apart", "\n");
}

/// Median of the round trips of `operation`, in microseconds.
template <class Operation>
double median_of(Operation operation) {
  std::vector<double> times;
  for (int i = 0; i < 500; ++i) {
    auto begin = std::chrono::steady_clock::now();
    operation();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::nth_element(times.begin(), times.begin() + 250, times.end());
  return times[250];
}

void ping() {
  far::rank_t last = far::nprocs() - 1;
  auto word = far::broadcast(far::rank() == last ? far::make<long>(0) : far::ptr<long>(), last);
  far::barrier();
  if (far::rank() == 0) {
    double put = median_of([&] {
      far::put(word, 1L);
      far::flush();
    });
    double get = median_of([&] { far::get(word); });
    double add = median_of([&] { far::fetch_add(word, 1L); });
    std::printf("put and flush %.1f us, get %.1f us, fetch_add %.1f us\n", put, get, add);
  }
  far::barrier();
}

void count_files(const std::string& name) {
  std::ofstream("/dev/shm/" + name + "." + std::to_string(far::rank())) << "here\n";
  far::barrier();
  long n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    n += entry.path().filename().string().starts_with(name + ".");
  far::print("rank ", far::rank(), " sees ", n, " of ", far::nprocs(), " files\n");
  far::barrier();
  std::filesystem::remove("/dev/shm/" + name + "." + std::to_string(far::rank()));
}

}  // namespace

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  std::string name = argc > 2 ? argv[2] : "where";
  return far::run(argc, argv, [&] {
    if (what == "ping")
      ping();
    else if (what == "files")
      count_files(name);
    else
      introduce();
  });
}

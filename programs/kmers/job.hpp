// What `kmers` was asked to do.
#pragma once

#include <common/genome/input_files.hpp>

#include <farside/core/collectives.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

struct count_job {
  unsigned k = 31;
  std::uint32_t least = 1;
  std::uint32_t most = 0xffff'ffff;
  std::uint32_t longest_histogram = 10000;
  unsigned passes = 1;
  std::uint64_t memory = 0;  ///< of all ranks together; 0: no limit
  bool bloom = false;
  bool extensions = false;
  bool device = false;
  bool times = false;
  std::string histogram, tsv, ufx, output;
  std::uint32_t least_extension = 2;
  std::vector<genome::input_file> files{};

  /// How many of its files are standard output, which has no room for anything else then.
  int to_standard_output() const {
    return (histogram == "-") + (tsv == "-") + (ufx == "-") + (output == "-");
  }
};

/// Adds up how long some work took.
class timed {
 public:
  explicit timed(double& to) : to_(to) {}
  timed(const timed&) = delete;
  ~timed() {
    to_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
  }

 private:
  double& to_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// Collective: the first rank prints how long the slowest one took.
inline void print_times(const count_job& job, double reading, double counting) {
  if (!job.times) return;
  reading = far::all_reduce(reading, far::maximum());
  counting = far::all_reduce(counting, far::maximum());
  if (far::rank() != 0 || job.to_standard_output() != 0) return;
  std::printf("reading          %12.3f s\ncounting         %12.3f s\n", reading, counting);
}

/// Collective. k <= 32 * Words.
template <unsigned Words, bool Extended>
void count_kmers(const count_job& job);

/// Collective. By kernels, in device memory: k <= 31, and nothing but a histogram is written.
void count_kmers_on_device(const count_job& job);

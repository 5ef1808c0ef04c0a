// A dense product of N x N by the BLAS in one process, with OMP_NUM_THREADS.
//
//   openblas_product N REPEATS
//
// Prints for each repeat a line: seconds, elements of the result, their sum.

#include <cblas.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "%s: N REPEATS are wanted\n", argv[0]);
    return 1;
  }
  const int n = std::atoi(argv[1]);
  const std::size_t size = static_cast<std::size_t>(n) * n;
  std::vector<double> a(size), b(size), c(size);
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = 1.0 + static_cast<double>(i % 7);
    b[i] = 1.0 / (1.0 + static_cast<double>(i % 5));
  }
  for (int repeat = 0; repeat < std::atoi(argv[2]); ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a.data(), n, b.data(), n,
                0.0, c.data(), n);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%.6f %zu %.17g\n", seconds.count(), size,
                std::accumulate(c.begin(), c.end(), 0.0));
  }
}

// Products of matrices in device memory, against another process that has called cuSPARSE and cuBLAS alone
// before: plain_cuda.cpp, whose lines are in FILE. `./dev gpu-test` runs both.
//
//   farside run -n 4 bench_device_multiply --one-process FILE [--repeat N] [--scale N] [--large-scale N] [--gemm N]
//
// Medians after a warm-up; from barrier to barrier. Results are compared by the number of entries and by sums
// of values that are whole numbers, so exact. A product in whole rows for each rank that has less than
// `least` of the other process's rate makes it fail.
#include <farside/algorithms/matrix_generators.hpp>
#include <farside/device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using u64 = std::uint64_t;
using dense = far::matrix<double, far::device_memory>;
using sparse = far::sparse_matrix<double, std::int32_t, far::device_memory>;
using far::matrix_index;
using far::matrix_shape;

struct options {
  int repeat = 5;
  unsigned scale = 16, large_scale = 21;
  std::size_t gemm = 8192;
};

/// What the other process says of a product.
struct expectation {
  double seconds = 0;
  u64 entries = 0, sum = 0;
};
std::map<std::string, expectation> one_process;

/// Small whole numbers, another one at each place of the matrix, however it is cut.
struct number_all {
  far::device_ptr<double> to;
  u64 first, columns_of_tile, columns;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    const u64 place = first + i / columns_of_tile * columns + i % columns_of_tile;
    d.put(to + static_cast<std::ptrdiff_t>(i), static_cast<double>(far::mix(place) % 5));
  }
};
struct add_up {
  far::device_ptr<const double> from;
  far::device_ptr<u64> sums;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    d.fetch_add(sums + static_cast<std::ptrdiff_t>(i / 32 % 1024),
                static_cast<u64>(d.get(from + static_cast<std::ptrdiff_t>(i))));
  }
};

class sums {
 public:
  explicit sums(const far::device& gpu) : gpu_(gpu), stream_(gpu), words_(gpu, 8192) {}
  u64 of(far::device_ptr<const double> values, std::size_t n) {
    auto at = far::pointer_cast<u64>(words_.get());
    std::vector<u64> seen(1024);
    stream_.fill(at, 0, 1024);
    stream_.launch(n, add_up{values, at});
    stream_.get(at, seen.data(), 1024);
    stream_.synchronize();
    u64 sum = 0;
    for (u64 s : seen) sum += s;
    return sum;
  }
  u64 of(const sparse& m) {
    u64 mine = 0;
    for (matrix_index tile : m.my_tiles())
      if (auto view = m.my_tile(tile); view.nnz != 0) mine += of(view.values, view.nnz);
    return far::all_reduce(mine);
  }
  u64 of(const dense& m) {
    u64 mine = 0;
    for (matrix_index tile : m.my_tiles()) {
      auto view = m.my_tile(tile);
      mine += of(view.data, view.shape.size());
    }
    return far::all_reduce(mine);
  }

 private:
  far::device gpu_;
  far::device_stream stream_;
  far::device_block words_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <class Work>
double median(int repeat, Work work) {
  std::vector<double> times;
  for (int i = 0; i <= repeat; ++i) {
    far::barrier();
    double begin = now();
    work();
    far::barrier();
    if (i > 0) times.push_back(now() - begin);  // the first one warms up
  }
  std::sort(times.begin(), times.end());
  return far::all_reduce(times[times.size() / 2], far::maximum());
}

int failures = 0;
/// `least`: of the other process's rate.
void line(const char* product, const char* what, const char* layout, double took, double least,
          u64 entries, u64 sum) {
  const expectation& one = one_process[product];
  const double rate = one.seconds / took;
  const bool right = entries == one.entries && sum == one.sum;
  if (!right || rate < least) ++failures;
  if (far::rank() == 0) {
    std::printf("%-24s %-18s %u ranks %9.3f ms; one process %9.3f ms; rate %5.2f of it%s%s\n", what,
                layout, far::nprocs(), took * 1e3, one.seconds * 1e3, rate,
                right ? "" : "  WRONG RESULT", rate < least ? "  TOO SLOW" : "");
    std::fflush(stdout);
  }
}
double least_of(double with_many) { return far::nprocs() == 1 ? 0.9 : with_many; }

/// Own tiles of a generated matrix.
template <class G>
void load(sparse& m, const G& generator) {
  for (matrix_index tile : m.my_tiles()) {
    const matrix_index first = m.layout().first_of(tile);
    const matrix_shape of = m.layout().tile_shape(tile);
    auto entries = far::generate_part<double>(
        generator, {{first.row, first.row + of.rows}, {first.column, first.column + of.columns}});
    for (auto& e : entries) e.row -= first.row, e.column -= first.column;
    m.set_tile(tile, far::csr<double>::from_triplets(of, entries).view());
  }
  m.publish();
}
void number(dense& m) {
  far::device_stream stream(m.gpu());
  for (matrix_index tile : m.my_tiles()) {
    const matrix_index first = m.layout().first_of(tile);
    auto to = m.my_tile(tile);
    stream.launch(to.shape.size(), number_all{to.data, first.row * m.shape().columns + first.column,
                                              to.shape.columns, m.shape().columns});
  }
  stream.synchronize();
  far::barrier();
}

far::block_custom whole() { return {{far::div, far::div}, {1, 1}}; }
far::block_custom by_rows() { return {{far::div, far::div}, {far::nprocs(), 1}}; }

u64 entries_of(const sparse& m) { return m.nnz(); }
u64 entries_of(const dense& m) { return m.shape().size(); }

/// Matrices that are cut into a grid of tiles: printed, and results compared. No rate is asked for.
template <class A, class B, class C>
void on_grid(const char* product, const char* what, const A& a, const B& b, C& c, int repeat,
             sums& sum) {
  for (auto algorithm : {far::stationary::c, far::stationary::a}) {
    double all = median(repeat, [&] { far::multiply(a, b, c, {.algorithm = algorithm}); });
    line(product, what, algorithm == far::stationary::c ? "grid, C" : "grid, A", all, 0,
         entries_of(c), sum.of(c));
  }
  double all = median(repeat, [&] {
    far::multiply(a, b, c, {.algorithm = far::stationary::c, .stealing = far::stealing::near});
  });
  line(product, what, "grid, C, stealing", all, 0, entries_of(c), sum.of(c));
}

void spgemm(const far::device& gpu, const options& with) {
  const far::rmat graph({.scale = with.scale, .values = far::entry_values::whole(1, 3)});
  const matrix_shape shape = graph.shape();
  sums sum(gpu);
  {
    sparse a(shape, by_rows()), b(shape, whole()), c(shape, by_rows());
    load(a, graph);
    load(b, graph);
    double all =
        median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
    line("spgemm", "SpGEMM R-MAT", "rows", all, least_of(0.8), c.nnz(), sum.of(c));
    auto work = far::async_multiply(a, b, c, {.algorithm = far::stationary::c});
    work.wait();
    auto report = work.report();
    if (far::rank() == 0) std::printf("%s", to_text(report).c_str());
  }
  if (far::nprocs() > 1) {
    auto blocks = far::block_matmul(shape.rows, shape.columns, shape.columns, far::nprocs());
    sparse a(shape, blocks.a), b(shape, blocks.b), c(shape, blocks.c);
    load(a, graph);
    load(b, graph);
    on_grid("spgemm", "SpGEMM R-MAT", a, b, c, with.repeat, sum);
  }
}

void spmm(const far::device& gpu, const options& with) {
  const far::rmat graph({.scale = with.large_scale, .values = far::entry_values::whole(1, 3)});
  const matrix_shape shape = graph.shape(), tall{shape.rows, 128};
  sums sum(gpu);
  {
    dense b(tall, whole()), c(tall, by_rows());
    number(b);
    sparse a(shape, by_rows());
    load(a, graph);
    double all =
        median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
    line("spmm", "SpMM R-MAT, 128 columns", "rows", all, least_of(0.7), tall.size(), sum.of(c));
  }
  if (far::nprocs() > 1) {
    auto blocks = far::block_matmul(shape.rows, tall.columns, shape.columns, far::nprocs());
    sparse a(shape, blocks.a);
    dense b(tall, blocks.b), c(tall, blocks.c);
    load(a, graph);
    number(b);
    on_grid("spmm", "SpMM R-MAT, 128 columns", a, b, c, with.repeat, sum);
  }
}

void gemm(const far::device& gpu, const options& with) {
  const matrix_shape shape{with.gemm, with.gemm};
  sums sum(gpu);
  {
    dense a(shape, by_rows()), b(shape, whole()), c(shape, by_rows());
    number(a);
    number(b);
    double all =
        median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
    line("gemm", "GEMM", "rows", all, 0.85, shape.size(), sum.of(c));
    if (far::rank() == 0) {
      const auto n = static_cast<double>(with.gemm);
      std::printf("  %.1f TFLOP/s\n", 2 * n * n * n / all / 1e12);
    }
  }
  if (far::nprocs() > 1) {
    auto blocks = far::block_matmul(shape.rows, shape.columns, shape.columns, far::nprocs());
    dense a(shape, blocks.a), b(shape, blocks.b), c(shape, blocks.c);
    number(a);
    number(b);
    on_grid("gemm", "GEMM", a, b, c, with.repeat, sum);
  }
}

int run(int argc, char** argv) {
  options with;
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto n = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--repeat") == 0) with.repeat = static_cast<int>(n);
    if (std::strcmp(argv[i], "--scale") == 0) with.scale = static_cast<unsigned>(n);
    if (std::strcmp(argv[i], "--large-scale") == 0) with.large_scale = static_cast<unsigned>(n);
    if (std::strcmp(argv[i], "--gemm") == 0) with.gemm = n;
    if (std::strcmp(argv[i], "--one-process") == 0) {
      std::ifstream in(argv[i + 1]);
      std::string name;
      for (expectation one; in >> name >> one.seconds >> one.entries >> one.sum;)
        one_process[name] = one;
    }
  }
  if (one_process.size() != 3)
    throw far::refusal("bench_device_multiply: --one-process names no file of plain_cuda's lines");
  far::device gpu;
  spgemm(gpu, with);
  spmm(gpu, with);
  gemm(gpu, with);
  failures = static_cast<int>(far::all_reduce(failures));
  if (failures != 0 && far::rank() == 0) std::printf("WRONG RESULTS, OR TOO SLOW\n");
  return failures != 0;
}

}  // namespace

int main(int argc, char** argv) { return far::run(argc, argv, run); }

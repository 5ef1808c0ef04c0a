// Products of matrices in device memory, against one process that calls cuSPARSE and cuBLAS. `./dev
// gpu-test` runs it.
//
//   farside run -n 4 bench_device_multiply [--repeat N] [--scale N] [--large-scale N] [--gemm N]
// [--tiles N]
//
// The baseline is the library's call on the whole matrices by rank 0, while the others wait; all
// ranks then multiply the
// same matrices by far::multiply. Medians after a warm-up; from barrier to barrier. Results are
// compared by
// the number of entries and by sums of values that are whole numbers, so exact.
#include <farside/algorithms/matrix_generators.hpp>
#include <farside/device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
  std::size_t gemm = 8192, tiles = 1;
};

/// Small whole numbers, another one at each place.
struct number_all {
  far::device_ptr<double> to;
  u64 first;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    d.put(to + static_cast<std::ptrdiff_t>(i), static_cast<double>(far::mix(first + i) % 5));
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
void line(const char* what, const char* layout, double one, double all, bool right) {
  if (!right) ++failures;
  if (far::rank() == 0) {
    std::printf("%-30s %-18s %u ranks %9.3f ms; one process %9.3f ms; rate %5.2f of it%s\n", what,
                layout, far::nprocs(), all * 1e3, one * 1e3, one / all,
                right ? "" : "  WRONG RESULT");
    std::fflush(stdout);
  }
}

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
    stream.launch(to.shape.size(),
                  number_all{to.data, first.row * m.shape().columns + first.column});
  }
  stream.synchronize();
  far::barrier();
}

far::block_custom whole() { return {{far::div, far::div}, {1, 1}}; }
far::block_custom by_rows() { return {{far::div, far::div}, {far::nprocs(), 1}}; }
/// `tiles` of rows a rank.
far::block_custom rows_of(std::size_t rows, const options& with) {
  const std::size_t pieces = far::nprocs() * with.tiles;
  return {{(rows + pieces - 1) / pieces, far::div}, {far::nprocs(), 1}};
}

void spgemm(const far::device& gpu, const options& with) {
  const far::rmat graph({.scale = with.scale, .values = far::entry_values::whole(1, 3)});
  const matrix_shape shape = graph.shape();
  sums sum(gpu);
  sparse b(shape, whole());
  load(b, graph);
  u64 entries = 0, expected = 0;
  double one = median(with.repeat, [&] {
    if (far::rank() != 0) return;
    far::device_stream stream(gpu);
    far::detail::device_library library(gpu, stream);
    auto c = library.spgemm(b.my_tile({0, 0}), b.my_tile({0, 0}));
    entries = c.nnz();
    if (expected == 0) expected = sum.of(c.view().values, c.nnz());
  });
  entries = far::broadcast(entries, 0), expected = far::broadcast(expected, 0);
  {
    sparse a(shape, rows_of(shape.rows, with)), c(shape, rows_of(shape.rows, with));
    load(a, graph);
    double all =
        median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
    line("SpGEMM R-MAT", "rows", one, all, c.nnz() == entries && sum.of(c) == expected);
    if (far::rank() == 0)
      std::printf("  %zu entries, product %llu\n", b.nnz(),
                  static_cast<unsigned long long>(entries));
    auto work = far::async_multiply(a, b, c, {.algorithm = far::stationary::c});
    work.wait();
    auto report = work.report();
    if (far::rank() == 0) std::printf("%s", to_text(report).c_str());
  }
  if (far::nprocs() > 1) {
    auto blocks = far::block_matmul(shape.rows, shape.columns, shape.columns, far::nprocs());
    sparse a(shape, blocks.a), b2(shape, blocks.b), c(shape, blocks.c);
    load(a, graph);
    load(b2, graph);
    for (auto algorithm : {far::stationary::c, far::stationary::a}) {
      double all = median(with.repeat, [&] { far::multiply(a, b2, c, {.algorithm = algorithm}); });
      line("SpGEMM R-MAT", algorithm == far::stationary::c ? "grid, C" : "grid, A", one, all,
           c.nnz() == entries && sum.of(c) == expected);
    }
    double all = median(with.repeat, [&] {
      far::multiply(a, b2, c, {.algorithm = far::stationary::c, .stealing = far::stealing::near});
    });
    line("SpGEMM R-MAT", "grid, C, stealing", one, all,
         c.nnz() == entries && sum.of(c) == expected);
  }
}

void spmm(const far::device& gpu, const options& with) {
  const far::rmat graph({.scale = with.large_scale, .values = far::entry_values::whole(1, 3)});
  const matrix_shape shape = graph.shape(), tall{shape.rows, 128};
  sums sum(gpu);
  dense b(tall, whole());
  number(b);
  double one = 0;
  u64 expected = 0;
  {
    sparse a(shape, whole());
    dense c(tall, whole());
    load(a, graph);
    one = median(with.repeat, [&] {
      if (far::rank() != 0) return;
      far::device_stream stream(gpu);
      far::detail::device_library library(gpu, stream);
      auto to = c.my_tile({0, 0});
      stream.fill(to.data, 0, to.shape.size());
      library.spmm(a.my_tile({0, 0}), far::device_matrix_view<const double>(b.my_tile({0, 0})), to);
      stream.synchronize();
    });
    expected = sum.of(c);
  }
  sparse a(shape, rows_of(shape.rows, with));
  dense c(tall, rows_of(shape.rows, with));
  load(a, graph);
  double all =
      median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
  line("SpMM R-MAT, 128 columns", "rows", one, all, sum.of(c) == expected);
}

void gemm(const far::device& gpu, const options& with) {
  const matrix_shape shape{with.gemm, with.gemm};
  sums sum(gpu);
  double one = 0;
  u64 expected = 0;
  dense b(shape, whole());
  number(b);
  {
    dense a(shape, whole()), c(shape, whole());
    number(a);
    one = median(with.repeat, [&] {
      if (far::rank() != 0) return;
      far::device_stream stream(gpu);
      far::detail::device_library library(gpu, stream);
      auto to = c.my_tile({0, 0});
      stream.fill(to.data, 0, to.shape.size());
      using view = far::device_matrix_view<const double>;
      library.gemm(view(a.my_tile({0, 0})), view(b.my_tile({0, 0})), to);
      stream.synchronize();
    });
    expected = sum.of(c);
  }
  dense a(shape, by_rows()), c(shape, by_rows());
  number(a);
  double all =
      median(with.repeat, [&] { far::multiply(a, b, c, {.algorithm = far::stationary::c}); });
  line("GEMM", "rows", one, all, sum.of(c) == expected);
  if (far::rank() == 0) {
    const auto n = static_cast<double>(with.gemm);
    std::printf("  %.1f TFLOP/s, one process %.1f\n", 2 * n * n * n / all / 1e12,
                2 * n * n * n / one / 1e12);
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
    if (std::strcmp(argv[i], "--tiles") == 0) with.tiles = n;
  }
  far::device gpu;
  spgemm(gpu, with);
  spmm(gpu, with);
  gemm(gpu, with);
  failures = static_cast<int>(far::all_reduce(failures));
  if (failures != 0 && far::rank() == 0) std::printf("WRONG RESULTS\n");
  return failures != 0;
}

}  // namespace

int main(int argc, char** argv) { return far::run(argc, argv, run); }

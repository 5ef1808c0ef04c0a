// What products of matrices cost on one core: ours beside GraphBLAS, Eigen and OpenBLAS, where this
// was built with them (cmake -DFARSIDE_BENCH_PEERS=ON). Nothing communicates: run it with one rank.
//
//   farside run -n 1 bench_local_multiply_smp --reps 5
//
// Times are of the CPU, as the peers' are, so that others on the machine disturb both less. Ours
// and a peer alternate. The column "floor" is the peer; a ratio below 1 says that ours is quicker.
#include <farside/algorithms/local/local_kernels.hpp>
#include <farside/algorithms/matrix_generators.hpp>

#include <array>
#include <cstdio>
#include <cstring>

#include "../harness.hpp"
#include "peers.hpp"

namespace {

using csr = far::csr<double>;

template <class Generator>
csr make(const Generator& generator) {
  auto shape = generator.shape();
  auto entries = far::generate_rows<double>(generator, {0, shape.rows});
  csr result = csr::from_triplets(shape, entries);
  for (std::size_t e = 0; e < result.nnz(); ++e)  // sums that depend on every value
    result.values()[e] = 1 + static_cast<double>(e % 101) / 101;
  return result;
}

/// The most memory that this process has had since forget_peak(), in bytes; 0 if Linux does not
/// say.
double peak_memory() {
  std::size_t kilobytes = 0;
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file))
      if (std::sscanf(line, "VmHWM: %zu", &kilobytes) == 1) break;
    std::fclose(file);
  }
  return static_cast<double>(kilobytes) * 1024;
}
/// The most becomes what there is now.
void forget_peak() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

double bytes_of(const csr& m) {
  return static_cast<double>(m.nnz() * (sizeof(double) + sizeof(std::int32_t)) +
                             (m.rows() + 1) * sizeof(std::int64_t));
}

/// Whether any of the rows of this name is to be measured.
bool is_chosen(const far::bench::suite& s, const std::string& name) {
  return s.wants(name + ", GraphBLAS") || s.wants(name + ", Eigen");
}

/// Measures ours beside each peer, or alone where there is none.
template <class Ours, class Theirs>
void beside_peers(far::bench::suite& s, const std::string& name, Ours ours,
                  [[maybe_unused]] Theirs theirs) {
  const auto what = far::bench::cpu_time_of_one();
  [[maybe_unused]] bool alone = true;
#if FARSIDE_PEER_GRAPHBLAS
  alone = false;
  if (s.wants(name + ", GraphBLAS")) {
    auto peer = make_graphblas(theirs.a, theirs.b, theirs.columns);
    s.compare(name + ", GraphBLAS", what, ours, [&](std::size_t n) { theirs(*peer, n); });
  }
#endif
#if FARSIDE_PEER_EIGEN
  alone = false;
  if (s.wants(name + ", Eigen")) {
    auto peer = make_eigen(theirs.a, theirs.b, theirs.columns);
    s.compare(name + ", Eigen", what, ours, [&](std::size_t n) { theirs(*peer, n); });
  }
#endif
  if (alone) s.measure_alone(name, what, ours);
}

struct their_spgemm {
  far::csr_view<double> a;
  std::size_t entries;
  const double* b = nullptr;
  std::size_t columns = 0;

  void operator()(sparse_peer& peer, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i)
      if (std::size_t found = peer.multiply(); found != entries)
        far::detail::raise("the peer's product has ", found, " entries, ours ", entries);
  }
};
struct their_spmm {
  far::csr_view<double> a;
  const double* b;
  std::size_t columns;

  void operator()(sparse_peer& peer, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) peer.multiply_dense();
  }
};

void sparse_rows(far::bench::suite& s, const std::string& input, const csr& a) {
  if (std::string name = "SpGEMM " + input; is_chosen(s, name)) {
    forget_peak();
    const double before = peak_memory();
    const csr c = far::spgemm(a.view(), a.view());
    const double both = bytes_of(a) + bytes_of(c);
    s.say(far::text(input, ": ", a.nnz(), " entries, ", far::count_products(a.view(), a.view()),
                    " products, ", c.nnz(), " entries; peak memory ",
                    far::bench::number((peak_memory() - before + bytes_of(a)) / both),
                    " x (A + C)"));
    beside_peers(
        s, name,
        [&](std::size_t n) {
          for (std::size_t i = 0; i < n; ++i)
            far::bench::keep(far::spgemm(a.view(), a.view()).nnz());
        },
        their_spgemm{a.view(), c.nnz()});
  }
  if (std::string name = "SpMM 128 " + input; is_chosen(s, name)) {
    const std::size_t columns = 128, rows = a.rows();
    std::vector<double> b(rows * columns), c(rows * columns);
    for (std::size_t e = 0; e < b.size(); ++e) b[e] = static_cast<double>(e % 7);
    beside_peers(
        s, name,
        [&](std::size_t n) {
          for (std::size_t i = 0; i < n; ++i)
            far::spmm(a.view(), far::matrix_view<const double>(b.data(), {rows, columns}),
                      far::matrix_view<double>(c.data(), {rows, columns}));
          far::bench::keep(c.data());
        },
        their_spmm{a.view(), b.data(), columns});
  }
}

void gemm_rows(far::bench::suite& s, std::size_t n) {
  const std::string name = far::text("GEMM ", n);
  if (!s.wants(name + ", BLAS")) return;
  std::vector<double> a(n * n, 1.5), b(n * n, 0.5), c(n * n, 0);
  auto ours = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i)
      far::gemm(far::matrix_view<const double>(a.data(), {n, n}),
                far::matrix_view<const double>(b.data(), {n, n}),
                far::matrix_view<double>(c.data(), {n, n}));
  };
  const auto what = far::bench::cpu_time_of_one();
#if FARSIDE_PEER_BLAS
  s.compare(far::text(name, ", BLAS (", blas_kernel(), ")"), what, ours, [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) blas_gemm(n, a.data(), b.data(), c.data());
  });
#else
  s.measure_alone(name, what, ours);
#endif
}

void rows(far::bench::suite& s) {
  const bool quick = s.is_quick();
  auto wants = [&](const std::string& input) {
    return is_chosen(s, "SpGEMM " + input) || is_chosen(s, "SpMM 128 " + input);
  };
  if (wants("R-MAT 14")) sparse_rows(s, "R-MAT 14", make(far::rmat({.scale = quick ? 8u : 14u})));
  if (wants("ER 2^18")) {
    std::size_t n = std::size_t{1} << (quick ? 8 : 18);
    sparse_rows(s, "ER 2^18", make(far::erdos_renyi{.n = n, .degree = 16}));
  }
  std::size_t side_2 = quick ? 16 : 1024, side_3 = quick ? 8 : 96;
  if (wants("Laplacian 2-D"))
    sparse_rows(s, "Laplacian 2-D", make(far::laplacian_2d{side_2, side_2}));
  if (wants("Laplacian 3-D"))
    sparse_rows(s, "Laplacian 3-D", make(far::laplacian_3d{side_3, side_3, side_3}));
  gemm_rows(s, quick ? 64 : 1024);
  gemm_rows(s, quick ? 65 : 2000);
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words, "Measures products of matrices on one core.", rows);
  });
}

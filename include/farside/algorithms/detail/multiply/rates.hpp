// How fast members multiply, and how fast tiles move between them: measured when a multiplication first
// asks which algorithm is best, and kept until the job ends.
//
// Each member times the kernels on small matrices, by the CPU time of its thread, and gets from the
// next member whose memory it cannot load: about 2 ms together. All take the means, so that they
// choose alike. Simulated ranks have no clock that means anything: they take what stands in
// multiply_rates, and so choose the same in every run.
#pragma once

#include <farside/algorithms/local/local_kernels.hpp>
#include <farside/algorithms/matrix_generators/rows.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/rank_local.hpp>
#include <farside/core/rma.hpp>

#include <time.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// How fast the members of a team are, on average.
struct multiply_rates {
  double dense = 5e9;     ///< products of a dense multiplication, a second
  double mixed = 1e9;     ///< of a sparse matrix and a dense one
  double sparse = 1.2e8;  ///< of two sparse ones
  double network = 4e9;   ///< bytes a second between members that cannot load each other's memory
  double memory = 4e9;    ///< bytes a second of partial tiles that are made, or added up
  /// Whether every member can load all memory, so that tiles need not be fetched.
  bool all_loadable = false;
};

namespace detail {

inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// What work(amount) returns, a second, of amounts that double until they take long enough.
template <class Work>
double rate_of(std::size_t amount, std::size_t most, Work work) {
  for (;; amount *= 2) {
    const double begin = thread_seconds();
    const double done = work(amount);
    const double seconds = thread_seconds() - begin;
    if (seconds > 2e-4 || amount >= most) return done / std::max(seconds, 1e-7);
  }
}

inline csr<double> rows_to_time(std::size_t n) {
  const random_rows entries{n, n, 8, 1, entry_values::uniform()};
  std::vector<triplet<double>> all;
  for (std::size_t r = 0; r < n; ++r)
    entries.row<double>(r, [&](std::size_t c, double value) { all.push_back({r, c, value}); });
  return csr<double>::from_triplets({n, n}, all);
}

/// Local.
inline multiply_rates time_kernels() {
  multiply_rates result;
  cpu_kernels<double> kernels;
  auto filled = [](matrix_shape shape) {
    dense<double> of(shape);
    std::fill(of.data(), of.data() + shape.size(), 1.0);
    return of;
  };
  result.dense = rate_of(32, 128, [&](std::size_t n) {
    const dense<double> a = filled({n, n});
    dense<double> c = filled({n, n});
    kernels.gemm(std::as_const(a).view(), std::as_const(a).view(), c.view());
    return static_cast<double>(n * n * n);
  });
  std::optional<csr<double>> entries;
  auto of_size = [&](std::size_t n) {
    if (!entries || entries->rows() != n) entries = rows_to_time(n);
    return entries->view();
  };
  for (std::size_t n = 256; n <= 1024; n *= 4) {  // made before they are timed
    const csr_view<double> a = of_size(n);
    const dense<double> b = filled({n, 32});
    dense<double> c = filled({n, 32});
    double begin = thread_seconds();
    kernels.spmm(a, std::as_const(b).view(), c.view());
    double seconds = std::max(thread_seconds() - begin, 1e-7);
    result.mixed = static_cast<double>(a.nnz()) * 32 / seconds;
    begin = thread_seconds();
    const csr<double> product = kernels.spgemm(a, a);
    seconds = std::max(thread_seconds() - begin, 1e-7);
    result.sparse = static_cast<double>(kernels.products(a, a)) / seconds;
    if (seconds > 4e-4) break;
  }
  result.memory = rate_of(128, 512, [&](std::size_t n) {
    const dense<double> part = filled({n, n});
    dense<double> to = filled({n, n});
    kernels.add(std::as_const(part).view(), to.view());
    return static_cast<double>(2 * n * n * sizeof(double));  // made, and added up
  });
  return result;
}

/// Collective. Bytes a second, or nothing if this member can load the memory of all others.
inline std::optional<double> time_gets(const team& over) {
  constexpr std::size_t bytes = std::size_t{1} << 17;
  const auto parts = alloc_together<std::byte>(over, "multiply: what is timed", bytes);
  std::optional<double> best;
  std::vector<std::byte> to(bytes);
  for (rank_t i = 1; i < over.size() && !best; ++i) {
    const ptr<std::byte> from = parts[(over.rank() + i) % over.size()];
    if (from.local() != nullptr) continue;
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t begin = job::monotonic_ns();
      get(from, to.data(), bytes);
      const double seconds = static_cast<double>(job::monotonic_ns() - begin) * 1e-9;
      best = std::max(best.value_or(0), static_cast<double>(bytes) / std::max(seconds, 1e-7));
    }
  }
  barrier(over);
  dealloc(parts[over.rank()]);
  return best;
}

struct known_rates {
  std::mutex mutex;
  std::optional<multiply_rates> rates;
};

inline multiply_rates measured_rates(const team& over) {
  static rank_local<known_rates> kept;
  if (here().simulated()) return {};
  struct shared {
    multiply_rates sum;
    bool known;
    double fetching;  ///< members that fetch
  };
  shared mine{};
  {
    std::lock_guard lock(kept->mutex);
    if (kept->rates) mine = {*kept->rates, true, kept->rates->all_loadable ? 0.0 : 1.0};
  }
  auto together = [&] {
    return all_reduce(
        mine,
        [](const shared& a, const shared& b) {
          shared both = a;
          both.sum.dense += b.sum.dense, both.sum.mixed += b.sum.mixed;
          both.sum.sparse += b.sum.sparse, both.sum.memory += b.sum.memory;
          if (b.fetching != 0)
            both.sum.network = a.fetching != 0 ? a.sum.network + b.sum.network : b.sum.network;
          both.fetching += b.fetching;
          both.known = a.known && b.known;
          return both;
        },
        over);
  };
  shared all = together();
  if (!all.known) {
    mine.sum = time_kernels();
    const std::optional<double> network = time_gets(over);
    mine.sum.network = network.value_or(mine.sum.network);
    mine.sum.all_loadable = !network;
    mine.fetching = network ? 1 : 0;
    mine.known = true;
    {
      std::lock_guard lock(kept->mutex);
      kept->rates = mine.sum;
    }
    all = together();
  }
  const auto n = static_cast<double>(over.size());
  return {all.sum.dense / n,  all.sum.mixed / n,
          all.sum.sparse / n, all.sum.network / std::max(1.0, all.fetching),
          all.sum.memory / n, all.fetching == 0};
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

#include "study.hpp"

#include "job.hpp"

#include <farside/base/json.hpp>
#include <toolkit/svg.hpp>
#include <toolkit/table.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace multiply_program {

namespace {

constexpr far::stationary candidates[] = {far::stationary::c, far::stationary::a,
                                          far::stationary::b, far::stationary::layers,
                                          far::stationary::summa};

struct study_case {
  product_kind kind;
  std::size_t m, n, k;
  double degree;  ///< entries in a row of a sparse factor
  far::rank_t ranks;
  std::size_t fine;  ///< tiles for each rank, in each direction
};

struct study_result {
  study_case of;
  std::vector<double> seconds;  ///< by each candidate
  far::stationary chosen = far::stationary::c;

  double best() const { return *std::min_element(seconds.begin(), seconds.end()); }
  /// Of what automatic takes, by the best.
  double ratio() const {
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (candidates[i] == chosen) return seconds[i] / best();
    return 0;
  }
};

/// Shapes x densities x ranks x how finely they are cut.
std::vector<study_case> all_cases() {
  std::vector<study_case> result;
  const far::rank_t all = far::nprocs(), half = std::max<far::rank_t>(1, all / 2);
  for (far::rank_t ranks : {half, all}) {
    using k = product_kind;
    // Square, a large A by a narrow B, inner and outer products.
    result.push_back({k::gemm, 512, 512, 512, 0, ranks, 1});
    result.push_back({k::gemm, 512, 512, 512, 0, ranks, 2});
    result.push_back({k::gemm, 2048, 32, 2048, 0, ranks, 1});
    result.push_back({k::gemm, 32, 2048, 2048, 0, ranks, 1});
    result.push_back({k::gemm, 128, 128, 8192, 0, ranks, 1});
    result.push_back({k::gemm, 1024, 1024, 64, 0, ranks, 1});
    for (double degree : {4.0, 64.0}) {
      result.push_back({k::spmm, 8192, 64, 8192, degree, ranks, 1});
      result.push_back({k::spmm, 8192, 8, 8192, degree, ranks, 2});
      result.push_back({k::spmm, 1024, 128, 32768, degree, ranks, 1});
    }
    result.push_back({k::spmm, 32768, 32, 2048, 8, ranks, 1});
    for (double degree : {4.0, 24.0}) {
      result.push_back({k::spgemm, 8192, 8192, 8192, degree, ranks, 1});
      result.push_back({k::spgemm, 4096, 4096, 4096, degree, ranks, 2});
    }
    result.push_back({k::spgemm, 16384, 512, 8192, 8, ranks, 1});
    result.push_back({k::spgemm, 512, 16384, 8192, 8, ranks, 1});
    result.push_back({k::spgemm, 1024, 1024, 65536, 8, ranks, 1});
  }
  return result;
}

template <class M>
M made(std::size_t rows, std::size_t columns, double degree, const far::block_custom& blocks,
       const far::team& over) {
  if constexpr (std::is_same_v<M, dense>)
    return far::make_matrix<M>(far::dense_random{rows, columns}, blocks, {.over = over});
  else
    return far::make_matrix<M>(far::random_rows{rows, columns, static_cast<std::size_t>(degree), 1,
                                                far::entry_values::uniform()},
                               blocks, {.over = over});
}

/// Collective over `over`.
template <class A, class B, class C>
study_result measure(const study_case& of, const far::team& over, const request& how) {
  const std::size_t repeats = std::max<std::size_t>(3, how.repeats);
  request asked;
  const far::matrix_shape grid = far::squarest_grid({of.m, of.n}, over.size());
  asked.grid = {grid.rows, grid.columns};
  asked.tiles = {of.fine * grid.rows, of.fine * grid.columns,
                 of.fine * std::max(grid.rows, grid.columns)};
  const cut tiles = cut_of(of.m, of.n, of.k, asked);
  const A a = made<A>(of.m, of.k, of.degree, tiles.a, over);
  const B b = made<B>(of.k, of.n, of.degree, tiles.b, over);
  C c({of.m, of.n}, tiles.c, {.over = over});
  study_result result{of, std::vector<double>(std::size(candidates), HUGE_VAL)};
  result.chosen = far::multiply_choose(a, b, c);
  for (std::size_t round = 0; round <= repeats; ++round)  // the first one warms up
    for (std::size_t i = 0; i < std::size(candidates); ++i) {
      far::barrier(over);
      const auto begin = std::chrono::steady_clock::now();
      const double cpu = cpu_time();
      far::multiply(a, b, c, {.algorithm = candidates[i]});
      const double used = cpu_time() - cpu;
      double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      took = far::all_reduce(how.by_cpu_time ? used : took, far::maximum(), over);
      // What ranks have used together takes that long on as many cores as there are.
      if (how.by_cpu_time)
        took = std::max(took, far::all_reduce(used, std::plus<>(), over) /
                                  std::max(1U, std::thread::hardware_concurrency()));
      if (round != 0) result.seconds[i] = std::min(result.seconds[i], took);
    }
  return result;
}

void print(const std::vector<study_result>& all, bool by_cpu_time) {
  toolkit::table table(toolkit::columns::figures);
  table.row({"product", "m x k x n", "a row", "ranks", "tiles", "c", "a", "b", "layers", "summa",
             "automatic", "by the best"});
  std::size_t good = 0;
  for (const study_result& one : all) {
    std::vector<std::string> cells{
        name_of(one.of.kind), far::text(one.of.m, " x ", one.of.k, " x ", one.of.n),
        one.of.kind == product_kind::gemm ? "" : toolkit::printed("%g", one.of.degree),
        std::to_string(one.of.ranks), std::to_string(one.of.fine)};
    for (double seconds : one.seconds) cells.push_back(toolkit::printed("%.2f", seconds * 1e3));
    cells.push_back(to_text(one.chosen));
    cells.push_back(toolkit::printed("%.2f", one.ratio()));
    good += one.ratio() <= 1.2;
    table.row(cells);
  }
  std::printf(
      "Milliseconds%s, the least of several runs each.\n\n%s\n",
      by_cpu_time ? " of CPU time, of the slowest rank or of all by the number of cores" : "",
      table.text().c_str());
  std::printf("automatic is within 20 %% of the best in %zu of %zu cases\n", good, all.size());
}

}  // namespace

void run_study(const request& asked) {
  std::vector<study_result> all;
  const std::vector<study_case> cases = all_cases();
  programs::progress_bar bar("multiplying", cases.size() * 1000000, "cases");
  for (const study_case& of : cases) {
    const bool member = far::rank() < of.ranks;
    {
      const far::team over = far::world().split(member ? 0 : -1, static_cast<int>(far::rank()));
      if (member) {
        if (of.kind == product_kind::gemm)
          all.push_back(measure<dense, dense, dense>(of, over, asked));
        else if (of.kind == product_kind::spmm)
          all.push_back(measure<sparse, dense, dense>(of, over, asked));
        else
          all.push_back(measure<sparse, sparse, sparse>(of, over, asked));
      }
    }
    bar.add(1000000 / far::nprocs());
    far::barrier();
  }
  if (far::rank() != 0) return;
  if (!asked.json) return print(all, asked.by_cpu_time);
  far::json_writer out;
  out.begin_object().key("program").value("farside multiply --study").key("ranks");
  out.value(far::nprocs()).key("cases").begin_list(far::json_lines::many);
  for (const study_result& one : all) {
    out.begin_object().key("kind").value(name_of(one.of.kind));
    out.key("m").value(one.of.m).key("n").value(one.of.n).key("k").value(one.of.k);
    out.key("degree").value(one.of.degree).key("ranks").value(one.of.ranks);
    out.key("tiles_a_rank").value(one.of.fine);
    for (std::size_t i = 0; i < std::size(candidates); ++i)
      out.key("seconds_" + to_text(candidates[i])).value(one.seconds[i]);
    out.key("automatic").value(to_text(one.chosen)).key("ratio").value(one.ratio()).end_object();
  }
  out.end_list().end_object();
  std::printf("%s\n", out.text().c_str());
}

}  // namespace multiply_program

#include "results.hpp"

#include <farside/base/json.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>
#include <toolkit/svg.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

namespace multiply_program {

namespace {

double by_mean(double most, double sum, double count) { return sum > 0 ? most * count / sum : 0; }

std::string seconds(double s) {
  return s < 1e-3  ? toolkit::printed("%.1f", s * 1e6) + " us"
         : s < 1.0 ? toolkit::printed("%.2f", s * 1e3) + " ms"
                   : toolkit::printed("%.3f", s) + " s";
}

std::string tiles_of(const piece_counts& of) {
  return far::text(of.m, " x ", of.n, " tiles of C, ", of.k, " of A in a row");
}

}  // namespace

std::uint64_t piece_counts::total() const {
  return std::accumulate(products.begin(), products.end(), std::uint64_t{0});
}

std::uint64_t piece_counts::of_tile(std::size_t i, std::size_t j) const {
  std::uint64_t sum = 0;
  for (std::size_t l = 0; l < k; ++l) sum += at(i, j, l);
  return sum;
}

double piece_counts::imbalance() const {
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) most = std::max(most, of_tile(i, j));
  return by_mean(static_cast<double>(most), static_cast<double>(total()),
                 static_cast<double>(m * n));
}

double piece_counts::imbalance(std::size_t stage) const {
  std::uint64_t most = 0, sum = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j)
      most = std::max(most, at(i, j, stage)), sum += at(i, j, stage);
  return by_mean(static_cast<double>(most), static_cast<double>(sum), static_cast<double>(m * n));
}

double piece_counts::imbalance_in_step() const {
  std::uint64_t longest = 0;
  for (std::size_t l = 0; l < k; ++l) {
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) most = std::max(most, at(i, j, l));
    longest += most;
  }
  return by_mean(static_cast<double>(longest), static_cast<double>(total()),
                 static_cast<double>(m * n));
}

const run_result& outcome::median() const {
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t x, std::size_t y) { return runs[x].seconds < runs[y].seconds; });
  return runs[order[(order.size() - 1) / 2]];
}

std::uint64_t outcome::bytes_moved() const {
  std::uint64_t sum = 0;
  for (const auto& member : median().report.members)
    sum += member.bytes_fetched + member.bytes_sent;
  return sum;
}

/// Of a sparse product: what Gu and others have shown of those that expand, sort and compress.
double problem::local_intensity() const {
  if (kind == product_kind::spgemm) {
    constexpr double bytes_of_entry = 12;
    const double factor = flops() / static_cast<double>(std::max<std::uint64_t>(1, entries_c));
    return factor / ((3 + 2 * factor) * bytes_of_entry);
  }
  return local_bytes > 0 ? flops() / local_bytes : 0;
}

double problem::network_intensity(const outcome& by) const {
  const auto moved = static_cast<double>(by.bytes_moved());
  return moved > 0 ? flops() / moved : 0;
}

double local_roof(const problem& of, const bandwidths& with) {
  return std::min(with.arithmetic, of.local_intensity() * with.memory);
}

bandwidths measure_bandwidths() {
  using clock = std::chrono::steady_clock;
  auto since = [](clock::time_point begin) {
    return std::max(1e-9, std::chrono::duration<double>(clock::now() - begin).count());
  };
  bandwidths result;
  constexpr std::size_t n = std::size_t{1} << 21;
  std::vector<double> x(n, 1), y(n, 2), z(n, 0);
  far::barrier();
  for (int round = 0; round < 5; ++round) {
    const auto begin = clock::now();
    for (std::size_t i = 0; i < n; ++i) z[i] = x[i] + 1.5 * y[i];
    const double bytes = 3.0 * static_cast<double>(n * sizeof(double));
    result.memory = std::max(result.memory, bytes / since(begin));
    std::swap(x, z);  // so that no round can be left out
  }
  far::barrier();
  constexpr std::size_t edge = 256;
  far::dense<double> ones(far::matrix_shape{edge, edge});
  std::fill(ones.data(), ones.data() + edge * edge, 1.0);
  const far::dense<double>& one = ones;
  far::dense<double> product = ones;
  for (int round = 0; round < 12; ++round) {
    const auto begin = clock::now();
    far::gemm(one.view(), one.view(), product.view());
    result.arithmetic = std::max(result.arithmetic, 2.0 * edge * edge * edge / since(begin));
  }
  far::barrier();
  if (far::nprocs() > 1) {
    constexpr std::size_t bytes = std::size_t{1} << 20;
    const auto parts = far::all_gather(far::alloc<char>(bytes));
    std::vector<char> to(bytes);
    far::barrier();
    const far::ptr<char> next = parts[(far::rank() + 1) % far::nprocs()];
    for (int round = 0; round < 5; ++round) {
      const auto begin = clock::now();
      far::get(next, to.data(), bytes);
      result.network = std::max(result.network, static_cast<double>(bytes) / since(begin));
    }
    far::barrier();
    far::dealloc(parts[far::rank()]);
  }
  const double ranks = far::nprocs();
  result.memory = far::all_reduce(result.memory) / ranks;
  result.network = far::all_reduce(result.network) / ranks;
  result.arithmetic = far::all_reduce(result.arithmetic) / ranks;
  return result;
}

void print(const problem& of, const request& asked) {
  using toolkit::grouped;
  auto factor = [](const char* name, const std::string& what, far::matrix_shape shape,
                   std::uint64_t entries) {
    std::printf("%-9s %s: %s x %s, %s entries\n", name, what.c_str(), grouped(shape.rows).c_str(),
                grouped(shape.columns).c_str(), grouped(entries).c_str());
  };
  const std::string where = of.device.empty() ? "" : ", in device memory (" + of.device + ")";
  std::printf("C = A B, %s, over %s%s; %u ranks on a grid of %zu x %zu; %s\n", words_of(of.kind),
              asked.semiring.c_str(), where.c_str(), far::nprocs(), of.grid.rows, of.grid.columns,
              tiles_of(of.pieces).c_str());
  factor("A", of.a, of.shape_a, of.entries_a);
  factor("B", of.b, of.shape_b, of.entries_b);
  std::printf("C         %s entries, %s products\n", grouped(of.entries_c).c_str(),
              grouped(of.pieces.total()).c_str());
  if (!of.device.empty())
    std::printf("copied    A and B to device memory in %s, C back in %s\n",
                seconds(of.seconds_to_device).c_str(), seconds(of.seconds_from_device).c_str());
  for (const outcome& by : of.outcomes) {
    const run_result& shown = by.median();
    double least = shown.seconds, most = shown.seconds;
    for (const run_result& one : by.runs)
      least = std::min(least, one.seconds), most = std::max(most, one.seconds);
    std::printf("\n%s", far::to_text(shown.report).c_str());
    std::printf("  %s", seconds(shown.seconds).c_str());
    if (by.runs.size() > 1)
      std::printf(" (of %zu runs the median; %s to %s)", by.runs.size(), seconds(least).c_str(),
                  seconds(most).c_str());
    std::printf(", %.3g Gflop/s; %s of CPU time; load imbalance %.2f\n",
                of.flops() / shown.seconds / 1e9, seconds(shown.cpu_seconds).c_str(),
                shown.report.load_imbalance());
    if (by.stealing == far::stealing::none && of.device.empty())
      std::printf("  the model says: %.1f MB between ranks, %s\n", by.model_bytes / 1e6,
                  seconds(by.model_seconds).c_str());
    if (!by.verified.empty()) std::printf("  %s\n", by.verified.c_str());
  }
  if (of.outcomes.size() < 2) return;
  std::printf("\nmedians, made in turns                  of the first\n");
  const double first = of.outcomes.front().median().seconds;
  for (const outcome& by : of.outcomes) {
    const run_result& shown = by.median();
    std::printf("  %-24s %11s  %6.2f\n", shown.report.algorithm.c_str(),
                seconds(shown.seconds).c_str(), first > 0 ? shown.seconds / first : 1);
  }
}

std::string json_of(const std::vector<problem>& all, const bandwidths& with, const request& asked) {
  far::json_writer out;
  auto shape = [&](const char* name, far::matrix_shape of) {
    out.key(name).begin_list().value(of.rows).value(of.columns).end_list();
  };
  out.begin_object();
  out.key("program").value("farside multiply").key("ranks").value(far::nprocs());
  out.key("semiring").value(asked.semiring);
  if (with.memory > 0) {
    out.key("memory_bytes_per_second").value(with.memory);
    out.key("network_bytes_per_second").value(with.network);
    out.key("arithmetic_flops_per_second").value(with.arithmetic);
  }
  out.key("products").begin_list(far::json_lines::many);
  for (const problem& of : all)
    for (const outcome& by : of.outcomes) {
      const run_result& shown = by.median();
      out.begin_object();
      out.key("kind").value(name_of(of.kind)).key("a").value(of.a).key("b").value(of.b);
      shape("a_shape", of.shape_a);
      shape("b_shape", of.shape_b);
      out.key("a_entries").value(of.entries_a).key("b_entries").value(of.entries_b);
      out.key("c_entries").value(of.entries_c).key("multiplications").value(of.pieces.total());
      shape("grid", of.grid);
      out.key("tiles").begin_list();
      out.value(of.pieces.m).value(of.pieces.n).value(of.pieces.k).end_list();
      if (!of.device.empty()) {
        out.key("device").value(of.device).key("seconds_to_device").value(of.seconds_to_device);
        out.key("seconds_from_device").value(of.seconds_from_device);
      }
      out.key("algorithm").value(to_text(by.algorithm));
      out.key("stealing").value(to_text(by.stealing));
      out.key("seconds").begin_list();
      for (const run_result& one : by.runs) out.value(one.seconds);
      out.end_list().key("cpu_seconds").begin_list();
      for (const run_result& one : by.runs) out.value(one.cpu_seconds);
      out.end_list().key("median_seconds").value(shown.seconds);
      out.key("flops_per_second").value(of.flops() / shown.seconds);
      out.key("load_imbalance").value(shown.report.load_imbalance());
      out.key("imbalance_of_products").value(of.pieces.imbalance());
      out.key("imbalance_in_step").value(of.pieces.imbalance_in_step());
      out.key("bytes_moved").value(by.bytes_moved()).key("model_bytes").value(by.model_bytes);
      out.key("model_seconds").value(by.model_seconds);
      out.key("network_intensity").value(of.network_intensity(by));
      out.key("local_intensity").value(of.local_intensity());
      if (!by.verified.empty()) out.key("verified").value(by.verified.starts_with("verified"));
      out.key("members").begin_list();
      for (const auto& t : shown.report.members) {
        out.begin_object();
        out.key("compute").value(t.compute).key("communicate").value(t.communicate);
        out.key("accumulate").value(t.accumulate).key("imbalance").value(t.imbalance);
        out.key("total").value(t.total).key("pieces").value(t.pieces).key("stolen").value(t.stolen);
        out.key("bytes_fetched").value(t.bytes_fetched).key("bytes_sent").value(t.bytes_sent);
        out.key("most_waiting").value(t.most_waiting);
        out.end_object();
      }
      out.end_list().end_object();
    }
  out.end_list().end_object();
  return out.text();
}

}  // namespace multiply_program

// What `farside multiply` does, for each kind of product.
#pragma once

#include "on_device.hpp"
#include "results.hpp"
#include "verify.hpp"

#include <common/matrices/generators.hpp>
#include <common/matrices/gzip.hpp>
#include <common/progress_bar.hpp>
#include <common/refuse.hpp>
#include <farside/algorithms/load_matrix.hpp>
#include <farside/algorithms/multiply_model.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace multiply_program {

using dense = far::matrix<double>;
using sparse = far::sparse_matrix<double>;

/// Collective. Dense by dense, sparse by dense, sparse by sparse.
std::vector<problem> run_gemm(const request& asked);
std::vector<problem> run_spmm(const request& asked);
std::vector<problem> run_spgemm(const request& asked);

inline double cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

inline far::matrix_read_options read_options(const request& asked) {
  far::matrix_read_options options;
  options.duplicates = asked.duplicates;
  options.gzip = matrices::open_gzip;
  return options;
}

/// A factor before it is read or made.
struct factor_source {
  std::string word;
  bool made = false;
  matrices::generator_request generator;
  far::matrix_shape shape;
};

/// Collective.
inline factor_source look_at(const std::string& word, const request& asked) {
  factor_source result{word, matrices::is_generator(word), {}, {}};
  if (result.made) {
    result.generator = matrices::parse_generator(word);
    matrices::with_generator(result.generator,
                             [&](const auto& generator) { result.shape = generator.shape(); });
  } else {
    result.shape = far::look_at_matrix(word, read_options(asked)).shape;
  }
  return result;
}

/// A dense factor of random numbers that the command line does not name.
inline factor_source random_factor(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  factor_source result;
  result.made = true;
  result.word = far::text("dense:rows=", rows, ",columns=", columns, ",values=uniform,seed=", seed);
  result.generator = matrices::parse_generator(result.word);
  result.shape = {rows, columns};
  return result;
}

/// Collective.
template <class M>
M get_factor(const factor_source& from, const far::block_custom& blocks, const request& asked) {
  if (!from.made) {
    std::error_code none;
    auto bytes = std::filesystem::file_size(from.word, none);
    if (none || from.word.ends_with(".gz")) bytes = 0;
    programs::progress_bar bar("reading", bytes);
    far::matrix_read_options options = read_options(asked);
    options.progress = [&](std::uint64_t some) { bar.add(some); };
    return far::load_matrix<M>(from.word, blocks, {.name = from.word}, options);
  }
  std::unique_ptr<M> result;
  matrices::with_generator(from.generator, [&](const auto& generator) {
    result = std::make_unique<M>(far::make_matrix<M>(generator, blocks, {.name = from.word}));
  });
  return std::move(*result);
}

/// How C is cut, and A in its rows.
struct cut {
  far::matrix_shape grid;
  far::block_custom a, b, c;
};

inline cut cut_of(std::size_t m, std::size_t n, std::size_t k, const request& asked) {
  cut result;
  result.grid = far::squarest_grid({m, n}, far::nprocs());
  if (!asked.grid.empty()) result.grid = {asked.grid[0], asked.grid[1]};
  if (result.grid.rows > far::nprocs() || result.grid.columns > far::nprocs() / result.grid.rows)
    throw toolkit::wrong_option(far::text("--grid ", result.grid.rows, "x", result.grid.columns,
                                          ": there are ", far::nprocs(), " ranks; -n gives more"));
  // With stealing there is something to steal: pieces of a sixteenth of a rank's own tile.
  const std::size_t fine = asked.steals() ? 4 : 1;
  std::vector<std::size_t> tiles = asked.tiles;
  if (tiles.empty()) tiles = {fine * result.grid.rows, fine * result.grid.columns};
  if (tiles.size() == 2) tiles.push_back(std::max(tiles[0], tiles[1]));
  auto edge = [](std::size_t extent, std::size_t parts) {
    return std::max<std::size_t>(1, extent / parts + (extent % parts != 0));
  };
  const std::size_t high = edge(m, tiles[0]), wide = edge(n, tiles[1]), deep = edge(k, tiles[2]);
  result.a = {{high, deep}, result.grid};
  result.b = {{deep, wide}, result.grid};
  result.c = {{high, wide}, result.grid};
  return result;
}

/// Collective: how many products each piece takes. Fetches what stationary C does.
template <class A, class B, class C>
piece_counts count_pieces(const A& a, const B& b, const C& c, double& local_bytes) {
  piece_counts result{c.grid_shape().rows, c.grid_shape().columns, a.grid_shape().columns, {}};
  if (result.m * result.n * result.k > std::size_t{1} << 24)
    throw toolkit::wrong_option(far::text("so many tiles make ", result.m * result.n * result.k,
                                          " products of tiles; at most 16777216 are counted"));
  result.products.resize(result.m * result.n * result.k);
  local_bytes = 0;
  far::barrier();
  for (far::matrix_index at : c.my_tiles()) {
    const far::matrix_shape of = c.tile_shape(at);
    for (std::size_t k = 0; k < result.k; ++k) {
      std::uint64_t& products = result.at(at.row, at.column, k);
      const far::matrix_index left{at.row, k}, right{k, at.column};
      double bytes = static_cast<double>(of.size() * sizeof(double));
      if constexpr (requires { a.tile_nnz(left); }) {
        if constexpr (requires { b.tile_nnz(right); }) {
          if (a.tile_nnz(left) == 0 || b.tile_nnz(right) == 0) continue;
          const auto one = a.tile(left);
          const auto other = b.tile(right);
          for (auto column : one.view().columns())
            products += other.view().row_size(static_cast<std::size_t>(column));
          bytes += static_cast<double>(b.tile_bytes(right));
        } else {
          products = a.tile_nnz(left) * of.columns;
          bytes += static_cast<double>(b.tile_shape(right).size() * sizeof(double));
        }
        bytes += static_cast<double>(a.tile_bytes(left));
      } else {
        products = of.size() * a.tile_shape(left).columns;
        bytes += static_cast<double>((a.tile_shape(left).size() + b.tile_shape(right).size()) *
                                     sizeof(double));
      }
      local_bytes += bytes;
    }
  }
  if (!result.products.empty()) far::all_reduce(std::span(result.products), std::plus<>());
  local_bytes = far::all_reduce(local_bytes);
  return result;
}

/// Collective: how long some work takes until the slowest rank has done it, in seconds.
template <class Work>
double timed(Work work) {
  far::barrier();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return far::all_reduce(took.count(), far::maximum());
}

/// Collective: multiplies once; `begin(how)` is a far::multiplication.
template <class Begin>
run_result multiply_once(const Begin& begin, far::multiply_options how, const piece_counts& pieces,
                         const request& asked) {
  programs::progress_bar bar("multiplying", pieces.total(), "M products");
  const std::uint64_t mean = pieces.products.empty() ? 0 : pieces.total() / pieces.products.size();
  const bool slow = asked.slow_rank && *asked.slow_rank == far::rank();
  how.after_piece = [&bar, &asked, mean, slow](const far::multiplied_piece& piece) {
    bar.add(mean);
    if (slow)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(piece.seconds * (asked.slow_factor - 1)));
  };
  run_result result;
  std::optional<far::multiplication> work;
  double used = 0;
  result.seconds = timed([&] {
    const double cpu = cpu_time();
    work.emplace(begin(how));
    work->wait();
    used = cpu_time() - cpu;
  });
  result.cpu_seconds = far::all_reduce(used);
  result.report = work->report();
  return result;
}

/// Collective: one product by all algorithms that are asked for.
template <class A, class B, class C, class Over>
problem multiply_all(const factor_source& from_a, const factor_source& from_b, const Over& over,
                     product_kind kind, const request& asked) {
  if (from_a.shape.columns != from_b.shape.rows)
    throw toolkit::wrong_option(far::text("A of ", from_a.shape, " and B of ", from_b.shape,
                                          " have no product: A has as many columns as B has rows"));
  const std::size_t m = from_a.shape.rows, n = from_b.shape.columns, k = from_a.shape.columns;
  const cut tiles = cut_of(m, n, k, asked);
  const A a = get_factor<A>(from_a, tiles.a, asked);
  std::unique_ptr<B> other;
  if (&from_a != &from_b || !std::is_same_v<A, B> || tiles.a.tile != tiles.b.tile)
    other = std::make_unique<B>(get_factor<B>(from_b, tiles.b, asked));
  const B* b = other.get();
  if constexpr (std::is_same_v<A, B>) {
    if (!other) b = &a;
  }
  C c({m, n}, tiles.c, {.name = "C"});
  problem result;
  result.kind = kind;
  result.a = from_a.word, result.b = from_b.word;
  result.shape_a = from_a.shape, result.shape_b = from_b.shape;
  auto entries = [](const auto& of) {
    if constexpr (requires { of.nnz(); })
      return of.nnz();
    else
      return of.shape().size();
  };
  result.entries_a = entries(a), result.entries_b = entries(*b);
  result.grid = tiles.grid;
  result.pieces = count_pieces(a, *b, c, result.local_bytes);
  std::unique_ptr<device_product<A, B, C>> on_device;
  if (asked.device) {
    result.device = device_kind();
    result.seconds_to_device =
        timed([&] { on_device = std::make_unique<device_product<A, B, C>>(a, *b, c); });
  }
  auto options_of = [&](far::stationary algorithm, far::stealing stealing) {
    return far::multiply_options{.algorithm = algorithm,
                                 .stealing = stealing,
                                 .ordered = asked.ordered,
                                 .update_memory = asked.update_memory};
  };
  for (far::stationary algorithm : asked.algorithms)
    for (far::stealing stealing : asked.stealing) {
      outcome by;
      by.algorithm = far::multiply_choose(a, *b, c, options_of(algorithm, stealing));
      by.stealing = stealing;
      by.model_bytes = far::multiply_predict(a, *b, c, by.algorithm).bytes();
      by.model_seconds = far::multiply_seconds(a, *b, c, by.algorithm, stealing);
      result.outcomes.push_back(std::move(by));
    }
  // What is in device memory is multiplied there.
  auto begin = [&](const far::multiply_options& how) {
    return on_device ? on_device->begin(how) : far::async_multiply(a, *b, c, over, how);
  };
  // In turns, so that what disturbs this machine for a while disturbs all alike.
  for (std::size_t run = 0; run < asked.repeats; ++run)
    for (outcome& by : result.outcomes) {
      by.runs.push_back(
          multiply_once(begin, options_of(by.algorithm, by.stealing), result.pieces, asked));
      if (asked.verify && run == 0) {
        if (on_device) result.seconds_from_device = timed([&] { on_device->copy_to(c); });
        by.verified = verify(a, *b, c, over);
      }
    }
  if (on_device) result.seconds_from_device = timed([&] { on_device->copy_to(c); });
  result.entries_c = entries(c);
  if (!asked.output.empty()) far::save_matrix(asked.output, c, {.gzip = matrices::pack_gzip});
  far::barrier();
  return result;
}

/// One of the semirings other than the usual one, which is asked for at run time: a product over each
/// as a type of its own would take a minute to compile.
class named_semiring {
 public:
  explicit named_semiring(const std::string& name)
      : kind_(name == "min_plus"    ? kind::min_plus
              : name == "max_times" ? kind::max_times
              : name == "or_and"    ? kind::or_and
                                    : kind::plus_first) {}

  double add(double x, double y) const {
    if (kind_ == kind::min_plus) return far::min_plus<double>().add(x, y);
    if (kind_ == kind::max_times) return far::max_times<double>().add(x, y);
    if (kind_ == kind::or_and) return far::or_and<double>().add(x, y);
    return far::plus_first<double>().add(x, y);
  }
  double multiply(double x, double y) const {
    if (kind_ == kind::min_plus) return far::min_plus<double>().multiply(x, y);
    if (kind_ == kind::max_times) return far::max_times<double>().multiply(x, y);
    if (kind_ == kind::or_and) return far::or_and<double>().multiply(x, y);
    return far::plus_first<double>().multiply(x, y);
  }
  double zero() const { return kind_ == kind::min_plus ? far::min_plus<double>().zero() : 0; }
  static constexpr bool zero_is_default = false;

 private:
  enum class kind { min_plus, max_times, or_and, plus_first };
  kind kind_;
};

/// Calls work(semiring).
template <class Work>
auto with_semiring(const std::string& name, Work work) {
  if (name == "plus_times") return work(far::plus_times<double>());
  return work(named_semiring(name));
}

/// Collective: the problems of one kind.
template <class A, class B, class C>
std::vector<problem> run_kind(product_kind kind, const request& asked) {
  const factor_source a = look_at(asked.factors[0], asked);
  return with_semiring(asked.semiring, [&](const auto& over) {
    std::vector<problem> result;
    if (asked.factors.size() == 2) {
      const factor_source b = look_at(asked.factors[1], asked);
      result.push_back(multiply_all<A, B, C>(a, b, over, kind, asked));
    } else if (kind == product_kind::spmm) {
      for (std::size_t columns : asked.columns)
        result.push_back(multiply_all<A, B, C>(
            a, random_factor(a.shape.columns, columns, asked.seed), over, kind, asked));
    } else {
      if (a.shape.rows != a.shape.columns)
        throw toolkit::wrong_option(
            far::text(a.word, " is ", a.shape, ": with one factor C = A A, which must be square"));
      result.push_back(multiply_all<A, B, C>(a, a, over, kind, asked));
    }
    return result;
  });
}

}  // namespace multiply_program

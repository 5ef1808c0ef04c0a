// The matrices that `farside matrix make` knows.
#pragma once

#include "gzip.hpp"
#include "job.hpp"

#include <common/progress_bar.hpp>
#include <farside/algorithms/matrix_files.hpp>
#include <farside/algorithms/matrix_generators.hpp>
#include <support.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace matrix_program {

/// Every rank's entries are those of an even part of the rows.
inline auto by_rows(const far::matrix_shape& shape) {
  return [rows = shape.rows, ranks = far::nprocs()](std::size_t row, std::size_t) {
    return static_cast<far::rank_t>(far::even_part_of(rows, row, ranks));
  };
}

inline far::entry_values values_of(const request& asked) {
  if (asked.values == "uniform")
    return far::entry_values::uniform(asked.low, asked.high, asked.seed);
  if (asked.values == "ones") return far::entry_values::ones();
  auto given = [&](const char* name) {
    return std::find(asked.given.begin(), asked.given.end(), name) != asked.given.end();
  };
  return far::entry_values::whole(given("--low") ? std::llround(asked.low) : 1,
                                  given("--high") ? std::llround(asked.high) : 9, asked.seed);
}

/// Collective.
template <class T, far::matrix_generator G>
void make_one(const request& asked, const G& generator) {
  const far::matrix_shape shape = generator.shape();
  const far::index_range rows = far::even_part(shape.rows, far::rank(), far::nprocs());
  std::vector<far::triplet<T>> mine;
  if constexpr (far::row_generator<G>) {
    programs::progress_bar bar("making", shape.rows);
    std::size_t last = rows.first;
    far::for_each_generated<T>(generator, rows, [&](std::size_t r, std::size_t c, const T& value) {
      mine.push_back({r, c, value});
      if (r - last >= 4096) bar.add(r - std::exchange(last, r));
    });
  } else {
    mine = far::generate<T>(generator, by_rows(shape));
  }
  far::matrix_write_options how;
  how.symmetry = asked.symmetry;
  how.gzip = pack_gzip;
  how.first_vertex = asked.one_based ? 1 : 0;
  far::write_matrix<T>(asked.output, shape, rows, mine, how, far::world(), asked.to);
  const std::uint64_t all = far::all_reduce(std::uint64_t{mine.size()});
  if (far::rank() == 0)
    std::printf("%s: %zu x %zu, %s entries\n", asked.output.c_str(), shape.rows, shape.columns,
                far::app::grouped(all).c_str());
}

template <class T>
void make(const request& asked) {
  const std::string& kind = asked.words[0];
  const far::entry_values values = values_of(asked);
  if (kind == "rmat")
    make_one<T>(asked, far::rmat({.scale = asked.scale,
                                  .edge_factor = asked.edge_factor,
                                  .a = asked.a,
                                  .b = asked.b,
                                  .c = asked.c,
                                  .seed = asked.seed,
                                  .permuted = asked.permuted,
                                  .symmetric = asked.undirected,
                                  .values = values}));
  else if (kind == "er")
    make_one<T>(asked, far::erdos_renyi{asked.n, asked.degree, asked.seed, values});
  else if (kind == "random")
    make_one<T>(asked,
                far::random_entries{asked.rows, asked.columns, asked.entries, asked.seed, values});
  else if (kind == "rows")
    make_one<T>(asked,
                far::random_rows{asked.rows, asked.columns, asked.per_row, asked.seed, values});
  else if (kind == "banded")
    make_one<T>(asked, far::banded{asked.rows, asked.columns, asked.lower, asked.upper, values});
  else if (kind == "dense")
    make_one<T>(asked, far::dense_random{asked.rows, asked.columns, values});
  else if (kind == "diagonal")
    make_one<T>(asked, far::diagonal{asked.n, asked.value});
  else if (kind == "laplacian2d")
    make_one<T>(asked, far::laplacian_2d{asked.nx, asked.ny});
  else
    make_one<T>(asked, far::laplacian_3d{asked.nx, asked.ny, asked.nz});
}

}  // namespace matrix_program

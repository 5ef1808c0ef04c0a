// The matrices that `farside matrix make` knows.
#pragma once

#include "job.hpp"

#include <common/matrices/generators.hpp>
#include <common/matrices/gzip.hpp>
#include <common/progress_bar.hpp>
#include <farside/algorithms/matrix_files.hpp>
#include <farside/algorithms/matrix_generators.hpp>
#include <toolkit/words.hpp>

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
  how.gzip = matrices::pack_gzip;
  how.first_vertex = asked.one_based ? 1 : 0;
  far::write_matrix<T>(asked.output, shape, rows, mine, how, far::world(), asked.to);
  const std::uint64_t all = far::all_reduce(std::uint64_t{mine.size()});
  if (far::rank() == 0)
    std::printf("%s: %zu x %zu, %s entries\n", asked.output.c_str(), shape.rows, shape.columns,
                toolkit::grouped(all).c_str());
}

template <class T>
void make(const request& asked) {
  matrices::with_generator(asked.generator,
                           [&](const auto& generator) { make_one<T>(asked, generator); });
}

}  // namespace matrix_program

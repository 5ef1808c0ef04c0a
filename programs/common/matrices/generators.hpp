// The generators that programs know by name.
#pragma once

#include <common/matrices/generator_options.hpp>
#include <farside/algorithms/matrix_generators.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace matrices {

inline far::entry_values values_of(const generator_request& asked) {
  if (asked.values == "uniform")
    return far::entry_values::uniform(asked.low, asked.high, asked.seed);
  if (asked.values == "ones") return far::entry_values::ones();
  auto given = [&](const char* name) {
    return std::find(asked.given.begin(), asked.given.end(), name) != asked.given.end();
  };
  return far::entry_values::whole(given("--low") ? std::llround(asked.low) : 1,
                                  given("--high") ? std::llround(asked.high) : 9, asked.seed);
}

/// Calls visit(generator) with the one that is asked for.
template <class Visit>
void with_generator(const generator_request& asked, Visit visit) {
  const std::string& kind = asked.kind;
  const far::entry_values values = values_of(asked);
  if (kind == "rmat")
    visit(far::rmat({.scale = asked.scale,
                     .edge_factor = asked.edge_factor,
                     .a = asked.a,
                     .b = asked.b,
                     .c = asked.c,
                     .seed = asked.seed,
                     .permuted = asked.permuted,
                     .symmetric = asked.undirected,
                     .values = values}));
  else if (kind == "er")
    visit(far::erdos_renyi{asked.n, asked.degree, asked.seed, values});
  else if (kind == "random")
    visit(far::random_entries{asked.rows, asked.columns, asked.entries, asked.seed, values});
  else if (kind == "rows")
    visit(far::random_rows{asked.rows, asked.columns, asked.per_row, asked.seed, values});
  else if (kind == "banded")
    visit(far::banded{asked.rows, asked.columns, asked.lower, asked.upper, values});
  else if (kind == "dense")
    visit(far::dense_random{asked.rows, asked.columns, values});
  else if (kind == "diagonal")
    visit(far::diagonal{asked.n, asked.value});
  else if (kind == "laplacian2d")
    visit(far::laplacian_2d{asked.nx, asked.ny});
  else
    visit(far::laplacian_3d{asked.nx, asked.ny, asked.nz});
}

}  // namespace matrices

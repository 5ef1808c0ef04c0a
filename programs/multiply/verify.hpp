// A product once more, serially, by nothing of what made it: sums over the definition.
#pragma once

#include <farside/algorithms/multiply_model.hpp>
#include <farside/core/collectives.hpp>
#include <toolkit/words.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace multiply_program {

/// Calls visit(column, value) for the entries of a row, of a csr or a dense matrix.
template <class Rows, class Visit>
void for_each_in_row(const Rows& of, std::size_t i, Visit visit) {
  if constexpr (requires { of.nnz(); }) {
    for (auto [column, value] : of.view().row(i)) visit(static_cast<std::size_t>(column), value);
  } else {
    for (std::size_t j = 0; j < of.shape().columns; ++j) visit(j, of[{i, j}]);
  }
}

/// Collective: each rank computes an even part of the rows of A B, with all of B at hand, and compares
/// it with C. Numbers agree if they differ by 1e-12 of the sum of the products' absolute values.
template <class A, class B, class C, class Over>
std::string verify(const A& a, const B& b, const C& c, const Over& over) {
  using T = typename C::value_type;
  const far::index_range rows = far::even_part(c.shape().rows, far::rank(), far::nprocs());
  const std::size_t wide = c.shape().columns;
  const auto left = a.slice(rows, {0, a.shape().columns});
  const auto right = b.to_local();
  const auto made = c.slice(rows, {0, wide});
  struct sum {
    T value;
    double size = 0;
    int state = 0;  ///< 1: there is a product; 2: it was met in C
  };
  std::vector<sum> sums(wide, sum{over.zero()});
  constexpr bool sparse = requires { made.nnz(); };
  std::uint64_t wrong = 0, compared = 0;
  std::vector<std::size_t> touched;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    touched.clear();
    for_each_in_row(left, i, [&](std::size_t k, const T& x) {
      for_each_in_row(right, k, [&](std::size_t j, const T& y) {
        sum& to = sums[j];
        const T product = over.multiply(x, y);
        if (to.state == 0) touched.push_back(j), to.state = 1;
        to.value = over.add(to.value, product);
        to.size += std::abs(static_cast<double>(product));
      });
    });
    for_each_in_row(made, i, [&](std::size_t j, const T& value) {
      sum& expected = sums[j];
      const bool near =
          value == expected.value || std::abs(value - expected.value) <= 1e-12 * expected.size;
      if (!near || (sparse && expected.state != 1)) ++wrong;
      if (expected.state == 1) expected.state = 2;
      ++compared;
    });
    for (std::size_t j : touched) {
      if (sums[j].state == 1) ++wrong;  // C has nothing there
      sums[j] = sum{over.zero()};
    }
  }
  wrong = far::all_reduce(wrong);
  compared = far::all_reduce(compared);
  if (wrong != 0)
    return "WRONG: " + toolkit::grouped(wrong) + " entries differ from those of a serial product";
  return "verified: " + toolkit::grouped(compared) + " entries are those of a serial product";
}

}  // namespace multiply_program

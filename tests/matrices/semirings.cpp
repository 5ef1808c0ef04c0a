// Products over other semirings and of other types; sums that come out the same, to the last bit.
#include "matrix_oracle.hpp"

#include <farside/algorithms/multiply_plan.hpp>

#include <cmath>
#include <complex>

namespace semirings_tests {

using far::stationary;
using far::stealing;
using matrix_tests::everything;
using matrix_tests::fill;
using matrix_tests::product_of;

namespace {

const auto tiles = [](std::size_t rows, std::size_t columns) {
  return far::block_custom{{rows, columns}};
};

/// Sparse matrices over a semiring: entries that are absent are its zero.
template <class T, class Over>
void check_sparse(const Over& over, T (*value)(long)) {
  far::sparse_matrix<T> a({18, 15}, tiles(5, 4)), b({15, 11}, tiles(4, 6)),
      c({18, 11}, tiles(5, 6));
  fill(a, {1, 250});
  fill(b, {2, 250});
  auto convert = [&](T& x) { x = value(static_cast<long>(x)); };
  a.apply(convert);
  b.apply(convert);
  auto expected =
      product_of(everything(a, over.zero()), everything(b, over.zero()), 18, 15, 11, over);
  for (stationary algorithm :
       {stationary::c, stationary::a, stationary::b, stationary::layers, stationary::summa}) {
    far::multiply(a, b, c, over, {.algorithm = algorithm});
    CHECK(everything(c, over.zero()) == expected);
    far::barrier();
  }
}

/// Of widths of paths, the widest.
struct widest {
  int add(int x, int y) const { return std::max(x, y); }
  int multiply(int x, int y) const { return std::min(x, y); }
  int zero() const { return 0; }
  static constexpr bool zero_is_default = true;
};

}  // namespace

FAR_TEST(over_other_semirings) {
  check_sparse<int>(far::min_plus<int>(), [](long x) { return static_cast<int>(x); });
  check_sparse<float>(far::max_times<float>(), [](long x) { return static_cast<float>(x * x); });
  check_sparse<char>(far::or_and<char>(), [](long) { return char{1}; });
  check_sparse<int>(widest(), [](long x) { return static_cast<int>(x + 10); });
}

FAR_TEST(dense_over_min_plus) {
  const far::min_plus<int> over;
  far::sparse_matrix<int> a({10, 9}, tiles(3, 4));
  far::matrix<int> b({9, 7}, tiles(4, 3)), c({10, 7}, tiles(3, 3));
  fill(a, {1, 200});
  fill(b, {2});
  auto expected = product_of(everything(a, over.zero()), everything(b), 10, 9, 7, over);
  for (stationary algorithm : {stationary::c, stationary::a, stationary::slices}) {
    far::multiply(a, b, c, over, {.algorithm = algorithm});
    CHECK(everything(c) == expected);
    far::barrier();
  }
}

FAR_TEST(floating_point_and_complex) {
  using complex = std::complex<double>;
  far::matrix<complex> a({14, 10}, tiles(4, 5)), b({10, 9}, tiles(5, 4)), c({14, 9}, tiles(4, 4));
  auto number = [](far::matrix_index at, complex& x) {
    x = {1.0 / static_cast<double>(at.row + 1), static_cast<double>(at.column) * 0.1};
  };
  a.apply(number);
  b.apply(number);
  auto expected = product_of(everything(a), everything(b), 14, 10, 9, far::plus_times<complex>());
  for (stationary algorithm : {stationary::c, stationary::a, stationary::b}) {
    far::multiply(a, b, c, {.algorithm = algorithm});
    auto got = everything(c);
    for (std::size_t e = 0; e < got.size(); ++e)
      CHECK(std::abs(got[e] - expected[e]) <= 1e-12 * std::abs(expected[e]));
    far::barrier();
  }
}

namespace {

template <class A, class B, class C>
void check_ordered() {
  const far::matrix_shape grid =
      far::squarest_grid({20, 10}, far::nprocs());  // one for all, for SUMMA
  A a({20, 24}, far::block_custom{{5, 3}, grid});
  B b({24, 10}, far::block_custom{{3, 5}, grid});
  C c({20, 10}, far::block_custom{{5, 5}, grid}), again({20, 10}, far::block_custom{{5, 5}, grid});
  fill(a, {1, 600});
  fill(b, {2, 600});
  auto number = [](far::matrix_index at, double& x) {
    x = std::sin(static_cast<double>(at.row * 31 + at.column * 7)) *
        std::exp(static_cast<double>(at.column % 9) * 3);
  };
  a.apply(number);
  b.apply(number);
  for (stationary algorithm :
       {stationary::a, stationary::b, stationary::layers, stationary::c, stationary::summa})
    for (stealing help : {stealing::none, stealing::random, stealing::near}) {
      if (help != stealing::none && algorithm != stationary::a && algorithm != stationary::c)
        continue;
      const far::multiply_options how{.algorithm = algorithm, .stealing = help, .ordered = true};
      far::multiply(a, b, c, how);
      far::multiply(a, b, again, how);
      CHECK(everything(c) == everything(again));
      far::barrier();
    }
}

}  // namespace

FAR_TEST(ordered_sums_are_the_same_to_the_last_bit) {
  using dense = far::matrix<double>;
  using sparse = far::sparse_matrix<double>;
  check_ordered<dense, dense, dense>();
  check_ordered<sparse, dense, dense>();
  check_ordered<sparse, sparse, sparse>();
}

FAR_TEST(inspected_and_filled) {
  far::sparse_matrix<long> a({25, 20}, tiles(7, 6)), b({20, 15}, tiles(6, 5)),
      c({25, 15}, tiles(7, 5));
  fill(a, {1});
  fill(b, {2});
  far::multiply_plan plan = far::multiply_inspect(a, b, c);
  auto va = everything(a), vb = everything(b);
  std::uint64_t products = 0;
  const auto local = a.to_local();
  for (auto [at, x] : local.view()) products += b.slice({at.column, at.column + 1}, {0, 15}).nnz();
  CHECK_EQ(plan.products, products);
  far::barrier();
  for (int round = 0; round < 3; ++round) {
    far::multiply_fill(plan, a, b, c);
    CHECK(c.nnz() <= plan.most_entries);
    CHECK(everything(c) ==
          product_of(everything(a), everything(b), 25, 20, 15, far::plus_times<long>()));
    a.apply([&](long& x) { x += round + 1; });
    b.apply([&](far::matrix_index at, long& x) { x -= static_cast<long>(at.row); });
  }
  far::barrier();
  // The same number of entries, one of them elsewhere.
  far::sparse_matrix<long> one({4, 4}, tiles(2, 2)), other({4, 4}, tiles(2, 2)),
      product({4, 4}, tiles(2, 2));
  if (far::rank() == 0) one.insert({0, 0}, 2);
  one.assemble();
  auto small = far::multiply_inspect(one, one, product);
  far::multiply_fill(small, one, one, product);
  if (far::rank() == 0) other.insert({1, 1}, 2);
  other.assemble();
  CHECK_THROWS(far::multiply_fill(small, other, other, product), "make another plan");
  far::barrier();
}

}  // namespace semirings_tests

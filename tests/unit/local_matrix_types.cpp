// Shapes, dense views, compressed rows: what local matrices are made of.
#include <farside/algorithms/semiring.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/matrix_view.hpp>

#include <array>
#include <string>

#include "matrix_oracle.hpp"

namespace {

void shapes() {
  far::matrix_shape shape{3, 4};
  CHECK(shape.size() == 12);
  CHECK(far::contains(shape, {2, 3}) && !far::contains(shape, {3, 0}) &&
        !far::contains(shape, {0, 4}));
  CHECK(far::matrix_index{1, 9} < far::matrix_index{2, 0});
  CHECK(far::to_text(shape) == "3 x 4" && far::to_text(far::matrix_index{3, 4}) == "(3, 4)");
}

void dense_views() {
  std::array<int, 21> memory{};
  for (int i = 0; i < 21; ++i) memory[static_cast<std::size_t>(i)] = i;
  far::matrix_view<int> view(memory.data(), {3, 4}, 7);
  CHECK(view[{0, 0}] == 0 && view[{2, 3}] == 17 && !view.contiguous());
  view[{1, 1}] = -1;
  CHECK(memory[8] == -1);
  far::matrix_view<const int> read_only = view;
  CHECK(read_only.row(2).size() == 4 && read_only.row(2)[3] == 17);
  auto part = view.submatrix({1, 2}, {2, 2});
  CHECK(part.shape() == far::matrix_shape{2, 2} && part[{0, 0}] == 9 && part[{1, 1}] == 17);
  CHECK(view.submatrix({3, 4}, {0, 0}).shape().size() == 0);
  CHECK(far::matrix_view<int>(memory.data(), {3, 7}).contiguous());
  CHECK_THROWS(far::matrix_view<int>(memory.data(), {3, 4}, 3),
               "3 x 4 was given the leading dimension 3");
  CHECK_THROWS(view.submatrix({1, 0}, {3, 1}),
               "a submatrix of 3 x 1 at (1, 0) does not lie in a matrix_view of 3 x 4");
  CHECK_THROWS(view.submatrix({0, 4}, {1, 1}), "a submatrix of 1 x 1 at (0, 4)");
#if FARSIDE_CHECKED
  CHECK_THROWS((view[{3, 0}]), "element (3, 0) of a matrix_view of 3 x 4");
  CHECK_THROWS(view.row(3), "row 3 of a matrix_view of 3 x 4");
#endif
}

template <class I>
void triplets() {
  using csr = far::csr<long, I>;
  auto a = csr::from_triplets({4, 5}, {{3, 1, 1}, {0, 4, 2}, {3, 0, 3}, {0, 4, 4}, {0, 4, -6}});
  CHECK(oracle::same(a.view(), {{{0, 4}, 0}, {{3, 0}, 3}, {{3, 1}, 1}}));  // zeros stay
  CHECK(a.sorted() && a.row(1).empty() && a.row(3).size() == 2);
  // Duplicates are combined in the order in which they are given.
  auto last = csr::from_triplets({1, 3}, {{0, 1, 5}, {0, 0, 1}, {0, 1, 0}, {0, 1, 6}},
                                 [](long, long y) { return y; });
  CHECK(oracle::same(last.view(), {{{0, 0}, 1}, {{0, 1}, 6}}));
  auto difference =
      csr::from_triplets({1, 3}, {{0, 1, 5}, {0, 2, 0}, {0, 1, 7}, {0, 1, 6}}, std::minus<>());
  CHECK(difference.values()[0] == 5 - 7 - 6);
  CHECK_THROWS((csr::from_triplets({2, 2}, {{2, 0, 1}})),
               "an entry at (2, 0) does not lie in a matrix of 2 x 2");
  CHECK_THROWS((csr::from_triplets({2, 2}, {{0, 2, 1}})), "an entry at (0, 2)");
  CHECK(csr::from_triplets({0, 7}, {}).nnz() == 0 && csr::from_triplets({7, 0}, {}).rows() == 7);
}

template <class I>
void views() {
  std::mt19937_64 random(7);
  auto a = oracle::sparse<double, I>(random, {31, 17}, 5, true);
  auto all = oracle::entries_of(a.view());
  CHECK(all.size() == a.nnz());
  // Some rows are a view whose row pointers do not begin at zero.
  auto rows = a.view().row_range(10, 12);
  rows.check();
  CHECK(rows.row_begin()[0] != 0 && rows.rows() == 12);
  CHECK(rows.columns().size() == rows.nnz() &&
        rows.columns().data() == rows.row(0).columns().data());
  std::size_t seen = 0;
  for (auto [index, value] : rows) {
    CHECK(all.at({index.row + 10, index.column}) == value);
    ++seen;
  }
  CHECK(seen == rows.nnz() && seen != 0);
  CHECK(oracle::entries_of(far::csr<double, I>(rows).view()) == oracle::entries_of(rows));
  CHECK(rows.row_range(12, 0).nnz() == 0);
  CHECK_THROWS(rows.row_range(11, 2), "rows 11 to 13 of a csr_view of 12 x 17");
  // Transposed twice: as it was, and sorted whatever it was.
  for (bool sorted : {true, false}) {
    auto b = oracle::sparse<double, I>(random, {31, 17}, 5, sorted);
    auto t = b.transposed();
    t.view().check();
    CHECK(t.shape() == far::matrix_shape{17, 31} && t.sorted());
    for (auto [index, value] : t.view())
      CHECK(oracle::entries_of(b.view()).at({index.column, index.row}) == value);
    CHECK(oracle::same(t.transposed().view(), oracle::entries_of(b.view())));
    b.sort_rows();
    CHECK(oracle::same(b.view(), oracle::entries_of(t.transposed().view())));
  }
  far::csr_view<double, I> none({5, 3}, nullptr, nullptr, nullptr, true);
  CHECK(none.nnz() == 0 && none.row(4).empty() && none.begin() == none.end());
}

void refused() {
  CHECK_THROWS((far::csr<double>({1, (std::size_t{1} << 31) + 1})),
               "1 x 2147483649 does not fit column indices of 32 bits");
  CHECK((far::csr<double>({1, std::size_t{1} << 31})).nnz() == 0);
  CHECK_THROWS((far::csr<double, std::int16_t>({40000, 1}).transposed()),
               "1 x 40000 does not fit column indices of 16 bits, which end at 32767");
  std::array<std::int64_t, 3> begins{0, 2, 1};
  std::array<int, 2> columns{1, 0};
  std::array<double, 2> values{1, 2};
  far::csr_view<double> view({2, 2}, begins.data(), columns.data(), values.data(), true);
  CHECK_THROWS(view.check(), "row 0 of a csr_view of 2 x 2 has column 0 after column 1");
  columns = {0, 2};
  CHECK_THROWS(view.check(), "row 0 of a csr_view of 2 x 2 has an entry in column 2");
  columns = {0, 1};
  CHECK_THROWS(view.check(), "decrease: row 1 begins at 2 and the next one at 1");
}

void semirings() {
  constexpr long most = std::numeric_limits<long>::max(), least = std::numeric_limits<long>::min();
  far::min_plus<long> shortest;
  CHECK(shortest.zero() == most && shortest.add(3, most) == 3);
  CHECK(shortest.multiply(most, -5) == most && shortest.multiply(-5, most) == most);
  CHECK(shortest.multiply(most - 1, 5) == most && shortest.multiply(least, -1) == least);
  CHECK(shortest.multiply(3, 4) == 7);
  constexpr double inf = std::numeric_limits<double>::infinity();
  CHECK(far::min_plus<double>().multiply(inf, -inf) == inf);
  double sum = 1;
  far::min_plus<double>().add_product(sum, inf, -inf);
  CHECK(sum == 1);
  CHECK(far::or_and<int>().add(0, 7) == 1 && far::or_and<int>().multiply(3, 0) == 0);
  CHECK(far::plus_first<int>().multiply(3, 7) == 3 && far::max_times<int>().add(3, 7) == 7);
  using complex = std::complex<double>;
  CHECK(far::plus_times<complex>().multiply({1, 2}, {3, -4}) == complex(1, 2) * complex(3, -4));
}

}  // namespace

int main() {
  shapes();
  dense_views();
  triplets<std::int32_t>();
  triplets<std::int64_t>();
  views<std::int32_t>();
  views<std::int64_t>();
  refused();
  semirings();
  return verdict("local matrix types");
}

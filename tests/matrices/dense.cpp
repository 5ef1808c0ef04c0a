// far::matrix against a vector: elements, tiles, slices, and operations on all elements, in many
// layouts.
#include "matrix_oracle.hpp"

#include <cmath>
#include <complex>

namespace dense_tests {

using far::matrix_index;
using far::matrix_shape;
using matrix_tests::contents;
using matrix_tests::everything;
using matrix_tests::fill;

namespace {

template <class Work>
void in_many_layouts(Work work) {
  work(far::block_rect());
  work(far::block_row{2});
  work(far::block_custom{{3, 2}});
  work(far::block_custom{{far::div, far::div}, {1, 1}});
  work(far::block_column());
}

}  // namespace

FAR_TEST(elements_tiles_and_slices) {
  in_many_layouts([](const auto& blocks) {
    far::matrix<long> m({13, 9}, blocks);
    CHECK(everything(m) == std::vector<long>(13 * 9));
    const contents with{7};
    fill(m, with);
    auto value = [&](std::size_t i, std::size_t j) { return with.value<long>(i, j); };
    for (std::size_t i = 0; i < 13; ++i)
      for (std::size_t j = 0; j < 9; ++j) CHECK_EQ(static_cast<long>(m[{i, j}]), value(i, j));

    for (std::size_t i = 0; i < m.grid_shape().rows; ++i)
      for (std::size_t j = 0; j < m.grid_shape().columns; ++j) {
        auto tile = m.tile({i, j});
        const matrix_index first = m.layout().first_of({i, j});
        CHECK(tile.shape() == m.tile_shape({i, j}));
        for (std::size_t r = 0; r < tile.shape().rows; ++r)
          for (std::size_t c = 0; c < tile.shape().columns; ++c)
            CHECK_EQ((tile[{r, c}]), value(first.row + r, first.column + c));
      }
    for (auto [r0, r1, c0, c1] : {std::array<std::size_t, 4>{0, 13, 0, 9},
                                  {2, 11, 1, 8},
                                  {5, 6, 0, 9},
                                  {0, 13, 4, 5},
                                  {3, 3, 2, 7},
                                  {12, 13, 8, 9}}) {
      auto slice = m.slice({r0, r1}, {c0, c1});
      CHECK(slice.shape() == (matrix_shape{r1 - r0, c1 - c0}));
      for (std::size_t i = r0; i < r1; ++i)
        for (std::size_t j = c0; j < c1; ++j) CHECK_EQ((slice[{i - r0, j - c0}]), value(i, j));
    }
    far::barrier();

    // Each rank writes a column of its own through a wider view.
    far::dense<long> block({4, 5}, -1);
    const std::size_t mine = far::rank() % 9;
    for (std::size_t i = 0; i < 4; ++i) block[{i, 2}] = static_cast<long>(100 * mine + i);
    m.put_slice({6, mine}, block.view().submatrix({0, 2}, {4, 1}));
    far::barrier();
    for (std::size_t r = 0; r < std::min<std::size_t>(9, far::nprocs()); ++r)
      for (std::size_t i = 0; i < 4; ++i)
        CHECK_EQ(static_cast<long>(m[{6 + i, r}]), static_cast<long>(100 * r + i));
    far::barrier();
    if (far::rank() == 0) {
      far::dense<long> tile(m.tile_shape({0, 0}), 5);
      m.put_tile({0, 0}, tile);
      far::flush();  // the element may be in that tile
      m[{12, 8}] = 77;
    }
    far::barrier();
    CHECK_EQ(static_cast<long>(m[{0, 0}]), 5);
    CHECK_EQ(static_cast<long>(m[{12, 8}]), 77);
    far::barrier();
  });
}

FAR_TEST(operations_on_all_elements) {
  in_many_layouts([](const auto& blocks) {
    far::matrix<double> a({11, 6}, blocks), b({11, 6}, far::block_custom{{4, 5}}), t({6, 11});
    fill(a, {3});
    fill(b, {4});
    auto va = everything(a), vb = everything(b);
    double sum = 0, dot = 0, square = 0, most = -100;
    for (std::size_t e = 0; e < va.size(); ++e) {
      sum += va[e], dot += va[e] * vb[e], square += va[e] * va[e];
      most = std::max(most, va[e]);
    }
    CHECK_EQ(a.sum(), sum);
    CHECK_EQ(a.dot(b), dot);
    CHECK(std::abs(a.norm() - std::sqrt(square)) < 1e-12 * square);
    CHECK_EQ(a.reduce(-100.0, far::maximum()), most);
    a.combine(b, [](double x, double y) { return 10 * x + y; });
    auto both = everything(a);
    for (std::size_t e = 0; e < va.size(); ++e) CHECK_EQ(both[e], 10 * va[e] + vb[e]);
    a.copy_from(b);
    CHECK(everything(a) == vb);
    t.transpose_from(b);
    auto turned = everything(t);
    for (std::size_t i = 0; i < 11; ++i)
      for (std::size_t j = 0; j < 6; ++j) CHECK_EQ(turned[j * 11 + i], vb[i * 6 + j]);
    a.fill(2.5);
    CHECK_EQ(a.sum(), 2.5 * 66);
  });
  far::matrix<std::complex<double>> z({3, 4});
  z.fill({3, 4});
  CHECK(std::abs(z.norm() - std::sqrt(12.0) * 5) < 1e-12);
}

FAR_TEST(none_at_all) {
  for (matrix_shape shape : {matrix_shape{0, 5}, {5, 0}, {0, 0}}) {
    far::matrix<int> m(shape);
    CHECK(m.grid_shape().size() == 0 && m.my_tiles().empty());
    CHECK_EQ(m.sum(), 0);
    CHECK(m.to_local().shape() == shape);
    m.fill(3);
  }
  far::matrix<int> tiny({1, 1});  // fewer rows than ranks
  tiny.fill(4);
  CHECK_EQ(tiny.sum(), 4);
}

FAR_TEST(teams) {
  far::team half = far::world().split(far::rank() % 2 == 0 ? 0 : 1);
  far::matrix<long> m({8, 8}, far::block_custom{{3, 3}}, {.over = half});
  fill(m, {5 + far::rank() % 2});
  CHECK_EQ(static_cast<long>(m[{7, 1}]), (contents{5 + far::rank() % 2}.value<long>(7, 1)));
  CHECK_EQ(m.members().size(), half.size());
  far::barrier(half);
}

FAR_TEST(wrong_uses) {
  far::matrix<int> m({4, 4}, far::block_custom{{2, 2}}, {.name = "it"});
  CHECK_THROWS(static_cast<int>(m[{4, 0}]), "operator[] of element (4, 0), but it is 4 x 4");
  CHECK_THROWS(m.tile({2, 0}), "tile (2, 0), but it has 2 x 2 tiles");
  CHECK_THROWS(m.slice({0, 5}, {0, 2}), "slice of rows 0 to 5");
  CHECK_THROWS(m.slice({3, 2}, {0, 2}), "slice of rows 3 to 2");
  far::dense<int> wide({3, 2});
  CHECK_THROWS(m.put_slice({2, 0}, wide), "put_slice of rows 2 to 5");
  CHECK_THROWS(m.put_tile({0, 0}, wide), "was given 3 x 2");
  if (far::nprocs() > 1)
    for (std::size_t t = 0; t < 4; ++t)
      if (m.owner({t / 2, t % 2}) != far::rank())
        CHECK_THROWS(m.my_tile({t / 2, t % 2}), "Only the owner of a tile does that");
  far::matrix<int> other({4, 5});
  CHECK_THROWS(m.copy_from(other), "was given 4 x 5");
  far::barrier();
}

}  // namespace dense_tests

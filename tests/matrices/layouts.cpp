// How matrices are cut: every element is in one tile, every tile has one owner, and descriptors say
// what they promise.
#include "matrix_oracle.hpp"

#include <set>

namespace layouts_tests {

using far::matrix_index;
using far::matrix_shape;

namespace {

void check_layout(const far::matrix_layout& l, far::rank_t members) {
  const matrix_shape shape = l.shape();
  std::size_t elements = 0;
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (far::rank_t member = 0; member < members; ++member) {
    std::size_t n = 0;
    l.for_each_tile(member, [&](matrix_index tile) {
      CHECK_EQ(l.owner(tile), member);
      CHECK_EQ(l.number_of(tile), n++);
      CHECK(contains(l.grid_shape(), tile));
      CHECK(seen.emplace(tile.row, tile.column).second);
      const matrix_index first = l.first_of(tile);
      const matrix_shape of = l.tile_shape(tile);
      CHECK(of.size() != 0 && first.row + of.rows <= shape.rows &&
            first.column + of.columns <= shape.columns);
      elements += of.size();
      CHECK(l.tile_of(first) == tile);
      CHECK(l.tile_of({first.row + of.rows - 1, first.column + of.columns - 1}) == tile);
    });
    CHECK_EQ(l.tiles_of(member), n);
  }
  CHECK_EQ(seen.size(), l.grid_shape().size());
  CHECK_EQ(elements, shape.size());
}

}  // namespace

FAR_TEST(every_element_is_in_one_tile) {
  for (far::rank_t members : {1U, 2U, 3U, 6U, 7U, 12U, 16U})
    for (matrix_shape shape :
         {matrix_shape{1, 1}, {7, 5}, {100, 3}, {2, 31}, {64, 64}, {0, 4}, {4, 0}}) {
      auto check = [&](const auto& blocks) {
        check_layout(far::matrix_layout("it", shape, blocks(shape, members), members), members);
      };
      check(far::block_rect());
      check(far::block_square());
      check(far::block_square{3});
      check(far::block_row());
      check(far::block_row{2});
      check(far::block_column());
      check(far::block_column{3});
      check(far::block_opt());
      check(far::block_opt{4});
      check(far::block_custom{{3, 2}});
      check(far::block_custom{{far::div, 2}, {1, far::div}});
      check([](matrix_shape of, far::rank_t n) {
        return far::matrix_blocks{{1, std::max<std::size_t>(1, of.columns)}, {n, 1}};
      });
      auto [a, b, c] = far::block_matmul(shape.rows, shape.columns, 11, members);
      check(c);
      check_layout(far::matrix_layout("a", {shape.rows, 11}, a({shape.rows, 11}, members), members),
                   members);
      auto tiles = [&](const auto& d, matrix_shape of) { return d(of, members).tile; };
      CHECK_EQ(tiles(a, {shape.rows, 11}).columns, tiles(b, {11, shape.columns}).rows);
      CHECK_EQ(tiles(a, {shape.rows, 11}).rows, tiles(c, shape).rows);
      CHECK_EQ(tiles(b, {11, shape.columns}).columns, tiles(c, shape).columns);
    }
}

FAR_TEST(descriptors_say_what_they_promise) {
  CHECK(far::squarest_grid({100, 100}, 6) == (matrix_shape{3, 2}) ||
        far::squarest_grid({100, 100}, 6) == (matrix_shape{2, 3}));
  CHECK(far::squarest_grid({1000, 10}, 6) == (matrix_shape{6, 1}));
  CHECK(far::squarest_grid({10, 1000}, 7) == (matrix_shape{1, 7}));
  CHECK(far::squarest_grid({90, 90}, 9) == (matrix_shape{3, 3}));
  auto square = far::block_square()({90, 60}, 7);
  CHECK(square.grid == (matrix_shape{2, 2}) && square.tile == (matrix_shape{45, 30}));
  auto rows = far::block_row()({10, 4}, 3);
  CHECK(rows.grid == (matrix_shape{3, 1}) && rows.tile == (matrix_shape{4, 4}));
  auto cyclic = far::block_opt{10}({400, 400}, 4);
  CHECK(cyclic.grid == (matrix_shape{2, 2}) && cyclic.tile == (matrix_shape{100, 100}));
}

FAR_TEST(impossible_ones_are_refused) {
  auto make = [](matrix_shape shape, far::matrix_blocks blocks) {
    return far::matrix_layout("it", shape, blocks, 4);
  };
  CHECK_THROWS(make({5, 5}, {{0, 2}, {2, 2}}), "hold nothing");
  CHECK_THROWS(make({5, 5}, {{2, 2}, {3, 2}}), "cannot be made of a team of 4");
  CHECK_THROWS(make({5, 5}, {{2, 2}, {0, 2}}), "cannot be made of a team of 4");
  CHECK_THROWS(make({5, 5}, {{2, 2}, {std::size_t{1} << 63, 4}}), "cannot be made");
  CHECK_THROWS(make({std::size_t{1} << 40, std::size_t{1} << 40}, {{2, 2}, {2, 2}}), "64 bits");
}

}  // namespace layouts_tests

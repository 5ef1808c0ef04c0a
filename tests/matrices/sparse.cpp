// far::sparse_matrix against a std::map: entries from all ranks, tiles, slices, changes, memory that
// runs out.
#include "matrix_oracle.hpp"

namespace sparse_tests {

using far::matrix_index;
using far::matrix_shape;
using matrix_tests::contents;
using matrix_tests::everything;
using matrix_tests::fill;
using matrix_tests::scramble;

namespace {

using entries = std::map<matrix_index, long>;

void check_slice(const far::csr<long>& slice, const entries& all, far::index_range rows,
                 far::index_range columns) {
  CHECK(slice.shape() == (matrix_shape{rows.size(), columns.size()}));
  CHECK(slice.sorted());
  slice.view().check();
  std::size_t expected = 0;
  for (const auto& [at, value] : all)
    expected += at.row >= rows.first && at.row < rows.last && at.column >= columns.first &&
                at.column < columns.last;
  CHECK_EQ(slice.nnz(), expected);
  for (auto [at, value] : slice.view()) {
    auto found = all.find({at.row + rows.first, at.column + columns.first});
    CHECK(found != all.end() && found->second == value);
  }
}

}  // namespace

FAR_TEST(entries_of_all_ranks) {
  for (auto blocks :
       {far::block_custom{{3, 2}}, far::block_custom{{far::div, far::div}, {far::div, 1}},
        far::block_custom{{40, 40}, {1, 1}}}) {
    far::sparse_matrix<long> m({37, 29}, blocks);
    entries all;
    for (int round = 0; round < 2; ++round) {
      for (far::rank_t r = 0; r < far::nprocs(); ++r)
        for (std::uint64_t e = 0; e < 600; ++e) {
          const std::uint64_t x = scramble(r + 10 * static_cast<std::uint64_t>(round), e, 1);
          const matrix_index at{x % 37, x / 37 % 29};
          const auto value = static_cast<long>(x / 2000 % 50);
          all[at] += value;
          if (r == far::rank()) m.insert(at, value);
        }
      m.assemble();
      CHECK_EQ(m.nnz(), all.size());
      check_slice(m.to_local(), all, {0, 37}, {0, 29});
    }
    for (auto [r0, r1, c0, c1] : {std::array<std::size_t, 4>{5, 22, 3, 20},
                                  {6, 7, 0, 29},
                                  {36, 37, 28, 29},
                                  {4, 4, 0, 9},
                                  {0, 37, 7, 8}})
      check_slice(m.slice({r0, r1}, {c0, c1}), all, {r0, r1}, {c0, c1});
    for (std::size_t i = 0; i < 37; i += 5)
      for (std::size_t j = 0; j < 29; ++j) {
        auto found = all.find({i, j});
        CHECK(m.find({i, j}) == (found != all.end() ? std::optional(found->second) : std::nullopt));
      }
    long sum = 0;
    for (const auto& [at, value] : all) sum += value;
    CHECK_EQ(m.sum(), sum);

    far::sparse_matrix<long> turned({29, 37}), copy({37, 29}, far::block_row{5});
    turned.transpose_from(m);
    copy.copy_from(m);
    entries other_way;
    for (const auto& [at, value] : all) other_way[{at.column, at.row}] = value;
    check_slice(turned.to_local(), other_way, {0, 29}, {0, 37});
    check_slice(copy.to_local(), all, {0, 37}, {0, 29});

    m.apply([](matrix_index at, long& value) { value += static_cast<long>(at.row * at.column); });
    for (auto& [at, value] : all) value += static_cast<long>(at.row * at.column);
    check_slice(m.to_local(), all, {0, 37}, {0, 29});
    m.insert({1, 1}, 5);
    all[{1, 1}] = std::max(all[{1, 1}], 5L);
    m.assemble(far::maximum());
    check_slice(m.to_local(), all, {0, 37}, {0, 29});
    far::barrier();
  }
}

FAR_TEST(tiles_are_published_together) {
  far::sparse_matrix<int> m({10, 10}, far::block_custom{{5, 5}});
  far::csr<int> part = far::csr<int>::from_triplets({5, 5}, {{0, 1, 2}, {4, 4, 3}});
  for (matrix_index tile : m.my_tiles()) m.set_tile(tile, part.view());
  CHECK_EQ(m.nnz(), 0u);
  m.publish();
  CHECK_EQ(m.nnz(), 2 * m.grid_shape().size());
  for (std::size_t t = 0; t < 4; ++t) {
    auto tile = m.tile({t / 2, t % 2});
    CHECK(tile.nnz() == 2 && tile.view().values()[1] == 3);
    CHECK_EQ(m.tile_nnz({t / 2, t % 2}), 2u);
  }
  // Of two that are set before a publish the last one counts; an empty one has no memory.
  for (matrix_index tile : m.my_tiles()) {
    m.set_tile(tile, part.view());
    m.set_tile(tile, far::csr<int>(matrix_shape{5, 5}));
  }
  m.publish();
  CHECK_EQ(m.nnz(), 0u);
  CHECK(m.tile({1, 1}).nnz() == 0 && !m.find({9, 9}));
  for (matrix_index tile : m.my_tiles()) m.set_tile(tile, part.view());
  m.forget_set_tiles();
  m.publish();
  CHECK_EQ(m.nnz(), 0u);
  far::barrier();
}

// A tile that is written in place, when only a bound of its entries is known.
FAR_TEST(tiles_of_at_most_so_many_entries) {
  far::sparse_matrix<int> m({40, 20}, far::block_custom{{10, 20}});
  for (std::size_t most : {7u, 5000u})
    for (std::size_t entries : {0u, 1u, 7u}) {
      for (matrix_index tile : m.my_tiles()) {
        auto write = [&](std::int64_t* row_begin, std::int32_t* columns, int* values) {
          for (std::size_t i = 0; i <= 10; ++i)
            row_begin[i] = static_cast<std::int64_t>(i < 4 ? 0 : entries);
          for (std::size_t e = 0; e < entries; ++e)
            columns[e] = static_cast<std::int32_t>(2 * e),
            values[e] = static_cast<int>(e + tile.row);
          return entries;
        };
        CHECK(m.try_set_tile(tile, most, true, write));
        CHECK(m.try_set_tile(tile, most, true, write));  // instead of the first one
        // What other allocations write now is not in it.
        std::vector<far::ptr<std::uint64_t>> others;
        for (int n = 0; n < 300; ++n) {
          others.push_back(far::alloc<std::uint64_t>(4));
          std::fill(others.back().local(), others.back().local() + 4, ~std::uint64_t{0});
        }
        for (auto other : others) far::dealloc(other);
        CHECK(!m.try_set_tile(tile, std::size_t{1} << 50, true, write));
      }
      m.publish();
      CHECK_EQ(m.nnz(), 4 * entries);
      for (std::size_t t = 0; t < 4; ++t) {
        const auto tile = m.tile({t, 0});
        tile.view().check();
        for (std::size_t e = 0; e < entries; ++e) {
          CHECK_EQ(tile.view().columns()[e], static_cast<std::int32_t>(2 * e));
          CHECK_EQ(tile.view().values()[e], static_cast<int>(e + t));
        }
        CHECK_EQ(tile.view().row_size(3), entries);
      }
      far::barrier();
    }
}

FAR_TEST(wrong_uses) {
  far::sparse_matrix<int> m({4, 4}, far::block_custom{{2, 2}}, {.name = "it"});
  CHECK_THROWS(m.insert({0, 4}, 1), "insert of element (0, 4), but it is 4 x 4");
  CHECK_THROWS(m.find({4, 0}), "find of element (4, 0)");
  CHECK_THROWS(m.tile_nnz({0, 2}), "it has 2 x 2 tiles");
  far::csr<int> part(matrix_shape{3, 2});
  for (std::size_t t = 0; t < 4; ++t) {
    if (m.owner({t / 2, t % 2}) == far::rank())
      CHECK_THROWS(m.set_tile({t / 2, t % 2}, part.view()), "was given 3 x 2");
    else
      CHECK_THROWS(m.set_tile({t / 2, t % 2}, far::csr<int>(matrix_shape{2, 2})), "Only the owner");
  }
  CHECK_THROWS((far::sparse_matrix<int, signed char>({4, 1000}, far::block_row())),
               "do not fit column indices of 8 bits");
  far::barrier();
}

FAR_TEST(memory_that_runs_out_changes_nothing) {
  far::sparse_matrix<long> m({100, 100}, far::block_custom{{100, 100}, {1, 1}});
  if (far::rank() == 0) m.insert({3, 4}, 5);
  m.assemble();
  far::barrier();
  std::vector<far::ptr<char>> taken;
  if (far::rank() == 0)
    for (std::size_t n = far::detail::here().link.segment_size(); n >= 64; n /= 2) try {
        while (true) taken.push_back(far::alloc<char>(n));
      } catch (const far::allocation_error&) {
      }
  far::barrier();
  if (far::rank() == far::nprocs() - 1)
    for (std::size_t j = 0; j < 100; ++j) m.insert({7, j}, 1);
  CHECK_THROWS(m.assemble(), "no room");
  CHECK_EQ(m.nnz(), 1u);
  CHECK(m.find({3, 4}) == 5);
  for (auto block : taken) far::dealloc(block);
  far::barrier();
  m.assemble();  // what was inserted is still there to be merged
  CHECK_EQ(m.nnz(), 101u);
  CHECK(m.find({7, 99}) == 1);
  far::barrier();
}

}  // namespace sparse_tests

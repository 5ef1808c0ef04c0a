// Products in device memory by every algorithm, against three loops: shapes that divide nothing, empty tiles,
// views and copies of tiles, partial tiles that wait for room.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include "../matrices/matrix_oracle.hpp"

namespace device_multiply_tests {

using far::matrix_shape;
using far::stationary;
using far::stealing;
using matrix_tests::contents;
using matrix_tests::everything;
using matrix_tests::product_of;

using T = double;
using host_dense = far::matrix<T>;
using host_sparse = far::sparse_matrix<T>;
using dense = far::matrix<T, far::device_memory>;
using sparse = far::sparse_matrix<T, std::int32_t, far::device_memory>;

template <class M>
using host_of = std::conditional_t<std::is_same_v<M, dense>, host_dense, host_sparse>;

/// The same matrix in host memory, for it to be copied, and to compare with.
template <class M, class Blocks>
std::vector<T> fill(M& m, const contents& with, const Blocks& blocks) {
  host_of<M> host(m.shape(), blocks);
  matrix_tests::fill(host, with);
  m.copy_from(host);
  auto all = everything(host);
  far::barrier();
  return all;
}

struct problem {
  matrix_shape c;
  std::size_t k;
  std::size_t tile;
  unsigned density = 150;
  std::size_t full = ~std::size_t{0};
};

template <class A, class B, class C>
void check_product(const problem& of, const far::multiply_options& how) {
  const matrix_shape grid = far::squarest_grid(of.c, far::nprocs());
  const std::size_t t = of.tile;
  const far::block_custom like_a{{t, t + 1}, grid}, like_b{{t + 1, t + 2}, grid},
      like_c{{t, t + 2}, grid}, other{{t + 3, t}, grid};
  A a({of.c.rows, of.k}, like_a);
  B b({of.k, of.c.columns}, like_b);
  C c(of.c, like_c);
  auto in_a = fill(a, {1, of.density, of.full}, other), in_b = fill(b, {2, of.density}, like_b),
       before = fill(c, {3, 100}, like_c);
  auto expected = product_of(in_a, in_b, of.c.rows, of.k, of.c.columns, far::plus_times<T>());
  if (how.accumulate)
    for (std::size_t e = 0; e < before.size(); ++e) expected[e] += before[e];
  auto work = far::async_multiply(a, b, c, how);
  work.wait();
  CHECK(everything(c) == expected);
  host_of<C> back(of.c, like_c);
  c.copy_to(back);
  CHECK(everything(back) == expected);
  std::uint64_t pieces = 0;
  for (const auto& member : work.report().members) pieces += member.pieces;
  CHECK_EQ(pieces, c.grid_shape().size() * a.grid_shape().columns);
  far::barrier();
}

template <class A, class B, class C>
void check_all(stealing help) {
  const std::vector<problem> problems{
      {{23, 17}, 19, 5}, {{16, 16}, 16, 8, 60, 3}, {{2, 3}, 4, 9}, {{6, 9}, 7, 2, 0}};
  bool ordered = false;
  for (stationary algorithm : {stationary::c, stationary::a, stationary::b, stationary::layers}) {
    if (help != stealing::none && algorithm != stationary::c && algorithm != stationary::a)
      continue;
    for (const problem& of : problems) {
      check_product<A, B, C>(of, {.algorithm = algorithm,
                                  .stealing = help,
                                  .accumulate = of.k % 2 == 0,
                                  .ordered = ordered,
                                  .update_memory = 2000});
      ordered = !ordered;
    }
  }
}

FAR_TEST(dense_by_dense) { check_all<dense, dense, dense>(stealing::none); }
FAR_TEST(sparse_by_dense) { check_all<sparse, dense, dense>(stealing::none); }
FAR_TEST(sparse_by_sparse) { check_all<sparse, sparse, sparse>(stealing::none); }
FAR_TEST(stealing_at_random) {
  check_all<dense, dense, dense>(stealing::random);
  check_all<sparse, sparse, sparse>(stealing::random);
}
FAR_TEST(stealing_what_is_near) { check_all<sparse, dense, dense>(stealing::near); }

FAR_TEST(tiles_that_are_copied) {
  far::device gpu;
  const bool copied = gpu.copies_tiles();
  gpu.copy_tiles(true);
  check_product<dense, dense, dense>({{23, 17}, 19, 5}, {.algorithm = stationary::a});
  check_product<sparse, sparse, sparse>({{23, 17}, 19, 5}, {.algorithm = stationary::c});
  check_product<sparse, sparse, sparse>({{23, 17}, 19, 5},
                                        {.algorithm = stationary::b, .ordered = true});
  gpu.copy_tiles(copied);
}

/// Sums by kernels, with rows of many entries, and more of them than one level of counts has.
FAR_TEST(sums_of_sparse_matrices) {
  const std::size_t rows = 90, columns = 400;
  sparse a({rows, columns}), b({rows, columns});
  fill(a, {5, 300, 7}, far::block_rect());
  fill(b, {6, 400, 8}, far::block_rect());
  far::device_stream on(a.gpu());
  for (far::matrix_index tile : a.my_tiles()) {
    if (a.my_tile(tile).nnz == 0 || b.my_tile(tile).nnz == 0) continue;
    CHECK(far::detail::has_sorted_rows(a.gpu(), on, a.my_tile(tile)));
    auto sum = far::detail::sparse_sum(a.gpu(), on, a.my_tile(tile), b.my_tile(tile));
    CHECK(far::detail::has_sorted_rows(a.gpu(), on, sum.view()));
    far::csr<T> one = a.tile_to_host(tile), other = b.tile_to_host(tile);
    std::map<std::pair<std::size_t, std::size_t>, T> expected;
    for (auto [at, value] : one.view()) expected[{at.row, at.column}] += value;
    for (auto [at, value] : other.view()) expected[{at.row, at.column}] += value;
    CHECK_EQ(sum.nnz(), expected.size());
    a.set_tile(tile, std::move(sum));
  }
  auto before = everything(a), added = everything(b);
  far::barrier();
  a.publish();
  auto after = everything(a);
  for (std::size_t e = 0; e < after.size(); ++e) CHECK_EQ(after[e], before[e] + added[e]);
  far::barrier();
}

#if !defined(FARSIDE_USE_CUDA)
/// cuSPARSE has offsets of 32 bits only. A column times a row: every entry of the product is there, and 16 bits do not count them.
FAR_TEST(entries_that_offsets_do_not_count) {
  using short_sparse = far::sparse_matrix<T, std::int16_t, far::device_memory>;
  constexpr std::size_t n = 200;
  const far::block_custom whole{{n, n}, {1, 1}};
  far::sparse_matrix<T, std::int16_t> column({n, n}, whole), row({n, n}, whole);
  if (!column.my_tiles().empty())
    for (std::size_t i = 0; i < n; ++i) {
      column.insert({i, 0}, 1);
      row.insert({0, i}, 1);
    }
  column.assemble();
  row.assemble();
  short_sparse a({n, n}, whole), b({n, n}, whole), c({n, n}, whole);
  a.copy_from(column);
  b.copy_from(row);
  CHECK_THROWS(far::multiply(a, b, c, {.algorithm = stationary::c}),
               "more than offsets of 16 bits count. Cut C into smaller tiles");
  CHECK_EQ(c.nnz(), 0u);
  far::barrier();
}
#endif

/// Tiles that nobody's kernels reach, where members take each other's work.
FAR_TEST(copied_tiles_of_work_that_is_stolen) {
  far::device gpu;
  const bool copied = gpu.copies_tiles();
  gpu.copy_tiles(true);
  for (stealing help : {stealing::none, stealing::near})
    check_product<sparse, dense, dense>({{23, 17}, 19, 5},
                                        {.algorithm = stationary::a, .stealing = help});
  check_product<dense, dense, dense>({{23, 17}, 19, 5},
                                     {.algorithm = stationary::c, .stealing = stealing::random});
  check_product<sparse, sparse, sparse>({{23, 17}, 19, 5},
                                        {.algorithm = stationary::a, .stealing = stealing::random});
  gpu.copy_tiles(copied);
}

/// Its error is told to all, and the matrices and the device are as they were.
FAR_TEST(a_product_that_one_rank_has_no_room_for) {
  const far::block_custom blocks{{60, 60}, far::squarest_grid({300, 300}, far::nprocs())};
  sparse a({300, 300}, blocks), b({300, 300}, blocks), c({300, 300}, blocks);
  fill(a, {1, 300}, blocks);
  fill(b, {2, 300}, blocks);
  far::device gpu = a.gpu();
  far::multiply(a, b, c, {.algorithm = stationary::c});  // libraries have taken what they keep
  const std::size_t before = gpu.in_use();
  std::vector<far::device_ptr<std::byte>> taken;
  if (far::rank() == far::nprocs() - 1)
    for (std::size_t bytes = gpu.segment_size(); bytes >= 256;) {
      try {
        taken.push_back(gpu.alloc<std::byte>(bytes));
      } catch (const far::allocation_error&) {
        bytes /= 2;
      }
    }
  far::barrier();
  CHECK_THROWS(far::multiply(a, b, c, {.algorithm = stationary::c}), "room");
  for (auto p : taken) gpu.dealloc(p);
  far::barrier();
  CHECK_EQ(gpu.in_use(), before);
  far::multiply(a, b, c, {.algorithm = stationary::c});
  CHECK_EQ(gpu.in_use(), before);
  far::barrier();
}

FAR_TEST(what_does_not_go) {
  dense a({8, 8}, far::block_custom{{4, 4}}), b({8, 8}, far::block_custom{{3, 3}}),
      c({8, 8}, far::block_custom{{4, 4}});
  CHECK_THROWS(far::multiply(a, b, c), "by slices, which tiles that do not fit need");
  CHECK_THROWS(far::multiply(a, a, c, {.algorithm = stationary::summa}),
               "in device memory there is no product by SUMMA");
  host_dense h({7, 8});
  CHECK_THROWS(a.copy_from(h), "Both shapes must be the same");
  CHECK_THROWS(dense({1'000'000'000, 1'000'000}), "no room for");
  far::barrier();
}

}  // namespace device_multiply_tests

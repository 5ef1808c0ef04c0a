// Products of integer matrices by every algorithm, against three loops: shapes that divide nothing,
// tiles that are empty, more ranks than rows; every piece is multiplied exactly once.
#include "matrix_oracle.hpp"

#include <stdexcept>
#include <string>

namespace multiply_tests {

using far::matrix_shape;
using far::stationary;
using far::stealing;
using matrix_tests::contents;
using matrix_tests::everything;
using matrix_tests::fill;
using matrix_tests::product_of;

namespace {

struct problem {
  matrix_shape c;
  std::size_t k;
  std::size_t tile;
  unsigned density = 150;
  std::size_t full = ~std::size_t{0};
};

/// On many ranks each tile is somebody else's anyway: one problem there, which of two says `turn`.
std::vector<problem> problems(int turn, stealing help) {
  std::vector<problem> all{{{23, 17}, 19, 5},    {{16, 16}, 16, 8, 30, 3}, {{2, 3}, 4, 9},
                           {{31, 1}, 2, 3, 500}, {{6, 9}, 7, 2, 0},        {{0, 3}, 4, 2},
                           {{5, 3}, 0, 2},       {{1, 1}, 40, 3}};
  if (far::nprocs() > 8) return {all[static_cast<std::size_t>(turn % 2)]};
  if (help != stealing::none)
    all.push_back({{2, 2}, 140, 1});  // 70 pieces of a tile of C: two words
  return all;
}

template <class A, class B, class C>
void check_product(const problem& of, const far::multiply_options& how) {
  using T = typename C::value_type;
  const matrix_shape grid = far::squarest_grid(of.c, far::nprocs());
  const std::size_t t = of.tile;
  const bool odd = how.algorithm == stationary::slices;
  A a({of.c.rows, of.k}, far::block_custom{{t, t + 1}, grid});
  B b({of.k, of.c.columns},
      far::block_custom{odd ? matrix_shape{t + 2, t} : matrix_shape{t + 1, t + 2}, grid});
  C c(of.c, far::block_custom{{t, t + 2}, grid});
  fill(a, {1, of.density, of.full});
  fill(b, {2, of.density});
  fill(c, {3, 100});
  auto expected =
      product_of(everything(a), everything(b), of.c.rows, of.k, of.c.columns, far::plus_times<T>());
  if (how.accumulate) {
    auto before = everything(c);
    for (std::size_t e = 0; e < before.size(); ++e) expected[e] += before[e];
  }
  far::barrier();

  auto work = far::async_multiply(a, b, c, how);
  work.wait();
  CHECK(everything(c) == expected);
  std::uint64_t pieces = 0;
  far::multiply_report report = work.report();
  for (const auto& member : report.members) pieces += member.pieces;
  CHECK_EQ(pieces, c.grid_shape().size() * a.grid_shape().columns);
  CHECK(to_text(report).find("member") != std::string::npos);
  far::barrier();
}

template <class A, class B, class C>
void check_all(stealing help) {
  for (stationary algorithm : {stationary::c, stationary::a, stationary::b, stationary::layers,
                               stationary::summa, stationary::slices, stationary::automatic}) {
    if (help != stealing::none && algorithm != stationary::c && algorithm != stationary::a)
      continue;
    const int turn =
        static_cast<int>(algorithm) + matrix_tests::is_sparse<A> + matrix_tests::is_sparse<B>;
    bool ordered = turn / 2 % 2 != 0;
    for (const problem& of : problems(turn, help)) {
      // Little memory for partial tiles, so that members wait for room.
      check_product<A, B, C>(of, {.algorithm = algorithm,
                                  .stealing = help,
                                  .accumulate = of.k % 2 == 0,
                                  .ordered = ordered,
                                  .update_memory = 2000});
      ordered = !ordered;
    }
  }
}

using dense = far::matrix<long>;
using sparse = far::sparse_matrix<long>;

}  // namespace

FAR_TEST(dense_by_dense) { check_all<dense, dense, dense>(stealing::none); }
FAR_TEST(sparse_by_dense) { check_all<sparse, dense, dense>(stealing::none); }
FAR_TEST(sparse_by_sparse) { check_all<sparse, sparse, sparse>(stealing::none); }
FAR_TEST(stealing_at_random) {
  check_all<dense, dense, dense>(stealing::random);
  check_all<sparse, sparse, sparse>(stealing::random);
}
FAR_TEST(stealing_what_is_near) {
  check_all<sparse, dense, dense>(stealing::near);
  check_all<sparse, sparse, sparse>(stealing::near);
}

FAR_TEST(transposed_factors) {
  dense a({9, 14}, far::block_custom{{4, 3}}), c({14, 14}, far::block_custom{{3, 3}}),
      d({9, 9}, far::block_custom{{4, 4}});
  sparse s({9, 14}, far::block_custom{{4, 3}}), e({14, 14}, far::block_custom{{3, 3}});
  fill(a, {1});
  fill(s, {2, 300});
  auto va = everything(a), vs = everything(s);
  auto turned = [](const std::vector<long>& of, std::size_t rows, std::size_t columns) {
    std::vector<long> result(of.size());
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = of[i * columns + j];
    return result;
  };
  const far::plus_times<long> over;
  for (stationary algorithm : {stationary::c, stationary::a, stationary::b, stationary::layers}) {
    if (far::nprocs() > 8 && algorithm != stationary::c && algorithm != stationary::a) continue;
    far::multiply(far::transposed(a), a, c, {.algorithm = algorithm});
    CHECK(everything(c) == product_of(turned(va, 9, 14), va, 14, 9, 14, over));
    far::multiply(a, far::transposed(a), d, {.algorithm = algorithm});
    CHECK(everything(d) == product_of(va, turned(va, 9, 14), 9, 14, 9, over));
    far::multiply(far::transposed(s), a, c, {.algorithm = algorithm});
    CHECK(everything(c) == product_of(turned(vs, 9, 14), va, 14, 9, 14, over));
    far::multiply(far::transposed(s), s, e, {.algorithm = algorithm});
    CHECK(everything(e) == product_of(turned(vs, 9, 14), vs, 14, 9, 14, over));
    far::barrier();
  }
  dense w({14, 14}, far::block_custom{{5, 2}});
  far::multiply(far::transposed(a), a, w);  // slices, as tiles do not fit
  CHECK(everything(w) == product_of(turned(va, 9, 14), va, 14, 9, 14, over));
  far::barrier();
}

FAR_TEST(column_indices_of_64_bits) {
  far::sparse_matrix<long, std::int64_t> a({9, 8}, far::block_custom{{3, 3}}),
      c({9, 9}, far::block_custom{{3, 3}});
  dense b({8, 5}, far::block_custom{{3, 2}}), d({9, 5}, far::block_custom{{3, 2}});
  fill(a, {1, 300});
  fill(b, {2});
  const far::plus_times<long> over;
  auto va = everything(a);
  far::multiply(a, b, d);
  CHECK(everything(d) == product_of(va, everything(b), 9, 8, 5, over));
  far::multiply(a, far::transposed(a), c);
  std::vector<long> turned(va.size());
  for (std::size_t i = 0; i < 9; ++i)
    for (std::size_t j = 0; j < 8; ++j) turned[j * 9 + i] = va[i * 8 + j];
  CHECK(everything(c) == product_of(va, turned, 9, 8, 9, over));
  far::barrier();
}

FAR_TEST(a_piece_at_a_time) {
  dense a({12, 12}, far::block_custom{{4, 4}}), b({12, 12}, far::block_custom{{4, 4}}),
      c({12, 12}, far::block_custom{{4, 4}}), d({12, 12}, far::block_custom{{4, 4}});
  fill(a, {1});
  fill(b, {2});
  auto first = far::async_multiply(a, b, c, {.algorithm = stationary::a});
  auto second =
      far::async_multiply(b, a, d, {.algorithm = stationary::c, .stealing = stealing::random});
  bool more = true;
  while (more) {
    const bool one = first.step(), other = second.step();
    more = one || other;
  }
  first.wait();
  {
    auto ends_here = std::move(second);
  }  // waits for it
  const far::plus_times<long> over;
  CHECK(everything(c) == product_of(everything(a), everything(b), 12, 12, 12, over));
  CHECK(everything(d) == product_of(everything(b), everything(a), 12, 12, 12, over));
  far::barrier();
}

FAR_TEST(in_teams) {
  far::team half = far::world().split(far::rank() % 2 == 0 ? 0 : 1);
  sparse a({20, 20}, far::block_custom{{6, 6}}, {.over = half}),
      c({20, 20}, far::block_custom{{6, 6}}, {.over = half});
  fill(a, {far::rank() % 2 + 1});
  for (stationary algorithm : {stationary::a, stationary::summa}) {
    far::multiply(a, a, c, {.algorithm = algorithm});
    auto va = everything(a);
    CHECK(everything(c) == product_of(va, va, 20, 20, 20, far::plus_times<long>()));
    far::barrier(half);
  }
}

namespace {

/// The usual products, whose add or multiply throws at the call that `left` counts down to.
struct moody {
  long* left;  ///< null: never
  bool in_add;
  void look(bool adding) const {
    if (left != nullptr && adding == in_add && --*left == 0) throw std::runtime_error("enough");
  }
  long add(long x, long y) const { return look(true), x + y; }
  long multiply(long x, long y) const { return look(false), x * y; }
  long zero() const { return 0; }
  static constexpr bool zero_is_default = true;
};

template <class M>
void check_failures(stationary algorithm, bool in_add) {
  const matrix_shape grid = far::squarest_grid({12, 12}, far::nprocs());
  M a({12, 10}, far::block_custom{{5, 5}, grid}), b({10, 12}, far::block_custom{{5, 5}, grid}),
      c({12, 12}, far::block_custom{{5, 5}, grid});
  fill(a, {1, 300});
  fill(b, {2, 300});
  far::barrier();
  const auto expected =
      product_of(everything(a), everything(b), 12, 10, 12, far::plus_times<long>());
  bool any = false;
  // On many ranks, of which most have one tile or none, it is the first call of the first one.
  const bool many = far::nprocs() > 8;
  const far::rank_t culprits = many ? 1 : std::min<far::rank_t>(far::nprocs(), 2);
  for (far::rank_t culprit = 0; culprit < culprits; ++culprit)
    for (long calls : many ? std::vector<long>{1} : std::vector<long>{1, 100}) {
      long left = calls;
      int threw = 0;
      try {
        far::multiply(a, b, c, moody{far::rank() == culprit ? &left : nullptr, in_add},
                      {.algorithm = algorithm, .update_memory = 2000});
      } catch (const std::exception& e) {
        CHECK(std::string(e.what()).find("enough") != std::string::npos);
        threw = 1;
      }
      const int all = far::all_reduce(threw);
      CHECK(all == 0 || all == static_cast<int>(far::nprocs()));
      CHECK_EQ(all != 0, far::all_reduce(left, far::minimum()) <= 0);
      any = any || all != 0;
      far::multiply(a, b, c, {.algorithm = algorithm});
      CHECK(everything(c) == expected);
      far::barrier();
    }
  CHECK(any);
}

}  // namespace

// A semiring that throws on one member, also while it adds up what others have sent.
FAR_TEST(semirings_that_throw) {
  for (stationary algorithm : {stationary::c, stationary::a, stationary::layers, stationary::summa})
    for (bool in_add : {false, true}) {
      if (far::nprocs() > 8 && in_add != (algorithm == stationary::a)) continue;
      check_failures<dense>(algorithm, in_add);
      check_failures<sparse>(algorithm, in_add);
    }
}

// Partial tiles by themselves: each member sends three to each of the others and has room for one of them, so
// that all wait at the same time for what the others take only while they wait.
FAR_TEST(partial_tiles_without_room) {
  using box_type = far::detail::update_box;
  const far::rank_t me = far::rank(), ranks = far::nprocs();
  constexpr std::size_t n = 5;
  box_type box(far::world(), 1);
  std::vector<long> sums(n);
  auto drain = [&] {
    box.drain([&](const box_type::header& of, const std::byte* data) {
      CHECK_EQ(of.bytes, n * sizeof(long));
      for (std::size_t i = 0; i < n; ++i) sums[i] += reinterpret_cast<const long*>(data)[i];
    });
  };
  for (long turn = 0; turn < 3; ++turn)
    for (far::rank_t step = 1; step < ranks; ++step) {
      box_type::outgoing to_send = box.room(n * sizeof(long), drain);
      for (std::size_t i = 0; i < n; ++i)
        reinterpret_cast<long*>(to_send.data())[i] = turn + me + static_cast<long>(i);
      box.push((me + step) % ranks, to_send, {});
    }
  while (!box.at_rest(true)) {
    drain();
    far::progress();
  }
  const long others = ranks - 1, their_ranks = ranks * (ranks - 1) / 2 - me;
  for (std::size_t i = 0; i < n; ++i)
    CHECK_EQ(sums[i], 3 * (others * (1 + static_cast<long>(i)) + their_ranks));
  far::barrier();
  box.release();
  far::barrier();
}

FAR_TEST(wrong_uses) {
  dense a({4, 6}, {.name = "left"}), b({6, 5}), c({4, 5}), wrong({5, 5});
  CHECK_THROWS(far::multiply(a, b, wrong), "have no product of 5 x 5");
  CHECK_THROWS(far::multiply(a, a, c), "have no product");
  const auto even = far::block_custom{{2, 2}};
  dense s({4, 4}, even), t({4, 4}, even);
  CHECK_THROWS(far::multiply(s, t, s), "is a factor and the product too");
  CHECK_THROWS(far::multiply(s, far::transposed(t), t), "is a factor and the product too");
  dense odd({4, 4}, far::block_custom{{3, 3}});
  CHECK_THROWS(far::multiply(s, odd, t, {.algorithm = stationary::a}), "do not fit each other");
  CHECK_THROWS(far::multiply(s, t, c, {.stealing = stealing::near}), "have no product");
  dense u({4, 4}, even);
  CHECK_THROWS(far::multiply(s, t, u, {.algorithm = stationary::b, .stealing = stealing::near}),
               "gives nothing to steal");
  CHECK_THROWS(far::multiply(far::transposed(s), t, u, {.algorithm = stationary::summa}),
               "SUMMA needs");
  far::barrier();
}

}  // namespace multiply_tests

// far::global_array against an array in each rank's memory: patches, lists, ghosts, completion.
#include "array_oracle.hpp"

#include <complex>
#include <numeric>

namespace global_array_tests {

using namespace array_tests;

namespace {

/// In each round one rank puts, all add, and all read what there should be then.
template <class T, std::size_t N>
void patches_of(const array_index<N>& shape) {
  in_many_ways(shape, [&](const far::global_array_options<N>& with) {
    far::global_array<T, N> f(shape, with);
    serial_array<T, N> serial(shape);
    auto random = far_test::common_random_engine();
    auto own = far_test::random_engine(1);
    for (far::rank_t round = 0; round < 4; ++round) {
      const bool async = round % 2 != 0;
      wide_memory<T, N> out(some_patch(shape, random), random);
      std::iota(out.values.begin(), out.values.end(), T(100 * round));
      if (far::rank() == round % far::nprocs()) {
        if (async)
          f.async_put(out.p, out.values, out.ld).get();
        else
          f.put(out.p, out.values, out.ld);
        CHECK_EQ(f.get(out.p).size(), out.p.size());  // sees it, wherever it is
        if (!out.p.empty()) CHECK_EQ(f.get(out.p)[0], out.at(out.p.first));
      }
      far::for_each_index(out.p, [&](auto& i) { serial.at(i) = out.at(i); });
      far::barrier();
      for (far::rank_t r = 0; r < far::nprocs(); ++r) {
        wide_memory<T, N> more(some_patch(shape, random), random);
        std::iota(more.values.begin(), more.values.end(), T(r));
        const T factor = T(r % 3 + 1);
        far::for_each_index(more.p, [&](auto& i) { serial.at(i) += factor * more.at(i); });
        if (r != far::rank()) continue;
        if (async)
          f.async_accumulate(more.p, more.values, more.ld, factor).get();
        else
          f.accumulate(more.p, more.values, more.ld, factor);
      }
      far::barrier();
      CHECK_EQ(f.get(f.all()), serial.values);
      for (int i = 0; i < 3; ++i) {
        wide_memory<T, N> in(some_patch(shape, own), own), expected = in;
        if (async)
          f.async_get(in.p, in.values, in.ld).get();
        else
          f.get(in.p, in.values, in.ld);
        far::for_each_index(in.p, [&](auto& at) { expected.at(at) = serial.at(at); });
        CHECK_EQ(in.values, expected.values);
      }
      f.for_each_local([&](const array_index<N>& i, const T& x) { CHECK_EQ(x, serial.at(i)); });
      far::barrier();
    }
  });
}

/// Each place has one owner, whose blocks say so.
template <std::size_t N>
void owners_of(const array_index<N>& shape) {
  in_many_ways(shape, [&](const far::global_array_options<N>& with) {
    far::global_array<char, N> f(shape, with);
    serial_array<int, N> owners(shape);
    for (auto& owner : owners.values) owner = -1;
    for (far::rank_t m = 0; m < far::nprocs(); ++m)
      for (std::size_t n = 0; n < f.layout().blocks(m); ++n)
        far::for_each_index(f.distribution(m, n), [&](auto& i) {
          CHECK_EQ(owners.at(i), -1);
          owners.at(i) = static_cast<int>(m);
        });
    far::for_each_index(f.all(), [&](auto& i) {
      CHECK_EQ(owners.at(i), static_cast<int>(f.locate(i)));
      CHECK_EQ(f.element_ptr(i).rank(), f.locate(i));
    });
    std::size_t found = 0;
    for (const auto& piece : f.locate_patch(f.all())) {
      CHECK(piece.part == piece.block);
      found += piece.part.size();
    }
    CHECK_EQ(found, f.all().size());
    CHECK(f.distribution(far::nprocs()).empty());
  });
}

/// Ghosts show what is around a block, and patches come in again on the other side.
template <class T, std::size_t N>
void ghosts_of(const array_index<N>& shape, const array_index<N>& ghosts) {
  far::global_array<T, N> f(shape, {.ghosts = ghosts});
  serial_array<T, N> serial(shape);
  std::iota(serial.values.begin(), serial.values.end(), T(1));
  for (far::edges edge : {far::edges::closed, far::edges::periodic}) {
    if (edge == far::edges::periodic)
      for (T& value : serial.values) value += 100;
    if (far::rank() == far::nprocs() - 1) f.put(f.all(), serial.values);
    f.update_ghosts(edge);
    auto mine = f.local();
    patch<N> around = mine.block();
    for (std::size_t d = 0; d < N; ++d) around.first[d] -= ghosts[d], around.last[d] += ghosts[d];
    if (!mine.empty())
      far::for_each_index(around, [&](auto& i) {
        const bool inside = f.all().contains(i);
        CHECK_EQ(mine.at(i), inside || edge == far::edges::periodic ? serial.around(i) : T(0));
      });
    f.update_ghosts(edge);  // twice is once
    CHECK(mine.empty() || mine.at(mine.block().first) == serial.at(mine.block().first));
    far::barrier();
  }
  auto random = far_test::random_engine();
  for (int i = 0; i < 5; ++i) {
    patch<N> p;
    for (std::size_t d = 0; d < N; ++d) {
      p.first[d] = below(random, 5 * shape[d]) - 2 * shape[d];
      p.last[d] = p.first[d] + below(random, 2 * shape[d]);
    }
    wide_memory<T, N> in(p, random), expected = in;
    f.periodic_get(p, in.values, in.ld);
    far::for_each_index(p, [&](auto& at) { expected.at(at) = serial.around(at); });
    CHECK_EQ(in.values, expected.values);
  }
  far::barrier();
  patch<N> corner;
  for (std::size_t d = 0; d < N; ++d) corner.first[d] = -1, corner.last[d] = shape[d] - 1;
  auto common = far_test::common_random_engine();
  wide_memory<T, N> out(corner, common);
  std::iota(out.values.begin(), out.values.end(), T(7));
  if (far::rank() == 0) f.periodic_put(corner, out.values, out.ld);
  far::for_each_index(corner, [&](auto& at) { serial.around(at) = out.at(at); });
  far::barrier();
  CHECK_EQ(f.get(f.all()), serial.values);
  far::barrier();
  std::vector<T> ones(corner.size(), T(1));
  f.periodic_accumulate(corner, ones, {}, T(2));
  far::barrier();
  for (T& value : serial.values) value += T(2 * far::nprocs());
  CHECK_EQ(f.get(f.all()), serial.values);
}

}  // namespace

FAR_TEST(patches_1) { patches_of<std::int64_t, 1>({23}); }
FAR_TEST(patches_2) { patches_of<double, 2>({11, 9}); }
FAR_TEST(patches_3) { patches_of<float, 3>({5, 6, 4}); }

FAR_TEST(owners) {
  owners_of<1>({17});
  owners_of<2>({8, 7});
  owners_of<3>({4, 3, 5});
  owners_of<1>({1});
}

FAR_TEST(ghosts) {
  ghosts_of<std::int32_t, 1>({19}, {3});
  ghosts_of<double, 2>({9, 8}, {1, 2});
  ghosts_of<float, 3>({4, 5, 3}, {1, 0, 2});
}

FAR_TEST(lists_of_places) {
  in_many_ways<2>({12, 10}, [&](const auto& with) {
    far::global_array<double, 2> f({12, 10}, with);
    auto random = far_test::random_engine();
    std::vector<array_index<2>> mine;  // of each rank other ones, in any order
    far::for_each_index(f.all(), [&](const array_index<2>& i) {
      if (static_cast<far::rank_t>(i[0] + i[1]) % far::nprocs() == far::rank()) mine.push_back(i);
    });
    std::shuffle(mine.begin(), mine.end(), random);
    std::vector<double> values;
    for (auto& i : mine) values.push_back(static_cast<double>(10 * i[0] + i[1]));
    f.scatter(mine, values);
    far::barrier();
    std::vector<array_index<2>> all;
    far::for_each_index(f.all(), [&](const array_index<2>& i) {
      all.push_back(i);
      if (i[0] == 3) all.push_back(i);  // twice
    });
    std::shuffle(all.begin(), all.end(), random);
    std::vector<double> ones(all.size(), 1.0), read(all.size());
    far::barrier();
    f.scatter_add(all, ones, 0.5);
    far::barrier();
    f.gather(all, read);
    for (std::size_t k = 0; k < all.size(); ++k)
      CHECK_EQ(read[k], static_cast<double>(10 * all[k][0] + all[k][1]) +
                            0.5 * far::nprocs() * (all[k][0] == 3 ? 2 : 1));
    f.gather({}, {});
    far::barrier();
  });
}

FAR_TEST(tickets) {
  far::global_array<std::int64_t, 1> next(3);
  std::int64_t sum = 0, last = -1;
  for (int i = 0; i < 5; ++i) {
    std::int64_t t = next.fetch_add(1, 1);
    CHECK(t > last);
    last = t, sum += t;
  }
  const std::int64_t n = 5 * static_cast<std::int64_t>(far::nprocs());
  CHECK_EQ(far::all_reduce(sum), n * (n - 1) / 2);
  CHECK_EQ(next.get({0, 3}), (std::vector<std::int64_t>{0, n, 0}));
}

/// What was put is there for whoever hears of it after the fence: on all members, not only on one.
FAR_TEST(fences) {
  const auto n = static_cast<std::ptrdiff_t>(far::nprocs());
  far::global_array<std::int64_t, 2> f({n, n}, {.distribution = far::blocks({0, 1})});
  far::global_array<std::int32_t, 1> told(n);
  const auto me = static_cast<std::ptrdiff_t>(far::rank());
  for (std::int32_t round = 1; round <= 3; ++round) {
    std::vector<std::int64_t> column(static_cast<std::size_t>(n), 1000 * round + me);
    f.put({{0, me}, {n, me + 1}}, column);
    f.fence();
    for (std::ptrdiff_t r = 0; r < n; ++r) told.fetch_add(r, 1);
    while (static_cast<std::int32_t>(told[me]) < round * n) far::wait_round();
    for (std::ptrdiff_t c = 0; c < n; ++c) {
      const auto value = static_cast<std::int64_t>(f[{me, c}]);
      CHECK(value >= 1000 * round + c);  // a faster rank may be in the next round
    }
  }
  far::barrier();
}

FAR_TEST(of_complex_numbers_and_structures) {
  far::global_array<std::complex<double>, 2> z({4, 5});
  std::vector<std::complex<double>> ones(20, {1, 2});
  z.accumulate(z.all(), ones, {}, {0, 1});
  far::barrier();
  const double n = far::nprocs();
  CHECK((std::complex<double>(z[{3, 4}])) == std::complex<double>(-2 * n, n));
  struct place {
    short x, y, z;
  };
  far::global_array<place, 1> s(7);
  if (far::rank() == 0) s.put({2, 4}, std::vector<place>{{1, 2, 3}, {4, 5, 6}});
  far::barrier();
  CHECK_EQ(s.get({3, 4})[0].y, 5);
  far::barrier();
}

FAR_TEST(none_at_all) {
  for (const array_index<2>& shape : {array_index<2>{0, 5}, {5, 0}, {0, 0}}) {
    far::global_array<int, 2> f(shape, {.ghosts = {1, 1}});
    CHECK(f.all().empty() && f.local().empty());
    CHECK(f.get({{0, 0}, {0, 0}}).empty());
    f.update_ghosts();
    far::fill(f, 3);
    CHECK_EQ(far::dot(f, f), 0);
  }
  far::global_array<int, 3> tiny({1, 1, 1});  // fewer places than ranks
  far::fill(tiny, 4);
  CHECK_EQ(static_cast<int>(tiny[{0, 0, 0}]), 4);
  far::barrier();
}

FAR_TEST(teams_and_duplicates) {
  const int colour = far::rank() % 2 == 0 ? 0 : 1;
  far::team half = far::world().split(colour);
  far::global_array<double, 2> f({6, 6}, {.ghosts = {1, 1}, .name = "first", .over = half});
  far::fill(f, 1.0 + colour);
  auto g = f.duplicate("second");
  CHECK_EQ(g.name(), "second");
  CHECK(g.shape() == f.shape() && g.ghosts() == f.ghosts());
  CHECK_EQ(g.members().size(), half.size());
  CHECK_EQ(far::dot(g, g), 0.0);
  CHECK_EQ(far::dot(f, f), 36.0 * (1 + colour) * (1 + colour));
  CHECK_EQ(g.distribution(half.rank()), f.distribution(half.rank()));
  f.fence();
}

FAR_TEST(wrong_uses) {
  far::global_array<double, 2> f({4, 6}, {.name = "it"});
  std::vector<double> ten(10);
  CHECK_THROWS(f.get({{0, 0}, {5, 1}}), "'it': get of patch [0, 5) x [0, 1), but it is 4 x 6");
  CHECK_THROWS(f.put({{2, 0}, {1, 1}}, ten), "patch [2, 1) x [0, 1)");
  CHECK_THROWS(f.get({{-1, 0}, {1, 1}}, ten), "patch [-1, 1)");
  CHECK_THROWS(f.get({{0, 0}, {2, 4}}, ten, 3), "leading dimension 3 for dimension 1");
  CHECK_THROWS(f.get({{0, 0}, {2, 4}}, ten, 7), "needs memory for 11 elements");
  CHECK_THROWS(f.accumulate({{0, 0}, {4, 4}}, ten), "needs memory for 16 elements");
  CHECK_THROWS(static_cast<double>(f[{4, 0}]), "operator[] of element (4, 0), but it is 4 x 6");
  CHECK_THROWS(f.locate({0, 6}), "locate of element (0, 6)");
  std::vector<array_index<2>> places{{0, 0}, {9, 9}};
  CHECK_THROWS(f.gather(places, ten), "2 places and 10 values");
  CHECK_THROWS(f.scatter(places, std::span(ten).first(2)), "scatter of element (9, 9)");
  CHECK_THROWS(f.periodic_put({{0, 0}, {5, 1}}, ten), "written twice");
  CHECK_THROWS((far::global_array<int, 2>({2, -1})), "-1 elements");
  CHECK_THROWS((far::global_array<int, 1>({9}, {.distribution = far::cyclic({2}), .ghosts = {1}})),
               "dealt out in turns");
  CHECK_THROWS((far::global_array<int, 1>({9}, {.distribution = far::cyclic({0})})), "no elements");
  CHECK_THROWS((far::global_array<int, 2>({9, 9}, {.distribution = far::cyclic({2})})),
               "1 extents of blocks, but it has 2 dimensions");
  CHECK_THROWS((far::global_array<int, 1>({9}, {.distribution = far::blocks({1000})})),
               "grid of more members");
  CHECK_THROWS((far::global_array<int, 1>({9}, {.distribution = far::irregular({{0, 10}})})),
               "begin where they cannot");
  CHECK_THROWS((far::global_array<int, 2>({std::size_t{1} << 40, std::size_t{1} << 40})),
               "more elements than 64 bits count");
  CHECK_THROWS((far::global_array<int, 1>({9}, {.ghosts = {-2}})), "-2 ghosts");
  far::barrier();
}

/// A run of elements is one operation. By messages, and by calls of MPI with datatypes, short runs to
/// one rank share one.
FAR_TEST(costs) {
  far::global_array<double, 2> f({8, 10}, {.distribution = far::blocks({0, 1})});
  std::vector<double> values(200, 1.0);
  const patch<2> mine = f.distribution((far::rank() + 1) % f.layout().holders());
  auto count = [](auto work) {
    far::stats::enable();
    auto before = far::stats::snapshot();
    work();
    auto t = far::stats::snapshot() - before;
    return std::vector<std::uint64_t>{t[far::operation::get].count, t[far::operation::put].count,
                                      t[far::operation::atomic].count,
                                      t[far::operation::flush].count};
  };
  using counts = std::vector<std::uint64_t>;
  const bool together = far::detail::limits_of_runs(far::detail::here().link).piece != 0;
  const std::size_t rows = together ? 1 : mine.extent(0);
  const std::size_t three = !together ? 3 : f.layout().holders() > 1 ? 2 : 1;
  patch<2> part = mine;
  part.last[1] = 9;
  CHECK_EQ(count([&] { f.get(mine, values); }), (counts{1, 0, 0, 0}));
  CHECK_EQ(count([&] { f.get(part, values); }), (counts{rows, 0, 0, 0}));
  CHECK_EQ(count([&] { f.put(mine, values); }), (counts{0, 1, 0, 0}));
  CHECK_EQ(count([&] { f.put(mine, values, 20); }), (counts{0, rows, 0, 0}));
  CHECK_EQ(count([&] { f.fence(); }), (counts{0, 0, 0, 1}));
  CHECK_EQ(count([&] { f.fence(); }), (counts{0, 0, 0, 0}));
  CHECK_EQ(count([&] { f.put(f.all(), values); }), (counts{0, f.layout().holders(), 0, 0}));
  CHECK_EQ(count([&] { f.fence(); }), (counts{0, 0, 0, f.layout().holders()}));
  far::global_array<std::int64_t, 1> next(1);
  CHECK_EQ(count([&] { next.fetch_add(0, 1); }), (counts{0, 0, 1, 0}));
  std::vector<array_index<2>> places{{0, 0}, {7, 9}, {0, 0}};
  CHECK_EQ(count([&] { f.gather(places, std::span(values).first(3)); }), (counts{three, 0, 0, 0}));
  far::barrier();
}

}  // namespace global_array_tests

// Collective operations on patches of far::global_arrays, against loops.
#include "array_oracle.hpp"

namespace array_operation_tests {

using namespace array_tests;

namespace {

template <class T, std::size_t N>
void number(far::global_array<T, N>& f, serial_array<T, N>& serial, int first) {
  auto random = far_test::common_random_engine(static_cast<std::uint64_t>(first));
  for (T& value : serial.values) value = static_cast<T>(static_cast<int>(random() % 15) - 7);
  f.for_each_local([&](const array_index<N>& i, T& x) { x = serial.at(i); });
  far::barrier();
}

template <class T, std::size_t N>
void agree(far::global_array<T, N>& f, const serial_array<T, N>& serial) {
  CHECK_EQ(f.get(f.all()), serial.values);
  far::barrier();
}

/// A patch of that shape somewhere in an array.
template <std::size_t N>
patch<N> placed(const array_index<N>& extents, const array_index<N>& shape,
                std::mt19937_64& random) {
  patch<N> p;
  for (std::size_t d = 0; d < N; ++d) {
    p.first[d] = below(random, shape[d] - extents[d] + 1);
    p.last[d] = p.first[d] + extents[d];
  }
  return p;
}

template <class T, std::size_t N>
void element_by_element(const array_index<N>& shape, const array_index<N>& wider) {
  in_many_ways(shape, [&](const far::global_array_options<N>& with) {
    far::global_array<T, N> a(shape, with), c(shape, with), b(wider);
    serial_array<T, N> sa(shape), sb(wider), sc(shape);
    number(a, sa, 1), number(b, sb, 2), number(c, sc, 3);
    auto random = far_test::common_random_engine();
    for (int round = 0; round < 2; ++round) {
      const patch<N> pa = some_patch(shape, random), pb = placed(pa.extents(), wider, random),
                     pc = placed(pa.extents(), shape, random);
      auto from = [&](const array_index<N>& i, const patch<N>& p) {
        array_index<N> result = i;
        for (std::size_t d = 0; d < N; ++d) result[d] += p.first[d] - pc.first[d];
        return result;
      };
      far::add(T(2), a, pa, T(-3), b, pb, c, pc);
      T sum{};
      far::for_each_index(pc, [&](auto& i) {
        sc.at(i) = T(2) * sa.at(from(i, pa)) - T(3) * sb.at(from(i, pb));
        sum += sa.at(from(i, pa)) * sb.at(from(i, pb));
      });
      agree(c, sc);
      CHECK_EQ(far::dot(a, pa, b, pb), sum);
      far::copy(c, pc, b, pb);
      far::for_each_index(pc, [&](auto& i) { sb.at(from(i, pb)) = sc.at(i); });
      agree(b, sb);
      far::scale(b, pb, T(4));
      far::for_each_index(pc, [&](auto& i) { sb.at(from(i, pb)) *= T(4); });
      far::fill(a, pa, T(5));
      far::for_each_index(pc, [&](auto& i) { sa.at(from(i, pa)) = T(5); });
      agree(a, sa);
      agree(b, sb);
      far::add(T(1), c, pc, T(1), a, pa, c, pc);  // in its place
      far::for_each_index(pc, [&](auto& i) { sc.at(i) += sa.at(from(i, pa)); });
      agree(c, sc);
    }
  });
}

}  // namespace

FAR_TEST(element_by_element_1) { element_by_element<std::int64_t, 1>({14}, {20}); }
FAR_TEST(element_by_element_2) { element_by_element<double, 2>({7, 6}, {9, 8}); }
FAR_TEST(element_by_element_3) { element_by_element<float, 3>({3, 4, 5}, {5, 4, 6}); }

FAR_TEST(products) {
  constexpr std::ptrdiff_t m = 9, k = 7, n = 8;
  in_many_ways<2>({m, n}, [&](const far::global_array_options<2>& with) {
    far::global_array<double, 2> a({m, k + 1}), b({k, n}, {.distribution = far::cyclic({2, 3})}),
        c({m, n}, with), t({n, m});
    serial_array<double, 2> sa({m, k + 1}), sb({k, n}), sc({m, n}), st({n, m});
    number(a, sa, 1), number(b, sb, 2), number(c, sc, 3);
    const patch<2> pa{{1, 1}, {m, k + 1}}, pb = b.all(), pc{{0, 0}, {m - 1, n}};
    far::multiply(2.0, a, pa, b, pb, -1.0, c, pc);
    far::for_each_index(pc, [&](auto& i) {
      double sum = 0;
      for (std::ptrdiff_t x = 0; x < k; ++x) sum += sa.at({i[0] + 1, x + 1}) * sb.at({x, i[1]});
      sc.at(i) = 2 * sum - sc.at(i);
    });
    agree(c, sc);
    far::transpose(c, t);
    far::for_each_index(c.all(), [&](auto& i) { st.at({i[1], i[0]}) = sc.at(i); });
    agree(t, st);
    far::transpose(c, {{1, 2}, {5, 4}}, t, {{3, 0}, {5, 4}});
    for (std::ptrdiff_t i = 0; i < 4; ++i)
      for (std::ptrdiff_t j = 0; j < 2; ++j) st.at({3 + j, i}) = sc.at({1 + i, 2 + j});
    agree(t, st);

    far::global_array<double, 1> x(n + 2), y(m);
    serial_array<double, 1> sx(n + 2), sy(m);
    number(x, sx, 4), number(y, sy, 5);
    far::matvec(0.5, c, c.all(), x, {2, n + 2}, 2.0, y, {0, m});
    for (std::ptrdiff_t i = 0; i < m; ++i) {
      double sum = 0;
      for (std::ptrdiff_t j = 0; j < n; ++j) sum += sc.at({i, j}) * sx.at(j + 2);
      sy.at(i) = 0.5 * sum + 2 * sy.at(i);
    }
    agree(y, sy);
  });
}

FAR_TEST(wrong_uses) {
  far::global_array<double, 2> a({4, 5}, {.name = "a"}), b({5, 4});
  far::global_array<double, 1> x(4), y(4);
  CHECK_THROWS(far::fill(a, {{0, 0}, {5, 5}}, 1.0), "was given patch [0, 5) x [0, 5)");
  CHECK_THROWS(far::copy(a, b), "has the extents (5, 4), but the others ask for (4, 5)");
  CHECK_THROWS(far::copy(a, {{0, 0}, {2, 2}}, a, {{1, 1}, {3, 3}}), "which overlap");
  CHECK_THROWS(far::transpose(a, {{0, 0}, {2, 2}}, a, {{0, 0}, {2, 2}}), "which overlap");
  CHECK_THROWS(far::transpose(a, a), "which overlap");
  CHECK_THROWS(far::multiply(1.0, a, a.all(), a, a.all(), 0.0, b, b.all()), "ask for (4, 5)");
  CHECK_THROWS(far::matvec(1.0, a, x, 0.0, y), "ask for (5)");
  if (far::nprocs() > 1) {
    far::team alone = far::world().split(static_cast<int>(far::rank()));
    far::global_array<double, 2> other({4, 5}, {.over = alone});
    CHECK_THROWS(far::dot(a, other), "of different teams");
  }
  far::barrier();
}

}  // namespace array_operation_tests

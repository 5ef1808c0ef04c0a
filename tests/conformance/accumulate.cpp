// accumulate: sums from all ranks are exact, whatever the type; nothing beside them changes; what
// it costs.
#include "harness.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

namespace accumulate_tests {

using far::operation;
using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

/// Small numbers, so that sums of floating point are exact in any order.
template <class T>
T small_value(std::mt19937_64& random) {
  auto number = [&] { return static_cast<int>(random() % 64) - 32; };
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(number());
  } else {
    using part = typename T::value_type;
    part real = static_cast<part>(number()), imaginary = static_cast<part>(number());
    return T(real, imaginary);
  }
}

template <class T>
std::vector<T> small_values(std::mt19937_64& random, std::size_t n) {
  std::vector<T> result(n);
  for (T& value : result) value = small_value<T>(random);
  return result;
}

template <class T>
void add(std::vector<T>& to, std::size_t at, const std::vector<T>& from, T scale) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      using bits = std::make_unsigned_t<T>;
      to[at + i] = static_cast<T>(static_cast<bits>(to[at + i]) +
                                  static_cast<bits>(scale) * static_cast<bits>(from[i]));
    } else {
      to[at + i] += scale * from[i];
    }
  }
}

/// All ranks add to overlapping parts of one array; everybody knows what comes out.
template <class T>
void sums_are_exact() {
  constexpr std::size_t length = 70;
  constexpr int rounds = 6;
  auto home = shared_objects<T>(far::nprocs() - 1, length, T(3));
  std::vector<T> expected(length, T(3));
  for (far::rank_t who = 0; who < far::nprocs(); ++who) {
    auto random = far_test::common_random_engine(who);
    for (int round = 0; round < rounds; ++round) {
      std::size_t at = random() % length, n = random() % (length - at + 1);
      if (round == 2) n = std::min<std::size_t>(n, 8);  // one by one
      T scale = round % 2 == 0 ? T(1) : small_value<T>(random);
      auto values = small_values<T>(random, n);
      add(expected, at, values, scale);
      if (who != far::rank()) continue;
      auto place = home + static_cast<std::ptrdiff_t>(at);
      if (round == 2)
        for (std::size_t i = 0; i < n; ++i)
          far::accumulate(place + static_cast<std::ptrdiff_t>(i), values[i]);
      else if (round == 3)
        far::async_accumulate(place, values.data(), n, scale).get();
      else
        far::accumulate(place, std::span<const T>(values), scale);
      std::fill(values.begin(), values.end(), T(9));  // the source may be reused
    }
  }
  far::barrier();
  CHECK(far::get(home, length) == expected);
  release(home);
}

struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0, waits = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics, " << c.waits
               << " waits";
  }
};

template <class Work>
cost cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[operation::get].count, t[operation::put].count, t[operation::atomic].count, t.waits};
}

}  // namespace

FAR_TEST(sums_of_int32) { sums_are_exact<std::int32_t>(); }
FAR_TEST(sums_of_uint32) { sums_are_exact<std::uint32_t>(); }
FAR_TEST(sums_of_int64) { sums_are_exact<std::int64_t>(); }
FAR_TEST(sums_of_uint64) { sums_are_exact<std::uint64_t>(); }
FAR_TEST(sums_of_long_long) { sums_are_exact<long long>(); }
FAR_TEST(sums_of_float) { sums_are_exact<float>(); }
FAR_TEST(sums_of_double) { sums_are_exact<double>(); }
FAR_TEST(sums_of_complex_float) { sums_are_exact<std::complex<float>>(); }
FAR_TEST(sums_of_complex_double) { sums_are_exact<std::complex<double>>(); }

FAR_TEST(integers_wrap_around) {
  auto cell = shared_objects<std::int32_t>(0, 1, std::numeric_limits<std::int32_t>::max());
  if (far::rank() == far::nprocs() - 1) far::accumulate(cell, 1);
  far::barrier();
  CHECK_EQ(far::get(cell), std::numeric_limits<std::int32_t>::min());
  release(cell);
}

FAR_TEST(complex_scale_is_a_complex_product) {
  using number = std::complex<double>;
  auto cell = shared_objects<number>(0, 2, number(1, 1));
  number values[2] = {{1, 2}, {0, 1}};
  if (far::rank() == 0) far::accumulate(cell, values, 2, number(0, 3));
  far::barrier();
  CHECK_EQ(far::get(cell), number(-5, 4));
  CHECK_EQ(far::get(cell + 1), number(-2, 1));
  release(cell);
}

/// Every rank hammers the same few elements at the same time.
FAR_TEST(one_element_under_fire) {
  constexpr int times = 30;
  auto cells = shared_objects<double>(0, 3);
  auto counters = shared_objects<std::int64_t>(0, 3);
  double one[3] = {1, 2, 4};
  for (int i = 0; i < times; ++i) {
    far::accumulate(cells, one, 3);
    // Integers are atomic with far atomics, too.
    if (i % 3 == 0) far::fetch_add(counters + 1, 1);
    if (i % 3 == 1) far::accumulate(counters, std::vector<std::int64_t>{1, 1, 1});
    if (i % 3 == 2)
      far::async_accumulate(counters + 1, std::vector<std::int64_t>{1}.data(), 1).get();
  }
  far::barrier();
  double total = static_cast<double>(times) * far::nprocs();
  CHECK_EQ(far::get(cells, 3), (std::vector<double>{total, 2 * total, 4 * total}));
  long ranks = far::nprocs();
  CHECK_EQ(far::get(counters, 3),
           (std::vector<std::int64_t>{times / 3 * ranks, times * ranks, times / 3 * ranks}));
  release(cells);
  release(counters);
}

/// The way of transports that cannot add, on all of them.
template <class C>
static void sums_by_compare_and_swap() {
  constexpr std::size_t n = 70;
  constexpr int times = 2;
  auto cells = shared_objects<C>(0, n);
  std::vector<C> values(n);
  std::iota(values.begin(), values.end(), C(1));
  for (int i = 0; i < times; ++i)
    far::detail::add_by_swaps(far::detail::here(), cells.rank(), cells.offset(), values.data(), n);
  far::barrier();
  for (C& value : values) value *= static_cast<C>(times * far::nprocs());
  CHECK_EQ(far::get(cells, n), values);
  release(cells);
}
FAR_TEST(by_compare_and_swap_of_double) { sums_by_compare_and_swap<double>(); }
FAR_TEST(by_compare_and_swap_of_float) { sums_by_compare_and_swap<float>(); }
FAR_TEST(by_fetch_and_add) { sums_by_compare_and_swap<std::uint32_t>(); }

/// Many blocks, of which each rank begins with another one, at odd places: nothing is lost where
/// ranks meet in a block, and where one goes on to the next.
FAR_TEST(long_sums_meet) {
  constexpr std::size_t n = 3 * 1024 + 5;
  constexpr int times = 8;
  auto cells = shared_objects<double>(0, n + 2, 1.0);
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  for (int i = 0; i < times; ++i) {
    far::accumulate(cells + 1, values.data(), n);
    std::size_t from = (far::rank() * 700 + static_cast<std::size_t>(i) * 131) % n;
    far::accumulate(cells + 1 + static_cast<std::ptrdiff_t>(from), values.data() + from, n - from,
                    2.0);
    far::accumulate(cells + 1, values.data(), from, 2.0);
  }
  far::barrier();
  std::vector<double> expected(n + 2, 1.0);
  for (std::size_t i = 0; i < n; ++i) expected[i + 1] += 3 * times * far::nprocs() * values[i];
  CHECK(far::get(cells, n + 2) == expected);
  release(cells);
}

/// A rank that is inside holds up nobody but those who add to the same block, and they know who it
/// is.
FAR_TEST(held_blocks_are_told_of) {
  auto& c = far::detail::here();
  if (!c.link.coherent()) SKIP("the ranks share no memory");
  if constexpr (far::detail::accumulates<far::detail::transport, double>) {
    constexpr std::size_t block = far::detail::stripe_block, n = block / sizeof(double) + 1;
    auto cells = shared_objects<double>(0, n);
    far::barrier();
    if (far::rank() == 0) {
      far::rank_t other = far::nprocs() - 1;
      std::vector<double> ones(n, 1.0);
      std::size_t last = cells.offset() + (n - 1) * sizeof(double);
      far::detail::stripe_lock lock(c.link.address(0, 0), last);
      CHECK(lock.try_lock(other));
      auto some = c.link.accumulate(0, cells.offset(), ones.data(), n, 0);
      std::size_t before = (last / block * block - cells.offset()) / sizeof(double);
      CHECK_EQ(some.elements, before);
      CHECK_EQ(some.holder, other);
      lock.unlock();
      auto rest = c.link.accumulate(0, cells.offset() + before * sizeof(double),
                                    ones.data() + before, n - before, 0);
      CHECK_EQ(rest.elements, n - before);
    }
    far::barrier();
    CHECK(far::get(cells, n) == std::vector<double>(n, 1.0));
    release(cells);
  }
}

/// A float beside one that others accumulate to is another rank's to put.
FAR_TEST(neighbours_are_left_alone) {
  auto cells = shared_objects<float>(0, 2 * far::nprocs());
  auto mine = cells + 2 * far::rank();
  auto shared = cells + 2 * ((far::rank() + 1) % far::nprocs()) + 1;
  for (int i = 1; i <= 50; ++i) {
    far::put(mine, static_cast<float>(i));
    far::accumulate(shared, 2.0f);
    far::flush();
    CHECK_EQ(far::get(mine), static_cast<float>(i));
  }
  far::barrier();
  CHECK_EQ(far::get(mine + 1), 100.0f);
  release(cells);
}

/// No word is torn, and none is lost or counted twice, while others watch.
FAR_TEST(watched_sums_only_grow) {
  if (!far::detail::here().link.racy_get()) SKIP("this back end has no racy_get");
  auto cells = shared_objects<double>(0, 4);
  constexpr int times = 40;
  double step = 1.0 + 0x1p-20;  // bits in both halves of the word
  std::vector<double> steps(4, step), last(4);
  for (int i = 0; i < times; ++i) {
    far::accumulate(cells, steps);
    auto seen = far::get(cells, 4);
    for (std::size_t k = 0; k < 4; ++k) {
      double count = seen[k] / step;
      CHECK(count == std::floor(count) && seen[k] >= last[k] && count >= i + 1);
      last[k] = seen[k];
    }
  }
  far::barrier();
  CHECK_EQ(far::get(cells), step * times * far::nprocs());
  release(cells);
}

FAR_TEST(long_ones) {
  constexpr std::size_t n = 50'000;
  auto homes = objects_on_each_rank<double>(n);
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 0.0);
  for (far::rank_t i = 0; i < far::nprocs(); ++i) {
    auto to = homes[(far::rank() + i) % far::nprocs()];
    if (i % 2 == 0)
      far::accumulate(to, values.data(), n);
    else
      far::async_accumulate(to, values.data(), n, 3.0).get();
  }
  far::barrier();
  double factor = 0;
  for (far::rank_t i = 0; i < far::nprocs(); ++i) factor += i % 2 == 0 ? 1 : 3;
  auto got = far::get(homes[far::rank()], n);
  bool good = true;
  for (std::size_t i = 0; i < n; ++i) good = good && got[i] == factor * static_cast<double>(i);
  CHECK(good);
  release(homes);
}

FAR_TEST(of_nothing) {
  auto cell = shared_objects<double>(0, 1, 5.0);
  far::accumulate(cell, static_cast<const double*>(nullptr), 0);
  far::accumulate(cell, static_cast<const double*>(nullptr), 0, 2.0);
  far::async_accumulate(cell, static_cast<const double*>(nullptr), 0, 2.0).get();
  far::barrier();
  CHECK_EQ(far::get(cell), 5.0);
  release(cell);
}

FAR_TEST(costs) {
  auto homes = objects_on_each_rank<double>(100);
  auto integers = objects_on_each_rank<std::uint32_t>(100);
  auto to = homes[(far::rank() + 1) % far::nprocs()];
  auto add_to = integers[(far::rank() + 1) % far::nprocs()];
  std::vector<double> values(100, 1.0);
  std::vector<std::uint32_t> ones(100, 1);
  auto& link = far::detail::here().link;
  bool native = far::detail::adds_natively<double>(link);
  cost one = native ? cost{.puts = 1} : cost{.gets = 2, .atomics = 100, .waits = 4};
  CHECK_EQ(cost_of([&] { far::accumulate(to, values.data(), 100); }), one);
  CHECK_EQ(cost_of([&] { far::accumulate(to, values.data(), 100, 2.0); }), one);
  CHECK_EQ(cost_of([&] { far::async_accumulate(to, values.data(), 100).get(); }).puts, one.puts);
  cost sums = far::detail::adds_natively<std::uint32_t>(link) ? cost{.puts = 1}
                                                              : cost{.atomics = 100, .waits = 2};
  CHECK_EQ(cost_of([&] { far::accumulate(add_to, ones.data(), 100); }), sums);
  release(homes);
  release(integers);
}

}  // namespace accumulate_tests

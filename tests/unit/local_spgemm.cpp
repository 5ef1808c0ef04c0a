// Sparse products and sums of sparse matrices, against their definitions.
#include <farside/algorithms/local/accumulators.hpp>
#include <farside/algorithms/local/local_kernels.hpp>
#include <farside/algorithms/local/spgemm.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#if __has_include(<Eigen/SparseCore>)
#include <farside/algorithms/local/eigen_accumulator.hpp>
#endif

#include "matrix_oracle.hpp"

namespace {

/// Rows, columns of A, columns of B.
struct product_shape {
  std::size_t m, k, n;
};
/// More columns than a dense row takes for short rows, so that hash tables are used.
template <class T>
constexpr std::size_t wide = (std::size_t{2} << 20) / sizeof(T) + 4321;

// Nothing, one element, what divides nothing, several words of bits, wide rows.
template <class T>
constexpr std::array<product_shape, 8> shapes{{{0, 5, 4},
                                               {5, 0, 4},
                                               {5, 4, 0},
                                               {1, 1, 1},
                                               {7, 5, 9},
                                               {40, 33, 65},
                                               {3, 20, 9000},
                                               {13, 210, wide<T>}}};

template <class T, class I, class S>
void products(const S& over = S()) {
  std::mt19937_64 random(1);
  far::sparse_multiplier<T, I, S> multiplier(over);  // keeps its tables, which must not matter
  for (auto [m, k, n] : shapes<T>) {
    for (bool sorted : {true, false}) {
      auto a = oracle::sparse<T, I>(random, {m, k}, 6, sorted);
      auto b = oracle::sparse<T, I>(random, {k, n}, 4, sorted);
      const auto expected = oracle::product(a.view(), b.view(), over);
      auto c = far::spgemm(a.view(), b.view(), over);
      CHECK(c.shape() == far::matrix_shape{m, n} && c.sorted());
      CHECK(oracle::same(c.view(), expected));
      auto any_order = multiplier.multiply(a.view(), b.view(), {.sorted = false});
      CHECK(oracle::same(any_order.view(), expected));
      // In two steps, into memory of ours.
      std::vector<std::int64_t> begins(m + 1);
      multiplier.count(a.view(), b.view(), begins);
      CHECK(std::equal(begins.begin(), begins.end(), c.row_begin().begin()));
      CHECK(far::count_products(a.view(), b.view()) >= c.nnz());
      far::csr<T, I> filled({m, n}, c.nnz());
      std::ranges::copy(begins, filled.row_begin().begin());
      multiplier.fill(a.view(), b.view(), begins, filled.columns(), filled.values());
      CHECK(oracle::same(filled.view(), expected));
      // A sum of products is as one product of matrices that are cut in two.
      if (k > 1) {
        auto left = [&](auto keep) {
          std::vector<far::triplet<T>> some;
          for (auto [at, value] : a.view())
            if (keep(at.column)) some.push_back({at.row, at.column, value});
          return far::csr<T, I>::from_triplets({m, k}, some);
        };
        const auto low = left([&](std::size_t column) { return column < k / 2; });
        const auto high = left([&](std::size_t column) { return column >= k / 2; });
        const std::vector<far::sparse_factors<T, I>> terms{{low.view(), b.view()},
                                                           {high.view(), b.view()}};
        const std::span<const far::sparse_factors<T, I>> all(terms);
        auto sum = multiplier.multiply(all);
        CHECK(sum.sorted() && oracle::same(sum.view(), expected));
        CHECK(far::most_entries(all) >= c.nnz() && far::most_entries(all) <= m * n);
      }
      // A range of rows is a matrix as well.
      if (m > 3) {
        auto some = multiplier.multiply(a.view().row_range(2, m - 3), b.view());
        auto same_rows = c.view().row_range(2, m - 3);
        CHECK(oracle::entries_of(some.view()) == oracle::entries_of(same_rows));
      }
    }
  }
}

void zeros_stay() {
  auto a = far::csr<double>::from_triplets({1, 2}, {{0, 0, 1}, {0, 1, -1}});
  auto b = far::csr<double>::from_triplets({2, 1}, {{0, 0, 1}, {1, 0, 1}});
  auto c = far::spgemm(a.view(), b.view());
  CHECK(c.nnz() == 1 && c.values()[0] == 0);
}

void blocks() {
  std::mt19937_64 random(2);
  auto a = oracle::sparse<long, std::int32_t>(random, {30, 30}, 4, true);
  std::size_t with_products = 0;
  for (std::size_t i = 0; i < 29; ++i)  // after the last row there is nothing to come between
    with_products += far::count_products(a.view().row_range(i, 1), a.view()) != 0;
  std::size_t calls = 0;
  auto c = far::spgemm(a.view(), a.view(), far::plus_times<long>(),
                       {.block_products = 1, .between_blocks = [&] { ++calls; }});
  CHECK(calls == with_products);
  // One that throws ends the product; the multiplier is as good as new.
  far::sparse_multiplier<long> multiplier;
  CHECK_THROWS(multiplier.multiply(a.view(), a.view(),
                                   {.block_products = 1,
                                    .between_blocks = [] { throw std::runtime_error("enough"); }}),
               "enough");
  CHECK(oracle::same(multiplier.multiply(a.view(), a.view()).view(), oracle::entries_of(c.view())));
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !FARSIDE_CHECKED
/// There is no room for all products, but for the result: it grows as it fills.
void little_memory() {
  std::vector<far::triplet<double>> of_a, of_b;
  for (std::size_t i = 0; i < 400; ++i)
    for (std::size_t k = 0; k < 200; ++k) of_a.push_back({i, k, 1});
  for (std::size_t k = 0; k < 200; ++k)
    for (std::size_t j = 0; j < 100; ++j) of_b.push_back({k, j, static_cast<double>(j)});
  auto a = far::csr<double>::from_triplets({400, 200}, of_a);
  auto b = far::csr<double>::from_triplets({200, 100}, of_b);
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    CHECK(std::fscanf(file, "%zu", &pages) == 1);
    std::fclose(file);
  }
  // 8 million products would take 96 MB.
  rlimit less{pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{48} << 20),
              before.rlim_max};
  CHECK(::setrlimit(RLIMIT_AS, &less) == 0);
  auto c = far::spgemm(a.view(), b.view());
  CHECK(::setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(c.nnz() == 40000);
  std::size_t wrong = 0;
  for (auto [at, value] : c.view()) wrong += value != 200.0 * static_cast<double>(at.column);
  CHECK(wrong == 0);
}
#else
void little_memory() {}  // the sanitizers take more addresses than a limit would leave
#endif

void refused() {
  std::mt19937_64 random(3);
  auto a = oracle::sparse<long, std::int32_t>(random, {4, 5}, 3, true);
  CHECK_THROWS(far::spgemm(a.view(), a.view()),
               "spgemm was given a matrix of 4 x 5 and one of 4 x 5");
  far::csr_view<long, std::int16_t> too_wide({5, 70000}, nullptr, nullptr, nullptr, true);
  auto narrow = oracle::sparse<long, std::int16_t>(random, {4, 5}, 3, true);
  CHECK_THROWS(far::spgemm(narrow.view(), too_wide), "does not fit column indices of 16 bits");

  // Two terms for each row but the last, so that nothing is merely copied.
  auto two = far::csr<long>::from_triplets(
      {4, 5}, {{0, 0, 1}, {0, 1, 1}, {1, 1, 1}, {1, 2, 1}, {2, 0, 1}, {2, 4, 1}, {3, 3, 1}});
  auto diagonal = [](std::size_t columns, std::size_t per_row) {
    std::vector<far::triplet<long>> entries;
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t e = 0; e < per_row; ++e)
        entries.push_back({i, i * 9 + e * (columns / 4), 1});
    return far::csr<long>::from_triplets({5, columns}, entries);
  };
  auto b = diagonal(1000, 2);
  far::sparse_multiplier<long> multiplier;
  std::vector<std::int64_t> begins(5), too_few(4);
  CHECK_THROWS(multiplier.count(two.view(), b.view(), too_few), "4 row pointers for a result of 4");
  multiplier.count(two.view(), b.view(), begins);
  const auto size = static_cast<std::size_t>(begins.back());
  std::vector<std::int32_t> columns(size);
  std::vector<long> values(size);
  CHECK_THROWS(
      multiplier.fill(two.view(), b.view(), begins, std::span(columns).first(size - 1), values),
      "arrays that do not fit each other");
  // More entries than were counted must not be written behind the end, whatever adds the row up.
  for (std::size_t columns_of_more : {std::size_t{1000}, 2 * wide<long>}) {
    auto more = diagonal(columns_of_more, 3);
    for (std::size_t row : {0, 3}) {  // one that is added up, one that is copied
      auto one = two.view().row_range(row, 1);
      std::vector<std::int64_t> of_one(2);
      multiplier.count(one, b.view(), of_one);
      std::vector<long> guarded(static_cast<std::size_t>(of_one[1]) + 10, -7);
      CHECK_THROWS(multiplier.fill(one, more.view(), of_one, columns,
                                   std::span(guarded).first(guarded.size() - 10)),
                   "were counted");
      CHECK(std::count(guarded.end() - 10, guarded.end(), -7) == 10);
    }
  }
  multiplier.fill(two.view(), b.view(), begins, columns, values);
  CHECK(std::ranges::equal(values, far::spgemm(two.view(), b.view()).values()));
}

/// A part and where it lies in the sum.
template <class T, class I>
struct placed {
  far::csr<T, I> part;
  far::matrix_index offset;
};

template <class T, class I, class Accumulator>
void sum_of(const std::vector<placed<T, I>>& parts, const oracle::entries<T>& expected,
            Accumulator sum) {
  static_assert(far::sparse_accumulator<Accumulator, T, I>);
  for (int round = 0; round < 2; ++round) {  // it is empty after result()
    bool copied = false;
    for (const auto& [part, offset] : parts) {
      if ((copied = !copied))
        sum.accumulate(part.view(), offset);
      else
        sum.accumulate(far::csr<T, I>(part), offset);
    }
    auto result = sum.result();
    CHECK(result.sorted() && oracle::same(result.view(), expected));
  }
  auto nothing = sum.result();
  CHECK(nothing.nnz() == 0 && nothing.row_begin().back() == 0);
  far::csr<T, I> outside({2, 2});
  CHECK_THROWS(sum.accumulate(outside.view(), {nothing.rows() - 1, 0}), "does not lie in a sum of");
}

template <class T, class I, class S>
void sums(const S& over = S()) {
  std::mt19937_64 random(4);
  for (std::size_t columns : {std::size_t{70}, wide<T>}) {
    for (std::size_t count : {0, 1, 2, 5, 60}) {
      const far::matrix_shape shape{50, columns};
      std::vector<placed<T, I>> parts;
      oracle::entries<T> expected;
      for (std::size_t p = 0; p < count; ++p) {
        // Some as large as the sum, some smaller, at any place; some empty.
        bool whole = p % 2 == 0;
        far::matrix_shape of_part = whole ? shape : far::matrix_shape{random() % 50, random() % 50};
        far::matrix_index offset{};
        if (!whole)
          offset = {random() % (50 - of_part.rows), random() % (columns - of_part.columns)};
        auto part = oracle::sparse<T, I>(random, of_part, 6, p % 3 != 0);
        for (auto [at, value] : part.view()) {
          far::matrix_index place{at.row + offset.row, at.column + offset.column};
          auto [found, is_new] = expected.try_emplace(place, value);
          if (!is_new) found->second = over.add(found->second, value);
        }
        parts.push_back({std::move(part), offset});
      }
      sum_of(parts, expected, far::dense_accumulator<T, I, S>(shape, over));
      sum_of(parts, expected, far::hash_accumulator<T, I, S>(shape, over));
      sum_of(parts, expected, far::heap_accumulator<T, I, S>(shape, over));
      sum_of(parts, expected, far::merge_accumulator<T, I, S>(shape, over));
      sum_of(parts, expected, far::automatic_accumulator<T, I, S>(shape, over));
#if __has_include(<Eigen/SparseCore>)
      if constexpr (std::is_same_v<S, far::plus_times<T>>)
        sum_of(parts, expected, far::eigen_accumulator<T, I>(shape));
#endif
    }
  }
}

}  // namespace

int main() {
  using int32 = std::int32_t;
  using int64 = std::int64_t;
  using complex = std::complex<double>;
  products<int64, int32, far::plus_times<int64>>();
  products<int64, int64, far::plus_times<int64>>();
  products<double, int32, far::plus_times<double>>();
  products<double, int64, far::plus_times<double>>();
  products<float, int32, far::plus_times<float>>();
  products<complex, int32, far::plus_times<complex>>();
  products<int64, int32, far::min_plus<int64>>();
  products<double, int64, far::min_plus<double>>();
  products<double, int32, far::max_times<double>>();
  products<bool, int32, far::or_and<bool>>();
  products<bool, int64, far::or_and<bool>>();
  products<int64, int32, far::plus_first<int64>>();
  products<double, int32>(oracle::widest_path<double>{3});
  zeros_stay();
  blocks();
  little_memory();
  refused();
  sums<int64, int32, far::plus_times<int64>>();
  sums<double, int64, far::plus_times<double>>();
  sums<complex, int32, far::plus_times<complex>>();
  sums<int64, int32, far::min_plus<int64>>();
  sums<bool, int32, far::or_and<bool>>();
  return verdict("local sparse products");
}

// Products with dense matrices, against their definitions: GEMM, SpMM, SpMV. Compiled once more
// with FARSIDE_USE_BLAS where there is a BLAS.
#include <farside/algorithms/local/local_kernels.hpp>

#include <array>
#include <string>

#include "matrix_oracle.hpp"

namespace {

/// Rows of C, depth, columns of C: none, one, less and more than tiles and blocks, multiples of
/// nothing. Column counts of SpMM: each width of piece, and a rest.
struct product_shape {
  std::size_t m, k, n;
};
constexpr std::array<product_shape, 9> shapes{{{0, 3, 4},
                                               {3, 0, 4},
                                               {3, 4, 0},
                                               {1, 1, 1},
                                               {2, 5, 3},
                                               {8, 16, 24},
                                               {13, 7, 61},
                                               {9, 3, 171},
                                               {17, 301, 29}}};

/// c + a b by definition.
template <class T, class S, class A, class B>
std::vector<T> product(const product_shape& size, const A& a, const B& b, std::vector<T> c,
                       const S& over) {
  for (std::size_t i = 0; i < size.m; ++i)
    for (std::size_t k = 0; k < size.k; ++k)
      for (std::size_t j = 0; j < size.n; ++j)
        c[i * size.n + j] = over.add(c[i * size.n + j], over.multiply(a(i, k), b(k, j)));
  return c;
}

template <class T>
bool same(const std::vector<T>& x, const std::vector<T>& y, double size) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!oracle::near<T>(x[i], y[i], size)) return false;
  return x.size() == y.size();
}

/// The elements of a view, without gaps.
template <class T>
std::vector<T> elements(far::matrix_view<T> m) {
  std::vector<T> result;
  for (std::size_t i = 0; i < m.rows(); ++i)
    result.insert(result.end(), m.row(i).begin(), m.row(i).end());
  return result;
}

/// Memory of a matrix that is a part of a wider one. A std::vector<bool> has no elements.
template <class T>
struct padded {
  far::detail::plain_array<T> memory;
  far::matrix_view<T> view;

  padded(std::mt19937_64& random, far::matrix_shape shape)
      : memory((shape.columns + 3) * shape.rows), view(memory.data(), shape, shape.columns + 3) {
    for (T& x : memory) x = oracle::value<T>(random);
  }
};

#if defined(__x86_64__)
/// Those that this machine would not choose, too.
template <class Kernel, class Arguments>
void with_every_instruction_set(const Arguments* arguments, auto begin, auto end) {
  begin();
  Kernel::template run<far::detail::instructions_sse2>(arguments);
  end();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    begin();
    far::detail::call_with_avx2<Kernel>(arguments);
    end();
  }
}
#endif

template <class T, class S>
void gemms(const S& over = S()) {
  std::mt19937_64 random(1);
  for (const auto& size : shapes) {
    auto [m, k, n] = size;
    padded<T> a(random, {m, k}), b(random, {k, n}), c(random, {m, n});
    padded<T> at(random, {k, m}), bt(random, {n, k});
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < k; ++j) at.view[{j, i}] = a.view[{i, j}];
    for (std::size_t i = 0; i < k; ++i)
      for (std::size_t j = 0; j < n; ++j) bt.view[{j, i}] = b.view[{i, j}];
    const auto before = c.memory;
    auto expected = product(
        size, [&](std::size_t i, std::size_t j) { return a.view[{i, j}]; },
        [&](std::size_t i, std::size_t j) { return b.view[{i, j}]; }, elements(c.view), over);
    auto check = [&] {
      CHECK(same(elements(c.view), expected, 1000.0 * static_cast<double>(k)));
      bool gaps = true;  // what lies between rows is not touched
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = n; j < n + 3; ++j)
          gaps = gaps && c.memory[i * (n + 3) + j] == before[i * (n + 3) + j];
      CHECK(gaps);
      std::ranges::copy(before, c.memory.begin());
    };
    far::gemm(a.view, b.view, c.view, over);
    check();
    far::gemm(far::transpose(at.view), b.view, c.view, over);
    check();
    far::gemm(a.view, far::transpose(bt.view), c.view, over);
    check();
    far::gemm(far::transpose(at.view), far::transpose(bt.view), c.view, over);
    check();
#if defined(__x86_64__)
    if (m * k * n != 0) {
      far::kernel_options options;
      far::detail::gemm_block<T, S> all{&over,
                                        far::matrix_view<const T>(a.view),
                                        far::matrix_view<const T>(b.view),
                                        c.view.shape(),
                                        k,
                                        c.view.data(),
                                        c.view.leading_dimension(),
                                        &options};
      with_every_instruction_set<far::detail::gemm_kernel>(&all, [] {}, check);
    }
#endif
  }
  padded<T> a(random, {3, 4}), c(random, {3, 3});
  CHECK_THROWS(far::gemm(a.view, a.view, c.view, over),
               "gemm was given a matrix of 3 x 4 and one of 3 x 4");
  CHECK_THROWS(far::gemm(a.view, far::transpose(a.view), a.view, over),
               "gemm was given a result of 3 x 4 for a product of 3 x 4 and 4 x 3");
}

/// Larger than all blocks, so that there are several of each; one element stands for all others.
void blocks() {
  const std::size_t m = 700, k = 900, n = 2100;
  std::vector<double> a(m * k, 0), b(k * n, 0), c(m * n, 1);
  std::mt19937_64 random(5);
  std::map<far::matrix_index, double> expected;
  for (int e = 0; e < 300; ++e) {  // sparse, so that the definition is quick
    std::size_t i = random() % m, l = random() % k, j = random() % n;
    a[i * k + l] = b[l * n + j] = 1;
  }
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t l = 0; l < k; ++l)
      if (a[i * k + l] != 0)
        for (std::size_t j = 0; j < n; ++j)
          if (b[l * n + j] != 0) expected[{i, j}] += 1;
  std::size_t calls = 0;
  far::gemm(far::matrix_view<const double>(a.data(), {m, k}),
            far::matrix_view<const double>(b.data(), {k, n}),
            far::matrix_view<double>(c.data(), {m, n}), far::plus_times<double>(),
            {.between_blocks = [&] { ++calls; }});
  CHECK(calls > 1);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      auto found = expected.find({i, j});
      wrong += c[i * n + j] != 1 + (found == expected.end() ? 0 : found->second);
    }
  }
  CHECK(wrong == 0);
}

template <class T, class I, class S>
void sparse_by_dense(const S& over = S()) {
  std::mt19937_64 random(2);
  for (const auto& size : shapes) {
    auto [m, k, n] = size;
    for (bool sorted : {true, false}) {
      auto a = oracle::sparse<T, I>(random, {m, k}, 6, sorted);
      padded<T> b(random, {k, n}), c(random, {m, n}), sum(random, {m, n});
      const auto before = c.memory;
      // By definition, over the entries that are present.
      auto expected = elements(c.view);
      for (auto [at, x] : a.view())
        for (std::size_t j = 0; j < n; ++j)
          expected[at.row * n + j] =
              over.add(expected[at.row * n + j], over.multiply(x, b.view[{at.column, j}]));
      auto check = [&] {
        CHECK(same(elements(c.view), expected, 1000.0 * static_cast<double>(k)));
        std::ranges::copy(before, c.memory.begin());
      };
      far::cpu_kernels<T, I, S> kernels(over);
      static_assert(far::local_kernels_for<far::cpu_kernels<T, I, S>, T, I>);
      kernels.spmm(a.view(), b.view, c.view);
      check();
      std::size_t calls = 0;
      far::spmm(a.view(), b.view, c.view, over,
                {.block_products = 1, .between_blocks = [&] { ++calls; }});
      CHECK(n == 0 || m < 3 || k == 0 || calls != 0);
      check();
#if defined(__x86_64__)
      far::detail::spmm_row<T, I, S> row;
      for (int set = 0; set < 2 && n != 0 && a.nnz() != 0; ++set) {
        for (std::size_t i = 0; i < m; ++i) {
          if (a.row(i).empty()) continue;
          row = {&over,
                 a.row(i).columns().data(),
                 a.row(i).values().data(),
                 a.row(i).size(),
                 b.view.data(),
                 n + 3,
                 c.view.row(i).data(),
                 n,
                 a.columns().data() + a.nnz() - 1};
          const auto* of_row = &row;
          if (set == 0)
            far::detail::spmm_row_kernel::run<far::detail::instructions_sse2>(of_row);
          else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
            far::detail::call_with_avx2<far::detail::spmm_row_kernel>(of_row);
          else
            far::detail::spmm_row_kernel::run<far::detail::instructions_sse2>(of_row);
        }
        check();
      }
#endif
      // A column of B at a time.
      for (std::size_t j = 0; j < n; j += 13) {
        far::detail::plain_array<T> x(k), y(m);
        for (std::size_t i = 0; i < k; ++i) x[i] = b.view[{i, j}];
        for (std::size_t i = 0; i < m; ++i) y[i] = c.view[{i, j}];
        kernels.spmv(a.view(), {x.data(), k}, {y.data(), m});
        bool all = true;
        for (std::size_t i = 0; i < m; ++i)
          all = all && oracle::near<T>(y[i], expected[i * n + j], 1000.0 * static_cast<double>(k));
        CHECK(all);
      }
      kernels.add(c.view, sum.view);
      CHECK(m * n == 0 || sum.view.row(0).size() == n);
    }
  }
  auto a = oracle::sparse<T, I>(random, {3, 4}, 2, true);
  padded<T> b(random, {4, 2}), c(random, {3, 3});
  CHECK_THROWS(far::spmm(a.view(), b.view, c.view, over), "spmm was given a result of 3 x 3");
  far::detail::plain_array<T> x(3);
  CHECK_THROWS(far::spmv(a.view(), {x.data(), 3}, {x.data(), 3}, over), "3 x 4 and one of 3 x 1");
}

}  // namespace

int main() {
  using complex = std::complex<double>;
  gemms<double, far::plus_times<double>>();
  gemms<float, far::plus_times<float>>();
  gemms<complex, far::plus_times<complex>>();
#if FARSIDE_USE_BLAS
  gemms<std::complex<float>, far::plus_times<std::complex<float>>>();
#else
  using int32 = std::int32_t;
  using int64 = std::int64_t;
  gemms<int64, far::plus_times<int64>>();
  gemms<int64, far::min_plus<int64>>();
  gemms<double, far::min_plus<double>>();
  gemms<double, far::max_times<double>>();
  gemms<bool, far::or_and<bool>>();
  gemms<int64, far::plus_first<int64>>();
  gemms<double>(oracle::widest_path<double>{3});
  sparse_by_dense<int64, int32, far::plus_times<int64>>();
  sparse_by_dense<double, int64, far::plus_times<double>>();
  sparse_by_dense<float, int32, far::plus_times<float>>();
  sparse_by_dense<complex, int32, far::plus_times<complex>>();
  sparse_by_dense<int64, int64, far::min_plus<int64>>();
  sparse_by_dense<double, int32, far::min_plus<double>>();
  sparse_by_dense<double, int32, far::max_times<double>>();
  sparse_by_dense<bool, int32, far::or_and<bool>>();
  sparse_by_dense<int64, int32, far::plus_first<int64>>();
  sparse_by_dense<double, int32>(oracle::widest_path<double>{3});
#endif
  blocks();
  return verdict("local dense products");
}

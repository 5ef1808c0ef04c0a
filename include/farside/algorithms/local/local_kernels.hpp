// The local kernels as one object, through which the distributed algorithms call them.
//
// `local_kernels_for` is all that such an algorithm asks of the place where it computes.
// `cpu_kernels` is the one of this library for a core. Another one, whose matrices lie in the
// memory of an accelerator and whose products are those of its own library, takes its place by
// having the same members:
//
//   k.gemm(a, b, c)           c = c + a b, dense; a, b: matrix_view<const T>, c: matrix_view<T>
//   k.spmm(a, b, c)           c = c + a b, a sparse (csr_view), b and c dense
//   k.spmv(a, x, y)           y = y + a x, a sparse, x and y spans
//   k.add(from, to)           to = to + from, dense: a partial tile that has arrived
//   k.spgemm(a, b)            a b, all sparse; the result owns its memory (csr)
//   k.products(a, b)          how many products that takes: a bound for its size, cheap
//   k.count(a, b, row_begin)  the sizes of its rows, exactly, before memory is spent
//   k.fill(a, b, row_begin, columns, values)    the same product into memory of that size
//   k.accumulator(shape)      a sparse_accumulator, for partial sparse tiles of this shape
//
// What the algorithms rely on:
//
// - A call has finished on return, as seen by the rank that makes it. Kernels that run aside have to
//   be waited for in the call, or order themselves behind each other and wait in `finish()`, which
//   algorithms call before they hand a result to another rank.
// - Operands may lie in another rank's memory that this process can load. They are only read.
// - Nothing is kept between calls but memory to work in: equal operands give equal results, to the
//   last bit.
// - `options.between_blocks` is called every now and then, so that a rank serves others meanwhile.
// - Rows of sparse results are sorted unless `options.sorted` is false.
//
// Everything is local.
#pragma once

#include <farside/algorithms/local/accumulators.hpp>
#include <farside/algorithms/local/gemm.hpp>
#include <farside/algorithms/local/spgemm.hpp>
#include <farside/algorithms/local/spmm.hpp>
#include <farside/algorithms/local/spmv.hpp>

#include <concepts>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// What computes on one rank for the distributed algorithms; see the header.
template <class K, class T, class I>
concept local_kernels_for =
    requires(K& k, const csr_view<T, I>& a, const csr_view<T, I>& b, matrix_view<const T> x,
             matrix_view<T> y, std::span<const T> u, std::span<T> v, std::span<I> columns,
             std::span<std::int64_t> row_begin, const kernel_options& options) {
      k.gemm(x, x, y, options);
      k.spmm(a, x, y, options);
      k.spmv(a, u, v, options);
      k.add(x, y);
      { k.spgemm(a, b, options) } -> std::same_as<csr<T, I>>;
      { k.products(a, b) } -> std::convertible_to<std::uint64_t>;
      k.count(a, b, row_begin, options);
      k.fill(a, b, row_begin, columns, v, options);
      { k.accumulator(matrix_shape{}) } -> sparse_accumulator<T, I>;
      k.finish();
    };

/// The kernels of this library, for one core. One thread at a time may use it; it keeps the tables
/// of sparse products from call to call. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
class cpu_kernels {
 public:
  /// Local; no communication.
  explicit cpu_kernels(const S& over = S()) : over_(over), multiplier_(over) {}

  /// c = c + a b. Local; see local/gemm.hpp for what it costs.
  void gemm(matrix_view<const T> a, matrix_view<const T> b, matrix_view<T> c,
            const kernel_options& options = {}) {
    far::gemm(a, b, c, over_, options);
  }
  /// c = c + a b, a sparse. Local; see local/spmm.hpp for what it costs.
  void spmm(const csr_view<T, I>& a, matrix_view<const T> b, matrix_view<T> c,
            const kernel_options& options = {}) {
    far::spmm(a, b, c, over_, options);
  }
  /// y = y + a x, a sparse. Local; see local/spmv.hpp for what it costs.
  void spmv(const csr_view<T, I>& a, std::span<const T> x, std::span<T> y,
            const kernel_options& options = {}) {
    far::spmv(a, x, y, over_, options);
  }
  /// to = to + from, element by element. Local; costs a pass over both.
  void add(matrix_view<const T> from, matrix_view<T> to) {
    if (from.shape() != to.shape())
      detail::raise("a dense matrix of ", from.shape(), " was to be added to one of ", to.shape(),
                    ". Both must have the same shape.");
    for (std::size_t i = 0; i < to.rows(); ++i)
      std::ranges::transform(to.row(i), from.row(i), to.row(i).begin(),
                             [this](const T& x, const T& y) -> T { return over_.add(x, y); });
  }

  /// a b, all of them sparse. Local; see local/spgemm.hpp for what it costs.
  csr<T, I> spgemm(const csr_view<T, I>& a, const csr_view<T, I>& b,
                   const kernel_options& options = {}) {
    return multiplier_.multiply(a, b, options);
  }
  /// A sum of such products, and one into memory of the caller's. Local; see local/spgemm.hpp for
  /// what they cost.
  csr<T, I> spgemm(std::span<const sparse_factors<T, I>> terms,
                   const kernel_options& options = {}) {
    return multiplier_.multiply(terms, options);
  }
  template <class Rows>
  void spgemm_into(std::span<const sparse_factors<T, I>> terms, Rows& rows,
                   const kernel_options& options = {}) {
    multiplier_.multiply_into(terms, rows, options);
  }
  /// How many products of entries that takes. Local; costs a pass over a.
  std::uint64_t products(const csr_view<T, I>& a, const csr_view<T, I>& b) const {
    return count_products(a, b);
  }
  /// Where rows of the product begin. Local; costs about what the product costs.
  void count(const csr_view<T, I>& a, const csr_view<T, I>& b, std::span<std::int64_t> row_begin,
             const kernel_options& options = {}) {
    multiplier_.count(a, b, row_begin, options);
  }
  /// The product, into memory of the size that count() has found. Local; costs what it costs.
  void fill(const csr_view<T, I>& a, const csr_view<T, I>& b,
            std::span<const std::int64_t> row_begin, std::span<I> columns, std::span<T> values,
            const kernel_options& options = {}) {
    multiplier_.fill(a, b, row_begin, columns, values, options);
  }
  /// For partial results of this shape. Local; no communication.
  automatic_accumulator<T, I, S> accumulator(matrix_shape shape) const {
    return automatic_accumulator<T, I, S>(shape, over_);
  }
  /// Everything has finished on return of the other calls. Local; no communication.
  void finish() {}

 private:
  [[no_unique_address]] S over_;
  sparse_multiplier<T, I, S> multiplier_;
};

}  // namespace far::inline FARSIDE_BACKEND

// C = C + A B with A sparse and B and C dense (SpMM), on one rank, over any semiring.
//
//   far::spmm(a.view(), b_view, c_view);
//   far::spmm(a.view(), b_view, c_view, far::min_plus<double>());
//
// Row i of C is the sum of those rows of B that the entries of row i of A name. A piece of it is
// kept in the processor's registers while the entries of row i pass by, as wide as there are
// registers: half of them hold the piece. Of B every row is read in pieces that lie side by side,
// and asked for a few entries ahead.
//
// Time: 2 x nnz(A) x columns flops; memory is the limit, as every entry of A reads a row of B. No
// further memory.
//
// Everything is local.
#pragma once

#include <farside/algorithms/local/options.hpp>
#include <farside/algorithms/local/vectors.hpp>
#include <farside/containers/csr_view.hpp>
#include <farside/containers/matrix_view.hpp>

#include <utility>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// What a row of the product is made of.
template <class T, class I, class S>
struct spmm_row {
  const S* over;
  const I* entries;
  const T* factors;
  std::size_t size;
  const T* b;
  std::size_t b_leading;
  T* c;
  std::size_t columns;
  const I* last_entry;  // of all rows: nothing is asked for beyond it
};

struct spmm_row_kernel {
  template <class Set, class T, class I, class S>
  [[gnu::always_inline]] static void run(const spmm_row<T, I, S>* row) {
    using V = lanes<T, S, Set::bytes>;
    constexpr std::size_t width = sizeof(V) / sizeof(T);
    std::size_t j = 0;
    for (; j + Set::registers / 2 * width <= row->columns; j += Set::registers / 2 * width)
      piece<V, Set::registers / 2>(*row, j);
    for (; j + 4 * width <= row->columns; j += 4 * width) piece<V, 4>(*row, j);
    for (; j + width <= row->columns; j += width) piece<V, 1>(*row, j);
    for (; j < row->columns; ++j) piece<T, 1>(*row, j);
  }

  /// `Count` vectors of the row, from column j on.
  template <class V, std::size_t Count, class T, class I, class S>
  [[gnu::always_inline]] static void piece(const spmm_row<T, I, S>& row, std::size_t j) {
    // V is a vector of T.  NOLINTNEXTLINE(bugprone-sizeof-expression)
    constexpr std::size_t width = sizeof(V) / sizeof(T);
    constexpr std::size_t ahead = 4;  // entries; each names a row of B somewhere in memory
    V sum[Count];
    T* c = row.c + j;
    FARSIDE_UNROLL for (std::size_t v = 0; v < Count; ++v) load(sum[v], c + v * width);
    for (std::size_t e = 0; e < row.size; ++e) {
      const I* later = row.entries + e + ahead;
      const T* soon = row.b +
                      static_cast<std::size_t>(later < row.last_entry ? *later : *row.last_entry) *
                          row.b_leading +
                      j;
      for (std::size_t byte = 0; byte < Count * sizeof(V); byte += 64)
        __builtin_prefetch(reinterpret_cast<const char*>(soon) + byte);
      const T factor = row.factors[e];
      const T* b = row.b + static_cast<std::size_t>(row.entries[e]) * row.b_leading + j;
      FARSIDE_UNROLL for (std::size_t v = 0; v < Count; ++v) {
        V y;
        load(y, b + v * width);
        add_product(*row.over, sum[v], factor, y);
      }
    }
    FARSIDE_UNROLL for (std::size_t v = 0; v < Count; ++v) store(sum[v], c + v * width);
  }
};

}  // namespace detail

/// C = C + A B over a semiring. C must not overlap B. Local; see the header for what it costs.
template <class T, class I, semiring_over<T> S = plus_times<T>>
void spmm(const csr_view<T, I>& a, std::type_identity_t<matrix_view<const T>> b,
          std::type_identity_t<matrix_view<T>> c, const S& over = S(),
          const kernel_options& options = {}) {
  detail::require_product("spmm", a.shape(), b.shape(), c.shape());
  if (a.nnz() == 0 || c.columns() == 0) return;
  detail::block_count blocks(options);
  const I* last_entry = a.columns().data() + a.nnz() - 1;
  for (std::size_t i = 0; i < a.rows(); ++i) {
    const auto of_a = a.row(i);
    if (of_a.empty()) continue;
    blocks.next(of_a.size() * c.columns());
    detail::spmm_row<T, I, S> row{
        &over,     of_a.columns().data(), of_a.values().data(), of_a.size(),
        b.data(),  b.leading_dimension(), c.row(i).data(),      c.columns(),
        last_entry};
    detail::call_for_this_machine<detail::spmm_row_kernel>(&std::as_const(row));
  }
}

}  // namespace far::inline FARSIDE_BACKEND

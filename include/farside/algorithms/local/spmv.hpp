// y = y + A x with A sparse (SpMV), on one rank, over any semiring.
//
// Row by row, in the order of its entries, so that the same matrix gives the same sum to the last
// bit. Time: a pass over A, and a load from x for each entry. No further memory. Everything is
// local.
#pragma once

#include <farside/algorithms/local/options.hpp>
#include <farside/algorithms/semiring.hpp>
#include <farside/containers/csr_view.hpp>

#include <span>

namespace far::inline FARSIDE_BACKEND {

/// y = y + A x over a semiring. Local; see the header for what it costs.
template <class T, class I, semiring_over<T> S = plus_times<T>>
void spmv(const csr_view<T, I>& a, std::type_identity_t<std::span<const T>> x,
          std::type_identity_t<std::span<T>> y, const S& over = S(),
          const kernel_options& options = {}) {
  detail::require_product("spmv", a.shape(), {x.size(), 1}, {y.size(), 1});
  detail::block_count blocks(options);
  for (std::size_t i = 0; i < a.rows(); ++i) {
    const auto row = a.row(i);
    if (row.empty()) continue;
    blocks.next(row.size());
    const I* columns = row.columns().data();
    const T* values = row.values().data();
    T sum = y[i];
    for (std::size_t e = 0; e < row.size(); ++e)
      sum = over.add(sum, over.multiply(values[e], x[static_cast<std::size_t>(columns[e])]));
    y[i] = sum;
  }
}

}  // namespace far::inline FARSIDE_BACKEND

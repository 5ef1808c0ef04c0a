// The local kernels that distributed multiplications call, by the kinds of tiles.
#pragma once

#include <farside/algorithms/local/accumulators.hpp>
#include <farside/algorithms/local/spgemm.hpp>
#include <farside/containers/csr_view.hpp>
#include <farside/containers/matrix_view.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T, class Over, class Between>
void multiply_into(matrix_view<const T> a, matrix_view<const T> b, matrix_view<T> c,
                   const Over& over, const Between& between) {
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (std::size_t k = 0; k < a.columns(); ++k)
      for (std::size_t j = 0; j < b.columns(); ++j)
        c.row(i)[j] = over.add(c.row(i)[j], over.multiply(a.row(i)[k], b.row(k)[j]));
    between();
  }
}
template <class T, class I, class Over, class Between>
void multiply_into(const csr_view<T, I>& a, matrix_view<const T> b, matrix_view<T> c,
                   const Over& over, const Between& between) {
  for (std::size_t i = 0; i < a.rows(); ++i) {
    for (auto [k, x] : a.row(i))
      for (std::size_t j = 0; j < b.columns(); ++j)
        c.row(i)[j] = over.add(c.row(i)[j], over.multiply(x, b.row(static_cast<std::size_t>(k))[j]));
    if (i % 64 == 63) between();
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail

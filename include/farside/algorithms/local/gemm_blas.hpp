// C = C + A B by the BLAS that the program is linked with, for gemm.hpp. Included only where
// FARSIDE_USE_BLAS is defined.
//
// Ranks compute side by side, so that a BLAS which starts threads of its own would have ranks x
// threads of them. OpenBLAS is told to use one thread for the call, and what was set before is set
// again afterwards. Any other BLAS has to be told by its own environment (MKL_NUM_THREADS=1,
// BLIS_NUM_THREADS=1).
//
// OpenBLAS chooses its kernels by the name of the processor. Where it is older than the processor
// (openblas_get_corename() says "Prescott"), the kernel of gemm.hpp is quicker, unless
// OPENBLAS_CORETYPE names a similar one.
#pragma once

#include <farside/algorithms/local/dense_operand.hpp>
#include <farside/algorithms/local/options.hpp>

#include <cblas.h>
#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T>
inline constexpr bool has_blas =
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

#if defined(OPENBLAS_VERSION)
/// One thread for OpenBLAS, while this object lives.
class blas_on_one_thread {
 public:
  blas_on_one_thread() : before_(openblas_get_num_threads()) {
    if (before_ != 1) openblas_set_num_threads(1);
  }
  ~blas_on_one_thread() {
    if (before_ != 1) openblas_set_num_threads(before_);
  }
  blas_on_one_thread(const blas_on_one_thread&) = delete;
  blas_on_one_thread& operator=(const blas_on_one_thread&) = delete;

 private:
  int before_;
};
#else
struct blas_on_one_thread {};
#endif

/// A matrix as the BLAS takes it.
template <class T>
struct blas_operand {
  const T* data;
  CBLAS_TRANSPOSE form;
  int leading;

  explicit blas_operand(const strided_operand<T>& m)
      : data(m.data),
        form(m.column_step == 1 ? CblasNoTrans : CblasTrans),
        leading(static_cast<int>(
            std::max<std::size_t>(m.column_step == 1 ? m.row_step : m.column_step, 1))) {}
};

template <class T>
void call_gemm(int m, int n, int k, blas_operand<T> a, blas_operand<T> b, T* c, int c_leading) {
  const T one(1);
  constexpr auto order = CblasRowMajor;
  if constexpr (std::is_same_v<T, float>)
    cblas_sgemm(order, a.form, b.form, m, n, k, one, a.data, a.leading, b.data, b.leading, one, c,
                c_leading);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dgemm(order, a.form, b.form, m, n, k, one, a.data, a.leading, b.data, b.leading, one, c,
                c_leading);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_cgemm(order, a.form, b.form, m, n, k, &one, a.data, a.leading, b.data, b.leading, &one, c,
                c_leading);
  else
    cblas_zgemm(order, a.form, b.form, m, n, k, &one, a.data, a.leading, b.data, b.leading, &one, c,
                c_leading);
}

/// C = C + A B. False, and nothing is done, where a size does not fit the ints of the BLAS.
template <class T>
bool gemm_by_blas(strided_operand<T> a, strided_operand<T> b, matrix_view<T> c, std::size_t depth,
                  const kernel_options& options) {
  const auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (std::size_t size : {c.rows(), c.columns(), c.leading_dimension(), depth, a.row_step,
                           a.column_step, b.row_step, b.column_step})
    if (size > most) return false;
  blas_on_one_thread guard;
  block_count blocks(options);
  // A call of the BLAS is never interrupted: so there are many, if somebody waits for their end.
  const std::size_t block = options.between_blocks ? 256 : c.rows();
  for (std::size_t i = 0; i < c.rows(); i += block) {
    const std::size_t rows = std::min(block, c.rows() - i);
    blocks.next(rows * c.columns() * depth);
    strided_operand<T> some_rows = a;
    some_rows.data = a.at(i, 0);
    call_gemm(static_cast<int>(rows), static_cast<int>(c.columns()), static_cast<int>(depth),
              blas_operand<T>(some_rows), blas_operand<T>(b), c.row(i).data(),
              static_cast<int>(c.leading_dimension()));
  }
  return true;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

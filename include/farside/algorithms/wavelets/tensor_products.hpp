// Products of small tensors with a matrix along each axis: what all wavelet kernels are made of.
//
//   r[j0, j1, j2] = sum over i0, i1, i2 of t[i0, i1, i2] A0[i0, j0] A1[i1, j1] A2[i2, j2]
//
// One axis at a time, t as a matrix of n rows and n^(D-1) columns: r[rest, j] = sum over i of t[i,
// rest] A[i, j]. That puts the axis last, so that after D steps all are where they were, and no
// step transposes anything. The innermost loop has a tile of r in registers, four rows by up to
// three vectors; a row of A is padded to whole vectors. Where a tile ends beyond a row, it writes
// into the next one, which is written later: so rows go upwards, and the tiles of a row downwards,
// and results have some elements of room behind them (tensor_room).
//
// Time: 2 D n^(D+1) flops; memory for one more tensor. The kernel is compiled for each instruction
// set.
//
// Everything is local.
#pragma once

#include <farside/algorithms/local/gemm.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// A matrix, whose rows are padded with zeros to whole vectors of any machine.
class factor {
 public:
  /// All zeros. Local; no communication.
  factor(std::size_t rows, std::size_t columns)
      : rows_(rows),
        columns_(columns),
        leading_(far::detail::round_up(columns, 8)),
        values_(rows * leading_) {}

  /// Local; no communication.
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  /// How many elements lie between two rows' beginnings. Local; no communication.
  std::size_t leading() const { return leading_; }
  /// The first row. Local; no communication.
  const double* data() const { return values_.data(); }
  /// An element. Local; no communication.
  double& at(std::size_t i, std::size_t j) { return values_[i * leading_ + j]; }
  double at(std::size_t i, std::size_t j) const { return values_[i * leading_ + j]; }

 private:
  std::size_t rows_, columns_, leading_;
  std::vector<double> values_;
};

/// Elements that a result of n elements needs room for.
constexpr std::size_t tensor_room(std::size_t n) { return n + 8; }

/// n^D.
template <std::size_t D>
constexpr std::size_t tensor_size(std::size_t n) {
  return D == 1 ? n : D == 2 ? n * n : n * n * n;
}

namespace detail {

/// r[rest, j] = sum over i of t[i, rest] a[i, j].
struct tensor_step {
  const double *t, *a;
  double* r;
  std::size_t depth, rest, columns, leading;
};

struct tensor_kernel {
  template <class Set>
  [[gnu::always_inline]] static void run(const tensor_step* step) {
    using V = typename far::detail::vector_type<double, Set::bytes>::type;
    constexpr std::size_t width = sizeof(V) / sizeof(double);
    const std::size_t vectors = (step->columns + width - 1) / width;
    std::size_t row = 0;
    for (; row + 4 <= step->rest; row += 4) rows<V, 4>(*step, row, vectors);
    for (; row < step->rest; ++row) rows<V, 1>(*step, row, vectors);
  }

  template <class V, std::size_t Rows>
  [[gnu::always_inline]] static void rows(const tensor_step& step, std::size_t row,
                                          std::size_t vectors) {
    std::size_t left = vectors;
    if (left % 3 == 1) left -= 1, tile<V, Rows, 1>(step, row, left);
    if (left % 3 == 2) left -= 2, tile<V, Rows, 2>(step, row, left);
    while (left != 0) left -= 3, tile<V, Rows, 3>(step, row, left);
  }

  template <class V, std::size_t Rows, std::size_t Across>
  [[gnu::always_inline]] static void tile(const tensor_step& step, std::size_t row,
                                          std::size_t first) {
    constexpr std::size_t width = sizeof(V) / sizeof(double);
    V sum[Rows][Across] = {};
    const double* t = step.t + row;
    const double* a = step.a + first * width;
    for (std::size_t i = 0; i < step.depth; ++i, t += step.rest, a += step.leading) {
      V y[Across];
      FARSIDE_UNROLL for (std::size_t v = 0; v < Across; ++v)
          far::detail::load(y[v], a + v * width);
      FARSIDE_UNROLL for (std::size_t r = 0; r < Rows; ++r)
          FARSIDE_UNROLL for (std::size_t v = 0; v < Across; ++v) sum[r][v] += t[r] * y[v];
    }
    FARSIDE_UNROLL for (std::size_t r = 0; r < Rows; ++r)
        FARSIDE_UNROLL for (std::size_t v = 0; v < Across; ++v)
            far::detail::store(sum[r][v], step.r + (row + r) * step.columns + (first + v) * width);
  }
};

}  // namespace detail

/// r = t times factors[d] along each axis d; all of them have n rows and columns. `r` and `beside`
/// have tensor_room of n^D elements and overlap nothing. Local; 2 D n^(D+1) flops.
template <std::size_t D>
void transform(const double* t, const std::array<const factor*, D>& factors, double* r,
               double* beside) {
  const std::size_t n = factors[0]->rows(), rest = tensor_size<D>(n) / n;
  const double* from = t;
  for (std::size_t d = 0; d < D; ++d) {
    double* to = (D - 1 - d) % 2 == 0 ? r : beside;
    const detail::tensor_step step{from, factors[d]->data(), to, n, rest, n, factors[d]->leading()};
    far::detail::call_for_this_machine<detail::tensor_kernel>(&step);
    from = to;
  }
}

/// r += t times a matrix along one axis, and nothing along others. Local; 2 n^(D+1) flops.
template <std::size_t D>
void add_along(const double* t, const factor& a, std::size_t axis, double scale, double* r) {
  const std::size_t n = a.rows();
  std::size_t behind = 1;
  for (std::size_t d = axis + 1; d < D; ++d) behind *= n;
  const std::size_t before = tensor_size<D>(n) / (n * behind);
  for (std::size_t b = 0; b < before; ++b, t += n * behind, r += n * behind)
    for (std::size_t i = 0; i < n; ++i) {
      const double* row = a.data() + i * a.leading();
      if (behind == 1) {
        const double value = scale * t[i];
        for (std::size_t j = 0; j < n; ++j) r[j] += value * row[j];
        continue;
      }
      const double* from = t + i * behind;
      for (std::size_t j = 0; j < n; ++j) {
        const double value = scale * row[j];
        double* to = r + j * behind;
        for (std::size_t e = 0; e < behind; ++e) to[e] += value * from[e];
      }
    }
}

}  // namespace far::inline FARSIDE_BACKEND::wavelets

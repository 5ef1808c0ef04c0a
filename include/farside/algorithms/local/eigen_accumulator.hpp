// far::eigen_accumulator: a sum of sparse matrices by Eigen, with the interface of the others
// (accumulators.hpp). Include it only where Eigen is installed; nothing else here needs it.
//
// It is eager: accumulate() adds the part at once, which costs a pass over the whole sum. Only
// plus_times, and less than 2^31 entries with indices of 32 bits, as Eigen counts by them.
//
// Everything is local.
#pragma once

#include <farside/algorithms/local/accumulators.hpp>

#include <Eigen/SparseCore>
#include <limits>

namespace far::inline FARSIDE_BACKEND {

/// Adds up sparse matrices by Eigen; see the header. Local; no communication.
template <class T, class I = std::int32_t>
class eigen_accumulator {
 public:
  /// The sum will have this shape. Local; no communication.
  explicit eigen_accumulator(matrix_shape shape) : shape_(shape), sum_(empty()) {
    require_count("rows", shape.rows);
    require_count("columns", shape.columns);
  }

  /// Adds a part, whose first element stands at `offset` of the sum. Local; costs a pass over the
  /// part and the sum.
  void accumulate(const csr_view<T, I>& part, matrix_index offset = {}) {
    detail::require_part(shape_, part.shape(), offset);
    require_count("entries", static_cast<std::size_t>(sum_.nonZeros()) + part.nnz());
    if (!part.sorted()) {
      csr<T, I> ordered(part);
      ordered.sort_rows();
      return accumulate(ordered.view(), offset);
    }
    matrix placed = empty();
    placed.resizeNonZeros(static_cast<Eigen::Index>(part.nnz()));
    for (std::size_t i = 0; i <= shape_.rows; ++i) {
      std::size_t row = i < offset.row ? 0 : std::min(i - offset.row, part.rows());
      placed.outerIndexPtr()[i] = static_cast<I>(part.entries_before(row));
    }
    std::ranges::transform(part.columns(), placed.innerIndexPtr(), [&](I column) {
      return static_cast<I>(static_cast<std::size_t>(column) + offset.column);
    });
    std::ranges::copy(part.values(), placed.valuePtr());
    sum_ = matrix(sum_ + placed);
  }
  /// The same. Local; costs the same.
  void accumulate(csr<T, I>&& part, matrix_index offset = {}) {
    if (!part.sorted()) part.sort_rows();
    accumulate(part.view(), offset);
  }

  /// The sum of all parts. The accumulator is empty then. Local; costs a copy of the sum.
  csr<T, I> result() {
    sum_.makeCompressed();
    csr<T, I> result(shape_, static_cast<std::size_t>(sum_.nonZeros()));
    std::copy_n(sum_.outerIndexPtr(), shape_.rows + 1, result.row_begin().begin());
    std::copy_n(sum_.innerIndexPtr(), result.nnz(), result.columns().begin());
    std::copy_n(sum_.valuePtr(), result.nnz(), result.values().begin());
    sum_ = empty();
    return result;
  }

 private:
  using matrix = Eigen::SparseMatrix<T, Eigen::RowMajor, I>;

  matrix empty() const {
    return matrix(static_cast<Eigen::Index>(shape_.rows),
                  static_cast<Eigen::Index>(shape_.columns));
  }
  static void require_count(const char* of_what, std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<I>::max()))
      detail::raise("an eigen_accumulator would have ", count, " ", of_what,
                    ", which Eigen cannot count with indices of ", 8 * sizeof(I),
                    " bits. Use std::int64_t as the index type, or another accumulator.");
  }

  matrix_shape shape_;
  matrix sum_;
};

}  // namespace far::inline FARSIDE_BACKEND

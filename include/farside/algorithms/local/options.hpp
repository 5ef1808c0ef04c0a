// What all local kernels are told besides their matrices.
#pragma once

#include <farside/base/error.hpp>
#include <farside/containers/matrix_shape.hpp>

#include <cstddef>
#include <functional>

namespace far::inline FARSIDE_BACKEND {

/// How to multiply matrices on one rank.
///
/// A rank that multiplies serves nobody meanwhile. So the work is done in blocks, and
/// `between_blocks` is called between them. Local; no communication but that of `between_blocks`.
struct kernel_options {
  /// Whether rows of a sparse result have to be in order. It costs nothing for most rows
  /// (local/row_sum.hpp).
  bool sorted = true;
  /// Multiplications of a block, at least: a row of a sparse matrix and a block of dense ones are
  /// never interrupted. The default takes a fraction of a millisecond.
  std::size_t block_products = std::size_t{1} << 18;
  /// Called between blocks. It may communicate, and throw.
  std::function<void()> between_blocks{};
};

namespace detail {

/// Calls `between_blocks` whenever enough has been done.
class block_count {
 public:
  explicit block_count(const kernel_options& options) : options_(options) {}
  /// Before work of so many products.
  void next(std::size_t products) {
    if (done_ >= options_.block_products) {
      done_ = 0;
      if (options_.between_blocks) options_.between_blocks();
    }
    done_ += products;
  }

 private:
  const kernel_options& options_;
  std::size_t done_ = 0;
};

/// The shapes of C = A B, or of C = C + A B.
inline void require_product(const char* operation, matrix_shape a, matrix_shape b) {
  if (a.columns != b.rows)
    raise(operation, " was given a matrix of ", a, " and one of ", b,
          ". The first one has to have as many columns as the second one has rows.");
}
inline void require_product(const char* operation, matrix_shape a, matrix_shape b, matrix_shape c) {
  require_product(operation, a, b);
  if (c != matrix_shape{a.rows, b.columns})
    raise(operation, " was given a result of ", c, " for a product of ", a, " and ", b,
          ". Give one of ", matrix_shape{a.rows, b.columns}, ".");
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

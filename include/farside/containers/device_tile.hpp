// Tiles in device memory: what products of matrices there are made of.
//
//   far::device_matrix_view<T>     a dense tile: where it begins, its shape; rows lie one after another
//   far::device_csr_view<T, I>     a sparse tile: three arrays, as far::csr_view, but that offsets of rows
//                                  have the type of column indices, which libraries for GPUs ask for
//   far::device_matrix_tile<T>, far::device_sparse_tile<T, I>    a tile to be read: a view of it where this
//                                  rank's device reaches the memory that it lies in, else a copy of it
//
// The CPU cannot load what they name. Everything is local: no communication.
#pragma once

#include <farside/containers/matrix_shape.hpp>
#include <farside/core/device/device_block.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// Local; no communication.
template <class T>
struct device_matrix_view {
  device_ptr<T> data{};
  matrix_shape shape;

  template <class U>
    requires(!std::is_const_v<T> && std::is_same_v<U, const T>)
  operator device_matrix_view<U>() const {
    return {data, shape};
  }
};

/// Local; no communication.
template <class T, class I>
struct device_csr_view {
  matrix_shape shape;
  std::size_t nnz = 0;
  bool sorted = true;
  device_ptr<I> row_begin{};
  device_ptr<I> columns{};
  device_ptr<T> values{};
};

namespace detail {

/// How a sparse tile lies in device memory: one block, so that one copy fetches it.
///
///   | row_begin: rows + 1 | values | column indices |      each part aligned to 256 bytes
template <class T, class I>
struct device_csr_block {
  std::size_t rows = 0, nnz = 0;

  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  std::size_t values_at() const { return rounded((rows + 1) * sizeof(I)); }
  std::size_t columns_at() const { return values_at() + rounded(nnz * sizeof(T)); }
  std::size_t bytes() const { return columns_at() + rounded(nnz * sizeof(I)); }

  device_csr_view<T, I> view(device_ptr<std::byte> at, matrix_shape shape, bool sorted) const {
    auto part = [at](std::size_t bytes) { return at + static_cast<std::ptrdiff_t>(bytes); };
    return {shape,
            nnz,
            sorted,
            pointer_cast<I>(at),
            pointer_cast<I>(part(columns_at())),
            pointer_cast<T>(part(values_at()))};
  }
};

/// Throws if offsets of rows, which are of type I, cannot count the entries of a tile.
template <class I>
void require_offsets(std::uint64_t nnz) {
  if (nnz > static_cast<std::uint64_t>(std::numeric_limits<I>::max()))
    raise("multiply: a tile of C may get ", nnz, " entries, more than offsets of ", 8 * sizeof(I),
          " bits count. Cut C into smaller tiles.");
}

}  // namespace detail

/// A sparse matrix in this rank's device memory. Movable. Local; no communication.
template <class T, class I>
class device_csr {
 public:
  /// Of no entries. Local; no communication.
  device_csr() = default;
  explicit device_csr(matrix_shape shape) : shape_(shape) {}
  /// Room for `nnz` entries, which the caller fills. Local; no communication.
  device_csr(const device& on, matrix_shape shape, std::size_t nnz, bool sorted = true)
      : block_{shape.rows, nnz}, shape_(shape), sorted_(sorted), memory_(on, block_.bytes()) {}

  /// Local; no communication.
  device_csr_view<T, I> view() const {
    if (!memory_.get()) return {shape_};
    return block_.view(memory_.get(), shape_, sorted_);
  }
  std::size_t nnz() const { return block_.nnz; }
  matrix_shape shape() const { return shape_; }
  std::size_t bytes() const { return memory_.bytes(); }
  /// Its memory; it is of no entries then. Local; no communication.
  device_block take_memory() {
    block_.nnz = 0;
    return std::move(memory_);
  }

 private:
  detail::device_csr_block<T, I> block_;
  matrix_shape shape_;
  bool sorted_ = true;
  device_block memory_;
};

/// Local; no communication.
template <class T>
class device_matrix_tile {
 public:
  using value_type = T;
  /// Of no elements. Local; no communication.
  device_matrix_tile() = default;
  /// For the library: a view of the tile itself, or one of a copy that it keeps. Local; no
  /// communication.
  explicit device_matrix_tile(device_matrix_view<T> of, std::shared_ptr<device_block> copy = {})
      : view_(of), copy_(std::move(copy)) {}

  /// What kernels read, as long as this object lives. Local; no communication.
  device_matrix_view<const T> view() const { return view_; }
  bool is_copy() const { return copy_ != nullptr; }

 private:
  device_matrix_view<T> view_;
  std::shared_ptr<device_block> copy_;
};

/// Local; no communication.
template <class T, class I>
class device_sparse_tile {
 public:
  using value_type = T;
  using index_type = I;
  /// Of no entries. Local; no communication.
  device_sparse_tile() = default;
  /// For the library: a view of the tile itself, or one of a copy that it keeps. Local; no
  /// communication.
  explicit device_sparse_tile(device_csr_view<T, I> of, std::shared_ptr<device_block> copy = {})
      : view_(of), copy_(std::move(copy)) {}

  /// What kernels read, as long as this object lives; of a view, until the tile is published anew. Local; no
  /// communication.
  const device_csr_view<T, I>& view() const { return view_; }
  std::size_t nnz() const { return view_.nnz; }
  bool is_copy() const { return copy_ != nullptr; }

 private:
  device_csr_view<T, I> view_;
  std::shared_ptr<device_block> copy_;
};

}  // namespace far::inline FARSIDE_BACKEND

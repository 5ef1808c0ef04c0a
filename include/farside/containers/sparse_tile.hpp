// far::sparse_tile<T, I>: a tile of a far::sparse_matrix, to be read: a view of it where this process
// can load the memory that it lies in, else a copy of it.
#pragma once

#include <farside/containers/csr.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// How a tile lies in memory: one block, so that one get fetches it.
///
///   | row_begin: rows + 1 words of 64 bits | values | column indices |      each part aligned to 16
template <class T, class I>
struct csr_block {
  struct alignas(16) unit {
    std::byte bytes[16];
  };

  std::size_t rows, nnz;

  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + sizeof(unit) - 1) / sizeof(unit) * sizeof(unit);
  }
  std::size_t values_at() const { return rounded((rows + 1) * sizeof(std::int64_t)); }
  std::size_t columns_at() const { return values_at() + rounded(nnz * sizeof(T)); }
  std::size_t bytes() const { return columns_at() + rounded(nnz * sizeof(I)); }
  std::size_t units() const { return bytes() / sizeof(unit); }

  csr_view<T, I> view(const unit* block, matrix_shape shape, bool sorted) const {
    auto* begin = reinterpret_cast<const std::byte*>(block);
    return {shape, reinterpret_cast<const std::int64_t*>(begin),
            reinterpret_cast<const I*>(begin + columns_at()),
            reinterpret_cast<const T*>(begin + values_at()), sorted};
  }
};

}  // namespace detail

template <class T, class I = std::int32_t>
class sparse_tile {
 public:
  using value_type = T;
  using index_type = I;

  /// Of no entries. Local; no communication.
  sparse_tile() = default;
  /// For the library: a view of the tile itself, or one of a copy that it keeps. Local; no
  /// communication.
  explicit sparse_tile(csr_view<T, I> of) : view_(of) {}
  using unit = typename detail::csr_block<T, I>::unit;
  sparse_tile(detail::plain_array<unit> copy, csr_view<T, I> of)
      : copy_(std::move(copy)), view_(of) {}
  explicit sparse_tile(csr<T, I> copy)
      : whole_(std::make_unique<csr<T, I>>(std::move(copy))), view_(whole_->view()) {}

  /// What to read, with column indices that count from the tile's first column. Valid as long as
  /// this object; of a view, until the tile is published anew. Local; no communication.
  const csr_view<T, I>& view() const& { return view_; }
  void view() const&& = delete;  ///< of a temporary: it would end before the view. Name it first
  operator csr_view<T, I>() const { return view_; }
  matrix_shape shape() const { return view_.shape(); }
  std::size_t nnz() const { return view_.nnz(); }
  /// Whether it was copied here. Local; no communication.
  bool is_copy() const { return copy_.size() != 0 || whole_ != nullptr; }

 private:
  // What is kept stays where it is when this object is moved.
  detail::plain_array<unit> copy_;
  std::unique_ptr<csr<T, I>> whole_;
  csr_view<T, I> view_;
};

}  // namespace far::inline FARSIDE_BACKEND

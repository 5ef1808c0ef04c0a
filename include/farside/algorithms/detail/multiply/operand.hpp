// A factor of a distributed product: a matrix as it is, or transposed.
//
// Algorithms ask a factor for its tiles and know nothing else of it. A transposed one fetches the
// tile on the other side of the diagonal and turns it around here.
#pragma once

#include <farside/containers/matrix.hpp>
#include <farside/containers/sparse_matrix.hpp>

#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// What far::transposed gives: a factor that stands for the transpose of a matrix.
template <class M>
struct transposed_matrix {
  const M* of;
};

/// Lets a multiplication take the transpose of a matrix, which is not made as a whole. The matrix
/// must outlive the multiplication. Local; no communication.
template <class M>
transposed_matrix<M> transposed(const M& of) {
  return {&of};
}

namespace detail {

template <class M>
inline constexpr bool is_dense_matrix = false;
template <class T, class Memory>
inline constexpr bool is_dense_matrix<matrix<T, Memory>> = true;
template <class M>
inline constexpr bool is_sparse_matrix = false;
template <class T, class I, class Memory>
inline constexpr bool is_sparse_matrix<sparse_matrix<T, I, Memory>> = true;

/// A matrix that is spread over a team.
template <class M>
concept distributed_matrix = is_dense_matrix<M> || is_sparse_matrix<M>;

template <class M>
inline constexpr bool is_in_device_memory = false;
template <class T>
inline constexpr bool is_in_device_memory<matrix<T, device_memory>> = true;
template <class T, class I>
inline constexpr bool is_in_device_memory<sparse_matrix<T, I, device_memory>> = true;

template <class T>
matrix_tile<T> turned(const matrix_tile<T>& tile) {
  return matrix_tile<T>(dense<T>(tile.view()).transposed());
}
template <class T, class I>
sparse_tile<T, I> turned(const sparse_tile<T, I>& tile) {
  return sparse_tile<T, I>(csr<T, I>(tile.view()).transposed());
}
constexpr matrix_shape turned(matrix_shape of) { return {of.columns, of.rows}; }
constexpr matrix_index turned(matrix_index of) { return {of.column, of.row}; }

template <distributed_matrix M, bool Transposed>
class operand {
 public:
  using matrix_type = M;
  using value_type = typename M::value_type;
  using tile_type = decltype(std::declval<const M&>().tile({}));
  static constexpr bool is_sparse = is_sparse_matrix<M>;
  static constexpr bool is_transposed = Transposed;

  explicit operand(const M& of) : of_(&of) {}

  const M& matrix() const { return *of_; }
  const team& members() const { return of_->members(); }
  const std::string& name() const { return of_->name(); }
  matrix_shape shape() const { return seen(of_->shape()); }
  matrix_shape grid_shape() const { return seen(of_->grid_shape()); }
  matrix_shape tile_shape() const { return seen(of_->tile_shape()); }
  matrix_shape process_grid() const { return seen(of_->layout().process_grid()); }
  rank_t owner(matrix_index tile) const { return of_->layout().owner(seen(tile)); }

  /// What fetching a tile moves if it cannot be loaded.
  std::size_t bytes(matrix_index tile) const {
    if constexpr (is_sparse)
      return of_->tile_bytes(seen(tile));
    else
      return of_->layout().tile_shape(seen(tile)).size() * sizeof(value_type);
  }
  /// How many entries a tile has.
  std::size_t entries(matrix_index tile) const {
    if constexpr (is_sparse)
      return of_->tile_nnz(seen(tile));
    else
      return of_->layout().tile_shape(seen(tile)).size();
  }
  /// Whether there is nothing in it.
  bool is_empty(matrix_index tile) const {
    if constexpr (is_sparse) return of_->tile_nnz(seen(tile)) == 0;
    return false;
  }
  future<tile_type> async_tile(matrix_index tile) const {
    if constexpr (Transposed)
      return of_->async_tile(seen(tile)).then([](tile_type t) { return turned(t); });
    else
      return of_->async_tile(tile);
  }
  /// Any submatrix, as a tile.
  future<tile_type> async_slice(index_range rows, index_range columns) const {
    if constexpr (Transposed)
      return of_->async_slice(columns, rows).then([](auto s) { return tile_type(s.transposed()); });
    else
      return of_->async_slice(rows, columns).then([](auto s) { return tile_type(std::move(s)); });
  }
  /// What a member fetches for a slice, about: entries are taken to be spread evenly in a tile.
  std::size_t slice_bytes(index_range rows, index_range columns, rank_t member) const {
    std::size_t sum = 0;
    if constexpr (Transposed) std::swap(rows, columns);
    const matrix_layout& layout = of_->layout();
    for_each_part(
        layout, rows, columns, [&](matrix_index tile, auto in_rows, auto in_columns, auto) {
          if (layout.owner(tile) == member) return;
          if constexpr (is_sparse) {
            const std::size_t all = layout.tile_shape(tile).rows;
            if (of_->tile_nnz(tile) == 0) return;
            sum += 2 * in_rows.size() <= all ? of_->tile_bytes(tile) * in_rows.size() / all
                                             : of_->tile_bytes(tile);
          } else {
            sum += in_rows.size() * in_columns.size() * sizeof(value_type);
          }
        });
    return sum;
  }

 private:
  template <class What>
  static constexpr What seen(What what) {
    if constexpr (Transposed) return turned(what);
    return what;
  }

  const M* of_;
};

template <class M>
struct operand_of {
  using type = operand<M, false>;
  static type make(const M& of) { return type(of); }
};
template <class M>
struct operand_of<transposed_matrix<M>> {
  using type = operand<M, true>;
  static type make(const transposed_matrix<M>& of) { return type(*of.of); }
};

/// A matrix, or one that is to be taken transposed.
template <class M>
concept factor = distributed_matrix<typename operand_of<M>::type::matrix_type>;

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

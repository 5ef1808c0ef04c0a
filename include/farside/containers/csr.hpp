// far::csr<T, I>: a sparse matrix in compressed rows that owns its memory, on one rank.
//
//   auto a = far::csr<double>::from_triplets({4, 5}, {{0, 1, 2.5}, {3, 4, 1.0}});
//   far::csr_view<double> view = a.view();
//
// containers/csr_view.hpp describes the three arrays. Here the first row begins at entry zero.
// Memory: (rows + 1) x 8 + entries x (sizeof(T) + sizeof(I)) bytes.
//
// Everything is local. Any number of threads may read one at the same time.
#pragma once

#include <farside/containers/csr_view.hpp>
#include <farside/containers/detail/plain_array.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// An entry of a sparse matrix, as matrices are made of them.
template <class T>
struct triplet {
  std::size_t row, column;
  T value;

  bool operator==(const triplet&) const = default;
};

namespace detail {

/// Refuses what has more columns than indices of type I can tell apart.
template <class I>
void require_index_type(const matrix_shape& shape) {
  auto largest = static_cast<std::size_t>(std::numeric_limits<I>::max());
  if (shape.columns != 0 && shape.columns - 1 > largest)
    raise("a sparse matrix of ", shape, " does not fit column indices of ", 8 * sizeof(I),
          " bits, which end at ", largest,
          ". Use tiles of fewer columns, or std::int64_t as the index type.");
}

}  // namespace detail

template <class T, class I = std::int32_t>
class csr {
 public:
  using value_type = T;
  using index_type = I;

  /// Of no rows. Local; no communication.
  csr() : csr(matrix_shape{}) {}
  /// Without entries. Local; no communication.
  explicit csr(matrix_shape shape) : csr(shape, 0) {
    std::fill(row_begin_.begin(), row_begin_.end(), 0);
  }
  /// Room for `nnz` entries, whose three arrays the caller fills. Local; no communication.
  csr(matrix_shape shape, std::size_t nnz) : shape_(shape), row_begin_(shape.rows + 1) {
    detail::require_index_type<I>(shape);
    columns_.resize(nnz);
    values_.resize(nnz);
    row_begin_[0] = 0;
  }
  /// A copy of a view. Local; no communication.
  explicit csr(const csr_view<T, I>& of) : csr(of.shape(), of.nnz()) {
    for (std::size_t i = 0; i <= shape_.rows; ++i)
      row_begin_[i] = static_cast<std::int64_t>(of.entries_before(i));
    std::ranges::copy(of.columns(), columns_.begin());
    std::ranges::copy(of.values(), values_.begin());
    sorted_ = of.sorted();
  }

  /// Made of entries in any order; rows become sorted. Entries with the same place become one, by
  /// `combine(one, next)` in the order in which they are given. Entries that hold zero stay. Local;
  /// costs two passes over the entries and a sort of each row whose columns do not come in order.
  template <std::ranges::forward_range Triplets, class Combine = std::plus<>>
  static csr from_triplets(matrix_shape shape, const Triplets& entries, Combine combine = {});
  template <class Combine = std::plus<>>
  static csr from_triplets(matrix_shape shape, std::initializer_list<triplet<T>> entries,
                           Combine combine = {}) {
    return from_triplets(shape, std::span(entries.begin(), entries.size()), combine);
  }

  /// Valid until the matrix changes or ends. Local; no communication.
  csr_view<T, I> view() const {
    return {shape_, row_begin_.data(), columns_.data(), values_.data(), sorted_};
  }
  /// The same. Local; no communication.
  operator csr_view<T, I>() const { return view(); }

  /// How large it is, and how many entries it has. Local; no communication.
  matrix_shape shape() const { return shape_; }
  std::size_t rows() const { return shape_.rows; }
  std::size_t nnz() const { return columns_.size(); }
  /// Whether every row is ordered by columns. Local; no communication.
  bool sorted() const { return sorted_; }

  /// Where each row begins, and where the last one ends. Local; no communication.
  std::span<std::int64_t> row_begin() { return {row_begin_.data(), row_begin_.size()}; }
  std::span<const std::int64_t> row_begin() const { return view().row_begin(); }
  std::span<I> columns() { return {columns_.data(), columns_.size()}; }
  std::span<const I> columns() const { return view().columns(); }
  std::span<T> values() { return {values_.data(), values_.size()}; }
  std::span<const T> values() const { return view().values(); }
  csr_row<T, I> row(std::size_t i) const { return view().row(i); }

  /// To be called after having filled the arrays: says whether rows are ordered. Local; no
  /// communication.
  void set_sorted(bool sorted) { sorted_ = sorted; }
  /// Changes how many entries there is room for; those before stay as they are. Copies nothing
  /// where the arrays are large (containers/detail/plain_array.hpp). Local; no communication.
  void resize(std::size_t nnz) {
    columns_.resize(nnz);
    values_.resize(nnz);
  }

  /// The same, or false where there is no memory for it. Local; no communication.
  [[nodiscard]] bool try_resize(std::size_t nnz) {
    const std::size_t before = columns_.size();
    if (!columns_.try_resize(nnz)) return false;
    if (values_.try_resize(nnz)) return true;
    columns_.resize(before);
    return false;
  }

  /// Orders every row by columns. Local; costs a pass over rows that are ordered already.
  void sort_rows();

  /// Rows become columns. Rows of the result are sorted. Local; costs two passes over the matrix.
  csr transposed() const;

 private:
  matrix_shape shape_;
  detail::plain_array<std::int64_t> row_begin_;
  detail::plain_array<I> columns_;
  detail::plain_array<T> values_;
  bool sorted_ = true;
};

namespace detail {

/// Counts have been added up in row_begin[1 .. rows]: turns them into where rows begin.
inline void counts_to_offsets(std::span<std::int64_t> row_begin) {
  row_begin[0] = 0;
  std::partial_sum(row_begin.begin(), row_begin.end(), row_begin.begin());
}

}  // namespace detail

template <class T, class I>
template <std::ranges::forward_range Triplets, class Combine>
csr<T, I> csr<T, I>::from_triplets(matrix_shape shape, const Triplets& entries, Combine combine) {
  csr result(shape);
  auto begins = result.row_begin();
  for (const auto& [row, column, value] : entries) {
    if (!contains(shape, {row, column}))
      detail::raise("an entry at ", matrix_index{row, column}, " does not lie in a matrix of ",
                    shape, ". Rows and columns are counted from zero.");
    ++begins[row + 1];
  }
  detail::counts_to_offsets(begins);
  result.resize(static_cast<std::size_t>(begins[shape.rows]));
  {
    std::vector<std::int64_t> next(begins.begin(), begins.end());
    for (const auto& [row, column, value] : entries) {
      auto at = static_cast<std::size_t>(next[row]++);
      result.columns_[at] = static_cast<I>(column);
      result.values_[at] = value;
    }
  }
  result.sort_rows();  // stable: duplicates stay in the order in which they were given

  std::size_t kept = 0, entry = 0;
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const std::size_t first = kept;
    for (auto end = static_cast<std::size_t>(begins[i + 1]); entry < end; ++entry) {
      if (kept != first && result.columns_[kept - 1] == result.columns_[entry]) {
        result.values_[kept - 1] = combine(result.values_[kept - 1], result.values_[entry]);
      } else {
        result.columns_[kept] = result.columns_[entry];
        result.values_[kept++] = result.values_[entry];
      }
    }
    begins[i] = static_cast<std::int64_t>(first);
  }
  begins[shape.rows] = static_cast<std::int64_t>(kept);
  result.resize(kept);
  return result;
}

template <class T, class I>
void csr<T, I>::sort_rows() {
  struct entry {
    I column;
    std::size_t position;  // those of one column keep their order
    T value;
  };
  std::vector<entry> scratch;
  for (std::size_t i = 0; i < shape_.rows; ++i) {
    auto first = static_cast<std::size_t>(row_begin_[i]);
    auto size = static_cast<std::size_t>(row_begin_[i + 1]) - first;
    I* columns = columns_.data() + first;
    T* values = values_.data() + first;
    if (std::is_sorted(columns, columns + size)) continue;
    scratch.resize(size);
    for (std::size_t e = 0; e < size; ++e) scratch[e] = {columns[e], e, values[e]};
    std::sort(scratch.begin(), scratch.end(), [](const entry& x, const entry& y) {
      return x.column != y.column ? x.column < y.column : x.position < y.position;
    });
    for (std::size_t e = 0; e < size; ++e)
      columns[e] = scratch[e].column, values[e] = scratch[e].value;
  }
  sorted_ = true;
}

template <class T, class I>
csr<T, I> csr<T, I>::transposed() const {
  csr result({shape_.columns, shape_.rows}, nnz());
  auto begins = result.row_begin();
  std::fill(begins.begin(), begins.end(), 0);
  for (I column : columns_) ++begins[static_cast<std::size_t>(column) + 1];
  detail::counts_to_offsets(begins);
  std::vector<std::int64_t> next(begins.begin(), begins.end());
  for (std::size_t i = 0; i < shape_.rows; ++i) {
    for (auto [column, value] : row(i)) {
      auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(column)]++);
      result.columns_[at] = static_cast<I>(i);
      result.values_[at] = value;
    }
  }
  result.sorted_ = true;
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND

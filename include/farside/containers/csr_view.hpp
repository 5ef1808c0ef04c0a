// far::csr_view<T, I>: a sparse matrix in compressed rows, or some rows of one, that lies in memory
// which this process can load.
//
//   for (auto [index, value] : view) use(index.row, index.column, value);
//   for (std::size_t i = 0; i < view.rows(); ++i)
//     for (auto [column, value] : view.row(i)) ...
//
// Three arrays. Entry e, counted from row_begin[0] on, stands in row i if row_begin[i] <= e <
// row_begin[i + 1]:
//
//   row_begin   | 7  9  9  12 |           shape {3, columns}; rows of 2, 0 and 3 entries
//   columns     | 0 4 | | 1 2 3 |         those of the first entry of the view on
//   values      | a b | | c d e |
//
// row_begin[0] need not be zero. So some rows of a matrix are a view as well: the part of the three
// arrays that belongs to them, unchanged.
//
// Column indices are of type I: 32 bits are enough for a tile of 2^31 columns and take half the
// memory of 64. Counts are always 64 bits wide. A row may hold its entries in any order, but each
// column only once. `sorted()` says whether every row is ordered by columns: some algorithms need
// that, many are quicker with it.
//
// An entry that is absent stands for the zero of the semiring in use (algorithms/semiring.hpp). An
// entry that is present may hold any value, that zero as well.
//
// A view owns nothing and is as cheap to copy as a few pointers. It changes nothing. Everything is
// local.
#pragma once

#include <farside/containers/matrix_shape.hpp>

#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// An entry of a sparse matrix: where it stands and what it holds.
template <class T>
struct csr_entry {
  matrix_index index;
  const T& value;
};

/// An entry of a row of a sparse matrix.
template <class T, class I = std::int32_t>
struct csr_row_entry {
  I column;
  const T& value;
};

/// The entries of a row: a range of csr_row_entry, and both arrays. Local; no communication.
template <class T, class I = std::int32_t>
class csr_row {
 public:
  /// Visits the entries as they are stored. Local; no communication.
  class iterator {
   public:
    using value_type = csr_row_entry<T, I>;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    iterator(const I* column, const T* value) : column_(column), value_(value) {}
    value_type operator*() const { return {*column_, *value_}; }
    iterator& operator++() { return ++column_, ++value_, *this; }
    iterator operator++(int) {
      iterator before = *this;
      return ++*this, before;
    }
    bool operator==(const iterator& other) const { return column_ == other.column_; }

   private:
    const I* column_ = nullptr;
    const T* value_ = nullptr;
  };

  /// Of two arrays of that many elements. Local; no communication.
  csr_row(const I* columns, const T* values, std::size_t size)
      : columns_(columns), values_(values), size_(size) {}
  /// Of the entries, as they are stored. Local; no communication.
  std::span<const I> columns() const { return {columns_, size_}; }
  std::span<const T> values() const { return {values_, size_}; }
  /// How many entries there are. Local; no communication.
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  iterator begin() const { return {columns_, values_}; }
  iterator end() const { return {columns_ + size_, values_ + size_}; }

 private:
  const I* columns_;
  const T* values_;
  std::size_t size_;
};

template <class T, class I = std::int32_t>
class csr_view {
  static_assert(
      std::is_integral_v<I> && std::is_signed_v<I>,
      "column indices are signed integers: std::int32_t, or std::int64_t for tiles of more "
      "than 2^31 columns");

 public:
  using value_type = T;
  using index_type = I;

  /// Of no rows. Local; no communication.
  csr_view() = default;

  /// Of three arrays as the header describes: `row_begin` has one element more than there are rows
  /// (none at all stands for a matrix without entries), `columns` and `values` begin with the first
  /// entry of the view. Nothing is looked at; check() does. Local; no communication.
  csr_view(matrix_shape shape, const std::int64_t* row_begin, const I* columns, const T* values,
           bool sorted)
      : shape_(shape), row_begin_(row_begin), columns_(columns), values_(values), sorted_(sorted) {}

  /// How large it is. Local; no communication.
  matrix_shape shape() const { return shape_; }
  std::size_t rows() const { return shape_.rows; }
  /// How many entries are stored, whatever they hold. Local; no communication.
  std::size_t nnz() const { return entries_before(shape_.rows); }
  /// Whether every row is ordered by columns. Local; no communication.
  bool sorted() const { return sorted_; }

  /// One element more than there are rows. Local; no communication.
  std::span<const std::int64_t> row_begin() const {
    return {row_begin_, row_begin_ == nullptr ? 0 : shape_.rows + 1};
  }
  /// Of all entries, row after row. Local; no communication.
  std::span<const I> columns() const { return {columns_, nnz()}; }
  /// Of all entries, row after row. Local; no communication.
  std::span<const T> values() const { return {values_, nnz()}; }

  /// How many entries of the view stand in rows before row i: where those of row i begin in
  /// columns() and values(). i may be the number of rows. Local; no communication.
  std::size_t entries_before(std::size_t i) const {
    return row_begin_ == nullptr ? 0 : static_cast<std::size_t>(row_begin_[i] - row_begin_[0]);
  }
  /// How many entries row i has. Local; no communication.
  std::size_t row_size(std::size_t i) const {
    return row_begin_ == nullptr ? 0 : static_cast<std::size_t>(row_begin_[i + 1] - row_begin_[i]);
  }
  /// The entries of row i. Local; no communication.
  csr_row<T, I> row(std::size_t i) const {
    std::size_t first = entries_before(i);
    return {columns_ + first, values_ + first, row_size(i)};
  }

  /// `count` rows from row `first` on, as a matrix of their own. Local; no communication.
  csr_view row_range(std::size_t first, std::size_t count) const {
    if (first > shape_.rows || count > shape_.rows - first)
      detail::raise("rows ", first, " to ", first + count, " of a csr_view of ", shape_,
                    " were asked for. It has fewer: ask for less of them.");
    csr_view part = *this;
    part.shape_.rows = count;
    if (row_begin_ == nullptr) return part;
    std::size_t skipped = entries_before(first);
    part.row_begin_ += first;
    part.columns_ += skipped;
    part.values_ += skipped;
    return part;
  }

  /// Visits all entries, row after row, with their rows and columns in the view.
  class iterator {
   public:
    using value_type = csr_entry<T>;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    value_type operator*() const {
      return {{row_, static_cast<std::size_t>(columns_[entry_])}, values_[entry_]};
    }
    iterator& operator++() { return ++entry_, find_row(), *this; }
    iterator operator++(int) {
      iterator before = *this;
      return ++*this, before;
    }
    bool operator==(const iterator& other) const { return entry_ == other.entry_; }

   private:
    friend csr_view;
    iterator(const csr_view& of, std::size_t entry)
        : row_begin_(of.row_begin_),
          columns_(of.columns_),
          values_(of.values_),
          entry_(entry),
          end_(of.nnz()) {
      find_row();
    }
    void find_row() {
      if (entry_ == end_) return;
      while (static_cast<std::size_t>(row_begin_[row_ + 1] - row_begin_[0]) <= entry_) ++row_;
    }

    const std::int64_t* row_begin_ = nullptr;
    const I* columns_ = nullptr;
    const T* values_ = nullptr;
    std::size_t entry_ = 0, end_ = 0, row_ = 0;
  };
  /// The first entry. Iterators stay valid as long as the three arrays. Local; no communication.
  iterator begin() const { return {*this, 0}; }
  iterator end() const { return {*this, nnz()}; }

  /// Throws a usage_error, which says what is wrong, unless the three arrays are those of a matrix:
  /// counts do not decrease, columns lie in the matrix and are in order where sorted() says so.
  /// Local; costs a pass over the matrix. That no column stands twice in a row is verified in
  /// sorted rows only.
  void check() const;

 private:
  matrix_shape shape_;
  const std::int64_t* row_begin_ = nullptr;
  const I* columns_ = nullptr;
  const T* values_ = nullptr;
  bool sorted_ = true;
};

template <class T, class I>
void csr_view<T, I>::check() const {
  for (std::size_t i = 0; row_begin_ != nullptr && i < rows(); ++i) {
    if (row_begin_[i + 1] < row_begin_[i])
      detail::raise("the row pointers of a csr_view of ", shape_, " decrease: row ", i,
                    " begins at ", row_begin_[i], " and the next one at ", row_begin_[i + 1],
                    ". Give where each row begins, and at last where the last one ends.");
    auto of_row = row(i).columns();
    for (std::size_t e = 0; e < of_row.size(); ++e) {
      I column = of_row[e];
      if (column < 0 || static_cast<std::size_t>(column) >= shape_.columns)
        detail::raise("row ", i, " of a csr_view of ", shape_, " has an entry in column ", column,
                      ". Columns are counted from zero.");
      if (sorted_ && e != 0 && column <= of_row[e - 1])
        detail::raise(
            "row ", i, " of a csr_view of ", shape_, " has column ", column, " after column ",
            of_row[e - 1],
            ", though its rows are said to be sorted. Sort them, or say that they are not; "
            "a column may stand only once in a row.");
    }
  }
}

}  // namespace far::inline FARSIDE_BACKEND

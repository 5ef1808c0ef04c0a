// Sums of sparse matrices that arrive one by one: partial products of a tile, or the pieces of a
// slice.
//
//   far::hash_accumulator<double> sum({rows, columns});
//   sum.accumulate(std::move(part));                  // the csr is the accumulator's from now on
//   sum.accumulate(view, {first_row, first_column});  // a copy; where its first element stands
//   far::csr<double> c = sum.result();
//
// All have one interface (sparse_accumulator) and one result, with sorted rows. They differ in how
// a row is added up:
//
//   dense_accumulator      in an array as wide as the row. Quick where rows are long, or lie in
//                          narrow windows.
//   hash_accumulator       in a hash table, sorted at the end. Quick where rows are short and their
//                          columns far apart.
//   heap_accumulator       by a heap of the parts' next columns. For many short parts; it needs no
//                          memory for the row.
//   merge_accumulator      by merging two parts, then what came out. For two or three parts.
//   automatic_accumulator  in an array or a hash table, whichever suits the row.
//   eigen_accumulator      by Eigen, where a program has it (local/eigen_accumulator.hpp).
//
// All but Eigen's are lazy: accumulate() keeps the part, and sums are made once the parts have more
// entries than the sum so far. So an entry is added up a logarithmic number of times at most. An
// accumulator holds the last sum, as many entries of parts again, one part more, and, while it
// adds up, the new sum. Parts are added in the order of their arrival; merge_accumulator adds
// neighbours first.
//
// Everything is local. An accumulator is for one thread at a time.
#pragma once

#include <farside/algorithms/local/csr_writer.hpp>
#include <farside/algorithms/local/row_merges.hpp>
#include <farside/algorithms/local/row_sum.hpp>

#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What sums up sparse matrices of values T and indices I.
template <class A, class T, class I = std::int32_t>
concept sparse_accumulator =
    requires(A& sum, csr<T, I>&& part, const csr_view<T, I>& view, matrix_index offset) {
      sum.accumulate(std::move(part), offset);
      sum.accumulate(view, offset);
      { sum.result() } -> std::same_as<csr<T, I>>;
    };

namespace detail {

/// Refuses a part that does not lie in the sum.
inline void require_part(matrix_shape sum, matrix_shape part, matrix_index offset) {
  if (offset.row > sum.rows || part.rows > sum.rows - offset.row || offset.column > sum.columns ||
      part.columns > sum.columns - offset.column)
    raise("a part of ", part, " at ", offset, " does not lie in a sum of ", sum,
          ". Give the place of its first element in the sum.");
}

/// Adds up a row in the one array or table that `Row` is, or in whichever row_sum chooses.
template <class T, class I, class S>
class row_by_dense : dense_row<T, I, S> {
 public:
  explicit row_by_dense(const S& over) : dense_row<T, I, S>(over) {}
  std::size_t add_up(const std::vector<row_term<T, I>>& terms, std::size_t, column_window window,
                     I* columns, T* values) {
    this->begin(window);
    for (const auto& [from, with, size, shift] : terms)
      this->add(from, size, shift, [&](std::size_t e) { return with[e]; });
    return this->take(columns, values, window.size());
  }
};
template <class T, class I, class S>
class row_by_hash : hash_row<T, I, S> {
 public:
  explicit row_by_hash(const S& over) : hash_row<T, I, S>(over) {}
  std::size_t add_up(const std::vector<row_term<T, I>>& terms, std::size_t bound,
                     column_window window, I* columns, T* values) {
    this->begin(bound);
    for (const auto& [from, with, size, shift] : terms)
      this->add(from, size, shift, [&](std::size_t e) { return with[e]; });
    return this->take(columns, values, bound, true, window.end);
  }
};
template <class T, class I, class S>
class row_by_either : row_sum<T, I, S> {
 public:
  explicit row_by_either(const S& over) : row_sum<T, I, S>(over) {}
  std::size_t add_up(const std::vector<row_term<T, I>>& terms, std::size_t bound,
                     column_window window, I* columns, T* values) {
    this->begin(bound, window);
    for (const auto& [from, with, size, shift] : terms)
      this->add(from, size, shift, [&](std::size_t e) { return with[e]; });
    return this->take(columns, values, bound, true);
  }
};

}  // namespace detail

/// The lazy accumulators. `Row` adds up a row.
template <class T, class I, semiring_over<T> S, class Row>
class basic_accumulator {
 public:
  /// The sum will have this shape. Local; no communication.
  explicit basic_accumulator(matrix_shape shape, const S& over = S())
      : shape_(shape), over_(over), row_(over) {
    detail::require_index_type<I>(shape);
  }

  /// Adds a part, whose first element stands at `offset` of the sum. Local; costs nothing at once,
  /// or the sum of the parts so far.
  void accumulate(csr<T, I>&& part, matrix_index offset = {}) {
    detail::require_part(shape_, part.shape(), offset);
    if (part.nnz() == 0) return;
    if (!part.sorted()) part.sort_rows();
    entries_ += part.nnz();
    parts_.push_back({std::move(part), offset});
    if (parts_.size() > 2 && entries_ > 2 * parts_[0].matrix.nnz() + at_least) add_up();
  }
  /// The same with a copy of the part. Local; costs a copy more.
  void accumulate(const csr_view<T, I>& part, matrix_index offset = {}) {
    accumulate(csr<T, I>(part), offset);
  }

  /// The sum of all parts, with sorted rows. The accumulator is empty then, and may be used again.
  /// Local; costs the sum of the parts that are not added yet.
  csr<T, I> result() {
    if (parts_.size() != 1 || parts_[0].matrix.shape() != shape_) add_up();
    csr<T, I> sum = std::move(parts_[0].matrix);
    parts_.clear();
    entries_ = 0;
    return sum;
  }

 private:
  struct part {
    csr<T, I> matrix;
    matrix_index offset;
  };
  /// Sums of fewer entries than this are not worth a pass over all rows.
  static constexpr std::size_t at_least = 4096;

  void add_up();

  matrix_shape shape_;
  [[no_unique_address]] S over_;
  Row row_;
  std::vector<part>
      parts_;  // in the order of their arrival; the first may be the sum of earlier ones
  std::size_t entries_ = 0;  // of all of them
};

template <class T, class I, semiring_over<T> S, class Row>
void basic_accumulator<T, I, S, Row>::add_up() {
  detail::csr_writer<T, I> sum(shape_, entries_);
  std::vector<detail::row_term<T, I>> terms;
  for (std::size_t i = 0; i < shape_.rows; ++i) {
    terms.clear();
    std::size_t bound = 0;
    detail::column_window window{shape_.columns, 0};
    for (const auto& [matrix, offset] : parts_) {
      if (i < offset.row || i - offset.row >= matrix.rows()) continue;
      const auto row = matrix.row(i - offset.row);
      if (row.empty()) continue;
      const I* columns = row.columns().data();
      terms.push_back({columns, row.values().data(), row.size(), offset.column});
      bound += row.size();
      window.first = std::min(window.first, static_cast<std::size_t>(columns[0]) + offset.column);
      window.end =
          std::max(window.end, static_cast<std::size_t>(row.columns().back()) + offset.column + 1);
    }
    if (terms.empty()) {
      sum.end_row(0);
      continue;
    }
    auto [columns, values] = sum.room(bound);
    sum.end_row(row_.add_up(terms, bound, window, columns, values));
  }
  parts_.clear();
  parts_.push_back({sum.finish(true), {}});
  entries_ = parts_[0].matrix.nnz();
}

/// Adds up each row in an array as wide as the row; see the header. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
using dense_accumulator = basic_accumulator<T, I, S, detail::row_by_dense<T, I, S>>;
/// Adds up each row in a hash table; see the header. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
using hash_accumulator = basic_accumulator<T, I, S, detail::row_by_hash<T, I, S>>;
/// Adds up each row by a heap; see the header. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
using heap_accumulator = basic_accumulator<T, I, S, detail::row_by_heap<T, I, S>>;
/// Adds up each row by merges; see the header. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
using merge_accumulator = basic_accumulator<T, I, S, detail::row_by_merges<T, I, S>>;
/// Adds up each row in the way that suits it; see the header. Local; no communication.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
using automatic_accumulator = basic_accumulator<T, I, S, detail::row_by_either<T, I, S>>;

}  // namespace far::inline FARSIDE_BACKEND

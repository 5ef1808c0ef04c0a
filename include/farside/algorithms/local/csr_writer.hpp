// Writes a sparse matrix row after row, when only a bound of its size is known.
//
//   csr_writer<double, std::int32_t> c(shape, bound);
//   for each row:  auto [columns, values] = c.room(most entries of the row);
//                  write them;
//                  c.end_row(entries);
//   return c.finish(sorted);
//
// There is room for all entries at first, and what is left is given back at the end: room that is
// not written takes no memory (containers/detail/plain_array.hpp). Where the system does not promise so much,
// the arrays grow as they fill.
#pragma once

#include <farside/containers/csr.hpp>

#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// Writes rows, one behind the other, into arrays of the caller's that have room for all of them.
template <class T, class I>
class rows_in_place {
 public:
  rows_in_place(std::int64_t* row_begin, I* columns, T* values)
      : row_end_(row_begin + 1), columns_(columns), values_(values) {
    *row_begin = 0;
  }

  std::pair<I*, T*> room(std::size_t) { return {columns_ + used_, values_ + used_}; }
  void end_row(std::size_t entries) {
    used_ += entries;
    *row_end_++ = static_cast<std::int64_t>(used_);
  }
  std::size_t entries() const { return used_; }

 private:
  std::int64_t* row_end_;
  I* columns_;
  T* values_;
  std::size_t used_ = 0;
};

template <class T, class I>
class csr_writer {
 public:
  csr_writer(matrix_shape shape, std::size_t bound) : matrix_(shape), bound_(bound) {}

  /// Where the next row goes, of at most `most` entries.
  std::pair<I*, T*> room(std::size_t most) {
    const std::size_t need = used_ + most;
    if (need > matrix_.nnz()) grow(need);
    return {matrix_.columns().data() + used_, matrix_.values().data() + used_};
  }
  void end_row(std::size_t entries) {
    used_ += entries;
    matrix_.row_begin()[++row_] = static_cast<std::int64_t>(used_);
  }
  csr<T, I> finish(bool sorted) {
    matrix_.resize(used_);
    matrix_.set_sorted(sorted);
    return std::move(matrix_);
  }

 private:
  void grow(std::size_t need) {
    for (std::size_t size = bound_; size > need; size = need + (size - need) / 2)
      if (matrix_.try_resize(size)) return;
    matrix_.resize(need);
  }

  csr<T, I> matrix_;
  std::size_t bound_, used_ = 0, row_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

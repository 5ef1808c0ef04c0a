// Adds up rows of sparse matrices, all of which are sorted, without a place for every column: by a
// heap, or by merges of two.
#pragma once

#include <farside/algorithms/local/dense_row.hpp>

#include <algorithm>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// A row that is to be added: its column e stands in column columns[e] + shift of the sum.
template <class T, class I>
struct row_term {
  const I* columns;
  const T* values;
  std::size_t size;
  std::size_t shift;
};

/// A heap holds the next column of every term. The least of them is taken, and replaced by the one
/// that follows it in its term. Among equal columns the earlier term comes first.
template <class T, class I, class S>
class row_by_heap {
 public:
  explicit row_by_heap(const S& over) : over_(over) {}

  std::size_t add_up(const std::vector<row_term<T, I>>& terms, std::size_t, column_window,
                     I* columns, T* values) {
    heap_.clear();
    for (std::size_t t = 0; t < terms.size(); ++t) heap_.push_back({column(terms[t], 0), t, 0});
    std::make_heap(heap_.begin(), heap_.end(), later);
    std::size_t written = 0;
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      cursor& least = heap_.back();
      const auto& term = terms[least.term];
      const T& value = term.values[least.entry];
      if (written != 0 && columns[written - 1] == least.column) {
        values[written - 1] = over_.add(values[written - 1], value);
      } else {
        columns[written] = least.column;
        values[written++] = value;
      }
      if (++least.entry == term.size) {
        heap_.pop_back();
      } else {
        least.column = column(term, least.entry);
        std::push_heap(heap_.begin(), heap_.end(), later);
      }
    }
    return written;
  }

 private:
  struct cursor {
    I column;
    std::size_t term, entry;
  };
  static bool later(const cursor& x, const cursor& y) {
    return x.column != y.column ? x.column > y.column : x.term > y.term;
  }
  static I column(const row_term<T, I>& term, std::size_t entry) {
    return static_cast<I>(static_cast<std::size_t>(term.columns[entry]) + term.shift);
  }

  [[no_unique_address]] S over_;
  std::vector<cursor> heap_;
};

/// Merges neighbours, then neighbours of what came out, until one is left:
///
///   runs   | a a a | b b | c c c c |    ->    | a b a b a | c c c c |    ->    | ... |
template <class T, class I, class S>
class row_by_merges {
 public:
  explicit row_by_merges(const S& over) : over_(over) {}

  std::size_t add_up(const std::vector<row_term<T, I>>& terms, std::size_t bound, column_window,
                     I* columns, T* values) {
    from_.clear();
    from_.reserve(bound);
    ends_.assign(1, 0);
    for (const auto& [of_term, with, size, shift] : terms) {
      for (std::size_t e = 0; e < size; ++e)
        from_.push_back({static_cast<I>(static_cast<std::size_t>(of_term[e]) + shift), with[e]});
      ends_.push_back(from_.size());
    }
    while (ends_.size() > 2) merge_neighbours();
    for (std::size_t e = 0; e < from_.size(); ++e)
      columns[e] = from_[e].column, values[e] = from_[e].value;
    return from_.size();
  }

 private:
  struct entry {
    I column;
    T value;
  };

  void merge_neighbours() {
    to_.clear();
    std::size_t kept = 1;
    for (std::size_t run = 0; run + 1 < ends_.size(); run += 2) {
      const bool alone = run + 2 == ends_.size();
      std::size_t x = ends_[run], x_end = ends_[run + 1];
      std::size_t y = x_end, y_end = alone ? x_end : ends_[run + 2];
      while (x < x_end && y < y_end) {
        const bool both = from_[x].column == from_[y].column;
        if (both)
          to_.push_back({from_[x].column, over_.add(from_[x].value, from_[y].value)});
        else
          to_.push_back(from_[x].column < from_[y].column ? from_[x] : from_[y]);
        const bool of_x = both || to_.back().column == from_[x].column;
        x += of_x;
        y += both || !of_x;
      }
      for (; x < x_end; ++x) to_.push_back(from_[x]);
      for (; y < y_end; ++y) to_.push_back(from_[y]);
      ends_[kept++] = to_.size();  // what was there has been read
    }
    ends_.resize(kept);
    from_.swap(to_);
  }

  [[no_unique_address]] S over_;
  std::vector<entry> from_, to_;
  std::vector<std::size_t> ends_;  // where runs end, after a zero
};

}  // namespace far::inline FARSIDE_BACKEND::detail

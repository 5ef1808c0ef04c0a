// Adds up rows of a sparse result: each in a dense row or in a hash table, whichever is quicker for
// it.
//
// A dense row (dense_row.hpp) is quicker, and brings its columns into order for nothing, as long as
// its window lies in the caches, or the row fills a good part of it. Otherwise a hash table
// (hash_row.hpp) is.
//
//   row_sum<double, std::int32_t, plus_times<double>> sum(over);
//   sum.begin(bound, window);
//   for each term:  sum.add(columns, size, shift, [&](std::size_t e) { return value of e; });
//   entries = sum.take(columns_out, values_out, room, sorted);
#pragma once

#include <farside/algorithms/local/hash_row.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T, class I, class S>
class row_sum {
 public:
  explicit row_sum(const S& over) : dense_(over), hash_(over) {}

  /// Begins a row of at most `bound` additions, to columns in `window`.
  void begin(std::size_t bound, column_window window) {
    end_ = window.end;
    is_dense_ = window.size() <= cached || bound >= window.size() / 16 || bound > hash_.most;
    if (is_dense_)
      dense_.begin(window);
    else
      hash_.begin(bound);
  }

  /// Adds value(e) to column columns[e] + shift for e below `size`; without `value`, for count(),
  /// remembers columns.
  template <class... Value>
  [[gnu::always_inline]] void add(const I* columns, std::size_t size, std::size_t shift,
                                  Value&&... value) {
    if (is_dense_)
      dense_.add(columns, size, shift, value...);
    else
      hash_.add(columns, size, shift, value...);
  }

  /// Writes the row, unless it has more than `room` entries, and forgets it. Returns how many it
  /// has.
  std::size_t take(I* columns, T* values, std::size_t room, bool sorted) {
    return is_dense_ ? dense_.take(columns, values, room)
                     : hash_.take(columns, values, room, sorted, end_);
  }
  /// How many entries the row has; forgets it.
  std::size_t count() { return is_dense_ ? dense_.count() : hash_.count(); }

 private:
  /// A window of so many columns is expected to lie in the second cache, most of it: 2 MiB.
  static constexpr std::size_t cached = (std::size_t{2} << 20) / sizeof(T);

  dense_row<T, I, S> dense_;
  hash_row<T, I, S> hash_;
  std::size_t end_ = 0;
  bool is_dense_ = true;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

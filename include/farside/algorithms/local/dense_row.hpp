// One row of a sparse result, added up in an array with a place for each column of a window.
//
//   sums      | 0 | x | 0 | 0 | y | ...    one for each column; zero where nothing was added
//   present     0   1   0   0   1          a bit for each column, in words of 64
//   words       1                          a bit for each word of `present` that is not empty
//
// Adding costs a load, a store and the bit. Where nothing was added yet the sum is the semiring's
// zero, its identity, so that the first value is added like all others and nothing branches on
// data. take() finds the columns in order through the bits, without a sort. It looks at one word
// for 4096 columns of the window, and sets back to zero what it has read, so that a row costs time
// for its own entries only.
//
// The window is where the row can have entries at all. In a banded matrix it is small and lies
// elsewhere for each row. As the array always begins with the window, it stays in the nearest
// cache.
#pragma once

#include <farside/algorithms/semiring.hpp>
#include <farside/containers/detail/plain_array.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// The columns from `first` to before `end`, in which a row has all its entries.
struct column_window {
  std::size_t first = 0, end = 0;

  std::size_t size() const { return end > first ? end - first : 0; }
};

template <class T, class I, class S>
class dense_row {
 public:
  explicit dense_row(const S& over) : over_(over) {}

  /// Begins a row whose columns all lie in `window`.
  void begin(column_window window) {
    first_ = window.first / 64 * 64;  // words of bits begin where those of columns do
    end_ = std::max(window.end, first_);
    if (end_ - first_ > capacity_) grow(end_ - first_);
  }

  /// Adds value(e) to column columns[e], for e below `size`.
  template <class Value>
  [[gnu::always_inline]] void add(const I* columns, std::size_t size, std::size_t shift,
                                  Value&& value) {
    const std::size_t offset = shift - first_;
    T* sums = sums_.data();
    std::uint64_t* present = present_.data();
    for (std::size_t e = 0; e < size; ++e) {
      std::size_t at = static_cast<std::size_t>(columns[e]) + offset;
      sums[at] = over_.add(sums[at], value(e));
      mark(present, at);
    }
  }
  /// Remembers the columns only: for counting.
  void add(const I* columns, std::size_t size, std::size_t shift) {
    const std::size_t offset = shift - first_;
    std::uint64_t* present = present_.data();
    for (std::size_t e = 0; e < size; ++e)
      mark(present, static_cast<std::size_t>(columns[e]) + offset);
  }

  /// Writes the row, in order, and forgets it. Returns how many entries it has; only the first
  /// `room` are written.
  std::size_t take(I* columns, T* values, std::size_t room) {
    std::size_t taken = 0;
    const T zero = over_.zero();
    T* sums = sums_.data();
    for_each_word([&](std::size_t word, std::uint64_t bits) {
      for (; bits != 0; bits &= bits - 1) {
        std::size_t at = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (taken < room) {
          columns[taken] = static_cast<I>(first_ + at);
          values[taken] = sums[at];
        }
        ++taken;
        sums[at] = zero;
      }
    });
    return taken;
  }
  /// How many entries the row has; forgets it. For rows of which columns were remembered only.
  std::size_t count() {
    std::size_t counted = 0;
    for_each_word([&](std::size_t, std::uint64_t bits) {
      counted += static_cast<std::size_t>(std::popcount(bits));
    });
    return counted;
  }

 private:
  [[gnu::always_inline]] void mark(std::uint64_t* present, std::size_t at) {
    std::uint64_t before = present[at / 64];
    present[at / 64] = before | std::uint64_t{1} << at % 64;
    if (before == 0) words_[at / 4096] |= std::uint64_t{1} << at / 64 % 64;
  }

  /// Visits the words that are not empty, in order, and empties them.
  template <class Visit>
  void for_each_word(Visit visit) {
    if (end_ == first_) return;
    for (std::size_t of_words = 0; of_words <= (end_ - first_ - 1) / 4096; ++of_words) {
      std::uint64_t words = words_[of_words];
      if (words == 0) continue;
      words_[of_words] = 0;
      for (; words != 0; words &= words - 1) {
        std::size_t word = of_words * 64 + static_cast<std::size_t>(std::countr_zero(words));
        std::uint64_t bits = present_[word];
        present_[word] = 0;
        visit(word, bits);
      }
    }
  }

  void grow(std::size_t columns) {
    columns = (columns + 4095) / 4096 * 4096;
    sums_.resize(columns);
    present_.resize(columns / 64);
    words_.resize(columns / 4096);
    std::fill(sums_.begin() + capacity_, sums_.end(), over_.zero());
    std::fill(present_.begin() + capacity_ / 64, present_.end(), 0);
    std::fill(words_.begin() + capacity_ / 4096, words_.end(), 0);
    capacity_ = columns;
  }

  S over_;
  plain_array<T> sums_;
  plain_array<std::uint64_t> present_, words_;
  std::size_t capacity_ = 0;  // columns of the widest window so far
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

// One row of a sparse result, added up in a hash table of its columns: for short rows of wide
// matrices, where the places of a dense row (dense_row.hpp) would be spread over more memory than
// the caches hold.
//
//   keys      | - | 17 | - | 4 | 903 | ...    open addressing, at most half full; - for none
//   sums      | . | x  | . | y | z   |
//   order       17 at 1, 4 at 3, ...          what there is, as it came
//
// The table has a power of two of slots, at least twice as many as the row has products. So it
// never grows while a row is added up, and short rows use a part that stays in the nearest cache. A
// column's slot comes from a multiplication that mixes all its bits into the upper ones. take()
// sorts by columns only where that is asked for.
#pragma once

#include <farside/algorithms/local/dense_row.hpp>

#include <array>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// A column of a row, and where its value lies.
template <class Key>
struct placed_column {
  Key column;
  std::uint32_t slot;
};

/// Sorts by columns, all of which are below 2^bits. `scratch` has as much room as there are
/// columns. Returns which of both holds the result.
template <class Key>
const placed_column<Key>* sort_placed(placed_column<Key>* order, placed_column<Key>* scratch,
                                      std::size_t size, int bits) {
  if (size < 64) {
    std::sort(order, order + size,
              [](const auto& x, const auto& y) { return x.column < y.column; });
    return order;
  }
  // Byte by byte, the lowest first: each pass keeps the order of the one before where bytes are
  // equal.
  for (int shift = 0; shift < bits; shift += 8) {
    std::array<std::uint32_t, 256> next{};
    for (std::size_t e = 0; e < size; ++e) ++next[order[e].column >> shift & 255];
    std::uint32_t before = 0;
    for (std::uint32_t& count : next) before += std::exchange(count, before);
    for (std::size_t e = 0; e < size; ++e)
      scratch[next[order[e].column >> shift & 255]++] = order[e];
    std::swap(order, scratch);
  }
  return order;
}

template <class T, class I, class S>
class hash_row {
 public:
  /// The most additions of a row: slots are numbered by 32 bits.
  static constexpr std::size_t most = std::size_t{1} << 31;

  explicit hash_row(const S& over) : over_(over) {}

  /// Begins a row of at most `bound` additions.
  void begin(std::size_t bound) {
    const auto slots = std::bit_ceil(std::max<std::size_t>(2 * bound, 16));
    shift_ = 64 - std::countr_zero(slots);
    mask_ = slots - 1;
    if (slots > keys_.size()) grow(slots);
  }

  /// Adds value(e) to column columns[e] + shift, for e below `size`.
  template <class Value>
  [[gnu::always_inline]] void add(const I* columns, std::size_t size, std::size_t shift,
                                  Value&& value) {
    for (std::size_t e = 0; e < size; ++e) {
      auto [slot, is_new] = place(static_cast<key>(static_cast<std::size_t>(columns[e]) + shift));
      sums_[slot] =
          is_new ? static_cast<T>(value(e)) : static_cast<T>(over_.add(sums_[slot], value(e)));
    }
  }
  /// Remembers the columns only: for counting.
  void add(const I* columns, std::size_t size, std::size_t shift) {
    for (std::size_t e = 0; e < size; ++e)
      place(static_cast<key>(static_cast<std::size_t>(columns[e]) + shift));
  }

  /// Writes the row, in order if it is to be `sorted`, unless it has more than `room` entries, and
  /// forgets it. Returns how many it has. All columns are less than `end`.
  std::size_t take(I* columns, T* values, std::size_t room, bool sorted, std::size_t end) {
    if (used_ > room) return count();
    const placed_column<key>* order = order_.data();
    if (sorted) order = sort_placed(order_.data(), scratch_.data(), used_, std::bit_width(end));
    for (std::size_t e = 0; e < used_; ++e) {
      columns[e] = static_cast<I>(order[e].column);
      values[e] = sums_[order[e].slot];
      keys_[order[e].slot] = none;
    }
    return std::exchange(used_, 0);
  }
  /// How many entries the row has; forgets it.
  std::size_t count() {
    for (std::size_t e = 0; e < used_; ++e) keys_[order_[e].slot] = none;
    return std::exchange(used_, 0);
  }

 private:
  using key = std::make_unsigned_t<I>;
  static constexpr key none =
      static_cast<key>(-1);  // columns are signed, so that this is none of them

  /// The slot of a column, and whether it has just been given to it.
  [[gnu::always_inline]] std::pair<std::size_t, bool> place(key column) {
    std::size_t slot = std::uint64_t{column} * 0x9e3779b97f4a7c15u >> shift_;
    for (;; slot = (slot + 1) & mask_) {
      if (keys_[slot] == column) return {slot, false};
      if (keys_[slot] == none) break;
    }
    keys_[slot] = column;
    order_[used_++] = {column, static_cast<std::uint32_t>(slot)};
    return {slot, true};
  }

  void grow(std::size_t slots) {
    keys_.resize(slots);
    sums_.resize(slots);
    std::fill(keys_.begin(), keys_.end(), none);
    order_.resize(slots / 2);
    scratch_.resize(slots / 2);
  }

  S over_;
  plain_array<key> keys_;
  plain_array<T> sums_;
  plain_array<placed_column<key>> order_, scratch_;
  std::size_t used_ = 0, mask_ = 0;
  int shift_ = 64;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

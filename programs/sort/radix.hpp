// A stable sort by the bits of a key, for one rank's memory.
//
// While an array is larger than a cache it is divided by the leading bits that differ, into blocks
// that fit; each block is sorted by its remaining bits, lowest digit first, without leaving the
// cache. So every item crosses the memory bus twice each way, for arrays of up to 2^24 or so,
// whatever the number of digits. Any distribution: bits that do not differ within a block cost
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace programs::radix {

/// Items that are sorted within the cache: both copies of a block and the counts fit in a
/// second-level cache of 256 KiB.
template <class Item>
inline constexpr std::size_t block_items = (std::size_t{96} << 10) / sizeof(Item);

inline constexpr unsigned most_digit_bits = 11;

template <class Count>
using places = std::array<Count, std::size_t{1} << most_digit_bits>;

/// Number of low bits within which the keys of the items differ.
template <class Item, class Key>
unsigned differing_bits(const Item* items, std::size_t n, Key key) {
  std::remove_cvref_t<decltype(key(*items))> differ = 0;
  for (std::size_t i = 0; i < n; ++i) differ |= key(items[i]) ^ key(items[0]);
  return static_cast<unsigned>(std::bit_width(differ));
}

/// One digit of `width` bits: from one array to the other, stable. On return, place[d] is where
/// the items of digit d end.
template <class Count, class Item, class Key>
void pass(const Item* from, Item* to, std::size_t n, unsigned shift, unsigned width,
          places<Count>& place, Key key) {
  std::size_t digits = std::size_t{1} << width, mask = digits - 1;
  std::fill_n(place.begin(), digits, Count{0});
  for (std::size_t i = 0; i < n; ++i) ++place[(key(from[i]) >> shift) & mask];
  Count before = 0;
  for (std::size_t d = 0; d < digits; ++d) before += std::exchange(place[d], before);
  for (std::size_t i = 0; i < n; ++i) to[place[(key(from[i]) >> shift) & mask]++] = from[i];
}

template <class Item, class Key>
void insertion_sort(Item* items, std::size_t n, Key key) {
  for (std::size_t i = 1; i < n; ++i) {
    Item item = items[i];
    std::size_t at = i;
    for (; at > 0 && key(item) < key(items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

/// A block that fits the cache, by its low `bits`; the result goes to `other` if that is asked for.
template <class Item, class Key>
void sort_block(Item* items, Item* other, std::size_t n, unsigned bits, bool into_other, Key key) {
  if (n <= 32) {
    insertion_sort(items, n, key);
    if (into_other) std::copy_n(items, n, other);
    return;
  }
  unsigned widest = n < 4096 ? 8 : most_digit_bits;
  unsigned passes = (bits + widest - 1) / widest;
  if ((passes & 1) != (into_other ? 1 : 0)) ++passes;
  places<std::uint32_t> place;
  for (unsigned done = 0; passes > 0; --passes) {
    unsigned width = (bits - done + passes - 1) / passes;
    pass(items, other, n, done, width, place, key);
    done += width;
    std::swap(items, other);
  }
}

/// Sorts `n` items by `key(item)`, an unsigned number, stably. The other array, of the same size,
/// is overwritten; the result goes there if that is asked for.
template <class Item, class Key>
void sort(Item* items, Item* other, std::size_t n, bool into_other, Key key) {
  unsigned bits = n == 0 ? 0 : differing_bits(items, n, key);
  if (bits == 0) {
    if (into_other) std::copy_n(items, n, other);
    return;
  }
  if (n <= block_items<Item>) return sort_block(items, other, n, bits, into_other, key);
  auto blocks = static_cast<unsigned>(std::bit_width(3 * n / block_items<Item>));
  unsigned width = std::min({bits, blocks, most_digit_bits});
  places<std::size_t> place;
  pass(items, other, n, bits - width, width, place, key);
  std::size_t begin = 0;
  for (std::size_t d = 0; d < std::size_t{1} << width; ++d) {
    sort(other + begin, items + begin, place[d] - begin, !into_other, key);
    begin = place[d];
  }
}

}  // namespace programs::radix

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

/// The places where the items of each digit begin, from their numbers.
template <class Count>
void sum_up(places<Count>& place, std::size_t digits) {
  Count before = 0;
  for (std::size_t d = 0; d < digits; ++d) before += std::exchange(place[d], before);
}

/// One digit of `width` bits: from one array to the other, stable. `place` says where each digit's
/// items begin; on return, where they end.
template <class Count, class Item, class Key>
void scatter(const Item* from, Item* to, std::size_t n, unsigned shift, unsigned width,
             places<Count>& place, Key key) {
  std::size_t mask = (std::size_t{1} << width) - 1;
  for (std::size_t i = 0; i < n; ++i) to[place[(key(from[i]) >> shift) & mask]++] = from[i];
}

/// The same, with the counting that comes before.
template <class Count, class Item, class Key>
void pass(const Item* from, Item* to, std::size_t n, unsigned shift, unsigned width,
          places<Count>& place, Key key) {
  std::size_t digits = std::size_t{1} << width, mask = digits - 1;
  std::fill_n(place.begin(), digits, Count{0});
  for (std::size_t i = 0; i < n; ++i) ++place[(key(from[i]) >> shift) & mask];
  sum_up(place, digits);
  scatter(from, to, n, shift, width, place, key);
}

/// Two digits, there and back, counted together.
template <class Item, class Key>
void two_passes(Item* items, Item* other, std::size_t n, unsigned shift, unsigned bits, Key key) {
  unsigned low = (bits + 1) / 2, high = bits - low;
  std::size_t low_mask = (std::size_t{1} << low) - 1, high_mask = (std::size_t{1} << high) - 1;
  places<std::uint32_t> lower, higher;
  std::fill_n(lower.begin(), low_mask + 1, 0u);
  std::fill_n(higher.begin(), high_mask + 1, 0u);
  for (std::size_t i = 0; i < n; ++i) {
    auto digits = key(items[i]) >> shift;
    ++lower[digits & low_mask];
    ++higher[(digits >> low) & high_mask];
  }
  sum_up(lower, low_mask + 1);
  sum_up(higher, high_mask + 1);
  scatter(items, other, n, shift, low, lower, key);
  scatter(other, items, n, shift + low, high, higher, key);
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

/// Digits that `bits` are cut into, of `n` items; more than there are items would not pay.
inline unsigned passes_for(unsigned bits, std::size_t n) {
  unsigned widest = n < 4096 ? 8 : most_digit_bits;
  return (bits + widest - 1) / widest;
}

/// A block that fits the cache, by its low `bits`; the result goes to `other` if that is asked for.
template <class Item, class Key>
void sort_block(Item* items, Item* other, std::size_t n, unsigned bits, bool into_other, Key key) {
  if (n <= 32) {
    insertion_sort(items, n, key);
    if (into_other) std::copy_n(items, n, other);
    return;
  }
  unsigned passes = passes_for(bits, n), done = 0;
  if ((passes & 1) != (into_other ? 1 : 0)) ++passes;
  if (passes & 1) {
    unsigned width = (bits + passes - 1) / passes;
    places<std::uint32_t> place;
    pass(items, other, n, 0, width, place, key);
    done = width, --passes;
    std::swap(items, other);
  }
  for (; passes > 0; passes -= 2) {
    unsigned width = (bits - done + passes - 1) / passes, both = std::min(2 * width, bits - done);
    two_passes(items, other, n, done, both, key);
    done += both;
  }
}

/// How the first digit of a large array divides it.
template <class Item>
unsigned dividing_bits(unsigned bits, std::size_t n) {
  auto blocks = static_cast<unsigned>(std::bit_width(3 * n / block_items<Item>));
  return std::min({bits, blocks, most_digit_bits});
}

/// Sorts `n` items by `key(item)`, an unsigned number, stably; their keys differ in the low `bits`
/// only. The other array, of the same size, is overwritten; the result goes there if that is asked
/// for.
template <class Item, class Key>
void sort(Item* items, Item* other, std::size_t n, unsigned bits, bool into_other, Key key) {
  // Fewer bits are fewer passes, but two there are anyway.
  if (n > 0 && bits > 2 * most_digit_bits) bits = std::min(bits, differing_bits(items, n, key));
  if (bits == 0 || n < 2) {
    if (into_other) std::copy_n(items, n, other);
    return;
  }
  if (n <= block_items<Item>) return sort_block(items, other, n, bits, into_other, key);
  unsigned width = dividing_bits<Item>(bits, n), rest = bits - width;
  places<std::size_t> place;
  pass(items, other, n, rest, width, place, key);
  std::size_t begin = 0;
  for (std::size_t d = 0; d < std::size_t{1} << width; ++d) {
    sort(other + begin, items + begin, place[d] - begin, rest, !into_other, key);
    begin = place[d];
  }
}

/// The same; returns which of the two holds the result: where it takes fewer passes.
template <class Item, class Key>
Item* sort(Item* items, Item* other, std::size_t n, Key key) {
  unsigned bits = n == 0 ? 0 : differing_bits(items, n, key);
  bool divided = n > block_items<Item>;
  unsigned rest = divided ? bits - dividing_bits<Item>(bits, n) : bits;
  bool even = passes_for(rest, block_items<Item>) % 2 == 0;
  bool into_other = divided == even;
  sort(items, other, n, bits, into_other, key);
  return into_other ? other : items;
}

}  // namespace programs::radix

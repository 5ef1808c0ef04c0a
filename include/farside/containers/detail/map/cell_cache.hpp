// Where cells of keys were found, so that adding to one costs no look for it: where memory is
// coherent the look is cheap, elsewhere it is a get.
#pragma once

#include <farside/containers/detail/map/table.hpp>

#include <cstddef>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Of one thread. `epoch` is directory::epoch: tables from before may be gone.
template <class K, class Hash>
class cell_cache {
 public:
  struct cell_place {
    word epoch = none;
    std::optional<K> key{};  ///< there if `epoch` is that of a table
    ptr<word> at{};          ///< the word of the cell
    table* in = nullptr;
    word index = 0;

    void forget() { epoch = none; }
    FARSIDE_HOT bool is_of(word now, const K& k) const {
      return epoch == now && (*key == k || FARSIDE_MUTANT(map_known_cell_of_another));
    }
    static constexpr word none = ~word{0};
  };

  /// Without memory it is not remembered: the operation that has found the cell has succeeded.
  void remember(word epoch, table& in, word index, ptr<word> at, const K& key) {
    try {
      if (cells_.empty()) cells_.resize(2 * pairs);
      cell_place fresh{epoch, key, at, &in, index};
      cell_place* two = pair_of(key);
      if (!two[0].is_of(epoch, key)) two[1] = std::move(two[0]);
      two[0] = std::move(fresh);
    } catch (const std::bad_alloc&) {
    }
  }
  /// Null if it is not known.
  FARSIDE_HOT cell_place* find(word epoch, const K& key) {
    if (cells_.empty()) return nullptr;
    cell_place* two = pair_of(key);
    if (two[0].is_of(epoch, key)) [[likely]]
      return two;
    return two[1].is_of(epoch, key) ? two + 1 : nullptr;
  }
  void clear() { cells_.clear(); }

 private:
  static constexpr unsigned pair_bits = 9;
  static constexpr std::size_t pairs = std::size_t{1} << pair_bits;

  /// Either of two places, so that two keys do not drive each other out. Numbers are spread by one
  /// multiplication: a hash good enough for a table takes three times as long.
  FARSIDE_HOT cell_place* pair_of(const K& key) {
    word spread;
    if constexpr (std::is_integral_v<K>)
      spread = static_cast<word>(key) * mix_offset;
    else
      spread = mix(static_cast<word>(Hash()(key)));
    return cells_.data() + (spread >> (64 - pair_bits)) * 2;
  }

  std::vector<cell_place> cells_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map

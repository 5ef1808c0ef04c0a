// Where things of keys were found in far memory, so that they are used again without a look for them:
// the cells of a map, to which adding is one atomic, and the objects of a store, which are read by one get.
//
// It grows with what it is used for, as a rank may read few keys or all of them: when as many places as
// a 32nd of its size have been driven out it gets twice as large, up to 2^18 places. So a rank that has
// read keys once knows nine of ten of them up to 2^17 keys, and four of five of 2^18.
#pragma once

#include <farside/base/hot.hpp>
#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Of one thread. `epoch` is directory::epoch: places from before may be gone.
template <class K, class Hash>
class place_cache {
  using word = std::uint64_t;

 public:
  struct entry {
    word epoch = none;
    std::optional<K> key{};  ///< there if `epoch` is one that there was
    ptr<word> at{};
    word words = 0;  ///< of an object

    void forget() { epoch = none; }
    FARSIDE_HOT bool is_of(word now, const K& k) const {
      return epoch == now && (*key == k || FARSIDE_MUTANT(map_known_cell_of_another));
    }
    static constexpr word none = ~word{0};
  };

  /// Without memory it is not remembered: the operation that has found the place has succeeded.
  void remember(word epoch, const K& key, ptr<word> at, word words = 0) {
    try {
      if (driven_out_ > entries_.size() / 32 && entries_.size() < most) grow(epoch);
      if (entries_.empty()) entries_.resize(least);
      insert({epoch, key, at, words}, epoch);
    } catch (const std::bad_alloc&) {
      driven_out_ = 0;  // not the next one, but one after a while tries again
    }
  }
  /// Null if it is not known.
  FARSIDE_HOT entry* find(word epoch, const K& key) {
    if (entries_.empty()) return nullptr;
    entry* some = row_of(key);
    for (std::size_t i = 0; i < row; ++i)
      if (some[i].is_of(epoch, key)) return some + i;
    return nullptr;
  }
  void clear() {
    entries_.clear();
    driven_out_ = 0;
  }

 private:
  static constexpr std::size_t row = 4, least = std::size_t{1} << 10, most = std::size_t{1} << 18;

  /// The newest is the first of its row, and the last one is driven out.
  void insert(entry one, word epoch) {
    entry* some = row_of(*one.key);
    std::size_t to = 0;
    while (to < row - 1 && some[to].epoch == epoch && !(*some[to].key == *one.key)) ++to;
    driven_out_ += some[to].epoch == epoch && !(*some[to].key == *one.key);
    for (; to > 0; --to) some[to] = std::move(some[to - 1]);
    some[0] = std::move(one);
  }
  void grow(word epoch) {
    std::vector<entry> old(2 * entries_.size());
    old.swap(entries_);
    for (entry& one : old)
      if (one.epoch == epoch) insert(std::move(one), epoch);
    driven_out_ = 0;
  }
  /// The hash is mixed once more: the ranks have shared out keys by its high bits.
  FARSIDE_HOT entry* row_of(const K& key) {
    word spread;
    if constexpr (std::is_integral_v<K>)
      spread = mix(static_cast<word>(key));
    else
      spread = mix(static_cast<word>(Hash()(key)));
    return entries_.data() + (spread & (entries_.size() / row - 1)) * row;
  }

  std::vector<entry> entries_;
  std::size_t driven_out_ = 0;  ///< since it was as large as it is
};

}  // namespace far::inline FARSIDE_BACKEND::detail

// The types of one hash map, as one parameter of everything that works on it.
#pragma once

#include <farside/base/mixing.hpp>
#include <farside/containers/detail/map/bucket.hpp>
#include <farside/containers/detail/stored.hpp>
#include <farside/containers/probing.hpp>

#include <concepts>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// The member that holds a key is the one that its hash says. (Stores let their users choose.)
struct placed_by_hash {
  template <class K>
  FARSIDE_HOT static key_location of(word hash, const K&, std::uint32_t members) {
    return {hash, members};
  }
};

/// Integers are kept in a word of their own, as a number: those that fit a cell can be counted up.
template <class V>
concept countable = std::integral<V> && sizeof(V) <= 8;

template <class K, class V, class Hash, class Probing>
struct map_traits {
  using placing = placed_by_hash;
  using key_type = K;
  using mapped_type = V;
  using hasher = Hash;
  using probing = Probing;
  using key_store = stored<K>;
  using value_store = stored<V>;
  using entry = bucket<value_store::words, key_store::words>;

  static constexpr std::size_t bucket_words = sizeof(entry) / 8;
  static constexpr bool cells = countable<V>;
  static constexpr bool in_place = key_store::in_place && value_store::in_place;
  static constexpr bool linear = std::is_same_v<Probing, linear_probing>;
  static constexpr state usual = cells ? state::cell : state::plain;  ///< of a bucket that is used

  FARSIDE_HOT static word hash_of(const K& key) { return mixed_hash(Hash(), key); }
  static constexpr bool is_entry(const V&) { return true; }  ///< (stores have slots that are none)
};

/// How a step of the protocol ends, in one table.
enum class result {
  done,
  absent,    ///< the key is not in this table, and `lookup` has the empty bucket where it belongs
  mine,      ///< the key's bucket was found
  moved,     ///< the next table has the answer
  full,      ///< all buckets belong to other keys
  frozen,    ///< the key's bucket is being moved
  widen,     ///< a cell's number outgrows it: the table has to move
  strained,  ///< a cell holds more than it should: the table should move
  again,     ///< another rank was faster; nothing has changed
  blocked,   ///< it would have to wait, and gives up instead; nothing has changed
};

/// What an operation does where it would have to wait for another rank. The fast path and handlers
/// of messages give up: nothing has been changed then, and the full path, or the caller, begins
/// anew.
enum class if_blocked { wait, give_up };

}  // namespace far::inline FARSIDE_BACKEND::detail::map

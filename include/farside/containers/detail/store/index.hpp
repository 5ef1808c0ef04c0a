// The index of a store: a map (containers/detail/map) from keys to slots. docs/protocols/store.md.
//
//   | tag | value, of up to 64 bytes |          tag: version << 1 | parked
//   | tag | place | words |                     of an object that lies elsewhere
//
// A parked slot says that somebody waits for the key: who puts it wakes them. It counts as no entry.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/containers/detail/map/fast_path.hpp>
#include <farside/containers/store_options.hpp>

#include <array>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::stores {

using map::decision;
using map::gives;
using map::if_blocked;
using map::result;
using map::word;

template <std::size_t Words>
struct slot {
  word tag = 0;
  std::array<word, Words> words{};

  static slot parked() { return {1, {}}; }
  bool is_parked() const { return tag & 1; }
  std::uint32_t version() const { return static_cast<std::uint32_t>(tag >> 1); }
  void set_version(std::uint32_t version) { tag = word{version} << 1; }
};

/// Values of up to so many bytes stay in the bucket, if nothing in them is a cell.
inline constexpr std::size_t most_in_bucket = 64;

template <class V, bool Fixed = fixed_length<V>>
inline constexpr bool stays_in_bucket =
    sizeof(typename stored<V>::form) <= most_in_bucket && cells_of<V>::count == 0 &&
    alignof(typename stored<V>::form) <= 8;
template <class V>
inline constexpr bool stays_in_bucket<V, false> = false;

template <class V, bool InBucket = stays_in_bucket<V>>
inline constexpr std::size_t slot_words = 2;
template <class V>
inline constexpr std::size_t slot_words<V, true> = stored<V>::words;

/// Where a key lies, as its store's placement says.
template <class K, class Placement>
struct placed_by {
  explicit placed_by(Placement by = {}) : choose(std::move(by)) {}
  Placement choose;

  map::key_location of(word hash, const K& key, std::uint32_t members) const {
    const rank_t chosen = choose(key, static_cast<rank_t>(members));
    if (chosen >= members) [[unlikely]]
      raise("store: the placement puts ", describe(key), " at member ", chosen, ", but there are ",
            members, ": 0 to ", members - 1,
            ". A placement gives a number below the one that it is given.");
    map::key_location where;
    where.hash = hash;
    where.member = chosen;
    return where;
  }
};
template <class K>
struct placed_by<K, by_hash<K>> : map::placed_by_hash {
  explicit placed_by(by_hash<K> = {}) {}
  by_hash<K> choose{};
};

template <class Key, class V, class Placement>
struct index_traits {
  using placing = placed_by<Key, Placement>;
  using key_type = Key;
  using mapped_type = slot<slot_words<V>>;
  using hasher = hash<Key>;
  using probing = linear_probing;
  using key_store = stored<Key>;
  using value_store = stored<mapped_type>;
  using entry = map::bucket<value_store::words, key_store::words>;

  static constexpr std::size_t bucket_words = sizeof(entry) / 8;
  static constexpr bool cells = false, linear = true;
  static constexpr bool in_place = key_store::in_place;
  static constexpr map::state usual = map::state::plain;

  FARSIDE_HOT static word hash_of(const Key& key) { return mixed_hash(hasher(), key); }
  static bool is_entry(const mapped_type& slot) { return !slot.is_parked(); }
};

/// What came of a change.
enum class changed { yes, no, absent, blocked };

// Updates of slots (map/update_kinds.hpp). They look at what is there, parked slots among it, and tell
// what was there.

/// An entry that is there.
template <class Slot>
bool is_there(const std::optional<Slot>& old) {
  return old && !old->is_parked();
}

/// A new entry, where there is none.
template <class Slot>
struct put_slot {
  static constexpr bool changes = false, creates = true, reads = true;
  static constexpr gives result_is = gives::old;
  const Slot& value;
  const Slot& initial() const { return value; }
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>& next) const {
    if (stores::is_there(old)) return decision::leave;
    next = value;
    return decision::write;
  }
};

/// Another value for an entry; of a version, if `only` is one.
template <class Slot>
struct replace_slot {
  static constexpr bool changes = true, creates = false, reads = true;
  static constexpr gives result_is = gives::old;
  const Slot& value;
  std::int64_t only = -1;
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>& next) const {
    if (!stores::is_there(old)) return decision::leave;
    if (only >= 0 && old->version() != only && !FARSIDE_MUTANT(store_version_not_compared))
      return decision::leave;
    next = value;
    next->set_version(old->version() + !FARSIDE_MUTANT(store_version_not_counted));
    return decision::write;
  }
};

/// The same by a function of the value that is there.
template <class V, class Slot, class F>
struct transform_slot {
  static constexpr bool changes = true, creates = false, reads = true;
  static constexpr gives result_is = gives::old;
  F& change;
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>& next) const {
    if (!stores::is_there(old)) return decision::leave;
    V value = stored<V>::read(old->words.data());
    {
      no_communication quiet("modify");
      change(value);
    }
    stored<V>::pack(value, next.emplace().words.data());
    next->set_version(old->version() + 1);
    return decision::write;
  }
};

template <class Slot>
struct remove_slot {
  static constexpr bool changes = true, creates = false, reads = true;
  static constexpr gives result_is = gives::old;
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>&) const {
    return stores::is_there(old) ? decision::remove : decision::leave;
  }
};

/// Somebody waits for the key, unless it is there.
template <class Slot>
struct park_slot {
  static constexpr bool changes = true, creates = true, reads = true;
  static constexpr gives result_is = gives::old;
  Slot initial() const { return Slot::parked(); }
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>& next) const {
    if (old) return decision::leave;
    next = Slot::parked();
    return decision::write;
  }
};

/// Of objects elsewhere: that at `expected` gives its place to another one, or to none.
template <class Slot>
struct replace_place {
  static constexpr bool changes = true, creates = false, reads = true;
  static constexpr gives result_is = gives::old;
  word expected;
  const Slot* by;  ///< null: the key is removed
  decision decide(bool, const std::optional<Slot>& old, std::optional<Slot>& next) const {
    if (!stores::is_there(old)) return decision::leave;
    if (old->words[0] != expected && !FARSIDE_MUTANT(store_unlinks_another)) return decision::leave;
    if (by == nullptr) return decision::remove;
    next = *by;
    return decision::write;
  }
};

// --- the same as they are sent to owners: see map/update_kinds.hpp ---

using put_there = map::entry_there<container_operation::insert, put_slot>;
struct replace_there {
  static constexpr auto kind = container_operation::modify;
  static constexpr bool can_be_sent = true;
  template <class K, class Slot>
  replace_slot<Slot> update(const std::pair<K, Slot>& entry) {
    return {entry.second, only};
  }
  std::int64_t only = -1;
};
template <class V, class Slot, class F>
using transform_there = map::function_there<transform_slot<V, Slot, F>, F>;
template <class Slot>
using remove_there = map::key_there<container_operation::erase, remove_slot<Slot>>;

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

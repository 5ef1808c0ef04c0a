// What a far::store can be told, and what it tells.
#pragma once

#include <farside/base/mixing.hpp>
#include <farside/core/container_options.hpp>
#include <farside/core/hash.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// What becomes of a post whose key is there already.
enum class on_duplicate {
  keep,     ///< the value that is there stays
  replace,  ///< the posted one replaces it
  error     ///< the value that is there stays, and fence() throws on all ranks
};

/// What may happen to values that are there.
enum class mutability {
  any,
  once  ///< they stay as they were put: readers keep copies, and change and erase nothing
};

/// Options of stores: those of all containers, and what posts and readers may rely on. All members
/// say the same. Local.
struct store_options : container_options {
  /// How many posts of a rank may wait at an owner to be activated; a rank that has more waits.
  std::uint32_t pending_slots = 64;
  far::on_duplicate on_duplicate = far::on_duplicate::keep;
  far::mutability mutability = far::mutability::any;
};

/// A value, and its version: store::update_if replaces it if that is still the one.
template <class V>
struct versioned {
  V value;
  std::uint32_t version;
};

/// What store::fence has seen since the fence before, of all ranks together.
struct fence_report {
  std::uint64_t activated = 0;   ///< posts that have become visible
  std::uint64_t duplicates = 0;  ///< posts whose key was there already
  std::uint64_t held_back =
      0;  ///< posts that had to wait as their owner's pending slots were taken
};

/// What store::verify has found, of all ranks.
struct store_check {
  std::uint64_t entries = 0;
  std::uint64_t misplaced = 0;  ///< held by another rank than the placement says
  std::uint64_t lost = 0;       ///< named by the index, but without a value
  std::string first_misplaced;  ///< the key of one, as text
  /// Local.
  bool good() const { return misplaced == 0 && lost == 0; }
};

/// How full a store is, and how evenly; see store::statistics.
struct store_statistics {
  std::uint64_t entries = 0;
  std::uint64_t waiting = 0;  ///< of keys that are yet to come, how many calls of when() wait
  std::uint64_t erased = 0;   ///< buckets whose key was erased; the next growth drops them
  std::uint64_t buckets = 0;
  std::uint64_t bytes = 0;  ///< of the index, and of values in it
  double load_factor = 0;
  double mean_probes = 0;  ///< buckets looked at to find an entry
  std::uint64_t most_probes = 0;
  std::uint64_t displaced = 0;     ///< entries whose home bucket was another one's
  std::uint64_t further_gets = 0;  ///< after the first one, of a find of each entry from elsewhere
  std::uint64_t equal_hashes = 0;  ///< pairs of entries with the same 64 bits of hash, on a member
  std::uint64_t fewest_entries = 0;  ///< on a member
  std::uint64_t most_entries = 0;
  double skew = 0;  ///< most_entries / mean
};

/// The placement of a store that is given no other one: the hash of the key chooses.
template <class K>
struct by_hash {
  /// Local; no communication.
  rank_t operator()(const K& key, rank_t members) const {
    return static_cast<rank_t>(reduce_hash(detail::mixed_hash(hash<K>(), key), members));
  }
};

/// Which members of V are cells: integers that store::fetch_add and store::compare_swap change, each
/// by an atomic of its own. Specialise it:
///
///   template <> struct far::cells_of<node> : far::cells<&node::visits, &node::parent> {};
template <auto... Members>
struct cells {
  static constexpr std::size_t count = sizeof...(Members);
  /// Local; no communication.
  static constexpr auto members = std::tuple(Members...);
};
template <class V>
struct cells_of : cells<> {};

}  // namespace far::inline FARSIDE_BACKEND

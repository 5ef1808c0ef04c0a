// The places where a search has been, none of them twice (Lowe's memoisation).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace linearizability {

/// A configuration is how far each lane has got, and the state of the object then. Configurations
/// are numbered in the order in which they were added, and each knows where it was come from.
template <class State>
class configurations {
 public:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  explicit configurations(std::size_t lanes) : lanes_(lanes), table_(64, none) {}

  /// Its number, and whether it is new. `hash` is that of the state.
  std::pair<std::uint32_t, bool> add(std::span<const std::uint32_t> positions, State state,
                                     std::size_t hash, std::uint32_t parent,
                                     std::uint32_t operation) {
    hash = mixed(positions, hash);
    std::size_t slot = find(positions, state, hash);
    if (table_[slot] != none) return {table_[slot], false};
    auto number = static_cast<std::uint32_t>(entries_.size());
    table_[slot] = number;
    entries_.push_back({std::move(state), hash, parent, operation});
    positions_.insert(positions_.end(), positions.begin(), positions.end());
    if (entries_.size() * 2 > table_.size()) grow();
    return {number, true};
  }

  std::span<const std::uint32_t> positions(std::uint32_t number) const {
    return std::span(positions_).subspan(number * lanes_, lanes_);
  }
  const State& state(std::uint32_t number) const { return entries_[number].state; }
  /// The configuration that it was come from; none for the first.
  std::uint32_t parent(std::uint32_t number) const { return entries_[number].parent; }
  /// The operation that led from there to here.
  std::uint32_t operation(std::uint32_t number) const { return entries_[number].operation; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct entry {
    State state;
    std::size_t hash;
    std::uint32_t parent;
    std::uint32_t operation;
  };

  static std::size_t mixed(std::span<const std::uint32_t> positions, std::size_t hash) {
    // Steps of the 64-bit finalizer of MurmurHash3: neighbours differ by 1 in one position.
    for (std::size_t p : positions) {
      hash = (hash ^ p) * 0xff51afd7ed558ccdU;
      hash ^= hash >> 32;
    }
    return hash;
  }

  /// The slot of this configuration in the table, or the free one where it belongs.
  std::size_t find(std::span<const std::uint32_t> at, const State& state, std::size_t hash) const {
    std::size_t slot = hash & (table_.size() - 1);
    while (table_[slot] != none && !same(table_[slot], at, state, hash))
      slot = (slot + 1) & (table_.size() - 1);
    return slot;
  }
  bool same(std::uint32_t number, std::span<const std::uint32_t> at, const State& state,
            std::size_t hash) const {
    const entry& e = entries_[number];
    return e.hash == hash && std::ranges::equal(positions(number), at) && e.state == state;
  }

  void grow() {
    table_.assign(table_.size() * 2, none);
    for (std::uint32_t number = 0; number < entries_.size(); ++number) {
      std::size_t slot = entries_[number].hash & (table_.size() - 1);
      while (table_[slot] != none) slot = (slot + 1) & (table_.size() - 1);
      table_[slot] = number;
    }
  }

  std::size_t lanes_;
  std::vector<std::uint32_t> table_;  ///< open addressing: the number of a configuration, or none
  std::vector<entry> entries_;
  std::vector<std::uint32_t> positions_;  ///< lanes_ of them for each configuration
};

}  // namespace linearizability

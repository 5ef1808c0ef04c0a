// Where the nodes of a graph are: k-mers and a word of facts each, in a far::hash_map or in a
// far::store. Both have the same functions, so that graph and walk are written once.
#pragma once

#include <common/genome/kmer.hpp>

#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/hash_map_buffer.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/containers/store.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace graph {

/// How keys lie among the buckets of a table.
struct collisions {
  std::uint64_t keys = 0, displaced = 0, further_gets = 0, equal_hashes = 0;
};
template <class Statistics>
collisions collisions_of(const Statistics& of) {
  return {of.entries, of.displaced, of.further_gets, of.equal_hashes};
}

template <unsigned Words>
class map_table {
 public:
  using kmer_type = genome::kmer<Words>;
  using entry = std::pair<kmer_type, std::uint64_t>;

  /// Collective.
  explicit map_table(std::uint64_t expected) : nodes_(expected) {}

  /// Collective: every rank's entries are added.
  void add(std::span<const entry> entries) {
    far::hash_map_buffer<map_type> buffer(
        nodes_, {.combining = 0, .alongside = far::concurrency::owner_only});
    for (const auto& [key, facts] : entries) buffer.insert(key, facts);
    buffer.flush();
  }
  /// Calls f(key, facts) for each node of this rank, in an order that stays while none is added.
  template <class F>
  void each(F f) const {
    for (const auto& [key, facts] : nodes_) f(key, facts);
  }

  std::optional<std::uint64_t> find(const kmer_type& key) const { return nodes_.find(key); }
  void find(const std::vector<kmer_type>& keys, std::vector<std::optional<std::uint64_t>>& to) {
    nodes_.find(keys, to);
  }
  /// Nobody changes anything meanwhile.
  void find_unchanging(const std::vector<kmer_type>& keys,
                       std::vector<std::optional<std::uint64_t>>& to) {
    nodes_.find(keys, to, far::concurrency::find);
  }

  /// Sets bits of one node, anywhere. Returns what it was.
  std::uint64_t set(const kmer_type& key, std::uint64_t bits) {
    return *nodes_.accumulate(key, bits, std::bit_or<>());
  }
  /// Sets bits of nodes of this rank, in the order of each(): at the latest in the next commit().
  void set_own(std::span<const entry> bits) { nodes_.accumulate(bits, std::bit_or<>()); }
  /// Collective.
  void commit() { far::barrier(); }
  /// Collective: new facts of all nodes of this rank, in the order of each().
  void replace_own(std::span<const entry> all) {
    far::barrier();
    nodes_.insert_or_assign(all);
    far::barrier();
  }
  /// Collective: sets bits of nodes anywhere; `make(set)` calls set(key, bits) for each.
  template <class Make>
  void set_many(Make make) {
    far::hash_map_buffer<map_type, std::bit_or<>> marks(
        nodes_, {.combining = 0, .alongside = far::concurrency::owner_only});
    make([&](const kmer_type& key, std::uint64_t bits) { marks.accumulate(key, bits); });
    marks.flush();
  }
  /// Collective.
  collisions count_collisions() const { return collisions_of(nodes_.statistics()); }

 private:
  using map_type = far::hash_map<kmer_type, std::uint64_t>;
  map_type nodes_;
};

/// Nodes go to their owners in batches, who put them; a rank's own nodes are changed where they lie.
template <unsigned Words>
class store_table {
 public:
  using kmer_type = genome::kmer<Words>;
  using entry = std::pair<kmer_type, std::uint64_t>;

  /// Collective.
  explicit store_table(std::uint64_t expected) : nodes_(expected) {}

  void add(std::span<const entry> entries) {
    at_owners(
        [&](auto send) {
          for (const auto& [key, facts] : entries) send(key, facts);
        },
        [this](const kmer_type& key, std::uint64_t facts) { nodes_.put(key, facts); });
  }
  template <class F>
  void each(F f) const {
    for (const auto& [key, facts] : nodes_.local()) f(key, facts);
  }

  std::optional<std::uint64_t> find(const kmer_type& key) const { return nodes_.get(key); }
  void find(const std::vector<kmer_type>& keys, std::vector<std::optional<std::uint64_t>>& to) {
    to = nodes_.get(keys);
  }
  void find_unchanging(const std::vector<kmer_type>& keys,
                       std::vector<std::optional<std::uint64_t>>& to) {
    find(keys, to);
  }

  std::uint64_t set(const kmer_type& key, std::uint64_t bits) {
    std::uint64_t before = 0;
    nodes_.modify(key, [&](std::uint64_t& facts) {
      before = facts;
      facts |= bits;
    });
    return before;
  }
  void set_own(std::span<const entry> bits) {
    later_.insert(later_.end(), bits.begin(), bits.end());
  }
  void commit() {
    far::barrier();  // nobody reads any more
    auto next = later_.begin();
    for (const auto& [key, facts] : nodes_.local())
      if (next != later_.end() && next->first == key) facts |= next++->second;
    later_ = {};
    far::barrier();
  }
  void replace_own(std::span<const entry> all) {
    far::barrier();
    auto next = all.begin();
    for (const auto& [key, facts] : nodes_.local()) facts = next++->second;
    far::barrier();
  }
  template <class Make>
  void set_many(Make make) {
    at_owners(make, [this](const kmer_type& key, std::uint64_t bits) { set(key, bits); });
  }
  collisions count_collisions() const { return collisions_of(nodes_.statistics()); }

 private:
  /// Collective: `make(send)` calls send(key, word) for what `take(key, word)` is given at the key's
  /// owner.
  template <class Make, class Take>
  void at_owners(Make make, Take take) {
    auto take_all = [&](std::span<const entry> some) {
      for (const auto& [key, value] : some) take(key, value);
    };
    far::exchange<entry> mail;
    make([&](const kmer_type& key, std::uint64_t value) {
      const far::rank_t to = nodes_.owner(key);
      if (to == far::rank())
        take(key, value);
      else
        mail.send(to, {key, value}, take_all);
    });
    mail.finish(take_all);
    far::barrier();
  }

  mutable far::store<kmer_type, std::uint64_t> nodes_;
  std::vector<entry> later_;
};

}  // namespace graph

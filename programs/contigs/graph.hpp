// The de Bruijn graph in a table over all ranks (tables.hpp): a node for each canonical k-mer, a word
// of facts for each node. Neighbours overlap by k - 1 bases. A node has two sides; on each it is linked to one
// neighbour, or it is not. Linked nodes make paths and cycles: those are the contigs.
//
//   bits of a node      0-3     bases that can follow it            (before links are known)
//                       4-7     bases that can come before it
//                       0-2     right side: base, linked (4)        (when links are known)
//                       4-6     left side: base, linked
//                       8, 9    an end on its left, right side has been claimed
//                       10      it is part of a contig that has been found
//                       16-23   neighbours that nobody has looked for yet, as in bits 0-7
//                       32-63   count
//
// A node is seen in the direction of a walk, perhaps opposite to that of its canonical k-mer: then
// sides change places and bases are complemented.
#pragma once

#include <common/genome/kmer.hpp>

#include "tables.hpp"

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace graph {

inline constexpr std::uint64_t linked = 4;
inline constexpr std::uint64_t claimed_left = 1 << 8, claimed_right = 1 << 9, found = 1 << 10;

inline constexpr std::uint64_t not_looked_up = 1 << 16, none_looked_up = 0xff << 16;

constexpr std::uint64_t with_count(std::uint64_t facts, std::uint64_t count) {
  return facts | count << 32;
}
constexpr std::uint64_t count_of(std::uint64_t facts) { return facts >> 32; }

/// The four bases of a side, complemented.
constexpr std::uint64_t opposite(std::uint64_t bases) {
  return (bases & 1) << 3 | (bases & 2) << 1 | (bases & 4) >> 1 | (bases & 8) >> 3;
}

/// Canonical: the k-mer with one of four bases after it (0 to 3), or before it (4 to 7).
template <unsigned Words>
genome::kmer<Words> possible_neighbour(const genome::kmer_shape<Words>& shape,
                                       genome::kmer<Words> key, unsigned which) {
  which < 4 ? shape.append(key, which) : shape.prepend(key, which - 4);
  return shape.canonical(key);
}

/// Table: map_table<Words> or store_table<Words>.
template <unsigned Words, class Table>
class debruijn_graph {
 public:
  using kmer_type = genome::kmer<Words>;

  /// Collective.
  debruijn_graph(unsigned k, std::uint64_t expected)
      : shape_(k), nodes_(expected + expected / 8 + 64) {}

  const genome::kmer_shape<Words>& shape() const { return shape_; }
  Table& nodes() { return nodes_; }

  /// Collective: every rank's k-mers become nodes.
  void add(std::span<const std::pair<kmer_type, std::uint64_t>> entries) { nodes_.add(entries); }

  /// Collective: which of the eight possible neighbours of each node are there. A read for each one
  /// that has not been looked up before.
  void find_neighbours() {
    for_each_batch([&](std::span<const kmer_type> keys, std::span<const std::uint64_t> facts) {
      asked_.clear();
      for (std::size_t n = 0; n < keys.size(); ++n)
        for (unsigned i = 0; i < 8; ++i)
          if (facts[n] & not_looked_up << i)
            asked_.push_back(possible_neighbour(shape_, keys[n], i));
      nodes_.find(asked_, answers_);
      changes_.clear();
      std::size_t next = 0;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        std::uint64_t there = 0;
        for (unsigned i = 0; i < 8; ++i)
          if (facts[n] & not_looked_up << i)
            there |= std::uint64_t{answers_[next++].has_value()} << i;
        if (there != 0) changes_.push_back({keys[n], there});
      }
      nodes_.set_own(changes_);
    });
    nodes_.commit();
  }

  /// Collective, when neighbours are known: two nodes are linked if each is the other's only
  /// neighbour on that side. A node is never linked to itself, and one that is its own reverse
  /// complement (k is even) to none: its two sides are the same. Reads: 1 for each only neighbour.
  void find_links() {
    std::vector<std::pair<kmer_type, std::uint64_t>> all;
    for_each_batch([&](std::span<const kmer_type> keys, std::span<const std::uint64_t> facts) {
      asked_.clear();
      for (std::size_t n = 0; n < keys.size(); ++n)
        for (unsigned side = 0; side < 2; ++side)
          if (only(facts[n] >> 4 * side))
            asked_.push_back(shape_.canonical(neighbour(keys[n], facts[n], side)));
      nodes_.find_unchanging(asked_, answers_);
      std::size_t next = 0;
      for (std::size_t n = 0; n < keys.size(); ++n) {
        std::uint64_t links = facts[n] & ~(none_looked_up | 0xff);
        for (unsigned side = 0; side < 2; ++side) {
          if (!only(facts[n] >> 4 * side)) continue;
          const auto& answer = answers_[next++];
          if (answer && links_back(keys[n], facts[n], side, *answer))
            links |= (linked | only_base(facts[n] >> 4 * side)) << 4 * side;
        }
        all.push_back({keys[n], links});
      }
    });
    nodes_.replace_own(all);
  }

  /// A node as a walk sees it.
  struct visit {
    kmer_type key;        ///< in the direction of the walk
    bool forward;         ///< that of the canonical k-mer
    std::uint64_t facts;  ///< of the canonical k-mer

    /// What lies ahead: linked and base, or 0.
    std::uint64_t ahead() const {
      std::uint64_t side = forward ? facts & 7 : facts >> 4 & 7;
      return forward || !(side & linked) ? side : side ^ 3;
    }
    std::uint64_t end_claim() const { return forward ? claimed_right : claimed_left; }
    std::uint64_t begin_claim() const { return forward ? claimed_left : claimed_right; }
  };

  /// The next node; there must be a link ahead. 1 read.
  visit step(const visit& from) const {
    visit to{from.key, true, 0};
    shape_.append(to.key, static_cast<unsigned>(from.ahead() & 3));
    kmer_type reverse = shape_.reverse(to.key);
    to.forward = !(reverse < to.key);
    to.facts = *nodes_.find(to.forward ? to.key : reverse);
    return to;
  }
  kmer_type canonical(const visit& of) const {
    return of.forward ? of.key : shape_.reverse(of.key);
  }

 private:
  static bool only(std::uint64_t bases) { return std::has_single_bit(bases & 15); }
  static std::uint64_t only_base(std::uint64_t bases) {
    return static_cast<std::uint64_t>(std::countr_zero(bases & 15));
  }

  kmer_type neighbour(kmer_type key, std::uint64_t facts, unsigned side) const {
    auto base = static_cast<unsigned>(only_base(facts >> 4 * side));
    side == 0 ? shape_.append(key, base) : shape_.prepend(key, base);
    return key;
  }
  /// Is `key`, on the side where it has one neighbour only, the only one of that neighbour, whose
  /// facts are `others`?
  bool links_back(const kmer_type& key, std::uint64_t facts, unsigned side,
                  std::uint64_t others) const {
    kmer_type other = neighbour(key, facts, side);
    kmer_type reverse = shape_.reverse(other);
    if (std::min(other, reverse) == key) return false;
    if (other == reverse || shape_.reverse(key) == key) return false;
    bool forward = !(reverse < other);
    // Seen from `other` in this direction, key lies before it (side 0) or after it.
    std::uint64_t back = side == 0 ? (forward ? others >> 4 & 15 : opposite(others & 15))
                                   : (forward ? others & 15 : opposite(others >> 4 & 15));
    unsigned base = side == 0 ? shape_.first(key) : shape_.last(key);
    return back == std::uint64_t{1} << base;
  }

  /// This rank's nodes, some at a time.
  template <class Use>
  void for_each_batch(Use use) {
    std::vector<kmer_type> keys;
    std::vector<std::uint64_t> facts;
    auto flush = [&] {
      use(std::span<const kmer_type>(keys), std::span<const std::uint64_t>(facts));
      keys.clear(), facts.clear();
    };
    nodes_.each([&](const kmer_type& key, std::uint64_t value) {
      keys.push_back(key), facts.push_back(value);
      if (keys.size() == 512) flush();
    });
    if (!keys.empty()) flush();
  }

  genome::kmer_shape<Words> shape_;
  Table nodes_;
  std::vector<kmer_type> asked_;
  std::vector<std::optional<std::uint64_t>> answers_;
  std::vector<std::pair<kmer_type, std::uint64_t>> changes_;
};

}  // namespace graph

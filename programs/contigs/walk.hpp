// Contigs are the paths and cycles of linked nodes. All ranks walk at the same time, each from the
// ends among its own nodes, and no contig comes out twice:
//
//   a path has two ends, a side of a node each; a rank that begins at one walks to the other
//
//     not claimed  --(fetch_or on the lesser of the two ends: its setter has the contig)----->
//     claimed      --(fetch_or on the greater one: its rank need not begin there)-->  both claimed
//
//   Invariant: the bit of the lesser end is set by the rank that emits the path. Atomics on a word
//   have one order, so one walker sees it unset, whatever the other one does. A walk changes
//   nothing on its way, so that one that has lost is forgotten; it looks at its own end's bit once
//   in a while to lose early.
//
// Nodes that no path has are in cycles: a cycle is emitted from its least node, by the rank that
// has it; others meet a lesser one soon, and give up.
#pragma once

#include "graph.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace graph {

struct contig {
  std::string bases;
  std::uint64_t count = 0;  ///< sum over its k-mers
  bool circular = false;
};

/// The lesser of a sequence and its reverse complement.
inline std::string canonical_strand(std::string bases) {
  std::string other(bases.rbegin(), bases.rend());
  for (char& c : other) c = "ACGT"[3 - genome::code_of[static_cast<unsigned char>(c)]];
  return std::min(std::move(bases), std::move(other));
}

template <class Graph>
class walker {
 public:
  using graph_type = Graph;
  using kmer_type = typename graph_type::kmer_type;
  using visit = typename graph_type::visit;

  explicit walker(graph_type& graph) : graph_(graph) {}

  /// Collective: the contigs that this rank has got.
  std::vector<contig> walk_all() {
    std::vector<visit> begins;
    std::uint64_t nodes = 0;
    graph_.nodes().each([&](const kmer_type& key, std::uint64_t facts) {
      ++nodes;
      if (!(facts >> 4 & linked)) begins.push_back({key, true, facts});
      if (!(facts & linked)) begins.push_back({graph_.shape().reverse(key), false, facts});
    });
    for (const visit& begin : begins) walk_path(begin);
    far::barrier();
    std::uint64_t covered = 0;
    for (const contig& c : contigs_) covered += c.bases.size() - graph_.shape().k() + 1;
    if (far::all_reduce(covered) != far::all_reduce(nodes)) walk_cycles();
    return std::move(contigs_);
  }

 private:
  void walk_path(visit begin) {
    kmer_type first = graph_.canonical(begin);
    begin.facts = *graph_.nodes().find(first);
    if (begin.facts & begin.begin_claim()) return;
    contig made{graph_.shape().text(begin.key), count_of(begin.facts)};
    visit at = begin;
    for (std::uint64_t steps = 1; at.ahead() & linked; ++steps) {
      at = graph_.step(at);
      add(made, at);
      if (steps % 1024 == 0 && *graph_.nodes().find(first) & begin.begin_claim()) return;
    }
    kmer_type last = graph_.canonical(at);
    bool begin_is_lesser = first < last || (first == last && begin.begin_claim() < at.end_claim());
    bool won = begin_is_lesser ? claim(first, begin.begin_claim()) : claim(last, at.end_claim());
    if (!won) return;
    begin_is_lesser ? claim(last, at.end_claim()) : claim(first, begin.begin_claim());
    made.bases = canonical_strand(std::move(made.bases));
    contigs_.push_back(std::move(made));
  }

  /// Sets a bit of a node; whether nobody has done so before.
  bool claim(const kmer_type& node, std::uint64_t bit) {
    return !(graph_.nodes().set(node, bit) & bit);
  }
  void add(contig& to, const visit& at) const {
    to.bases.push_back("ACGT"[graph_.shape().last(at.key)]);
    to.count += count_of(at.facts);
  }

  /// Collective.
  void walk_cycles() {
    const auto& shape = graph_.shape();
    graph_.nodes().set_many([&](auto set) {
      for (const contig& c : contigs_) {
        kmer_type key;
        for (std::size_t i = 0; i < c.bases.size(); ++i) {
          shape.append(key, genome::code_of[static_cast<unsigned char>(c.bases[i])]);
          if (i + 1 >= shape.k()) set(shape.canonical(key), found);
        }
      }
    });
    std::vector<visit> begins;
    graph_.nodes().each([&](const kmer_type& key, std::uint64_t facts) {
      if (!(facts & found)) begins.push_back({key, true, facts});
    });
    for (const visit& begin : begins) walk_cycle(begin);
    far::barrier();
  }
  void walk_cycle(const visit& begin) {
    contig made{graph_.shape().text(begin.key), count_of(begin.facts), true};
    for (visit at = graph_.step(begin); graph_.canonical(at) != begin.key; at = graph_.step(at)) {
      if (graph_.canonical(at) < begin.key) return;
      add(made, at);
    }
    contigs_.push_back(std::move(made));
  }

  graph_type& graph_;
  std::vector<contig> contigs_;
};

}  // namespace graph

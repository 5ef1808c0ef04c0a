// Nodes of a graph from super-k-mers.
#pragma once

#include <common/genome/count_table.hpp>
#include "graph.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace graph {

template <unsigned Words>
using node_list = std::vector<std::pair<genome::kmer<Words>, std::uint64_t>>;

/// Not collective: the k-mers of this rank's partitions that were seen at least so often.
/// Neighbours in the same partition are looked up at once, while its table is in a cache.
template <unsigned Words>
node_list<Words> counted_nodes(const genome::superkmer_store& store, unsigned k,
                               std::uint32_t least) {
  using genome::partitioning;
  genome::count_table<Words, false> table(k);
  partitioning parts(k);
  genome::kmer_shape<Words> shape(k);
  node_list<Words> result;
  for (unsigned p = 0; p < partitioning::count; ++p) {
    if (partitioning::owner(p, far::nprocs()) != far::rank()) continue;
    table.count(store, p, false);
    for (const auto& e : table.result(least, 0xffff'ffff, false)) {
      std::uint64_t facts = with_count(0, e.count);
      auto partitions = genome::neighbour_partitions(parts, shape, e.key);
      for (unsigned i = 0; i < 8; ++i) {
        if (partitions[i] != p)
          facts |= not_looked_up << i;
        else if (table.holds(possible_neighbour(shape, e.key, i), least))
          facts |= std::uint64_t{1} << i;
      }
      result.push_back({e.key, facts});
    }
  }
  return result;
}

}  // namespace graph

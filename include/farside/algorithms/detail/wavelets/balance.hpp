// Subtrees of a wavelet tree, divided among ranks by what they have cost.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

/// Pieces of equal cost, in the order of a walk through the boxes of a level: rank r gets those
/// whose middle lies in its share. Local.
inline std::vector<rank_t> divide_by_cost(std::span<const double> costs, rank_t ranks) {
  double all = 0, before = 0;
  for (double c : costs) all += c;
  std::vector<rank_t> owners;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const double share = all > 0 ? (before + costs[i] / 2) / all
                                 : static_cast<double>(i) / static_cast<double>(costs.size());
    owners.push_back(std::min(static_cast<rank_t>(share * ranks), ranks - 1));
    before += costs[i];
  }
  return owners;
}

/// Collective: by times that have been measured since the last time, or by numbers of coefficients
/// if there are none.
template <std::size_t D>
box_placement<D> balanced_placement(tree_state<D>& tree) {
  const std::uint32_t level = box_placement<D>::usual_level;
  std::vector<double> costs(std::size_t{1} << (level * D));
  for (const auto& [number, seconds] : tree.meter.costs()) costs[number] += seconds;
  far::all_reduce(std::span(costs), std::plus<>());
  double all = 0;
  for (double c : costs) all += c;
  if (!(all > 0)) {
    for (const auto& [box, node] : tree.nodes->local())
      if (box.level >= level)
        costs[box.ancestor(level).number()] += static_cast<double>(node.count);
    far::all_reduce(std::span(costs), std::plus<>());
  }
  tree.meter.clear();
  // All ranks have the same sums only if they add in the same order.
  far::broadcast(std::span(costs), 0);
  return box_placement<D>::table(level, divide_by_cost(costs, far::nprocs()));
}

/// Collective: another store with the same nodes, at other places.
template <std::size_t D>
void move_nodes(tree_state<D>& from, tree_state<D>& to) {
  own_nodes<D> own = from.own();
  auto at = own.begin();
  to.work.run(
      to.options.name + ", move", to.meter, begins::anywhere,
      [&](errand<D>& one) { to.put(one.to, one.values, one.word != 0); },
      [&] {
        if (at == own.end()) return false;
        const auto values = from.values_of(at->second);
        to.work.send({at->first, at->second.leaf, {values.begin(), values.end()}});
        from.erase(at->first, at->second);  // never two copies of all
        ++at;
        return true;
      });
  to.meter.clear();
  to.compressed = from.compressed;
  to.nodes->fence();
}

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

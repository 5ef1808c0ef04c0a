// Values of a tree's function at many points.
//
// All points go down the tree together, a level at a time: the nodes that any of them meets are
// fetched at once, each of them once. So the rounds are as many as the deepest leaf has levels,
// whatever the number of points.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

/// One-sided: other ranks may do the same, but nobody changes the tree meanwhile.
template <std::size_t D>
std::vector<double> evaluate(const tree_state<D>& tree, std::span<const point<D>> points) {
  for (const auto& x : points)
    for (double e : x)
      if (!(e >= 0 && e <= 1))
        far::detail::raise(tree.options.name, ": evaluate at a coordinate ", e,
                           ", which is not in [0, 1].");
  std::vector<double> result(points.size());
  // By number, in the order of a walk: those of a leaf stand side by side.
  std::vector<std::size_t> left(points.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  node_reader<D> reader(tree, nullptr);
  for (std::uint32_t level = 0; !left.empty(); ++level) {
    for (std::size_t i : left) reader.find(tree_box<D>::around(points[i], level));
    reader.fetch();
    std::vector<std::size_t> deeper;
    for (std::size_t i : left) {
      const auto box = tree_box<D>::around(points[i], level);
      const auto node = reader.find(box);
      if (!node.there)
        far::detail::raise(tree.options.name, ": evaluate has met no node for ", box,
                           ". Another rank changes the tree meanwhile.");
      if (node.leaf)
        result[i] = tree.kernel.value(box, node.values.data(), points[i]);
      else
        deeper.push_back(i);
    }
    reader.forget();
    left.swap(deeper);
  }
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

// What a wavelet tree has on each rank, and how one looks nodes up that others have.
#pragma once

#include <farside/algorithms/wavelets/errands.hpp>
#include <farside/containers/store.hpp>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

template <std::size_t D>
using node_store = far::store<tree_box<D>, tree_node, box_placement<D>>;

template <std::size_t D>
using own_nodes = std::unordered_map<tree_box<D>, tree_node*, box_hash>;

template <std::size_t D>
struct tree_state {
  explicit tree_state(const tree_options<D>& with)
      : options(checked(with)),
        kernel(options.k),
        place(options.placement),
        nodes(1024, named(options.name), place),
        work(place, options.name) {}

  static tree_options<D> checked(tree_options<D> with) {
    if (with.name.empty()) with.name = "wavelet tree";
    auto refuse = [&](const auto&... why) { far::detail::raise(with.name, ": ", why...); };
    if (with.k < 1 || with.k > largest_order)
      refuse("its order k = ", with.k, " is not from 1 to ", largest_order,
             ". Polynomials of degree k - 1 are used in each box.");
    if (with.max_level > deepest_level)
      refuse("max_level ", with.max_level, " is deeper than level ", deepest_level,
             ", the deepest one that boxes have.");
    if (with.initial_level > with.max_level)
      refuse("initial_level ", with.initial_level, " is deeper than max_level ", with.max_level,
             ".");
    if (!(with.threshold >= 0) || !std::isfinite(with.threshold))
      refuse("the threshold ", with.threshold, " is no number from 0 on.");
    if (with.threshold == 0 && with.max_level == deepest_level)
      refuse("the threshold is 0, so that every box is split. Give a max_level, too.");
    return with;
  }
  static store_options named(const std::string& name) {
    store_options result;
    result.name = name;
    return result;
  }

  tolerance keep() const { return {options.threshold, options.mode}; }
  bool is_mine(const tree_box<D>& box) const { return work.is_mine(box); }

  /// The nodes that this rank has. Good until one is put or erased.
  own_nodes<D> own() {
    own_nodes<D> result;
    for (auto&& [box, node] : nodes.local()) result.emplace(box, &node);
    return result;
  }
  /// Of own leaves, in the order of a walk, depth first: so few parents wait for children at a time.
  std::vector<tree_box<D>> own_leaves() {
    std::vector<tree_box<D>> result;
    for (auto&& [box, node] : nodes.local())
      if (node.leaf) result.push_back(box);
    std::sort(result.begin(), result.end());
    return result;
  }
  void put(const tree_box<D>& box, tree_node&& node) {
    note(node.values.size());
    if (is_mine(box))
      nodes.put(box, node);
    else
      nodes.post(box, node);
  }
  /// Tells who watches the progress, of so many coefficients more.
  void note(std::size_t coefficients) {
    if (!options.progress) return;
    unsaid += coefficients * sizeof(double);
    if (unsaid > std::size_t{1} << 20) options.progress(std::exchange(unsaid, 0));
  }
  std::vector<double> small_room() const {
    return std::vector<double>(tensor_room(kernel.small()));
  }
  std::vector<double> large_room() const {
    return std::vector<double>(tensor_room(kernel.large()));
  }

  tree_options<D> options;
  kernels<D> kernel;
  box_placement<D> place;
  node_store<D> nodes;
  errands<D> work;
  cost_meter<D> meter;
  bool compressed = false;
  std::size_t unsaid = 0;
};

/// Looks nodes up: own ones in place, others once by a get, of many at a time.
template <std::size_t D>
class node_reader {
 public:
  /// `own`: null if own nodes are to be read as others are.
  node_reader(const node_store<D>& nodes, const errands<D>& work, const own_nodes<D>* own)
      : nodes_(&nodes), work_(&work), own_(own) {}

  struct found {
    bool known = true;                ///< false: it will be after fetch()
    const tree_node* node = nullptr;  ///< null: there is none
  };
  found find(const tree_box<D>& box) {
    if (own_ != nullptr && work_->is_mine(box)) {
      auto at = own_->find(box);
      return {true, at == own_->end() ? nullptr : at->second};
    }
    if (auto at = fetched_.find(box); at != fetched_.end())
      return {true, at->second ? &*at->second : nullptr};
    wanted_.insert(box);
    return {false, nullptr};
  }
  /// Gets what was not known. One-sided. False if there is nothing to get.
  bool fetch() {
    if (wanted_.empty()) return false;
    std::vector<std::pair<tree_box<D>, far::future<std::optional<tree_node>>>> coming;
    for (auto at = wanted_.begin(); at != wanted_.end();) {
      coming.emplace_back(*at, nodes_->async_get(*at));
      if (++at == wanted_.end() || coming.size() == most_in_flight) {
        for (auto& [box, value] : coming) fetched_.emplace(box, value.get());
        coming.clear();
      }
    }
    wanted_.clear();
    return true;
  }
  void forget() { fetched_.clear(); }

 private:
  static constexpr std::size_t most_in_flight = 256;
  const node_store<D>* nodes_;
  const errands<D>* work_;
  const own_nodes<D>* own_;
  std::unordered_map<tree_box<D>, std::optional<tree_node>, box_hash> fetched_;
  std::unordered_set<tree_box<D>, box_hash> wanted_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

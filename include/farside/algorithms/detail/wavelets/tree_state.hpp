// What a wavelet tree has on each rank, and how one looks nodes up that others have.
#pragma once

#include <farside/algorithms/detail/wavelets/errands.hpp>
#include <farside/containers/store.hpp>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

template <std::size_t D>
using node_store = far::store<tree_box<D>, stored_node, box_placement<D>>;

template <std::size_t D>
using own_nodes = std::unordered_map<tree_box<D>, stored_node, box_hash>;

template <std::size_t D>
struct tree_state {
  explicit tree_state(const tree_options<D>& with)
      : options(checked(with)),
        kernel(options.k),
        place(options.placement),
        nodes(std::make_unique<node_store<D>>(1024, named(options.name), place)),
        work(place, options.name) {}
  tree_state(const tree_state&) = delete;
  tree_state& operator=(const tree_state&) = delete;
  ~tree_state() {
    for (const auto& [box, node] : nodes->local())
      if (node.count != 0) far::dealloc(node.at);
  }

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

  /// The nodes that this rank has, as they are now.
  own_nodes<D> own() const {
    own_nodes<D> result;
    for (const auto& [box, node] : nodes->local()) result.emplace(box, node);
    return result;
  }
  static std::span<double> values_of(const stored_node& node) {
    return node.count == 0 ? std::span<double>() : std::span(node.at.local(), node.count);
  }
  /// Leaves among them, in the order of a walk, depth first: so few parents wait for children at a
  /// time.
  static std::vector<tree_box<D>> leaves_of(const own_nodes<D>& own) {
    std::vector<tree_box<D>> result;
    for (const auto& [box, node] : own)
      if (node.leaf != 0) result.push_back(box);
    std::sort(result.begin(), result.end());
    return result;
  }
  /// A new node of this rank's.
  void put(const tree_box<D>& box, std::span<const double> values, bool leaf) {
    nodes->put(box, filled(values, leaf));
  }
  /// Other values for one, and for its entry in own().
  void change(const tree_box<D>& box, stored_node& node, std::span<const double> values) {
    if (node.count == values.size()) {
      std::copy(values.begin(), values.end(), values_of(node).begin());
      note(values.size());
      return;
    }
    const stored_node before = std::exchange(node, filled(values, node.leaf != 0));
    nodes->update(box, node);
    if (before.count != 0) far::dealloc(before.at);
  }
  void make_leaf(const tree_box<D>& box, stored_node& node) {
    node.leaf = 1;
    change(box, node, {});
  }
  void erase(const tree_box<D>& box, const stored_node& node) {
    nodes->erase(box);
    if (node.count != 0) far::dealloc(node.at);
  }
  /// Tells who watches the progress, of so many coefficients more.
  void note(std::size_t coefficients) {
    if (!options.progress) return;
    unsaid += coefficients * sizeof(double);
    if (unsaid > std::size_t{1} << 20) options.progress(std::exchange(unsaid, 0));
  }
  stored_node filled(std::span<const double> values, bool leaf) {
    stored_node node{{}, static_cast<std::uint32_t>(values.size()), leaf ? 1u : 0u};
    if (!values.empty()) {
      node.at = far::alloc<double>(values.size());
      std::copy(values.begin(), values.end(), node.at.local());
    }
    note(values.size());
    return node;
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
  std::unique_ptr<node_store<D>> nodes;
  errands<D> work;
  cost_meter<D> meter;
  bool compressed = false;
  std::size_t unsaid = 0;
};

/// Looks nodes up: own ones in place, others once, by gets of many at a time.
template <std::size_t D>
class node_reader {
 public:
  /// `own`: null if own nodes are to be read as others are.
  node_reader(const tree_state<D>& tree, const own_nodes<D>* own) : tree_(&tree), own_(own) {}

  struct found {
    bool known = true;  ///< false: it will be after fetch()
    bool there = false, leaf = false;
    std::span<const double> values{};
  };
  found find(const tree_box<D>& box) {
    if (own_ != nullptr && tree_->is_mine(box)) {
      auto at = own_->find(box);
      if (at == own_->end()) return {};
      return {true, true, at->second.leaf != 0, tree_state<D>::values_of(at->second)};
    }
    if (auto at = fetched_.find(box); at != fetched_.end())
      return {true, at->second.there, at->second.leaf, at->second.values};
    wanted_.insert(box);
    return {.known = false};
  }
  /// Gets what was not known. One-sided. False if there is nothing to get.
  bool fetch() {
    if (wanted_.empty()) return false;
    std::vector<future<void>> coming;
    for (const auto& box : wanted_) {
      kept& to = fetched_[box];
      const auto node = tree_->nodes->get(box);
      if (!node) continue;
      to.there = true;
      to.leaf = node->leaf != 0;
      to.values.resize(node->count);
      if (node->count != 0)
        coming.push_back(far::async_get(node->at, to.values.data(), node->count));
    }
    for (auto& one : coming) one.get();
    wanted_.clear();
    return true;
  }
  void forget() { fetched_.clear(); }

 private:
  struct kept {
    bool there = false, leaf = false;
    std::vector<double> values{};
  };
  const tree_state<D>* tree_;
  const own_nodes<D>* own_;
  std::unordered_map<tree_box<D>, kept, box_hash> fetched_;
  std::unordered_set<tree_box<D>, box_hash> wanted_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

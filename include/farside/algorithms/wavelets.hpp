// far::wavelets::function<D>: a function on [0, 1]^D as a tree of multiwavelets, over all ranks.
//
//   auto hill = [](const far::wavelets::point<2>& x) { return std::exp(-300 * (x[0] * x[0] + x[1] * x[1])); };
//   auto f = far::wavelets::function<2>::project(hill, {.threshold = 1e-8});
//   auto slope = f.derivative(0);
//   double size = f.norm();
//   f.compress();
//   f.truncate(1e-4);
//   f.reconstruct();
//   double there = f.evaluate({0.25, 0.75});
//
// Each box of a tree is split where polynomials of degree k - 1 are not enough. Nodes lie in a
// far::store, by their boxes; the owner of a box computes its node, and hands what follows to the
// owners of children or parents (algorithms/detail/wavelets/errands.hpp). The tree has the same
// nodes on any number of ranks, and the same values but for the order in which sums are made.
//
//   reconstructed   leaves have the coefficients of scaling functions: derivatives, values at points, operators
//   compressed      other nodes have details, the root its coefficients: truncation, inner products
//
// Functions of trees are collective over all ranks, but for evaluate() and what says so. Alpert's
// multiwavelets are explained in wavelets/basis.hpp, what is computed in a node in
// wavelets/kernels.hpp.
#pragma once

#include <farside/algorithms/detail/wavelets/balance.hpp>
#include <farside/algorithms/detail/wavelets/evaluation.hpp>
#include <farside/algorithms/detail/wavelets/make_tree.hpp>
#include <farside/algorithms/detail/wavelets/tree_forms.hpp>
#include <farside/algorithms/wavelets/leaf_operators.hpp>
#include <farside/algorithms/wavelets/tree_files.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// How large a tree is, over all ranks.
struct tree_census {
  std::uint64_t nodes = 0, leaves = 0, coefficients = 0;
  std::uint32_t deepest = 0;
  std::vector<std::uint64_t> nodes_of_level{}, leaves_of_level{};
  std::uint64_t most_of_rank = 0;  ///< nodes of the rank that has most
};

/// A function on [0, 1]^D. It is a handle that owns: made, moved from and destroyed by all ranks
/// together.
template <std::size_t D>
class function {
  using state = detail::tree_state<D>;

 public:
  using box = tree_box<D>;
  using options = tree_options<D>;

  /// Collective: the projection of f. Boxes are split until their details are below the threshold.
  /// f is called with a point, or with many (f(points, values)), at k^D points a box, by the box's
  /// owner. Throws on all ranks if f is infinite or no number somewhere, or a segment is full.
  /// Costs a call of the owner, by a message where that is another rank, for each node, and 2
  /// all_reduces a round (algorithms/detail/wavelets/errands.hpp).
  template <function_of_points<D> F>
  static function project(F f, const options& with = {}) {
    function result(with);
    detail::tree_maker<D, F>(*result.state_, f).run();
    result.state_->nodes->fence();
    return result;
  }

  /// The order k, and what else it was made with. Local; no communication.
  const options& settings() const { return state_->options; }
  /// Local; no communication.
  bool compressed() const { return state_->compressed; }

  /// Collective: to details, from leaves to the root; nothing if it is compressed. Costs a message
  /// for each node whose parent is on another rank, of k^D coefficients.
  void compress() {
    if (!compressed()) detail::tree_changer<D>(*state_).compress();
  }
  /// Collective: back, from the root to leaves. Costs the same.
  void reconstruct() {
    if (compressed()) detail::tree_changer<D>(*state_).reconstruct();
  }
  /// Collective: drops details that are smaller than the threshold and have none below them, at
  /// levels above 1. The tree is compressed meanwhile, and becomes again what it was. Costs a
  /// message for each node whose parent is on another rank.
  void truncate(double threshold) {
    if (!(threshold >= 0) || !std::isfinite(threshold))
      far::detail::raise(name(), ": truncate below ", threshold, ", which is no number from 0 on.");
    const bool was = compressed();
    compress();
    detail::tree_changer<D>(*state_).truncate({threshold, state_->options.mode});
    if (!was) reconstruct();
  }

  /// Collective: the square root of the integral of f^2. 1 all_reduce.
  double norm() const {
    double sum = 0;
    for (const auto& [b, node] : state_->nodes->local())
      sum += kernels<D>::norm2(state::values_of(node));
    return std::sqrt(far::all_reduce(sum));
  }
  /// Collective: the integral of f times g. Both are compressed, and of one order. Costs a get for
  /// each node of the one that lies on another rank in the other, and 1 all_reduce.
  double inner(const function& other) const {
    need_form("inner", true);
    other.need_form("inner", true);
    if (other.settings().k != settings().k)
      far::detail::raise(name(), ": inner product of trees of order ", settings().k, " and ",
                         other.settings().k, ". Both must have the same order.");
    auto theirs = other.state_->own();
    detail::node_reader<D> reader(*other.state_, &theirs);
    double sum = 0;
    std::vector<std::pair<box, std::span<const double>>> later;
    auto finish = [&] {
      reader.fetch();
      for (const auto& [b, values] : later)
        if (auto found = reader.find(b); found.there) sum += product(values, found.values);
      later.clear();
      reader.forget();
    };
    for (const auto& [b, node] : state_->nodes->local()) {
      if (node.count == 0) continue;
      const std::span<const double> values = state::values_of(node);
      const auto found = reader.find(b);
      if (found.there) sum += product(values, found.values);
      if (!found.known) later.emplace_back(b, values);
      if (later.size() == 256) finish();
    }
    finish();
    return far::all_reduce(sum);
  }

  /// Collective: the derivative along an axis, in a tree of its own; borders of [0, 1]^D are free.
  /// The tree is reconstructed. Where its deepest leaves are of level n, the norm of the error stays
  /// below k^2 2^n times the threshold. That is the norm of norm(), as it is the one that the
  /// threshold bounds: at single points the error may be k^D 2^(n D / 2) times as large, since a
  /// polynomial in a box of that level may be so much larger than its norm. Costs a get for each
  /// neighbour of own boxes that another rank has, and a message for each new node that another rank
  /// gets.
  function derivative(std::size_t axis) const {
    if (axis >= D)
      far::detail::raise(name(), ": derivative along axis ", axis, ", but it has axes 0 to ", D - 1,
                         ".");
    return map_leaves(derivative_operator{axis});
  }
  /// Collective: a tree of f(leaf) for all leaves; see leaf_operators.hpp for what f does. It is
  /// called by the owners of leaves. The tree is reconstructed. Costs what derivative() costs.
  template <class F>
  function map_leaves(F f) const {
    need_form("map_leaves", false);
    function result(state_->options, state_->place);
    far::barrier();  // what other ranks have done before is there to be read
    detail::leaf_mapper<D, F>(*state_, *result.state_, f).run();
    return result;
  }

  /// Values at points of [0, 1]^D. One-sided: others may do the same, but change nothing. The tree
  /// is reconstructed. Costs a get for each node on the ways from the root, as many at a time as
  /// there are on a level.
  std::vector<double> evaluate(std::span<const point<D>> points) const {
    need_form("evaluate", false);
    return detail::evaluate(*state_, points);
  }
  double evaluate(const point<D>& at) const { return evaluate(std::span(&at, 1)).front(); }

  /// Calls f(box, coefficients) for each leaf of a reconstructed tree that this rank has. f may
  /// change the coefficients. Local; no communication.
  template <class F>
  void for_each_leaf(F f) {
    need_form("for_each_leaf", false);
    for (const auto& [b, node] : state_->nodes->local())
      if (node.leaf != 0) f(b, state::values_of(node));
  }
  /// Calls f(box, node) for each node that this rank has, in no order. Local; no communication.
  template <class F>
  void for_each_node(F f) const {
    for (const auto& [b, node] : state_->nodes->local())
      f(b, tree_node{state::values_of(node), node.leaf != 0});
  }

  /// Collective: how large it is. 7 all_reduces.
  tree_census census() const {
    tree_census result;
    result.nodes_of_level.resize(deepest_level + 1);
    result.leaves_of_level.resize(deepest_level + 1);
    for_each_node([&](const box& b, const tree_node& node) {
      ++result.nodes;
      ++result.nodes_of_level[b.level];
      result.coefficients += node.values.size();
      result.deepest = std::max(result.deepest, b.level);
      if (node.leaf) ++result.leaves, ++result.leaves_of_level[b.level];
    });
    result.most_of_rank = far::all_reduce(result.nodes, far::maximum());
    for (auto* sum : {&result.nodes, &result.leaves, &result.coefficients})
      *sum = far::all_reduce(*sum);
    result.deepest = far::all_reduce(result.deepest, far::maximum());
    for (auto* levels : {&result.nodes_of_level, &result.leaves_of_level}) {
      far::all_reduce(std::span(*levels), std::plus<>());
      levels->resize(result.deepest + 1);
    }
    return result;
  }

  /// Where boxes lie. Local; no communication.
  const box_placement<D>& placement() const { return state_->place; }
  /// Collective: puts all nodes elsewhere. Costs a message for each node that moves.
  void move_to(const box_placement<D>& to) {
    auto moved = std::make_unique<state>(placed(state_->options, to));
    detail::move_nodes(*state_, *moved);
    state_ = std::move(moved);
  }
  /// Collective: gives each rank subtrees that have cost the same time together since the tree was
  /// made or balanced. Costs an all_reduce, a broadcast, and what move_to() costs.
  void balance() { move_to(detail::balanced_placement(*state_)); }

  /// Collective: a file of the tree, the same bytes whichever rank has what. It has checksums, and
  /// gets its name when it is whole. Throws far::error on all ranks if it cannot be written. Costs
  /// an all_gather of all boxes.
  void save(const std::string& path) const { detail::save_tree(*state_, path); }
  /// Collective: a tree from a file, on any number of ranks. Throws far::error on all ranks if
  /// there is none, or it is damaged. `with` says where nodes lie and the name; the rest is as it
  /// was saved. Each rank reads its part of the file.
  static function load(const std::string& path, const options& with = {}) {
    const detail::tree_file_header header = detail::read_tree_header<D>(path);
    function result(detail::options_of(header, with));
    detail::load_tree(*result.state_, header, path);
    return result;
  }

 private:
  explicit function(const options& with) : state_(std::make_unique<state>(with)) {}
  function(options with, const box_placement<D>& place)
      : function(placed(std::move(with), place)) {}
  static options placed(options with, const box_placement<D>& place) {
    with.placement = place;
    return with;
  }

  const std::string& name() const { return state_->options.name; }
  void need_form(const char* what, bool compressed_form) const {
    if (compressed() != compressed_form)
      far::detail::raise(name(), ": ", what, " of a tree that is ",
                         compressed_form ? "not compressed. Call compress() before."
                                         : "compressed. Call reconstruct() before.");
  }
  /// Of nodes of which one may be the only one of its tree, with s alone.
  double product(std::span<const double> a, std::span<const double> b) const {
    if (a.size() == b.size()) return kernels<D>::dot(a, b);
    const auto small = a.size() < b.size() ? a : b, large = a.size() < b.size() ? b : a;
    if (small.empty()) return 0;
    std::vector<double> corner(state_->kernel.small());
    state_->kernel.take_child(large.data(), 0, corner.data());
    return kernels<D>::dot(small, corner);
  }

  std::unique_ptr<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets

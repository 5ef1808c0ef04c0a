// Operators that compute a leaf of a new tree from a leaf and its neighbours: derivatives, and
// users' own.
//
//   far::wavelets::function<3> twice = f.map_leaves([](auto& leaf) {
//     for (std::size_t i = 0; i < leaf.result().size(); ++i) leaf.result()[i] = 2 * leaf.values()[i];
//     return far::wavelets::leaf_step::done;
//   });
//
// A neighbour that is larger is cut to the leaf's size. Where there are smaller ones, the operator
// says `refine`: the leaf is cut into its children, and the operator called for each of these. What
// other ranks have is fetched many nodes at a time; until it is here, leaves that need it wait and
// others go on.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// What an operator says of a leaf.
enum class leaf_step {
  done,   ///< result() has been written
  refine  ///< the leaf is to be cut into its children
};

/// What lies beside a leaf.
enum class beside {
  border,  ///< nothing: the border of [0, 1]^D
  values,  ///< the coefficients of a box of the leaf's size
  finer,   ///< smaller leaves
  later    ///< not known yet: the operator is called again, and its result now is dropped
};

namespace detail {
template <std::size_t D, class F>
class leaf_mapper;
}

/// A leaf, as operators see it. It is good during their call.
template <std::size_t D>
class leaf_view {
 public:
  /// Local; no communication.
  const tree_box<D>& box() const { return box_; }
  /// Its k^D coefficients. Local; no communication.
  std::span<const double> values() const { return values_; }
  /// Where those of the new tree's leaf go; zeros at first. Local; no communication.
  std::span<double> result() { return result_; }
  /// Kernels of the tree's order. Local; no communication.
  kernels<D>& kernel() { return *kernel_; }

  struct neighbour_view {
    beside what;
    const double* values = nullptr;  ///< k^D, if there are such
  };
  /// What lies beside it along an axis. Local: nodes of other ranks are fetched between calls, and
  /// cut to size at the cost of kernels::down.
  neighbour_view neighbour(std::size_t axis, side which) {
    const auto there = box_.neighbour(axis, which);
    if (!there) return {beside::border};
    for (std::uint32_t level = box_.level;; --level) {
      const tree_box<D> at = there->ancestor(level);
      const auto found = reader_->find(at);
      if (!found.known) return incomplete_ = true, neighbour_view{beside::later};
      if (!found.there) continue;
      if (!found.leaf) return {beside::finer};
      if (level == box_.level) return {beside::values, found.values.data()};
      std::vector<double>& cut = cut_[2 * axis + (which == side::upper ? 1 : 0)];
      cut.resize(tensor_room(kernel_->small()));
      kernel_->down(at, found.values.data(), *there, cut.data());
      return {beside::values, cut.data()};
    }
  }

 private:
  template <std::size_t, class>
  friend class detail::leaf_mapper;

  leaf_view(kernels<D>& kernel, detail::node_reader<D>& reader)
      : kernel_(&kernel), reader_(&reader) {}
  void go_to(const tree_box<D>& box, std::span<const double> values) {
    box_ = box;
    values_ = values;
    result_.assign(kernel_->small(), 0.0);
    incomplete_ = false;
  }

  kernels<D>* kernel_;
  detail::node_reader<D>* reader_;
  tree_box<D> box_{};
  std::span<const double> values_;
  std::vector<double> result_;
  std::array<std::vector<double>, 2 * D> cut_;
  bool incomplete_ = false;
};

namespace detail {

/// Makes `to` from `from`.
template <std::size_t D, class F>
class leaf_mapper {
 public:
  leaf_mapper(tree_state<D>& from, tree_state<D>& to, F& f)
      : from_(from),
        to_(to),
        f_(f),
        own_(from.own()),
        reader_(from, &own_),
        view_(to.kernel, reader_) {}

  /// Collective. No rank changes `from` meanwhile.
  void run() {
    far::detail::do_together(
        far::world(), to_.options.name,
        [&] {
          for (const auto& [box, node] : own_)
            if (node.leaf == 0) emit(box, {}, false);
          for (const auto& box : from_.leaves_of(own_)) {
            to_.meter.enter(box);
            visit({box, {}}, true);
          }
          to_.meter.stop();
          while (!waiting_.empty()) {
            reader_.fetch();
            std::vector<cut_leaf> again;
            again.swap(waiting_);
            for (auto& one : again) {
              const bool whole = one.values.empty();
              visit(std::move(one), whole);
            }
          }
        },
        [] {});
    to_.work.run(
        to_.options.name, to_.meter, begins::anywhere,
        [&](errand<D>& one) { to_.put(one.to, one.values, one.word != 0); }, [] { return false; });
    to_.nodes->fence();
  }

 private:
  /// A leaf, or a part of one; leaves of the tree itself have no values here but in their node.
  struct cut_leaf {
    tree_box<D> box;
    std::vector<double> values;
  };

  /// Nodes that another rank gets are sent while this one goes on.
  void emit(const tree_box<D>& box, std::span<const double> values, bool leaf) {
    if (to_.is_mine(box))
      to_.put(box, values, leaf);
    else
      to_.work.send({box, leaf ? 1u : 0u, {values.begin(), values.end()}});
  }
  void visit(cut_leaf&& one, bool whole) {
    const std::span<const double> values =
        whole ? tree_state<D>::values_of(own_.at(one.box)) : std::span<const double>(one.values);
    view_.go_to(one.box, values.first(to_.kernel.small()));
    const leaf_step next = f_(view_);
    if (view_.incomplete_) {
      waiting_.push_back(whole ? cut_leaf{one.box, {}} : std::move(one));
      return;
    }
    if (next == leaf_step::done) {
      emit(one.box, view_.result_, true);
      return;
    }
    if (one.box.level == deepest_level)
      far::detail::raise("an operator asks for children of ", one.box,
                         ", which is as small as boxes are.");
    emit(one.box, {}, false);
    for (std::uint32_t c = 0; c < one.box.children; ++c) {
      cut_leaf child{one.box.child(c), to_.small_room()};
      to_.kernel.down(values.data(), c, child.values.data());
      visit(std::move(child), false);
    }
  }

  tree_state<D>&from_, &to_;
  F& f_;
  own_nodes<D> own_;
  node_reader<D> reader_;
  leaf_view<D> view_;
  std::vector<cut_leaf> waiting_;
};

}  // namespace detail

/// The operator of the derivative along an axis; borders of [0, 1]^D are free.
struct derivative_operator {
  std::size_t axis;

  template <std::size_t D>
  leaf_step operator()(leaf_view<D>& leaf) const {
    const auto lower = leaf.neighbour(axis, side::lower), upper = leaf.neighbour(axis, side::upper);
    if (lower.what == beside::finer || upper.what == beside::finer) return leaf_step::refine;
    if (lower.what == beside::later || upper.what == beside::later) return leaf_step::done;
    leaf.kernel().derive(leaf.box(), axis, lower.values, leaf.values().data(), upper.values,
                         leaf.result().data());
    return leaf_step::done;
  }
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets

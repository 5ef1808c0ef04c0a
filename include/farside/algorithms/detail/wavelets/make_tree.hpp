// How a function becomes a tree: from the root down, each box by its owner.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

/// Projects f. A piece of work is a box that may be split; with values, a leaf whose s is known.
template <std::size_t D, class F>
class tree_maker {
 public:
  tree_maker(tree_state<D>& tree, F& f)
      : tree_(tree),
        f_(f),
        s_(tree.small_room()),
        block_(tree.large_room()),
        both_(tree.large_room()) {}

  /// Collective.
  void run() {
    bool root = tree_.is_mine(tree_box<D>{});
    tree_.work.run(
        tree_.options.name + ", project", tree_.meter, begins::at_the_root,
        [&](errand<D>& one) { look_at(one); },
        [&] {
          if (!std::exchange(root, false)) return false;
          tree_.work.send({{}, 0, {}});
          return true;
        });
  }

 private:
  void look_at(errand<D>& one) {
    const tree_box<D>& box = one.to;
    const auto& options = tree_.options;
    if (!one.values.empty()) return tree_.put(box, one.values, true);
    if (box.level == options.max_level) {
      project(box);
      return tree_.put(box, std::span(s_).first(tree_.kernel.small()), true);
    }
    if (box.level + 1 < options.initial_level) return split(box, false);
    for (std::uint32_t c = 0; c < box.children; ++c) {
      project(box.child(c));
      tree_.kernel.put_child(block_.data(), c, s_.data());
    }
    const double least = tree_.keep().at(box.level);
    if (least > 0) {
      tree_.kernel.filter(block_.data(), both_.data());
      if (std::sqrt(tree_.kernel.detail_norm2(both_.data())) < least) {
        tree_.kernel.take_child(both_.data(), 0, s_.data());
        return tree_.put(box, std::span(s_).first(tree_.kernel.small()), true);
      }
    }
    split(box, box.level + 1 == options.max_level);
  }

  /// The last child first, as the stack gives them back the other way round.
  void split(const tree_box<D>& box, bool children_are_known) {
    tree_.put(box, {}, false);
    for (std::uint32_t c = box.children; c-- > 0;) {
      errand<D> child{box.child(c), 0, {}};
      if (children_are_known) {
        child.values.resize(tree_.kernel.small());
        tree_.kernel.take_child(block_.data(), c, child.values.data());
      }
      tree_.work.send(std::move(child));
    }
  }
  void project(const tree_box<D>& box) {
    point<D> bad{};
    if (tree_.kernel.project(box, f_, s_.data(), &bad)) return;
    std::string where;
    for (double x : bad) where += (where.empty() ? "" : ", ") + far::text(x);
    far::detail::raise("the function is infinite or no number at (", where,
                       "). A wavelet tree needs values that are finite everywhere.");
  }

  tree_state<D>& tree_;
  F& f_;
  std::vector<double> s_, block_, both_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

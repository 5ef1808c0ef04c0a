// Compress, reconstruct and truncate: what goes up or down a tree, from owner to owner.
//
//   compress      a leaf gives its s to its parent; a node that has those of all children filters them, keeps d, and gives
//                 its own s to its parent
//   reconstruct   the root's (s | d) becomes the children's s; a node that has its s goes on
//   truncate      a node that has heard of all its children whether they have details drops its own, if none has and they
//                 are small, and tells its parent
//
// Nodes change in place: no other rank reads a tree that changes its form.
#pragma once

#include <farside/algorithms/detail/wavelets/tree_state.hpp>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

template <std::size_t D>
class tree_changer {
 public:
  explicit tree_changer(tree_state<D>& tree)
      : tree_(tree), own_(tree.own()), large_(tree.large_room()) {}

  /// Collective.
  void compress() {
    const std::vector<tree_box<D>> leaves = tree_.leaves_of(own_);
    std::size_t next = 0;
    tree_.work.run(
        tree_.options.name + ", compress", tree_.meter, begins::anywhere,
        [&](errand<D>& one) { gather(one); },
        [&] {
          if (next == leaves.size()) return false;
          const tree_box<D> box = leaves[next++];
          if (box.level == 0) return true;  // keeps its s
          stored_node& node = own_.at(box);
          const auto s = tree_.values_of(node);
          give(box, {s.begin(), s.end()});
          tree_.change(box, node, {});
          return true;
        });
    tree_.compressed = true;
  }
  /// Collective.
  void reconstruct() {
    bool root = tree_.is_mine(tree_box<D>{});
    tree_.work.run(
        tree_.options.name + ", reconstruct", tree_.meter, begins::at_the_root,
        [&](errand<D>& one) { hand_on(one); },
        [&] {
          if (!std::exchange(root, false)) return false;
          if (own_.at({}).leaf == 0) spread({}, own_.at({}));
          return true;
        });
    tree_.compressed = false;
  }
  /// Collective.
  void truncate(const tolerance& keep) {
    const std::vector<tree_box<D>> leaves = tree_.leaves_of(own_);
    std::size_t next = 0;
    std::vector<tree_box<D>> dropped;
    tree_.work.run(
        tree_.options.name + ", truncate", tree_.meter, begins::anywhere,
        [&](errand<D>& one) {
          if (one.word == drop)
            dropped.push_back(one.to);
          else
            hear(one, keep);
        },
        [&] {
          if (next == leaves.size()) return false;
          const tree_box<D> box = leaves[next++];
          if (box.level > 0) tree_.work.send({box.parent(), nothing, {}});
          return true;
        });
    for (const auto& box : dropped) tree_.erase(box, own_.at(box));
    far::barrier();
  }

 private:
  enum news : std::uint32_t { nothing, details, drop };
  struct waiting {
    std::vector<double> children;
    std::uint32_t heard = 0;
    bool details = false;
  };

  void give(const tree_box<D>& child, std::vector<double>&& s) {
    tree_.work.send({child.parent(), child.child_number(), std::move(s)});
  }
  void gather(errand<D>& one) {
    waiting& here = waiting_[one.to];
    if (here.children.empty()) here.children.resize(large_.size());
    tree_.kernel.put_child(here.children.data(), one.word, one.values.data());
    if (++here.heard != one.to.children) return;
    tree_.kernel.filter(here.children.data(), large_.data());
    waiting_.erase(one.to);
    std::vector<double> s = std::move(one.values);
    if (one.to.level != 0) {
      tree_.kernel.take_child(large_.data(), 0, s.data());
      tree_.kernel.clear_corner(large_.data());
      give(one.to, std::move(s));
    }
    tree_.change(one.to, own_.at(one.to), std::span(large_).first(tree_.kernel.large()));
  }

  void hand_on(errand<D>& one) {
    stored_node& node = own_.at(one.to);
    if (node.leaf != 0) return tree_.change(one.to, node, one.values);
    tree_.kernel.put_child(tree_.values_of(node).data(), 0, one.values.data());
    spread(one.to, node);
  }
  void spread(const tree_box<D>& box, stored_node& node) {
    tree_.kernel.unfilter(tree_.values_of(node).data(), large_.data());
    tree_.change(box, node, {});
    for (std::uint32_t c = box.children; c-- > 0;) {
      errand<D> child{box.child(c), 0, std::vector<double>(tree_.kernel.small())};
      tree_.kernel.take_child(large_.data(), c, child.values.data());
      tree_.work.send(std::move(child));
    }
  }

  void hear(const errand<D>& one, const tolerance& keep) {
    const tree_box<D> box = one.to;
    waiting& here = waiting_[box];
    here.details = here.details || one.word == details;
    if (++here.heard != box.children) return;
    const bool below = here.details;
    waiting_.erase(box);
    stored_node& node = own_.at(box);
    const bool stays =
        below || box.level <= 1 ||
        std::sqrt(tree_.kernel.detail_norm2(tree_.values_of(node).data())) >= keep.at(box.level);
    if (!stays) {
      tree_.make_leaf(box, node);
      for (std::uint32_t c = 0; c < box.children; ++c) tree_.work.send({box.child(c), drop, {}});
    }
    if (box.level > 0) tree_.work.send({box.parent(), stays ? details : nothing, {}});
  }

  tree_state<D>& tree_;
  own_nodes<D> own_;
  std::unordered_map<tree_box<D>, waiting, box_hash> waiting_;
  std::vector<double> large_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

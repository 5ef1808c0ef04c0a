// Wavelet trees in one process, over std::unordered_map and by the same kernels: what trees over
// ranks are compared with. Each operation is written as its definition says, by recursion, with
// nothing that would make it fast.
#pragma once

#include <farside/algorithms/wavelets/kernels.hpp>

#include <cmath>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <vector>

namespace serial {

namespace wavelets = far::wavelets;
using wavelets::side;

struct node {
  std::vector<double> values;  // s of a leaf, (s | d) in a compressed tree
  bool leaf = false;
};

template <std::size_t D>
class tree {
 public:
  using box = wavelets::tree_box<D>;
  using map = std::unordered_map<box, node, wavelets::box_hash>;
  struct settings {
    std::size_t k = 9;
    wavelets::tolerance keep{};
    std::uint32_t initial_level = 2, max_level = 20;
  };

  explicit tree(const settings& with) : set_(with), kernel_(with.k) {}

  const map& nodes() const { return nodes_; }
  bool compressed() const { return compressed_; }

  template <class F>
  static tree project(F f, const settings& with) {
    tree result(with);
    result.refine(box{}, f);
    return result;
  }

  void compress() {
    std::vector<double> s = compress(box{});
    node& root = nodes_.at(box{});
    if (root.leaf)
      root.values = s;
    else
      kernel_.put_child(root.values.data(), 0, s.data());
    compressed_ = true;
  }
  void reconstruct() {
    node& root = nodes_.at(box{});
    std::vector<double> s(room());
    if (root.leaf)
      s = root.values;
    else
      kernel_.take_child(root.values.data(), 0, s.data());
    reconstruct(box{}, s);
    compressed_ = false;
  }
  void truncate(double threshold) {
    set_.keep.threshold = threshold;
    truncate(box{});
  }
  double norm2() const {
    double sum = 0;
    for (const auto& [b, n] : nodes_) sum += kernel_.norm2(n.values);
    return sum;
  }
  double inner(const tree& other) const {
    double sum = 0;
    for (const auto& [b, n] : nodes_)
      if (auto found = other.nodes_.find(b);
          found != other.nodes_.end() && found->second.values.size() == n.values.size())
        sum += kernel_.dot(n.values, found->second.values);
    return sum;
  }
  double at(const wavelets::point<D>& x) const {
    for (std::uint32_t level = 0;; ++level) {
      const box b = box::around(x, level);
      const node& n = nodes_.at(b);
      if (n.leaf) return kernel_.value(b, n.values.data(), x);
    }
  }
  tree derivative(std::size_t axis) {
    tree result(set_);
    for (const auto& [b, n] : nodes_) {
      if (n.leaf)
        derive(b, n.values, axis, result);
      else
        result.nodes_[b];
    }
    return result;
  }

 private:
  std::size_t room() const { return wavelets::tensor_room(kernel_.small()); }
  std::size_t large_room() const { return wavelets::tensor_room(kernel_.large()); }

  void leaf(const box& b, std::vector<double> s) {
    s.resize(kernel_.small());
    nodes_[b] = {std::move(s), true};
  }

  template <class F>
  void refine(const box& b, F& f) {
    wavelets::point<D> bad{};
    std::vector<double> s(room());
    if (b.level + 1 < set_.initial_level) {
      nodes_[b];
      for (std::uint32_t c = 0; c < box::children; ++c) refine(b.child(c), f);
      return;
    }
    if (b.level == set_.max_level) {
      kernel_.project(b, f, s.data(), &bad);
      leaf(b, s);
      return;
    }
    std::vector<double> block(large_room()), both(large_room());
    for (std::uint32_t c = 0; c < box::children; ++c) {
      kernel_.project(b.child(c), f, s.data(), &bad);
      kernel_.put_child(block.data(), c, s.data());
    }
    kernel_.filter(block.data(), both.data());
    if (std::sqrt(kernel_.detail_norm2(both.data())) < set_.keep.at(b.level)) {
      kernel_.take_child(both.data(), 0, s.data());
      leaf(b, s);
      return;
    }
    nodes_[b];
    for (std::uint32_t c = 0; c < box::children; ++c) refine(b.child(c), f);
  }

  std::vector<double> compress(const box& b) {
    if (nodes_.at(b).leaf) return std::move(nodes_.at(b).values);
    std::vector<double> block(large_room()), both(large_room()), s(room());
    for (std::uint32_t c = 0; c < box::children; ++c)
      kernel_.put_child(block.data(), c, compress(b.child(c)).data());
    kernel_.filter(block.data(), both.data());
    kernel_.take_child(both.data(), 0, s.data());
    kernel_.clear_corner(both.data());
    both.resize(kernel_.large());
    nodes_.at(b).values = std::move(both);
    s.resize(kernel_.small());
    return s;
  }
  void reconstruct(const box& b, std::vector<double> s) {
    node& n = nodes_.at(b);
    if (n.leaf) {
      leaf(b, s);
      return;
    }
    kernel_.put_child(n.values.data(), 0, s.data());
    std::vector<double> block(large_room()), child(room());
    kernel_.unfilter(n.values.data(), block.data());
    n.values.clear();
    for (std::uint32_t c = 0; c < box::children; ++c) {
      kernel_.take_child(block.data(), c, child.data());
      reconstruct(b.child(c), child);
    }
  }
  /// Whether there are details at or below b.
  bool truncate(const box& b) {
    if (nodes_.at(b).leaf) return false;
    bool below = false;
    for (std::uint32_t c = 0; c < box::children; ++c) below = truncate(b.child(c)) || below;
    if (below || b.level <= 1 ||
        std::sqrt(kernel_.detail_norm2(nodes_.at(b).values.data())) >= set_.keep.at(b.level))
      return true;
    for (std::uint32_t c = 0; c < box::children; ++c) nodes_.erase(b.child(c));
    nodes_.at(b) = {{}, true};
    return false;
  }

  /// Null: it is finer there.
  std::optional<std::vector<double>> values_of(const box& b) {
    std::vector<double> s(room());
    for (std::uint32_t level = b.level;; --level) {
      auto found = nodes_.find(b.ancestor(level));
      if (found == nodes_.end()) continue;
      if (!found->second.leaf) return std::nullopt;
      kernel_.down(found->first, found->second.values.data(), b, s.data());
      return s;
    }
  }
  void derive(const box& b, const std::vector<double>& s, std::size_t axis, tree& to) {
    std::optional<std::vector<double>> beside[2];
    bool finer = false, border[2];
    for (side which : {side::lower, side::upper}) {
      auto there = b.neighbour(axis, which);
      border[static_cast<int>(which)] = !there;
      if (!there) continue;
      beside[static_cast<int>(which)] = values_of(*there);
      finer = finer || !beside[static_cast<int>(which)];
    }
    if (finer) {
      to.nodes_[b];
      for (std::uint32_t c = 0; c < box::children; ++c) {
        std::vector<double> child(room());
        kernel_.down(s.data(), c, child.data());
        derive(b.child(c), child, axis, to);
      }
      return;
    }
    std::vector<double> r(kernel_.small());
    kernel_.derive(b, axis, border[0] ? nullptr : beside[0]->data(), s.data(),
                   border[1] ? nullptr : beside[1]->data(), r.data());
    to.leaf(b, r);
  }

  settings set_;
  wavelets::kernels<D> kernel_;
  map nodes_;
  bool compressed_ = false;
};

}  // namespace serial

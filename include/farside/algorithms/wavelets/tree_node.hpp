// Nodes of wavelet trees, where they lie, and what says so.
//
// Everything is local.
#pragma once

#include <farside/algorithms/wavelets/kernels.hpp>
#include <farside/core/ptr.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// A node, as its rank sees it. In a reconstructed tree leaves have s, and others nothing; in a
/// compressed one leaves have nothing, and others (s | d) with s = 0 except at the root.
struct tree_node {
  std::span<const double> values;
  bool leaf = false;
};

namespace detail {

/// A node in the store: small, so that it lies in the index, and its coefficients in the owner's
/// segment.
struct stored_node {
  far::ptr<double> at{};
  std::uint32_t count = 0, leaf = 0;
};

}  // namespace detail

/// Which rank has which box. The same on all ranks. Copies share the table.
template <std::size_t D>
class box_placement {
 public:
  /// The level whose boxes are divided among ranks, by default: 256 boxes or 512.
  static constexpr std::uint32_t usual_level = D == 1 ? 9 : D == 2 ? 4 : 3;

  /// Subtrees stay together: a box is where its ancestor at `level` is, and that is anywhere, by
  /// its hash. Boxes above are anywhere, too. Local; no communication.
  static box_placement subtrees(std::uint32_t level = usual_level) { return {level, nullptr}; }
  /// Every box is anywhere, by its hash: the most even, and every edge of the tree is a message.
  /// Local; no communication.
  static box_placement by_hash() { return {deepest_level, nullptr}; }
  /// Subtrees stay together, and those of the boxes of `level` are where `owners` says, which has a
  /// rank for each, by number(). Local; no communication.
  static box_placement table(std::uint32_t level, std::vector<rank_t> owners) {
    if (level > 20 / D || owners.size() != std::size_t{1} << (level * D))
      far::detail::raise("a placement of boxes of level ", level, " by a table of ", owners.size(),
                         " ranks. A table has a rank for each of the 2^(level x dimensions) boxes "
                         "of a level, 2^20 of them at most.");
    return {level, std::make_shared<const std::vector<rank_t>>(std::move(owners))};
  }
  box_placement() : box_placement(subtrees()) {}

  /// The member of a team of `members` that has the box. Local; no communication.
  rank_t operator()(const tree_box<D>& box, rank_t members) const {
    const tree_box<D> top = box.level > level_ ? box.ancestor(level_) : box;
    if (table_ && top.level == level_) return (*table_)[top.number()];
    return static_cast<rank_t>(far::reduce_hash(far::hash<tree_box<D>>()(top), members));
  }
  /// The level whose subtrees stay together. Local; no communication.
  std::uint32_t level() const { return level_; }
  /// Local; no communication.
  friend bool operator==(const box_placement& a, const box_placement& b) {
    return a.level_ == b.level_ &&
           (a.table_ == b.table_ || (a.table_ && b.table_ && *a.table_ == *b.table_));
  }

 private:
  box_placement(std::uint32_t level, std::shared_ptr<const std::vector<rank_t>> table)
      : level_(level), table_(std::move(table)) {}

  std::uint32_t level_;
  std::shared_ptr<const std::vector<rank_t>> table_;
};

/// How a tree is made. The same on all ranks.
template <std::size_t D>
struct tree_options {
  std::size_t k = 9;        ///< order: polynomials of degree k - 1 in each box; 1 to 30
  double threshold = 1e-6;  ///< details below it count for nothing; 0 needs a max_level
  refinement mode = refinement::absolute;
  std::uint32_t initial_level = 2;  ///< boxes above this level are split without a look at f
  std::uint32_t max_level = deepest_level;  ///< boxes of this level are not split
  box_placement<D> placement{};
  std::string name{};  ///< in errors; "wavelet tree" if it is empty
  /// Called now and then on each rank, with the bytes of nodes that it has done since.
  std::function<void(std::size_t)> progress{};
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets

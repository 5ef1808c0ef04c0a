// Boxes of a dyadic tree: the keys of wavelet trees.
//
// Box (n, l) is the cube of side 2^-n at l 2^-n in [0, 1]^D. Its children are the 2^D boxes (n + 1,
// 2 l + c), where bit d of c's number says whether it is the upper one along axis d, counted from
// the last axis.
//
// Everything is local.
#pragma once

#include <farside/core/hash.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// The deepest level that a box can have.
inline constexpr std::uint32_t deepest_level = 30;

/// Which of two neighbours along an axis.
enum class side { lower, upper };

/// A box of the tree over [0, 1]^D. Plain data: it may lie in far memory and be sent.
template <std::size_t D>
struct tree_box {
  static_assert(D >= 1 && D <= 3, "wavelet trees have 1, 2 or 3 dimensions");
  /// How many children a box has.
  static constexpr std::uint32_t children = 1u << D;

  std::uint32_t level = 0;
  std::array<std::uint32_t, D> at{};  ///< l: from 0 to 2^level - 1 along each axis

  /// Local; no communication.
  friend bool operator==(const tree_box&, const tree_box&) = default;

  /// Child number c. Local; no communication.
  tree_box child(std::uint32_t c) const {
    tree_box result{level + 1, at};
    for (std::size_t d = 0; d < D; ++d) result.at[d] = 2 * at[d] + (c >> (D - 1 - d) & 1);
    return result;
  }
  /// Which child of its parent this is. Local; no communication.
  std::uint32_t child_number() const {
    std::uint32_t c = 0;
    for (std::size_t d = 0; d < D; ++d) c = 2 * c + (at[d] & 1);
    return c;
  }
  /// The box that has this one in it, at a level that is not deeper. Local; no communication.
  tree_box ancestor(std::uint32_t of_level) const {
    tree_box result{of_level, at};
    for (auto& l : result.at) l >>= level - of_level;
    return result;
  }
  /// The ancestor one level up; not to be asked of the root. Local; no communication.
  tree_box parent() const { return ancestor(level - 1); }
  /// Whether this box has `other` in it, or is it. Local; no communication.
  bool contains(const tree_box& other) const {
    return other.level >= level && other.ancestor(level) == *this;
  }
  /// The box of the same size beside it; nothing at the border of [0, 1]^D. Local; no
  /// communication.
  std::optional<tree_box> neighbour(std::size_t axis, side which) const {
    tree_box result = *this;
    if (which == side::lower ? result.at[axis]-- == 0 : ++result.at[axis] >> level != 0)
      return std::nullopt;
    return result;
  }
  /// The box of that level which has point `x`; points at an upper border are in the last box.
  /// Local; no communication.
  static tree_box around(const std::array<double, D>& x, std::uint32_t level) {
    tree_box result{level, {}};
    const double boxes = static_cast<double>(1u << level);
    for (std::size_t d = 0; d < D; ++d)
      result.at[d] = static_cast<std::uint32_t>(std::clamp(x[d] * boxes, 0.0, boxes - 1));
    return result;
  }
  /// Its number among the boxes of its level, in the order of a walk through the tree, depth first.
  /// Levels up to 63 / D. Local; no communication.
  std::uint64_t number() const {
    std::uint64_t result = 0;
    for (std::uint32_t bit = level; bit-- > 0;)
      for (std::size_t d = 0; d < D; ++d) result = 2 * result + (at[d] >> bit & 1);
    return result;
  }

  /// Whether a walk through the tree, depth first, meets this box earlier. Ancestors come first.
  /// Local; no communication.
  friend bool operator<(const tree_box& a, const tree_box& b) {
    const std::uint32_t deeper = std::max(a.level, b.level);
    std::uint32_t most = 0;
    std::size_t axis = 0;
    std::array<std::uint32_t, D> x{}, y{};
    for (std::size_t d = 0; d < D; ++d) {
      x[d] = a.at[d] << (deeper - a.level);
      y[d] = b.at[d] << (deeper - b.level);
      // The axis whose highest differing bit is the highest of all decides; the first one of
      // equals.
      const std::uint32_t differ = x[d] ^ y[d];
      if (std::bit_width(differ) > std::bit_width(most)) most = differ, axis = d;
    }
    return most == 0 ? a.level < b.level : x[axis] < y[axis];
  }
  /// Local; no communication.
  friend std::string to_text(const tree_box& b) {
    std::string text = "box (" + std::to_string(b.level) + ";";
    for (std::uint32_t l : b.at) text += " " + std::to_string(l);
    return text + ")";
  }
};

/// For std::unordered_map and its kin. Local; no communication.
struct box_hash {
  template <std::size_t D>
  std::size_t operator()(const tree_box<D>& b) const {
    return static_cast<std::size_t>(far::hash<tree_box<D>>()(b));
  }
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets

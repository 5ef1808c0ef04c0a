// The memory of a team, one block in each member's segment, and the tree over its members.
//
//   block:  | arrivals | releases | up slots ... | down slot | stage A | stage B |
//
// The words of the last wave, by which ranks leave, lie beside those of all others: a rank that
// leaves must not be taken for one that enters the collective in which another waits.
//
// The members form a tree of radix 8 over their positions. Position v leads the range
// [v, v + 8^L) if v is a multiple of 8^L; its children are v + j * 8^L for j = 1..7 on each such
// level. A parent's range is its own value followed by its children's ranges in order, so that
// folding them in order keeps the order of the members.
//
// Every collective is one wave up and one wave down (docs/memory_model.md tells what users see):
//   up:    child puts into its up slot at the parent, flushes, signals the parent's arrivals;
//   down:  parent puts into the child's down slot, flushes, signals the child's releases.
// Nobody is released before everybody has arrived. Hence slots are reused safely: an up slot is
// written again only after the release of the last wave, which came after its parent had read
// it; a down slot only after its owner has arrived anew, hence has read it.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/job_board.hpp>
#include <farside/core/detail/object_registry.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

inline constexpr rank_t tree_radix = 8;
inline constexpr std::size_t slot_bytes = 1024;    ///< what a wave can carry
inline constexpr std::size_t stage_least = 65536;  ///< what larger collectives move at a time

/// Sizes and places within the block of a team of `size` members.
struct team_layout {
  rank_t size = 0;
  unsigned levels = 0;
  std::size_t stage_bytes = 0;

  explicit team_layout(rank_t members = 0) : size(members) {
    for (std::uint64_t span = 1; span < size; span *= tree_radix) ++levels;
    stage_bytes = stage_least;
    while (stage_bytes < std::size_t{8} * size) stage_bytes *= 2;
  }
  static constexpr std::size_t arrivals = 0;
  static constexpr std::size_t releases = 64;
  static constexpr std::size_t last_arrivals = 16;
  static constexpr std::size_t last_releases = 80;
  static constexpr std::size_t up(unsigned slot) { return 128 + slot * slot_bytes; }
  std::size_t down() const { return up(levels * (tree_radix - 1)); }
  std::size_t stage(unsigned which) const { return down() + slot_bytes + which * stage_bytes; }
  std::size_t bytes() const { return stage(2); }

  struct link {
    rank_t position;
    unsigned slot;  ///< which up slot of the parent
  };
  link parent(rank_t v) const {
    rank_t stride = 1;
    for (unsigned level = 0;; ++level, stride *= tree_radix)
      if (rank_t j = v / stride % tree_radix; j != 0)
        return {v - j * stride, level * (tree_radix - 1) + j - 1};
  }
  std::vector<link> children(rank_t v) const {
    std::vector<link> result;
    std::uint64_t stride = 1;
    for (unsigned level = 0; level < levels && v % (stride * tree_radix) == 0; ++level) {
      for (rank_t j = 1; j < tree_radix; ++j)
        if (v + j * stride < size)
          result.push_back({static_cast<rank_t>(v + j * stride), level * (tree_radix - 1) + j - 1});
      stride *= tree_radix;
    }
    return result;
  }
};

/// What a rank says of itself to the leader of a team that is being made by its members alone.
struct team_application {
  std::uint64_t next;      ///< in the leader's chain: a rank and 1, or 0
  std::uint64_t key;       ///< of the team
  std::uint64_t position;  ///< in the team
  std::uint64_t block;     ///< where its part lies; 0: it has no room
};

/// A team as one of its members knows it.
struct team_members {
  team_layout layout;
  std::vector<rank_t> ranks;        ///< world ranks, by position
  std::vector<std::size_t> blocks;  ///< where each member's block lies in its segment
  rank_t me = 0;                    ///< this rank's position
  team_name name{};                 ///< of the team, the same on all members
  std::vector<team_layout::link> children;
  std::uint64_t arrivals_due = 0;  ///< signals this member must have seen, over all waves
  std::uint64_t releases_due = 0;
  unsigned stage_turn = 0;                     ///< which stage the next piece goes to
  job::waiting phase = job::waiting::barrier;  ///< what a wait of it is called

  rank_t size() const { return layout.size; }

  team_members(std::vector<rank_t> members, std::vector<std::size_t> where, rank_t position)
      : layout(static_cast<rank_t>(members.size())),
        ranks(std::move(members)),
        blocks(std::move(where)),
        me(position),
        children(layout.children(position)) {}
};

}  // namespace far::inline FARSIDE_BACKEND::detail

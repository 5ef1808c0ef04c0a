// The tree over a team: every member is reached once, and folding it keeps the order.
#include <farside/core/detail/team_block.hpp>

#include <functional>
#include <numeric>
#include <set>

#include "check.hpp"

using far::rank_t;
using far::detail::team_layout;

namespace {

void check_tree(rank_t size) {
  team_layout layout(size);
  bool links = true, slots = true, depth = true;
  std::vector<int> visits(size);
  std::vector<rank_t> order;  // as a fold takes them: a member, then its children's ranges in order
  std::function<void(rank_t, unsigned)> walk = [&](rank_t v, unsigned level) {
    depth &= level <= layout.levels;
    order.push_back(v);
    ++visits[v];
    std::set<unsigned> used;
    for (auto child : layout.children(v)) {
      auto parent = layout.parent(child.position);
      links &= parent.position == v && parent.slot == child.slot && child.position < size;
      slots &= used.insert(child.slot).second;
      slots &= layout.up(child.slot) + far::detail::slot_bytes <= layout.down();
      walk(child.position, level + 1);
    }
  };
  walk(0, 0);
  CHECK(links);
  CHECK(slots);
  CHECK(depth);
  CHECK(visits == std::vector<int>(size, 1));
  std::vector<rank_t> all(size);
  std::iota(all.begin(), all.end(), 0u);
  CHECK(order == all);
}

void check_places(rank_t size) {
  team_layout layout(size);
  CHECK(layout.arrivals != layout.releases && layout.releases + 8 <= layout.up(0));
  CHECK(layout.down() + far::detail::slot_bytes <= layout.stage(0));
  CHECK(layout.stage(0) + layout.stage_bytes <= layout.stage(1));
  CHECK(layout.stage(1) + layout.stage_bytes <= layout.bytes());
  CHECK(layout.stage_bytes >= far::detail::stage_least);
  CHECK(layout.stage_bytes / std::max<rank_t>(size, 1) >= 8);  // a word for each member fits
  for (std::size_t place :
       {layout.up(0), layout.up(1), layout.down(), layout.stage(0), layout.stage(1)})
    CHECK(place % 64 == 0);
}

}  // namespace

int main() {
  for (rank_t size = 1; size <= 700; ++size) check_tree(size);
  for (rank_t size : {0u, 1u, 2u, 8u, 9u, 64u, 65u, 512u, 8192u, 8193u, 100'000u, 1u << 19})
    check_places(size);
  for (rank_t size : {4095u, 4096u, 4097u}) check_tree(size);
  // Large ones are not walked, but their depth is known.
  CHECK(team_layout(1).levels == 0 && team_layout(8).levels == 1 && team_layout(9).levels == 2);
  CHECK(team_layout(1u << 19).levels == 7);
  return verdict("team_layout");
}

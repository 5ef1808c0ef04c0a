// far::team: some of the ranks, in an order. Collectives work over a team; far::world() has all.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/detail/calls.hpp>
#include <farside/core/detail/container_state.hpp>
#include <farside/core/detail/tree_collectives.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <source_location>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// A handle; copies name the same team. The last copy on a rank goes away collectively (one
/// barrier of the team). An empty team, which a rank gets that is not a member, has no size and
/// takes part in nothing.
class team {
 public:
  /// An empty team. Local; no communication.
  team() = default;

  /// How many members it has. Local; no communication.
  rank_t size() const { return members_ ? members_->size() : 0; }
  /// This rank's position in the team.
  rank_t rank() const { return members_ ? members_->me : detail::job::no_rank; }
  /// The world rank of a member.
  rank_t world_rank(rank_t position) const {
    if (position >= size())
      detail::raise("team::world_rank(", position, "): the team has ", size(), " members.");
    return members_->ranks[position];
  }
  explicit operator bool() const { return members_ != nullptr; }

  /// Collective over this team: one new team for each colour, ordered by key and then by rank.
  /// A negative colour joins none. 2 all_gathers.
  team split(int colour, int key = 0,
             std::source_location at = std::source_location::current()) const;

  /// Collective over this team: positions first, first + stride, ... (`count` of them).
  team range(rank_t first, rank_t count, rank_t stride = 1,
             std::source_location at = std::source_location::current()) const;

  /// Collective over this team: the given positions, in the given order.
  team list(const std::vector<rank_t>& positions,
            std::source_location at = std::source_location::current()) const;

  /// For the library: throws if it is empty. Local; no communication.
  detail::team_members& members() const {
    if (!members_)
      detail::raise(
          "a collective was called on an empty far::team, of which this rank is no member. "
          "Call it only where 'if (team)' holds.");
    return *members_;
  }

 private:
  friend team world();
  friend team make_team(const std::vector<rank_t>& ranks, std::source_location at);
  /// The first handle of a team that was made.
  static team adopt(std::unique_ptr<detail::team_members> made);
  explicit team(std::shared_ptr<detail::team_members> members) : members_(std::move(members)) {}

  std::shared_ptr<detail::team_members> members_;
};

/// The team of all ranks. Local; no communication.
inline team world() { return team(detail::here().world); }

/// This rank, and how many there are. Local; no communication.
inline rank_t rank() { return detail::here().link.rank(); }
inline rank_t nprocs() { return detail::here().link.nprocs(); }

namespace detail {

inline void barrier(team_members& t, std::source_location at = {}) {
  perform(operation::barrier, 0, 0, [&](context& c) {
    calls note(c, t, named<"barrier">, at);
    t.phase = detail::job::waiting::barrier;
    check_agreement(c, t, "barrier", 0, 0, detail::job::no_rank);
    before_barrier(c, t);
    synchronize(c, t);
    after_barrier(c, t);
  });
}

}  // namespace detail

/// Returns when all members have called it. All their earlier puts are complete and visible to
/// all members. Costs a flush and 2 log8(size) signals.
inline void barrier(const team& over, std::source_location at = std::source_location::current()) {
  detail::barrier(over.members(), at);
}
inline void barrier(std::source_location at = std::source_location::current()) {
  detail::barrier(*detail::here().world, at);
}

inline team team::split(int colour, int key, std::source_location at) const {
  detail::context& c = detail::here();
  detail::team_members& parent = members();
  detail::calls note(c, parent, detail::named<"team::split">, at);
  parent.phase = detail::job::waiting::collective;
  struct wish {
    int colour, key;
  };
  std::vector<wish> wishes(size());
  wish mine{colour, key};
  detail::all_gather_bytes(c, parent, &mine, wishes.data(), sizeof mine);

  std::vector<rank_t> positions;
  for (rank_t i = 0; i < size(); ++i)
    if (wishes[i].colour == colour) positions.push_back(i);
  std::sort(positions.begin(), positions.end(), [&](rank_t a, rank_t b) {
    return std::pair(wishes[a].key, a) < std::pair(wishes[b].key, b);
  });

  constexpr auto no_room = ~std::uint64_t{0};
  std::uint64_t block = 0;
  std::exception_ptr thrown;
  if (colour >= 0) try {
      detail::team_layout layout(static_cast<rank_t>(positions.size()));
      block = detail::local_allocate(c, layout.bytes(), 64);
    } catch (const allocation_error&) {
      thrown = std::current_exception();
      block = no_room;
    }
  if (block != 0 && block != no_room) {
    // Signals begin at zero. By puts, so that it is in order with what members do later.
    std::vector<std::byte> zeros(detail::team_layout::up(0));
    if (!FARSIDE_MUTANT(team_signals_not_zeroed))
      c.link.put(c.link.rank(), block, zeros.data(), zeros.size());
    c.link.flush(c.link.rank());
  }
  struct made_here {
    std::uint64_t block, serial;
  };
  std::vector<made_here> parts(size());
  made_here part{block, ++c.teams};
  detail::all_gather_bytes(c, parent, &part, parts.data(), sizeof part);
  auto full = std::find_if(parts.begin(), parts.end(),
                           [&](const made_here& made) { return made.block == no_room; });
  if (full != parts.end()) {
    if (thrown) std::rethrow_exception(thrown);
    if (block != 0) {
      std::lock_guard lock(c.mutex);
      detail::free_own(c, block);
    }
    detail::raise<allocation_error>(
        "team::split: rank ", parent.ranks[static_cast<std::size_t>(full - parts.begin())],
        " has no room for its part of the new team; its own message says how much it needs.");
  }
  detail::synchronize(c, parent);
  if (colour < 0) return team();

  std::vector<rank_t> ranks;
  std::vector<std::size_t> where;
  rank_t me = 0;
  for (rank_t position : positions) {
    if (position == rank()) me = static_cast<rank_t>(ranks.size());
    ranks.push_back(parent.ranks[position]);
    where.push_back(parts[position].block);
  }
  auto made = std::make_unique<detail::team_members>(std::move(ranks), std::move(where), me);
  made->name = {made->ranks[0], static_cast<std::uint32_t>(parts[positions[0]].serial)};
  return adopt(std::move(made));
}

inline team team::adopt(std::unique_ptr<detail::team_members> made) {
  int unwinding = std::uncaught_exceptions();
  return team(
      std::shared_ptr<detail::team_members>(made.release(), [unwinding](detail::team_members* t) {
        std::unique_ptr<detail::team_members> owned(t);
        detail::context* now =
            detail::current != nullptr ? detail::current : detail::process_context.load();
        if (now == nullptr || now->ended) return;            // its memory has gone with the runtime
        if (std::uncaught_exceptions() > unwinding) return;  // nobody may answer any more
        t->phase = detail::job::waiting::collective;
        detail::calls note(*now, *t, detail::named<"the destructor of a far::team">, {});
        if (!FARSIDE_MUTANT(team_ends_at_once)) detail::synchronize(*now, *t);
        std::lock_guard lock(now->mutex);
        detail::free_own(*now, t->blocks[t->me]);
      }));
}

inline team team::range(rank_t first, rank_t count, rank_t stride, std::source_location at) const {
  if (count != 0 && (stride == 0 || first + std::uint64_t{count - 1} * stride >= size()))
    detail::raise("team::range(", first, ", ", count, ", ", stride, ") reaches beyond the ", size(),
                  " members of the team.");
  rank_t me = rank();
  bool in =
      count != 0 && me >= first && (me - first) % stride == 0 && (me - first) / stride < count;
  detail::calls note(detail::here(), members(), detail::named<"team::range">, at);
  return split(in ? 0 : -1, static_cast<int>(me));
}

inline team team::list(const std::vector<rank_t>& positions, std::source_location at) const {
  // All members check all positions, so that none waits for one that has thrown.
  std::vector<bool> named(size());
  int key = -1;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= size())
      detail::raise("team::list: position ", positions[i], " is not in a team of ", size(),
                    " members.");
    if (named[positions[i]]) detail::raise("team::list names position ", positions[i], " twice.");
    named[positions[i]] = true;
    if (positions[i] == rank()) key = static_cast<int>(i);
  }
  detail::calls note(detail::here(), members(), detail::named<"team::list">, at);
  return split(key >= 0 ? 0 : -1, key);
}

}  // namespace far::inline FARSIDE_BACKEND

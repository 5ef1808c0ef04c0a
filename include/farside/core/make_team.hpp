// far::make_team: a team that its members make alone. Others take no part and need not know of it.
//
//   if (far::rank() % 2 == 0) evens = far::make_team({0, 2, 4});
//
// The first member leads. Each other member applies to it, and it answers when all have come:
//
//   member                                          leader
//   fill in own application, flush
//   compare_swap(leader's head, before, me)  ---->  swap(head, 0); get each application of the chain
//   await own `introduced`                          ... until all members of this team have applied
//                                                   put to each: table of blocks, verdict; flush
//                                            <----  signal its `introduced`
//
// docs/protocols/teams.md has the states and why it is right.
#pragma once

#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/team.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <source_location>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// What lies in each segment at `introductions`.
struct introduction_words {
  static constexpr std::size_t head = introductions;            ///< who applies: a rank and 1, or 0
  static constexpr std::size_t introduced = introductions + 8;  ///< a signal word
  static constexpr std::size_t verdict = introductions + 16;    ///< see make_verdict
  static constexpr std::size_t application = introductions + 24;  ///< team_application
};

/// The low bit says whether the team was made. Above it: the number of the team, or who had no room.
inline std::uint64_t make_verdict(bool made, std::uint64_t what) { return what << 1 | made; }

/// Counts for the leader too: its own block, and those of all members, in order.
inline std::uint64_t team_key(const std::vector<rank_t>& ranks) {
  std::uint64_t key = ranks.size();
  for (rank_t rank : ranks) key = hash_append(key, rank);
  return key;
}

inline void check_members(const std::vector<rank_t>& ranks) {
  context& c = here();
  std::vector<rank_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (ranks.empty())
    raise("far::make_team was given no ranks. An empty team is made by far::team().");
  if (sorted.back() >= c.link.nprocs())
    raise("far::make_team names rank ", sorted.back(), ": there are only ", c.link.nprocs(),
          " ranks.");
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) raise("far::make_team names rank ", *twice, " twice.");
  if (!std::binary_search(sorted.begin(), sorted.end(), c.link.rank()))
    raise("far::make_team was called by rank ", c.link.rank(),
          ", which it does not name. Only the members call it.");
}

/// Memory for this member's part of the team, with signals at zero; 0: there is no room.
inline std::uint64_t make_team_block(context& c, rank_t size) {
  try {
    std::uint64_t block = local_allocate(c, team_layout(size).bytes(), 64);
    std::vector<std::byte> zeros(team_layout::up(0));
    c.link.put(c.link.rank(), block, zeros.data(), zeros.size());
    c.link.flush(c.link.rank());
    return block;
  } catch (const allocation_error&) {
    return 0;
  }
}

/// Adds this rank to the chain of its leader.
inline void apply(context& c, rank_t leader, team_application mine) {
  using at = introduction_words;
  rank_t me = c.link.rank();
  auto head = c.link.template atomic_load<std::uint64_t>(leader, at::head);
  for (;;) {
    mine.next = head;
    c.link.put(me, at::application, &mine, sizeof mine);
    if (!FARSIDE_MUTANT(team_application_unflushed)) c.link.flush(me);
    auto seen = c.link.compare_swap(leader, at::head, head, std::uint64_t{me} + 1);
    if (seen == head) return;
    head = seen;
  }
}

/// Takes what has come to this rank. Applications to teams that it has not begun to make are kept.
inline bool take_applications(context& c) {
  using at = introduction_words;
  rank_t me = c.link.rank();
  if (c.link.template atomic_load<std::uint64_t>(me, at::head) == 0) return false;
  auto next = c.link.template fetch_op<atomic_op::swap>(me, at::head, std::uint64_t{0});
  while (next != 0) {
    team_application come;
    c.link.get(static_cast<rank_t>(next - 1), at::application, &come, sizeof come);
    next = come.next;
    c.team_applications.push_back(come);
  }
  return true;
}

/// The leader: the blocks of all members, in their order.
inline std::vector<std::uint64_t> await_applications(context& c, const std::vector<rank_t>& ranks,
                                                     std::uint64_t key, std::uint64_t own) {
  constexpr auto missing = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> blocks(ranks.size(), missing);
  blocks[0] = own;
  wait_marker note(c, job::waiting::collective, job::no_rank);
  for (std::size_t left = ranks.size() - 1;;) {
    std::erase_if(c.team_applications, [&](const team_application& come) {
      if (come.key != key) return false;
      blocks[come.position] = come.block;
      --left;
      return true;
    });
    if (left == 0) return blocks;
    if (!take_applications(c)) c.wait_round();
  }
}

inline void introduce(context& c, const std::vector<rank_t>& ranks,
                      const std::vector<std::uint64_t>& blocks, std::uint64_t verdict) {
  using at = introduction_words;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (verdict & 1)
      c.link.put(ranks[i], blocks[i] + team_layout(static_cast<rank_t>(ranks.size())).stage(0),
                 blocks.data(), blocks.size() * sizeof blocks[0]);
    c.link.put(ranks[i], at::verdict, &verdict, sizeof verdict);
  }
  if (!FARSIDE_MUTANT(team_table_unflushed)) c.link.flush();
  for (std::size_t i = 1; i < ranks.size(); ++i) c.link.signal(ranks[i], at::introduced);
}

}  // namespace detail

/// A team of these world ranks, in this order. Collective over them alone: each calls it with the
/// same list, one thread at a time, and in the same order as other teams that it makes so. Member:
/// 2 atomics and a wait; the first one: 1 get, 2 puts and 1 signal for each other member, 1 flush.
inline team make_team(const std::vector<rank_t>& ranks,
                      std::source_location at = std::source_location::current()) {
  using words = detail::introduction_words;
  detail::check_members(ranks);
  detail::context& c = detail::here();
  auto me =
      static_cast<rank_t>(std::find(ranks.begin(), ranks.end(), c.link.rank()) - ranks.begin());
  auto made =
      std::make_unique<detail::team_members>(ranks, std::vector<std::size_t>(ranks.size()), me);
  detail::calls note(c, *made, detail::named<"make_team">, at);
  made->phase = detail::job::waiting::collective;

  std::uint64_t key = detail::team_key(ranks), verdict = 0;
  std::uint64_t block = detail::make_team_block(c, made->size());
  std::vector<std::uint64_t> blocks(ranks.size());
  if (me == 0) {
    blocks = detail::await_applications(c, ranks, key, block);
    auto full = std::find(blocks.begin(), blocks.end(), 0);
    verdict =
        full == blocks.end()
            ? detail::make_verdict(true, ++c.teams)
            : detail::make_verdict(false, ranks[static_cast<std::size_t>(full - blocks.begin())]);
    detail::introduce(c, ranks, blocks, verdict);
  } else {
    detail::apply(c, ranks[0], {.next = 0, .key = key, .position = me, .block = block});
    detail::await_word(c, words::introduced, ++c.introductions_due,
                       detail::job::waiting::collective, ranks[0], nullptr);
    c.link.get(c.link.rank(), words::verdict, &verdict, sizeof verdict);
    if (verdict & 1)
      c.link.get(c.link.rank(), block + made->layout.stage(0), blocks.data(),
                 blocks.size() * sizeof blocks[0]);
  }
  if ((verdict & 1) == 0) {
    if (block != 0) {
      std::lock_guard lock(c.mutex);
      detail::free_own(c, block);
    }
    detail::raise<allocation_error>(
        "far::make_team: rank ", verdict >> 1, " has no room for its part of the team, ",
        made->layout.bytes(),
        " bytes. Raise FARSIDE_SEGMENT, or free what is not needed any more.");
  }
  made->blocks.assign(blocks.begin(), blocks.end());
  made->name = {ranks[0], static_cast<std::uint32_t>(verdict >> 1)};
  return team::adopt(std::move(made));
}

}  // namespace far::inline FARSIDE_BACKEND

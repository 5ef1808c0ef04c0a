// Teams: who is in, in which order, and that collectives of different teams do not meet.
#include "harness.hpp"

#include <numeric>
#include <optional>

namespace teams_tests {

namespace {

/// The world ranks of a team's members, by position.
std::vector<far::rank_t> ranks_of(const far::team& t) {
  std::vector<far::rank_t> result;
  for (far::rank_t i = 0; i < t.size(); ++i) result.push_back(t.world_rank(i));
  return result;
}

std::size_t heap_in_use() { return far::detail::here().heap.in_use(); }

/// Every collective once, against what the list of members says.
void check_collectives(const far::team& t, std::uint64_t salt) {
  auto members = ranks_of(t);
  auto value_of = [&](far::rank_t world_rank) { return 1000 * salt + world_rank; };
  std::uint64_t mine = value_of(far::rank());
  std::vector<std::uint64_t> all;
  for (auto rank : members) all.push_back(value_of(rank));

  CHECK_EQ(members[t.rank()], far::rank());
  CHECK_EQ(far::all_gather(mine, t), all);
  CHECK_EQ(far::all_reduce(mine, std::plus<>(), t),
           std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
  for (far::rank_t root = 0; root < t.size(); ++root) {
    CHECK_EQ(far::broadcast(mine, root, t), all[root]);
    CHECK_EQ(far::broadcast(std::to_string(mine), root, t), std::to_string(all[root]));
  }
  far::barrier(t);
  CHECK_EQ(far::scan(mine, std::plus<>(), t),
           std::accumulate(all.begin(), all.begin() + t.rank() + 1, std::uint64_t{0}));
}

}  // namespace

FAR_TEST(world_has_all_ranks_in_order) {
  far::team world = far::world();
  CHECK(static_cast<bool>(world));
  CHECK_EQ(world.size(), far::nprocs());
  CHECK_EQ(world.rank(), far::rank());
  for (far::rank_t i = 0; i < world.size(); ++i) CHECK_EQ(world.world_rank(i), i);
  CHECK_THROWS(world.world_rank(world.size()), "world_rank");
}

FAR_TEST(split_by_colour) {
  far::rank_t n = far::nprocs(), me = far::rank();
  for (far::rank_t colours = 1; colours <= 3; ++colours) {
    auto mine = far::world().split(static_cast<int>(me % colours));
    std::vector<far::rank_t> expected;
    for (far::rank_t i = me % colours; i < n; i += colours) expected.push_back(i);
    CHECK_EQ(ranks_of(mine), expected);
    check_collectives(mine, colours);
  }
}

FAR_TEST(split_orders_by_key_and_then_by_rank) {
  far::rank_t n = far::nprocs(), me = far::rank();
  auto backwards = far::world().split(7, -static_cast<int>(me));
  std::vector<far::rank_t> expected(n);
  for (far::rank_t i = 0; i < n; ++i) expected[i] = n - 1 - i;
  CHECK_EQ(ranks_of(backwards), expected);
  check_collectives(backwards, 1);

  auto odd_first = far::world().split(0, me % 2 == 1 ? -5 : 5);
  expected.clear();
  for (far::rank_t i = 1; i < n; i += 2) expected.push_back(i);
  for (far::rank_t i = 0; i < n; i += 2) expected.push_back(i);
  CHECK_EQ(ranks_of(odd_first), expected);
  check_collectives(odd_first, 2);
}

FAR_TEST(a_negative_colour_joins_no_team) {
  far::rank_t me = far::rank();
  auto some = far::world().split(me == 0 ? -1 : 4);
  CHECK_EQ(static_cast<bool>(some), me != 0);
  if (some) {
    CHECK_EQ(some.size(), far::nprocs() - 1);
    check_collectives(some, 3);
  } else {
    CHECK_EQ(some.size(), far::rank_t{0});
  }
  auto none = far::world().split(-1 - static_cast<int>(me));
  CHECK(!none);
}

FAR_TEST(an_empty_team_takes_part_in_nothing) {
  far::team empty;
  CHECK(!empty);
  CHECK_EQ(empty.size(), far::rank_t{0});
  CHECK_THROWS(far::barrier(empty), "empty far::team");
  CHECK_THROWS(far::all_reduce(1, std::plus<>(), empty), "empty far::team");
  CHECK_THROWS(far::broadcast(1, 0, empty), "empty far::team");
  CHECK_THROWS(far::all_gather(std::string("x"), empty), "empty far::team");
  CHECK_THROWS(empty.split(0), "empty far::team");
  CHECK_THROWS(empty.world_rank(0), "0 members");
  far::team copy = empty;
  CHECK(!copy);
}

FAR_TEST(range_with_stride) {
  far::rank_t n = far::nprocs();
  for (far::rank_t first = 0; first < n; first += 2)
    for (far::rank_t stride = 1; stride <= 3; ++stride) {
      far::rank_t count = (n - first + stride - 1) / stride;
      auto t = far::world().range(first, count, stride);
      std::vector<far::rank_t> expected;
      for (far::rank_t i = 0; i < count; ++i) expected.push_back(first + i * stride);
      bool in = std::find(expected.begin(), expected.end(), far::rank()) != expected.end();
      CHECK_EQ(static_cast<bool>(t), in);
      if (t) {
        CHECK_EQ(ranks_of(t), expected);
        check_collectives(t, 10 * first + stride);
      }
    }
  CHECK(!far::world().range(0, 0));
  CHECK(!far::world().range(0, 0, 0));
  CHECK_THROWS(far::world().range(0, n + 1), "reaches beyond");
  CHECK_THROWS(far::world().range(n, 1), "reaches beyond");
  CHECK_THROWS(far::world().range(0, 1, 0), "reaches beyond");
  CHECK_THROWS(far::world().range(n - 1, 2, 0x8000'0000u), "reaches beyond");
}

FAR_TEST(list_keeps_the_given_order) {
  far::rank_t n = far::nprocs();
  auto random = far_test::common_random_engine();
  for (int round = 0; round < 8; ++round) {
    std::vector<far::rank_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    order.resize(1 + random() % n);
    auto t = far::world().list(order);
    bool in = std::find(order.begin(), order.end(), far::rank()) != order.end();
    CHECK_EQ(static_cast<bool>(t), in);
    if (!t) continue;
    CHECK_EQ(ranks_of(t), order);
    check_collectives(t, static_cast<std::uint64_t>(round));
  }
  CHECK_THROWS(far::world().list({n}), "is not in a team");
  CHECK_THROWS(far::world().list({0, 0}), "twice");  // on all ranks, so that none waits for another
}

FAR_TEST(teams_of_teams) {
  // Halves again and again, down to one member each; all levels stay alive and in use.
  std::vector<far::team> levels{far::world()};
  while (levels.back().size() > 1) {
    const far::team& above = levels.back();
    levels.push_back(above.split(above.rank() < above.size() / 2 ? 0 : 1));
    CHECK(levels.back().size() < levels[levels.size() - 2].size());
  }
  for (int round = 0; round < 3; ++round)
    for (const auto& level : levels) check_collectives(level, static_cast<std::uint64_t>(round));
  // The deepest first: each goes away collectively over its own members.
  while (!levels.empty()) levels.pop_back();

  auto odd = far::world().split(far::rank() % 2);
  auto last_of_odd = odd.range(odd.size() - 1, 1);
  CHECK_EQ(static_cast<bool>(last_of_odd), odd.rank() + 1 == odd.size());
  if (last_of_odd) CHECK_EQ(last_of_odd.world_rank(0), far::rank());
}

FAR_TEST(disjoint_teams_work_at_their_own_pace) {
  far::rank_t me = far::rank();
  int colour = static_cast<int>(me % 2);
  auto mine = far::world().split(colour);
  far::rank_t members = mine.size();
  // One half does twice as many collectives as the other; they meet only at the end.
  int rounds = colour == 0 ? 200 : 100;
  for (int i = 0; i < rounds; ++i) {
    auto sum = far::all_reduce(static_cast<std::uint64_t>(i), std::plus<>(), mine);
    CHECK_EQ(sum, static_cast<std::uint64_t>(i) * members);
    if (i % 16 == 0) {
      std::vector<int> large(20000, i + static_cast<int>(mine.rank()));
      far::rank_t root = static_cast<far::rank_t>(i) % members;
      far::broadcast(std::span(large), root, mine);
      CHECK_EQ(large.front(), i + static_cast<int>(root));
      CHECK_EQ(large.back(), i + static_cast<int>(root));
    }
  }
  CHECK_EQ(far::all_reduce(rounds), far::all_reduce(colour == 0 ? 200 : 100));
}

FAR_TEST(team_and_world_collectives_interleave) {
  far::rank_t n = far::nprocs(), me = far::rank();
  auto pairs = far::world().split(static_cast<int>(me / 2));
  auto backwards = far::world().split(0, -static_cast<int>(me));
  for (far::rank_t i = 0; i < 60; ++i) {
    CHECK_EQ(far::all_reduce(me + i), n * (n - 1) / 2 + n * i);
    CHECK_EQ(far::broadcast(me * i, pairs.size() - 1, pairs), std::min(n - 1, me / 2 * 2 + 1) * i);
    CHECK_EQ(far::scan(1u, std::plus<>(), backwards), n - me);
    CHECK_EQ(far::broadcast(me, i % n, backwards), n - 1 - i % n);
  }
}

FAR_TEST(copies_name_the_same_team) {
  std::size_t before = heap_in_use();
  std::optional<far::team> original = far::world().split(0);
  CHECK(heap_in_use() > before);
  far::team copy = *original;
  std::vector<far::team> more(3, copy);
  original.reset();
  check_collectives(copy, 1);
  check_collectives(more[2], 2);
  CHECK_EQ(ranks_of(copy), ranks_of(more[0]));
  more.clear();
  CHECK(heap_in_use() > before);
  copy = far::team();
  CHECK_EQ(heap_in_use(), before);
}

FAR_TEST(teams_leave_nothing_behind) {
  std::size_t before = heap_in_use();
  auto random = far_test::common_random_engine();
  for (int round = 0; round < 40; ++round) {
    std::vector<far::team> kept;
    for (int i = 0; i < 3; ++i) {
      int colours = 1 + static_cast<int>(random() % 3);
      int shift = static_cast<int>(random() % 5);
      int colour = (static_cast<int>(far::rank()) + shift) % colours - (round % 2);
      kept.push_back(far::world().split(colour));
    }
    for (const auto& t : kept)
      if (t) CHECK_EQ(far::all_reduce(1u, std::plus<>(), t), t.size());
    // Some end in the order they were made in, some in the other one: the same on all ranks.
    if (round % 3 == 0)
      while (!kept.empty()) kept.pop_back();
    else
      for (auto& t : kept) t = far::team();
  }
  CHECK_EQ(heap_in_use(), before);
}

// The memory of a team is used again once it has ended: by then all members have read from it.
FAR_TEST(teams_end_when_all_have_their_result) {
  far::rank_t n = far::nprocs();
  std::vector<char> rubbish(100'000, '?');
  for (int round = 0; round < 20; ++round) {
    far::rank_t root = static_cast<far::rank_t>(round) % n;
    std::vector<far::rank_t> values(5000, far::rank());  // through the stages
    far::broadcast(std::span(values), root, far::world().split(0));
    auto where_it_was = far::alloc<char>(rubbish.size());
    far::put(where_it_was, rubbish.data(), rubbish.size());
    far::flush();
    CHECK(values == std::vector<far::rank_t>(5000, root));
    far::dealloc(where_it_was);
  }
}

/// Ranges of ranks make teams of their own, while others make theirs or none.
FAR_TEST(made_by_members_alone) {
  far::rank_t n = far::nprocs(), me = far::rank();
  for (int round = 0; round < 2; ++round) {
    std::size_t before = heap_in_use();
    for (far::rank_t first = 0; first < n; ++first)
      for (far::rank_t end = first + 1; end <= n; ++end) {
        if (end - first > 3 && end - first < n) continue;  // enough of them
        if (me < first || me >= end) continue;
        std::vector<far::rank_t> members;
        for (far::rank_t i = first; i < end; ++i)
          members.push_back(round == 0 ? i : end - 1 - (i - first));
        far::team t = far::make_team(members);
        CHECK_EQ(ranks_of(t), members);
        check_collectives(t, first * 10 + end);
        far::make_team(members);  // the same once more, and gone again
      }
    CHECK_EQ(heap_in_use(), before);
  }
}

/// Applications that come to a leader in another order than it makes its teams.
FAR_TEST(members_come_early) {
  far::rank_t n = far::nprocs(), me = far::rank();
  std::vector<far::rank_t> first{0}, all(n);
  if (n > 1) first.push_back(1);
  std::iota(all.begin(), all.end(), far::rank_t{0});
  for (int i = 0; me == 1 && i < 1000; ++i) far::progress();
  far::team pair = me < 2 ? far::make_team(first) : far::team();
  far::team everybody = far::make_team(all);
  check_collectives(everybody, 5);
  if (pair) check_collectives(pair, 6);
}

FAR_TEST(teams_that_cannot_be_made) {
  far::rank_t n = far::nprocs(), me = far::rank();
  CHECK_THROWS(far::make_team({}), "no ranks");
  CHECK_THROWS(far::make_team({me, n}), "there are only");
  CHECK_THROWS(far::make_team({me, me}), "twice");
  if (n > 1) CHECK_THROWS(far::make_team({(me + 1) % n}), "does not name");
  far::barrier();
}

}  // namespace teams_tests

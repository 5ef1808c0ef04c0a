// hash_map: growth while others read and write, and until the segment is full.
#include "amounts.hpp"
#include "harness.hpp"
#include "map_types.hpp"

#include <map>

namespace hash_map_growth_tests {

namespace {

using namespace map_types;

using amounts::scaled;

/// Everybody inserts keys of its own, reads those of others, and counts on common ones, from a map
/// of 8 buckets a member on.
template <class K, class V, class Probing = far::linear_probing>
void under_fire(int keys) {
  far::hash_map<K, V, far::hash<K>, Probing> map(0);
  far::hash_map<int, std::uint64_t> counts(0);
  auto random = far_test::random_engine();
  int me = static_cast<int>(far::rank()), all = static_cast<int>(far::nprocs());
  int wrong = 0;
  for (int i = 0; i < keys; ++i) {
    int mine = i * all + me;
    wrong += !map.insert(make<K>::of(mine), make<V>::of(mine % 1000));
    counts.accumulate(i % 37, 1);
    // Its own earlier keys are there for good; those of others have the right value, or are not
    // there.
    int old = static_cast<int>(random() % static_cast<unsigned>(i + 1)) * all + me;
    auto found = map.find(make<K>::of(old));
    wrong += !found || *found != make<V>::of(old % 1000);
    int other = static_cast<int>(random() % static_cast<unsigned>(keys * all));
    if (auto seen = map.find(make<K>::of(other))) wrong += *seen != make<V>::of(other % 1000);
    if (i % 5 == 4) {  // one goes and comes again
      int again = (i - 1) * all + me;
      wrong += !map.erase(make<K>::of(again));
      wrong += map.contains(make<K>::of(again));
      wrong += !map.insert(make<K>::of(again), make<V>::of(again % 1000));
    }
  }
  CHECK_EQ(wrong, 0);
  far::barrier();
  CHECK_EQ(map.size(), static_cast<std::size_t>(keys * all));
  for (int i = me; i < keys * all; i += all) {
    auto found = map.find(make<K>::of(i));
    CHECK(found && *found == make<V>::of(i % 1000));
  }
  std::uint64_t sum = 0;
  for (const auto& [key, count] : counts.everywhere()) sum += count;
  CHECK_EQ(sum, static_cast<std::uint64_t>(keys) * far::nprocs());
  far::barrier();
}

}  // namespace

FAR_TEST(growth_under_fire) { under_fire<int, int>(scaled(600)); }
FAR_TEST(growth_under_fire_of_strings) { under_fire<std::string, std::string>(scaled(150)); }
FAR_TEST(growth_under_fire_of_structures) {
  under_fire<int, triple, far::quadratic_probing>(scaled(300));
}

// Keys and values of variable length, promised local: found where growth has put them.
// Every rank adds to a few keys, whose places it knows by then, while all make tables move.
FAR_TEST(counts_while_tables_move) {
  far::hash_map<int, long> map(0);
  int n = scaled(200), me = static_cast<int>(far::rank());
  for (int i = 0; i < n; ++i) {
    map.accumulate(i % 3, 1);
    if (i % 4 == 0) map.insert(1000 + me * n + i, i);
  }
  far::barrier();
  long sum = 0;
  for (int key = 0; key < 3; ++key) sum += map.find(key).value_or(0);
  CHECK_EQ(sum, static_cast<long>(n) * far::nprocs());
  far::barrier();
}

FAR_TEST(growth_of_own_parts) {
  far::hash_map<std::string, std::string> map(0);
  far::barrier();
  int mine = 0, last = 0;
  for (int key = 0; mine < 60; ++key) {
    std::string text = make<std::string>::of(key);
    if (map.owner(text) != far::rank()) continue;
    ++mine;
    last = key;
    CHECK(map.insert(text, text, far::concurrency::owner_only));
    for (int old = 0; old <= key; old += 7) {
      std::string other = make<std::string>::of(old);
      if (map.owner(other) == far::rank())
        CHECK(map.find(other, far::concurrency::owner_only) == other);
    }
  }
  far::barrier();
  CHECK(map.find(make<std::string>::of(last)) == make<std::string>::of(last));
  CHECK_EQ(map.size(), std::size_t{60} * far::nprocs());
  far::barrier();
}

// Who owns a full part may be computing: the others make it grow.
FAR_TEST(growth_without_the_owner) {
  far::hash_map<int, int> map(0);
  far::barrier();
  int n = scaled(300);
  if (far::rank() == 0)
    for (int i = 0; i < n; ++i) CHECK(map.insert(i, i));
  // All but rank 0 are here at once and call nothing of the map.
  far::barrier();
  CHECK_EQ(map.size(), static_cast<std::size_t>(n));
  CHECK(map.find(n - 1) == n - 1);
  far::barrier();
}

// A count that only grows is never seen to go back, also while its cell moves. Additions to a cell that
// moves are repeated in the next table; until then nobody may see them.
FAR_TEST(counts_never_go_back) {
  if (far::nprocs() < 3) SKIP("it takes one who moves, one who counts and one who looks");
  far::hash_map<int, std::uint64_t> map(0);
  constexpr int counted = 0;
  const int rounds = scaled(150);
  int wrong = 0;
  if (far::rank() == 0) {  // its tombstones make a table of few buckets move again and again
    for (int key = 1, made = 0; made < rounds; ++key) {
      if (map.owner(key) != map.owner(counted)) continue;
      wrong += !map.insert(key, 1) + !map.erase(key);
      ++made;
    }
  } else if (far::rank() == 1) {
    std::uint64_t last = 0;
    for (int i = 0; i < 3 * rounds; ++i) {
      const std::uint64_t now = map.find(counted).value_or(0);
      wrong += now < last;
      last = now;
    }
  } else {
    for (int i = 0; i < 2 * rounds; ++i) map.accumulate(counted, 1);
  }
  CHECK_EQ(wrong, 0);
  far::barrier();
  CHECK_EQ(map.find(counted).value_or(0),
           static_cast<std::uint64_t>(2 * rounds) * (far::nprocs() - 2));
  far::barrier();
}

// Keys that come and go leave tombstones, which growth drops: the map does not swell for ever.
FAR_TEST(tombstones_are_dropped) {
  far::hash_map<int, std::string> map(8);
  int me = static_cast<int>(far::rank()) * 1000000;
  int rounds = scaled(400);
  for (int i = 0; i < rounds; ++i) {
    CHECK(map.insert(me + i, "some text"));
    CHECK(map.erase(me + i));
    if (i % 50 == 0) far::barrier();
  }
  far::barrier();
  auto s = map.statistics();
  CHECK_EQ(s.entries, 0u);
  CHECK(s.buckets < static_cast<std::uint64_t>(rounds) * far::nprocs());
}

// A table that was left is freed: growing and emptying again and again fits a segment.
FAR_TEST(old_tables_are_freed) {
  std::size_t most = 0, first = 0;
  for (int round = 0; round < 20; ++round) {
    far::hash_map<int, int> map(0);
    for (int i = 0; i < 200; ++i)
      map.insert(i * static_cast<int>(far::nprocs()) + static_cast<int>(far::rank()), i);
    far::barrier();
    CHECK_EQ(map.size(), std::size_t{200} * far::nprocs());
    far::barrier();
    auto where = far::alloc_on<char>(far::rank(), 16);
    if (round == 4) first = where.offset();
    most = std::max(most, where.offset());
    far::dealloc(where);
  }
  CHECK(most < first + (std::size_t{1} << 20));
  far::barrier();
}

// A map takes all the room there is; then it says so, and everything that went in is still there.
FAR_TEST(a_full_segment) {
  struct large {
    std::uint64_t words[512];
    bool operator==(const large&) const = default;
  };
  far::hash_map<int, large> map(0);
  auto kept = far::alloc<std::byte>(std::size_t{8} << 20);  // for what comes after this test
  // Leaves room for some thousand buckets on each member.
  std::vector<far::ptr<std::byte>> ballast;
  for (std::size_t piece = std::size_t{1} << 40; piece >= (std::size_t{1} << 20); piece /= 2) try {
      while (true) ballast.push_back(far::alloc_on<std::byte>(far::rank(), piece));
    } catch (const far::allocation_error&) {
    }
  far::barrier();
  int mine = 0;
  bool full = false;
  for (; mine < 4000 && !full; ++mine) {
    large value;
    for (auto& w : value.words) w = static_cast<std::uint64_t>(mine);
    try {
      map.insert(mine * static_cast<int>(far::nprocs()) + static_cast<int>(far::rank()), value);
    } catch (const far::allocation_error& e) {
      full = std::string(e.what()).find("no room") != std::string::npos;
      break;
    }
  }
  CHECK(full);
  far::barrier();
  int missing = 0;
  for (int i = 0; i < mine; ++i) {
    auto found = map.find(i * static_cast<int>(far::nprocs()) + static_cast<int>(far::rank()));
    missing += !found || found->words[511] != static_cast<std::uint64_t>(i);
  }
  CHECK_EQ(missing, 0);
  far::barrier();
  for (auto at : ballast) far::dealloc(at);
  far::dealloc(kept);
  far::barrier();
}

}  // namespace hash_map_growth_tests

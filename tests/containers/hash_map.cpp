// hash_map against std::map: every operation, on keys and values of every kind.
#include "amounts.hpp"
#include "harness.hpp"
#include "map_types.hpp"

#include <map>

namespace hash_map_tests {

namespace {

using namespace map_types;

using amounts::scaled;

/// The entries of a map as a std::map, from this rank's point of view.
template <class Map>
auto contents(const Map& map) {
  std::map<typename Map::key_type, typename Map::mapped_type> result;
  for (const auto& [key, value] : map.everywhere()) {
    bool fresh = result.emplace(key, value).second;
    CHECK(fresh);
  }
  return result;
}

/// One rank after another does random operations; the others look at the result.
template <class K, class V, class Hash = far::hash<K>, class Probing = far::linear_probing>
void against_oracle(int operations, int keys) {
  far::hash_map<K, V, Hash, Probing> map(4);
  std::map<K, V> oracle;
  auto random = far_test::random_engine();
  std::uint64_t seed = far::broadcast(random(), 0);
  std::mt19937_64 same(seed);  // all ranks know what each does
  for (far::rank_t turn = 0; turn < far::nprocs(); ++turn) {
    bool acts = turn == far::rank();
    for (int i = 0; i < operations; ++i) {
      int k = static_cast<int>(same() % static_cast<unsigned>(keys));
      int v = static_cast<int>(same() % 1000);
      K key = make<K>::of(k);
      V value = make<V>::of(v);
      switch (same() % 6) {
        case 0: {
          bool fresh = oracle.emplace(key, value).second;
          if (acts) CHECK_EQ(map.insert(key, value), fresh);
          break;
        }
        case 1: {
          bool fresh = oracle.insert_or_assign(key, value).second;
          if (acts) CHECK_EQ(map.insert_or_assign(key, value), fresh);
          break;
        }
        case 2: {
          bool there = oracle.erase(key) != 0;
          if (acts) CHECK_EQ(map.erase(key), there);
          break;
        }
        case 3: {
          if (!acts) break;
          auto found = map.find(key);
          auto known = oracle.find(key);
          CHECK_EQ(found.has_value(), known != oracle.end());
          if (found && known != oracle.end()) CHECK(*found == known->second);
          CHECK_EQ(map.contains(key), known != oracle.end());
          break;
        }
        case 4: {
          oracle[key] = value;
          if (acts) CHECK(map.modify(key, [&](V& held) { held = value; }) == value);
          break;
        }
        case 5: {
          auto known = oracle.find(key);
          bool there = known != oracle.end();
          std::optional<V> before;
          if (there) before = known->second;
          oracle[key] = value;
          auto second = [](const V&, const V& b) { return b; };
          if (acts) CHECK(map.accumulate(key, value, second) == before);
          break;
        }
      }
    }
    far::barrier();
    CHECK_EQ(map.size(), oracle.size());
    for (const auto& [key, value] : oracle) {
      auto found = map.find(key, far::concurrency::find);
      CHECK(found && *found == value);
    }
    far::barrier();
  }
  CHECK(contents(map) == oracle);
  far::barrier();
}

}  // namespace

FAR_TEST(map_of_ints) { against_oracle<int, int>(scaled(300), 100); }
FAR_TEST(map_of_strings) { against_oracle<std::string, std::string>(scaled(150), 60); }
FAR_TEST(map_of_user_types_to_counts) { against_oracle<record, std::int64_t>(scaled(150), 60); }
FAR_TEST(map_of_user_types_to_structures) { against_oracle<date, triple>(scaled(150), 60); }
FAR_TEST(map_whose_hash_always_collides) {
  against_oracle<int, record, collides_always, far::quadratic_probing>(scaled(80), 40);
}

// What is sent to an owner is a key or an entry; a key that looks like an entry is still a key.
template <class K, class V>
void keys_like_entries() {
  against_oracle<K, V>(scaled(60), 30);
  far::hash_map<K, V> map(4);
  int me = static_cast<int>(far::rank()), n = 10;
  auto key = [&](int i) { return make<K>::of(me * n + i); };
  std::vector<K> keys;
  std::vector<std::pair<K, V>> entries;
  for (int i = 0; i < n; ++i) {
    keys.push_back(key(i));
    entries.emplace_back(key(i), make<V>::of(i));
  }
  auto second = [](const V&, const V& b) { return b; };
  CHECK(map.async_insert(key(0), make<V>::of(50)).get());
  CHECK(!map.async_insert_or_assign(key(0), make<V>::of(51)).get());
  CHECK(map.async_find(key(0)).get() == make<V>::of(51));
  CHECK(map.async_accumulate(key(0), make<V>::of(52), second).get() == make<V>::of(51));
  CHECK(map.async_modify(key(0), [](V& v) { v = make<V>::of(53); }).get() == make<V>::of(53));
  CHECK(map.find(key(0)) == make<V>::of(53));
  CHECK(map.async_erase(key(0)).get());
  CHECK(!map.contains(key(0)));
  CHECK_EQ(map.insert(entries), static_cast<std::size_t>(n));
  CHECK_EQ(map.insert_or_assign(entries), 0u);
  map.accumulate(entries, second);
  auto found = map.find(keys);
  for (int i = 0; i < n; ++i) CHECK(found[static_cast<std::size_t>(i)] == make<V>::of(i));
  far::barrier();
  CHECK_EQ(map.size(), static_cast<std::size_t>(n) * far::nprocs());
  far::barrier();
  CHECK_EQ(map.erase(keys), static_cast<std::size_t>(n));
  far::barrier();
  CHECK(map.empty());
  far::barrier();
}
FAR_TEST(keys_that_are_pairs) { keys_like_entries<std::pair<int, std::string>, edge>(); }
FAR_TEST(keys_with_a_member_first) { keys_like_entries<edge, std::pair<int, int>>(); }

FAR_TEST(empty_map) {
  far::hash_map<int, int> map(0);
  CHECK(!map.find(1));
  CHECK(!map.erase(1));
  CHECK(map.empty());
  CHECK(map.begin() == map.end());
  far::barrier();
  CHECK_EQ(map.statistics().entries, 0u);
}

FAR_TEST(numbers_of_any_size) {
  // Values that fit a cell and values that do not, replaced by each other and added to.
  far::hash_map<int, std::uint64_t> wide(4);
  far::hash_map<int, std::int64_t> both(4);
  int me = static_cast<int>(far::rank());
  const std::uint64_t edges[] = {0,
                                 1,
                                 ~std::uint64_t{0},
                                 std::uint64_t{1} << 59,
                                 (std::uint64_t{1} << 59) - 1,
                                 std::uint64_t{1} << 63,
                                 std::uint64_t{1} << 60,
                                 std::uint64_t{1} << 36};
  for (std::uint64_t first : edges)
    for (std::uint64_t second : edges) {
      CHECK(wide.insert_or_assign(me, first) || wide.find(me) == first);
      CHECK(wide.find(me) == first);
      wide.insert_or_assign(me, second);
      CHECK(wide.find(me) == second);
      CHECK(wide.accumulate(me, first) == second);
      CHECK(wide.find(me) == first + second);
      CHECK(wide.erase(me));
      CHECK(!wide.find(me));
      CHECK(!wide.accumulate(me, second));
      CHECK(wide.find(me) == second);
    }
  std::int64_t sum = 0;
  for (std::int64_t step : {std::int64_t{5}, std::int64_t{-9}, std::int64_t{1} << 40,
                            -(std::int64_t{1} << 58), -(std::int64_t{1} << 61), std::int64_t{7}}) {
    both.accumulate(me, step);
    sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                    static_cast<std::uint64_t>(step));
    CHECK(both.find(me) == sum);
  }
  far::hash_map<int, signed char> small(4);
  for (int i = 0; i < 300; ++i) small.accumulate(me, static_cast<signed char>(1));
  CHECK(small.find(me) == static_cast<signed char>(300));
  far::barrier();
}

FAR_TEST(everybody_counts) {
  far::hash_map<int, long> counts(8);
  int rounds = scaled(200);
  for (int i = 0; i < rounds; ++i) counts.accumulate(i % 10, i);
  far::barrier();
  for (int k = 0; k < 10; ++k) {
    long expected = 0;
    for (int i = k; i < rounds; i += 10) expected += i;
    CHECK_EQ(counts.find(k).value_or(-1), expected * static_cast<long>(far::nprocs()));
  }
  CHECK_EQ(counts.size(), 10u);
  far::barrier();
}

FAR_TEST(modify_is_atomic) {
  // Not integers: plain buckets. And min, which is no addition.
  far::hash_map<int, triple> map(8);
  far::hash_map<int, int> least(8);
  int rounds = scaled(60);
  for (int i = 0; i < rounds; ++i) {
    map.modify(i % 3, [](triple& t) { t.a += 1, t.b += 2, t.c += 3; });
    least.accumulate(i % 3, 1000 - i - static_cast<int>(far::rank()), far::minimum());
  }
  far::barrier();
  std::uint64_t all = 0;
  for (int k = 0; k < 3; ++k) {
    triple t = map.find(k).value_or(triple{});
    CHECK_EQ(t.b, 2 * t.a);
    CHECK_EQ(t.c, 3 * t.a);
    all += t.a;
  }
  CHECK_EQ(all, static_cast<std::uint64_t>(rounds) * far::nprocs());
  CHECK_EQ(least.find((rounds - 1) % 3).value_or(0),
           1000 - (rounds - 1) - static_cast<int>(far::nprocs() - 1));
  far::barrier();
}

FAR_TEST(only_one_insert_wins) {
  far::hash_map<int, int> map(8);
  far::hash_map<std::string, int> named(8);
  int keys = scaled(80), won = 0;
  for (int k = 0; k < keys; ++k) won += map.insert(k, static_cast<int>(far::rank()));
  for (int k = 0; k < keys; ++k)
    won += named.insert(std::to_string(k), static_cast<int>(far::rank()));
  CHECK_EQ(far::all_reduce(won, std::plus<>()), 2 * keys);
  far::barrier();
  CHECK_EQ(map.size(), static_cast<std::size_t>(keys));
  far::barrier();
}

FAR_TEST(brackets) {
  far::hash_map<std::string, int> map(8);
  std::string mine = "rank " + std::to_string(far::rank());
  map[mine] = 5;
  map[mine] += 2;
  int value = map[mine];
  CHECK_EQ(value, 7);
  CHECK_EQ(int(map["nobody"]), 0);
  CHECK(!map.contains("nobody"));  // reading creates nothing
  map[mine + "'"] = map[mine];
  CHECK_EQ(int(map[mine + "'"]), 7);
  far::barrier();
}

FAR_TEST(many_at_once) {
  far::hash_map<int, int> map(8);
  far::hash_map<std::string, std::string> named(8);
  int n = scaled(300), me = static_cast<int>(far::rank());
  std::vector<std::pair<int, int>> entries;
  std::vector<std::pair<std::string, std::string>> names;
  std::vector<int> keys;
  for (int i = 0; i < n; ++i) {
    entries.emplace_back(me * n + i, i);
    names.emplace_back(make<std::string>::of(me * n + i), std::to_string(i));
    keys.push_back(me * n + n - 1 - i);
  }
  entries.push_back(entries.front());  // a key twice
  entries.back().second = -1;
  CHECK_EQ(map.insert(entries), static_cast<std::size_t>(n));
  CHECK_EQ(named.insert(names), static_cast<std::size_t>(n));
  keys.push_back(-1 - me);
  auto found = map.find(keys);
  for (int i = 0; i < n; ++i) CHECK(found[static_cast<std::size_t>(i)] == n - 1 - i);
  CHECK(!found.back());
  CHECK(!map.contains(keys).back() && map.contains(keys).front());
  map.accumulate(entries);
  CHECK(map.find(entries[1].first) == 2);
  CHECK(map.find(entries[0].first) == -1);  // 0 + 0 + -1
  CHECK_EQ(map.insert_or_assign(entries), 0u);
  CHECK(map.find(entries[2].first) == 2);
  std::vector<std::string> texts{names[0].first, "no such name", names[1].first};
  auto values = named.find(texts);
  CHECK(values[0] == "0" && !values[1] && values[2] == "1");
  CHECK_EQ(named.erase(texts), 2u);
  CHECK_EQ(map.erase(keys), static_cast<std::size_t>(n));
  far::barrier();
  CHECK(map.empty());
  CHECK_EQ(named.size(), static_cast<std::size_t>(n - 2) * far::nprocs());
  CHECK(map.find(std::vector<int>()).empty());
  far::barrier();
}

// Message passing over two keys: who has seen a count of the second sees no less of the first. Many
// pairs of keys, as where their buckets lie decides whether a CPU would turn two finds round.
FAR_TEST(finds_keep_their_order) {
  far::hash_map<int, long> map(200);
  const bool by_loads = far::detail::here().link.coherent() &&
                        map.engine_of(far::container_operation::find) == far::engine::rma;
  const int pairs = by_loads ? 64 : 2;
  const long last = by_loads ? 2000 : 30;
  int wrong = 0;
  for (int key = 0; key < 2 * pairs; key += 2) {
    if (far::rank() == 0) map.insert(key, 0), map.insert(key + 1, 0);
    far::barrier();
    if (far::rank() == 0) {
      for (long i = 0; i < last; ++i) {
        map.accumulate(key, 1);
        map.accumulate(key + 1, 1);
      }
    } else if (far::rank() <= 2) {  // more would only keep rank 0 from a core
      for (long second = 0; second < last;) {
        second = *map.find(key + 1);
        wrong += *map.find(key) < second;
      }
    }
  }
  CHECK_EQ(wrong, 0);
  far::barrier();
}

FAR_TEST(in_flight) {
  far::hash_map<int, int> map(8);
  far::hash_map<int, std::string> named(8);
  int n = scaled(80), me = static_cast<int>(far::rank()) * n;
  std::vector<far::future<bool>> made;
  for (int i = 0; i < n; ++i) made.push_back(map.async_insert(me + i, i));
  for (int i = 0; i < n; ++i)
    made.push_back(named.async_insert_or_assign(me + i, std::to_string(i)));
  for (auto& one : made) CHECK(one.get());
  std::vector<far::future<std::optional<int>>> found;
  for (int i = 0; i < n; ++i) found.push_back(map.async_find(me + i));
  for (int i = 0; i < n; ++i) CHECK(found[static_cast<std::size_t>(i)].get() == i);
  CHECK(map.async_accumulate(me, 5).get() == 0);
  CHECK_EQ(map.async_modify(me, [](int& v) { v *= 2; }).get(), 10);
  CHECK(named.async_find(me + 1).get() == "1");
  CHECK(named.async_erase(me + 1).get());
  CHECK(!named.async_erase(me + 1).get());
  // A barrier may come while one is in flight.
  auto late = map.async_find(me);
  far::barrier();
  CHECK(late.get() == 10);
  far::barrier();
}

FAR_TEST(local_entries_are_all_entries) {
  far::hash_map<int, int> map(8);
  int n = scaled(200);
  for (int i = static_cast<int>(far::rank()); i < n; i += static_cast<int>(far::nprocs()))
    map.insert(i, 2 * i);
  far::barrier();
  static_assert(std::ranges::input_range<decltype(map)>);
  long sum = 0;
  for (const auto& [key, value] : map) {
    CHECK_EQ(map.owner(key), far::rank());
    CHECK_EQ(value, 2 * key);
    sum += key;
  }
  CHECK_EQ(far::all_reduce(sum, std::plus<>()), long{n} * (n - 1) / 2);
  // With the promise that nobody else is there.
  for (int i = 0; i < n; ++i)
    if (map.owner(i) == far::rank()) {
      auto alone = far::concurrency::owner_only;
      CHECK(map.find(i, alone) == 2 * i);
      map.accumulate(i, 1, std::plus<>(), alone);
      if (i % 2) CHECK(map.erase(i, alone));
    }
  far::barrier();
  for (int i = 0; i < n; ++i)
    CHECK(map.find(i) == (i % 2 ? std::nullopt : std::optional(2 * i + 1)));
  far::barrier();
}

FAR_TEST(clear_and_reserve) {
  far::hash_map<int, std::string> map(8);
  int n = scaled(100), me = static_cast<int>(far::rank()) * n;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n; ++i) CHECK(map.insert(me + i, "text"));
    map.clear();
    CHECK_EQ(map.size(), 0u);
    CHECK(!map.find(me));
    far::barrier();
  }
  map.reserve(static_cast<std::size_t>(4 * n) * far::nprocs());
  auto before = map.statistics().buckets;
  for (int i = 0; i < 4 * n; ++i) map.insert(me * 4 + i, "x");
  far::barrier();
  CHECK_EQ(map.statistics().buckets, before);
  auto s = map.statistics();
  CHECK_EQ(s.entries, static_cast<std::uint64_t>(4 * n) * far::nprocs());
  CHECK(s.load_factor > 0 && s.load_factor < 1 && s.mean_probes >= 1 && s.skew >= 1);
  CHECK(s.most_probes >= 1 && s.most_entries >= s.fewest_entries && s.bytes > 0);
  CHECK(s.displaced < s.entries && s.equal_hashes == 0);
  CHECK((s.displaced == 0) == (s.most_probes == 1));

  far::hash_map<int, std::uint64_t, collides_always> crowded(100);
  if (far::rank() == 0)
    for (int i = 0; i < 20; ++i) crowded.insert(i, 1);
  far::barrier();
  s = crowded.statistics();
  CHECK_EQ(s.displaced, 19u);
  CHECK_EQ(s.equal_hashes, 20u * 19 / 2);
  // The first get brings 8 buckets of 32 bytes, the next one 16; fewer where the table ends.
  CHECK(s.further_gets >= 12 && s.further_gets <= 24);
}

FAR_TEST(maps_over_teams_and_moved_maps) {
  far::team half = far::world().split(static_cast<int>(far::rank() % 2));
  far::hash_map<int, int> map(8, {.name = "half", .over = half});
  CHECK_EQ(map.name(), std::string("half"));
  map.accumulate(1, 1);
  far::barrier(half);
  CHECK(map.find(1) == static_cast<int>(half.size()));
  far::barrier(half);
  auto other = std::move(map);
  CHECK(other.find(1) == static_cast<int>(half.size()));
  CHECK_THROWS(map.find(1), "moved from");
  far::hash_map<int, int> assigned;
  assigned = std::move(other);
  CHECK(assigned.contains(1));
  far::barrier(half);
}

}  // namespace hash_map_tests

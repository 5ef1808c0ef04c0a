// hash_map: the fast path, and that it gives up where something stands against it. Keys are spread
// so that many are away from their homes, tables grow, and values leave what cells hold.
#include "harness.hpp"

#include <farside/containers/hash_map.hpp>

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

/// A user's own, of a type that far::hash knows.
template <>
struct far::hash<long long> {
  std::uint64_t operator()(long long key) const {
    return far::mix(~static_cast<std::uint64_t>(key));
  }
};

namespace hash_map_quick_tests {

namespace {

using word = std::uint64_t;
using map_type = far::hash_map<word, word>;

/// Every other value of a few does not fit a cell.
word value_of(word key) { return key % 16 == 3 ? ~key : key * 3; }

/// All keys of all ranks are there, or none of them; one by one and many at once.
void check_all(const map_type& map, word keys, bool there) {
  std::vector<word> asked;
  for (word key = 0; key < keys; ++key) {
    asked.push_back(key);
    auto found = map.find(key);
    CHECK_EQ(found.has_value(), there);
    if (there && found) CHECK_EQ(*found, value_of(key));
  }
  auto found = map.find(std::span<const word>(asked));
  CHECK_EQ(found.size(), asked.size());
  for (word key = 0; key < keys; ++key) {
    CHECK_EQ(found[key].has_value(), there);
    if (there && found[key]) CHECK_EQ(*found[key], value_of(key));
  }
}

FAR_TEST(tables_beyond_caches) {
  const word n = far::nprocs(), each = 300, keys = each * n;
  map_type map(9000 * n);
  for (word key = far::rank() * each; key < (far::rank() + 1) * each; ++key)
    CHECK(map.insert(key, value_of(key)));
  far::barrier();
  for (word key = far::rank(); key < keys; key += 3) CHECK(!map.insert(key, 0));
  far::barrier();
  check_all(map, keys, true);
  CHECK_EQ(map.size(), keys);
}

struct two_words {
  word a, b;
  bool operator==(const two_words&) const = default;
};

/// Owners alone do all that can be done to their keys, which nobody else then may; after a barrier
/// others see it, and go on from there. `make(key)` is a value, `bits(value)` a number of it.
template <class V, class Make, class Bits>
void own_parts(word entries, Make make, Bits bits) {
  constexpr auto local = far::concurrency::owner_only;
  const word n = far::nprocs(), keys = 40 * n, third = far::rank() % 3;
  far::hash_map<word, V> map(entries);
  auto larger = [bits](const V& a, const V& b) { return bits(a) < bits(b) ? b : a; };
  auto each_own = [&](auto visit) {
    for (word key = 0; key < keys; ++key)
      if (map.owner(key) == far::rank()) visit(key);
  };
  each_own([&](word key) {
    CHECK(map.insert(key, make(key), local));
    CHECK(!map.insert(key, make(0), local));
  });
  far::barrier();
  CHECK_EQ(map.size(), keys);
  for (word key = third; key < keys; key += 3) CHECK(map.find(key) == make(key));
  far::barrier();
  each_own([&](word key) {
    if (key % 5 == 1) CHECK(!map.insert_or_assign(key, make(key + 1), local));
    if (key % 5 == 2) map.accumulate(key, make(key + 3), larger, local);
    if (key % 5 == 3) map.modify(key, [&](V& value) { value = make(bits(value) % 1000); }, local);
    if (key % 5 == 4) {
      CHECK(map.erase(key, local));
      CHECK(!map.find(key, local));
      CHECK(map.insert(key, make(7), local));
    }
  });
  far::barrier();
  for (word key = third; key < keys; key += 3) {
    V expected = key % 5 == 1   ? make(key + 1)
                 : key % 5 == 2 ? larger(make(key), make(key + 3))
                 : key % 5 == 3 ? make(bits(make(key)) % 1000)
                 : key % 5 == 4 ? make(7)
                                : make(key);
    CHECK(map.find(key) == expected);
  }
  CHECK_EQ(map.size(), keys);
  far::barrier();
  const V least = make(keys + 4);  // one that a cell holds: each of the others makes a table move
  for (word key = third; key < keys; key += 3) map.accumulate(key, least, larger);
  far::barrier();
  for (word key = third; key < keys; key += 3) CHECK(bits(*map.find(key)) >= bits(least));
  far::barrier();
}

FAR_TEST(own_parts_by_owners_alone) {
  auto number = [](word value) { return value; };
  own_parts<word>(0, [](word key) { return value_of(key); }, number);
  own_parts<word>(9000 * word{far::nprocs()}, [](word key) { return key * 3; }, number);
  own_parts<long>(
      0, [](word key) { return 4 - static_cast<long>(key); },
      [](long value) { return static_cast<word>(4 - value); });
  own_parts<two_words>(
      0, [](word key) { return two_words{key, ~key}; },
      [](const two_words& value) { return value.a; });
}

// As owners add, others have added before: nothing is lost between them.
FAR_TEST(own_additions_go_on_from_others) {
  const word n = far::nprocs(), keys = 10 * n, rounds = 3;
  map_type map(keys);
  for (word round = 0; round < rounds; ++round) {
    for (word key = 0; key < keys; ++key) map.accumulate(key, 1);
    far::barrier();
    for (word key = 0; key < keys; ++key)
      if (map.owner(key) == far::rank())
        map.accumulate(key, 2, std::plus<>(), far::concurrency::owner_only);
    far::barrier();
  }
  for (word key = 0; key < keys; ++key) CHECK(map.find(key) == rounds * (n + 2));
  far::barrier();
}

// As many at once as make whole groups of keys, or not; of both signs, and half of them absent.
FAR_TEST(groups_of_every_length) {
  using number = std::int64_t;
  const auto me = static_cast<number>(far::rank()), n = static_cast<number>(far::nprocs());
  constexpr number keys = 70;
  far::hash_map<number, number> map(2 * keys);
  for (number key = -keys + me; key <= keys; key += n)
    if (key % 2 == 0) map.insert(key, 1 - key);
  far::barrier();
  std::vector<number> asked;
  for (number i = 0; i <= keys; ++i) {
    auto found = map.find(std::span<const number>(asked));
    CHECK_EQ(found.size(), asked.size());
    for (std::size_t k = 0; k < asked.size(); ++k) {
      CHECK_EQ(found[k].has_value(), asked[k] % 2 == 0);
      if (found[k]) CHECK_EQ(*found[k], 1 - asked[k]);
    }
    asked.push_back(i % 3 == 0 ? i : -i);
  }
  far::barrier();
}

FAR_TEST(many_at_once_by_a_hash_of_the_users) {
  const long long n = far::nprocs(), me = far::rank(), each = 60;
  far::hash_map<long long, int> map(each * n);
  std::vector<long long> keys;
  for (long long key = me; key < each * n; key += n) {
    CHECK(map.insert(key, static_cast<int>(key)));
    keys.push_back(key);
  }
  auto found = map.find(std::span<const long long>(keys));
  for (std::size_t i = 0; i < keys.size(); ++i) CHECK(found[i] == static_cast<int>(keys[i]));
  far::barrier();
}

// Whoever is told that a key is there finds it, also while its table moves: a key whose home was
// empty there.
FAR_TEST(what_was_told_is_found_while_tables_grow) {
  const word n = far::nprocs(), me = far::rank(), rounds = 5, each = 200;
  auto told = far::alloc<word>(1);
  far::atomic_store(told, word{0});
  auto all = far::all_gather(told);
  const auto left = all[(me + n - 1) % n];
  for (word round = 0; round < rounds; ++round) {
    map_type map(8);
    far::atomic_store(told, word{0});
    far::barrier();
    for (word i = 1, seen = 0; i <= each || seen < each;) {
      if (i <= each) {
        map.insert(i * n + me, i);
        far::atomic_store(told, i++);
      }
      far::progress();  // others' inserts may be sent to this rank
      for (word now = far::atomic_load(left); seen < now;) {
        word key = ++seen * n + (me + n - 1) % n;
        auto found = map.find(key);
        CHECK(found.has_value());
        if (found) CHECK_EQ(*found, seen);
      }
    }
    far::barrier();
  }
  far::dealloc(told);
}

// Probes of tables made by hand, as the moments are too short for the test above to meet them often.
namespace map = far::detail::map;
using traits = map::map_traits<word, word, far::hash<word>, far::linear_probing>;

struct made_by_hand {
  static constexpr word capacity = 64, moved_empty = 8, key = 12345;

  made_by_hand() : memory(capacity * traits::bucket_words) {
    table.direct = memory.data();
    table.capacity = capacity;
  }
  word* bucket(word after_home) {
    return memory.data() + (where.home(capacity) + after_home) % capacity * traits::bucket_words;
  }
  /// A cell of the key whose word is `value`.
  void fill(word after_home, word value) {
    bucket(after_home)[0] = word{1} << 32 | where.wanted(map::state::cell);
    bucket(after_home)[2] = value;
    bucket(after_home)[3] = key;
  }
  auto find() {
    map::direct_access<traits, true> in(memory.data(), capacity);
    return map::find_in<map::if_blocked::give_up, traits>(in, where, key);
  }
  template <class Update>
  auto update(const Update& by) {
    return update(map::direct_access<traits, true>(memory.data(), capacity), by);
  }
  /// The way of handlers, which may meet a table that more still moves into.
  template <class Update>
  auto update_by_handler(const Update& by) {
    return update(map::direct_access<traits, false>(far::detail::here(), table), by);
  }
  template <class Access, class Update>
  auto update(Access in, const Update& by) {
    map::new_bucket<traits> made;
    made.settled = settled;
    return map::update<map::if_blocked::give_up, traits>(in, where, key, by, made).what;
  }

  std::vector<word> memory;
  map::table table;
  bool settled = true;
  map::key_location where{traits::hash_of(key), 1};
};

FAR_TEST(an_empty_home_says_nothing_once_its_table_moves) {
  made_by_hand t;
  CHECK(t.find().what == map::result::done);
  *t.bucket(0) = made_by_hand::moved_empty;
  CHECK(t.find().what != map::result::done);
  *t.bucket(1) = word{1} << 32 | 0xabcdef2;  // another key's
  CHECK(t.find().what != map::result::done);
  *t.bucket(0) = 0;
  CHECK(t.find().what == map::result::done);
}

FAR_TEST(the_fast_path_gives_up_on_what_others_are_doing) {
  const auto frozen = map::cell::frozen, absent = map::cell::absent;
  std::plus<> plus;
  const map::combine<word, std::plus<>> one_more{1, plus};
  auto gives_up = [&](made_by_hand& t, bool on_find, bool on_update) {
    const auto before = t.memory;
    CHECK_EQ(t.find().what != map::result::done, on_find);
    CHECK_EQ(t.update(map::keep<word>{1}) != map::result::done, on_update);
    CHECK_EQ(t.update(map::replace<word>{~word{0}}) != map::result::done, true);  // fits no cell
    if (!on_update) return;
    CHECK(t.update(map::remove()) != map::result::done);
    CHECK(before == t.memory);  // nothing has changed
    const auto what = t.update(one_more);
    CHECK(what != map::result::done);
  };
  {
    made_by_hand t;
    t.fill(0, map::cell::encode(word{7}));
    CHECK(t.find().value == word{7});
    gives_up(t, false, false);
    CHECK(t.update(one_more) == map::result::done);
    CHECK(t.find().value == word{8});
    *t.bucket(0) |= 8;  // the bucket has moved
    gives_up(t, true, true);
  }
  {
    made_by_hand t;
    t.fill(0, map::cell::encode(word{7}) | frozen);
    gives_up(t, true, true);
  }
  {
    made_by_hand t;  // the body has not come
    t.fill(0, 0);
    gives_up(t, true, true);
  }
  {
    made_by_hand t;
    t.fill(0, absent | map::cell::bias);
    gives_up(t, true, true);
  }
  {
    made_by_hand t;  // more is still moving into the table
    t.settled = false;
    const auto before = t.memory;
    CHECK(t.update_by_handler(map::keep<word>{1}) != map::result::done);
    CHECK(t.update_by_handler(map::replace<word>{1}) != map::result::done);
    CHECK(before == t.memory);
    t.settled = true;
    CHECK(t.update_by_handler(map::keep<word>{1}) == map::result::done);
  }
  {
    made_by_hand t;  // all buckets are others'
    for (word i = 0; i < made_by_hand::capacity; ++i) *t.bucket(i) = word{1} << 32 | 0xabcdef2;
    gives_up(t, true, true);
  }
  {
    made_by_hand t;  // the probe comes round from the last bucket to the first
    const word to_end = made_by_hand::capacity - t.where.home(made_by_hand::capacity);
    for (word i = 0; i < to_end; ++i) *t.bucket(i) = word{1} << 32 | 0xabcdef2;
    t.fill(to_end, map::cell::encode(word{9}));
    CHECK(t.bucket(to_end) == t.memory.data());
    CHECK(t.find().value == word{9});
  }
}

FAR_TEST(one_by_one_and_many_at_once_while_tables_grow) {
  const word n = far::nprocs(), each = 400, keys = each * n;
  map_type map(8);  // grows, on all members at once
  check_all(map, keys, false);
  far::barrier();
  std::vector<std::pair<word, word>> many;
  for (word i = 0; i < each; ++i) {
    word key = i * n + far::rank();
    if (i % 3 == 0) {
      CHECK(map.insert(key, value_of(key)));
    } else {
      many.emplace_back(key, value_of(key));
    }
    CHECK_EQ(map.contains(key), i % 3 == 0);
  }
  CHECK_EQ(map.insert(std::span<const std::pair<word, word>>(many)), many.size());
  CHECK_EQ(map.insert(std::span<const std::pair<word, word>>(many)), 0u);
  far::barrier();
  CHECK_EQ(map.size(), keys);
  check_all(map, keys, true);
  far::barrier();
  for (word key = far::rank(); key < keys; key += n) CHECK(map.erase(key));
  far::barrier();
  check_all(map, keys, false);
  far::barrier();
}

// A key that comes several times among many: what is done to it is done in that order, whichever
// way each goes. Values that fit no cell take longer ways than those that do, and tables grow.
FAR_TEST(many_at_once_keep_their_order) {
  const word n = far::nprocs(), each = 100;
  map_type kept(8), replaced(8), combined(8);
  std::vector<std::pair<word, word>> many;
  for (word i = 0; i < each; ++i)
    for (word time = 0; time < 3; ++time)
      many.emplace_back(i * n + far::rank(), time == i % 3 ? ~i : i + time);
  auto combine = [](word old, word value) { return old * 3 + value; };
  std::span<const std::pair<word, word>> all(many);
  CHECK_EQ(kept.insert(all), each);
  CHECK_EQ(replaced.insert_or_assign(all), each);
  combined.accumulate(all, combine);
  for (word i = 0; i < each; ++i) {
    const auto* three = &many[3 * i];
    const word key = three->first;
    CHECK_EQ(kept.find(key).value_or(0), three[0].second);
    CHECK_EQ(replaced.find(key).value_or(0), three[2].second);
    CHECK_EQ(combined.find(key).value_or(0),
             combine(combine(three[0].second, three[1].second), three[2].second));
  }
  CHECK_EQ(kept.insert(all), 0u);
  CHECK_EQ(replaced.insert_or_assign(all), 0u);
  far::barrier();
  CHECK_EQ(kept.size(), each * n);
  CHECK_EQ(replaced.size(), each * n);
  CHECK_EQ(combined.size(), each * n);
}

FAR_TEST(all_ranks_insert_the_same_keys) {
  const word keys = 1000;
  map_type map(keys);
  word mine = 0;
  for (word key = 0; key < keys; ++key) {
    word first = (key + far::rank() * 100) % keys;
    mine += map.insert(first, value_of(first));
  }
  CHECK_EQ(far::all_reduce(mine), keys);
  check_all(map, keys, true);
  far::barrier();
  for (word key = 0; key < keys; ++key)
    if (value_of(key) == key * 3) map.accumulate(key, 5);
  far::barrier();
  for (word key = 0; key < keys; ++key)
    if (value_of(key) == key * 3) CHECK_EQ(map.find(key).value_or(0), key * 3 + 5 * far::nprocs());
  far::barrier();
}

FAR_TEST(what_is_counted_is_counted_from_then_on) {
  map_type map(100);
  word key = 0;  // of this rank's own, so that it is never sent
  while (map.owner(key) != far::rank()) ++key;
  map.insert(key, 7);
  CHECK(map.find(key) == 7u);
  far::stats::enable();
  auto before = far::stats::snapshot();
  CHECK(map.find(key) == 7u);
  CHECK(!map.insert(key, 8));
  auto made = far::stats::snapshot() - before;
  CHECK(made[far::operation::get].count >= 1);
  CHECK(made[far::operation::atomic].count >= 1);
  before = far::stats::snapshot();
  far::stats::disable();
  CHECK(map.find(key) == 7u);
  CHECK(!map.insert(key, 8));
  far::stats::enable();
  CHECK_EQ((far::stats::snapshot() - before)[far::operation::get].count, 0u);
  CHECK(map.find(key) == 7u);
  CHECK((far::stats::snapshot() - before)[far::operation::get].count >= 1);
  auto moved = std::move(map);
  CHECK(moved.find(key) == 7u);
  CHECK_THROWS(map.insert(1, 1), "moved from");
  far::barrier();
}

}  // namespace

}  // namespace hash_map_quick_tests

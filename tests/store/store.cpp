// far::store: every operation, against what it must return.
#include "harness.hpp"
#include "store_types.hpp"

#include <map>

namespace store_tests {

namespace {

using namespace store_types;

/// All operations on one key and its neighbours, by one rank after the other.
template <class K, class V>
void check_operations(std::size_t expected) {
  using make_key = map_types::make<K>;
  far::store<K, V> data(expected);
  const int me = static_cast<int>(far::rank()), all = static_cast<int>(far::nprocs());
  const int each = 12;
  auto key = [&](int i) { return make_key::of(i); };
  auto value = [](int i) { return value_of<V>(i); };
  for (int i = me; i < each * all; i += all) {
    CHECK(!data.get(key(i)));
    CHECK(!data.contains(key(i)));
    CHECK(!data.update(key(i), value(1)));
    CHECK(!data.modify(key(i), [](V& v) { change(v); }));
    CHECK(!data.update_if(key(i), 1, value(1)));
    CHECK(!data.erase(key(i)));
    CHECK(data.put(key(i), value(i)));
    CHECK(!data.put(key(i), value(i + 1)));
  }
  far::barrier();
  CHECK_EQ(data.size(), static_cast<std::size_t>(each * all));
  CHECK(!data.empty());
  for (int i = 0; i < each * all; ++i) CHECK(data.get(key(i)) == value(i));
  far::barrier();
  for (int i = (me + 1) % all; i < each * all; i += all) {  // what another rank has put
    auto there = data.get_versioned(key(i));
    CHECK(there && there->value == value(i));
    CHECK(!data.update_if(key(i), there->version + 1, value(i + 1)));
    CHECK(data.update_if(key(i), there->version, value(i + 1)));
    CHECK(!data.update_if(key(i), there->version, value(i + 2)));
    auto again = data.get_versioned(key(i));
    CHECK(again && again->value == value(i + 1) && again->version != there->version);
    CHECK(data.update(key(i), value(i + 2)));
    V expected_value = value(i + 2);
    change(expected_value);
    CHECK(data.modify(key(i), [](V& v) { change(v); }));
    CHECK(data.get(key(i)) == expected_value);
    int times = 0;
    CHECK(data.modify(key(i), [&times](V& v) { change(v), ++times; }));  // stays at the caller
    change(expected_value);
    CHECK(times >= 1);
    CHECK(data.get(key(i)) == expected_value);
    CHECK(data.update(key(i), value(i)));
  }
  far::barrier();
  for (int i = me; i < each * all; i += all)
    if (i % 3 == 0) CHECK(data.erase(key(i)));
  far::barrier();
  std::size_t left = 0;
  for (int i = 0; i < each * all; ++i) {
    CHECK_EQ(data.contains(key(i)), i % 3 != 0);
    left += i % 3 != 0;
  }
  CHECK_EQ(data.size(), left);
  far::barrier();
  for (int i = me; i < each * all; i += all)  // what has been erased is put anew
    if (i % 3 == 0) CHECK(data.put(key(i), value(7)));
  far::barrier();
  for (int i = 0; i < each * all; ++i) CHECK(data.get(key(i)) == value(i % 3 == 0 ? 7 : i));

  // Everywhere, and what this rank holds.
  std::size_t n = 0, own = 0, wrong = 0;
  for (const auto& [k, v] : data.everywhere()) ++n, wrong += data.get(k) != v;
  CHECK_EQ(n, data.size());
  CHECK_EQ(wrong, 0u);
  for (auto entry : data.local()) {
    ++own;
    wrong += data.owner(entry.key) != far::rank() || data.get(entry.key) != entry.value;
  }
  CHECK_EQ(wrong, 0u);
  CHECK_EQ(far::all_reduce(own), data.size());
  far::barrier();
  for (auto entry : data.local()) change(entry.value);  // where it lies
  far::barrier();
  for (int i = 0; i < each * all; ++i) {
    V now = value(i % 3 == 0 ? 7 : i);
    change(now);
    CHECK(data.get(key(i)) == now);
  }
  const auto found = data.verify();
  CHECK(found.good());
  CHECK_EQ(found.entries, static_cast<std::uint64_t>(each * all));
  const auto statistics = data.statistics();
  CHECK_EQ(statistics.entries, static_cast<std::uint64_t>(each * all));
  CHECK_EQ(statistics.waiting, 0u);
  CHECK(statistics.buckets >= statistics.entries && statistics.most_probes >= 1);
  data.clear();
  CHECK(data.empty());
  CHECK(!data.get(key(0)));
  far::barrier();
  if (me == 0) CHECK(data.put(key(0), value(3)));
  far::barrier();
  CHECK(data.get(key(0)) == value(3));
  far::barrier();
}

}  // namespace

FAR_TEST(small_values) { check_operations<int, std::int64_t>(0); }
FAR_TEST(large_values) { check_operations<int, large>(64); }
FAR_TEST(strings) { check_operations<std::string, std::string>(0); }
FAR_TEST(values_with_cells) { check_operations<int, counted>(0); }
FAR_TEST(records) { check_operations<int, map_types::record>(8); }

/// Many at once, and what is not waited for.
FAR_TEST(many_and_asynchronous) {
  far::store<int, large> data(0);
  far::store<int, int> small(0);
  const int me = static_cast<int>(far::rank()), all = static_cast<int>(far::nprocs()), n = 70;
  std::vector<std::pair<int, large>> entries;
  std::vector<std::pair<int, int>> numbers;
  std::vector<int> keys;
  for (int i = 0; i < n; ++i) {
    entries.emplace_back(i * all + me, value_of<large>(i));
    numbers.emplace_back(i * all + me, i);
    keys.push_back(i * all + (me + 1) % all);
  }
  CHECK_EQ(data.put(entries), static_cast<std::size_t>(n));
  CHECK_EQ(data.put(entries), 0u);
  CHECK_EQ(small.put(numbers), static_cast<std::size_t>(n));
  far::barrier();
  auto found = data.get(keys);
  auto found_small = small.get(keys);
  std::vector<far::future<std::optional<large>>> begun;
  for (int key : keys) begun.push_back(data.async_get(key));
  for (int i = 0; i < n; ++i) {
    CHECK(found[static_cast<std::size_t>(i)] == value_of<large>(i));
    CHECK(found_small[static_cast<std::size_t>(i)] == i);
    CHECK(begun[static_cast<std::size_t>(i)].get() == value_of<large>(i));
  }
  CHECK(!data.async_get(-1).get());
  CHECK(!small.async_get(-1).get());
  CHECK(!data.async_contains(-1).get() && small.async_contains(0).get());
  far::barrier();
  const int mine = keys[3];
  auto version = data.async_get_versioned(mine).get();
  CHECK(version && data.async_update_if(mine, version->version, value_of<large>(50)).get());
  CHECK(!data.async_update_if(mine, version->version, value_of<large>(51)).get());
  CHECK(data.async_update(mine, value_of<large>(52)).get());
  CHECK(data.async_modify(mine, [](large& v) { change(v); }).get());
  large changed = value_of<large>(52);
  change(changed);
  CHECK(data.async_get(mine).get() == changed);
  CHECK(data.async_get(mine, &large::first).get() == changed.first);
  CHECK(data.async_update(mine, &large::first, 77).get());
  CHECK(data.get(mine, &large::first) == 77);
  CHECK(data.async_erase(mine).get() && !data.async_erase(mine).get());
  CHECK(data.async_put(mine, changed).get() && !data.async_put(mine, changed).get());
  CHECK(small.async_update(mine, 5).get() && small.async_get(mine).get() == 5);
  auto small_version = small.async_get_versioned(mine).get();
  CHECK(small.async_update_if(mine, small_version->version, 6).get());
  CHECK(!small.async_update_if(mine, small_version->version, 7).get());
  CHECK(small.async_modify(mine, [](int& v) { ++v; }).get() && small.get(mine) == 7);
  CHECK(small.async_erase(mine).get() && !small.async_erase(mine).get());
  CHECK(small.async_put(mine, 1).get() && !small.async_put(mine, 1).get());
  far::barrier();
  CHECK_EQ(data.size(), static_cast<std::size_t>(n * all));
  for (auto& [key, value] : entries) value = value_of<large>(key);
  CHECK_EQ(data.update(entries), static_cast<std::size_t>(n));
  far::barrier();
  CHECK(data.get(keys[5]) == value_of<large>(keys[5]));
  CHECK_EQ(data.erase(keys), static_cast<std::size_t>(n));
  CHECK_EQ(small.erase(keys), static_cast<std::size_t>(n));
  CHECK_EQ(data.erase(keys), 0u);
  far::barrier();
  CHECK(data.empty() && small.empty());
}

/// Parts, and members that are changed by atomics of their own.
FAR_TEST(parts_and_cells) {
  far::store<int, counted> data(10);
  const int all = static_cast<int>(far::nprocs());
  if (far::rank() == 0) CHECK(data.put(1, value_of<counted>(5)));
  far::barrier();
  for (int i = 0; i < 20; ++i) {
    CHECK(data.fetch_add(1, &counted::visits, 2).has_value());
    CHECK(data.async_fetch_add(1, &counted::small, 1).get().has_value());
  }
  CHECK(!data.fetch_add(2, &counted::visits, 1));
  CHECK(!data.async_fetch_add(2, &counted::visits, 1).get());
  CHECK(!data.get(2, &counted::visits) && !data.get(2, &counted::name));
  CHECK(!data.update(2, &counted::visits, 1) && !data.update(2, &counted::name, 1));
  CHECK(!data.compare_swap(2, &counted::visits, 0, 1));
  far::barrier();
  CHECK(data.get(1, &counted::visits) == 40 * all);
  CHECK_EQ(data.get(1)->visits, 40 * all);
  CHECK(data.get(1, &counted::small) == static_cast<std::uint16_t>(20 * all));
  CHECK(data.get(1, &counted::name) == 5);
  far::barrier();
  // One of all wins.
  const auto before = data.compare_swap(1, &counted::visits, 40 * all, -1);
  CHECK_EQ(far::all_reduce(before == 40 * all ? 1 : 0), 1);
  CHECK(data.get(1, &counted::visits) == -1);
  far::barrier();
  if (far::rank() == all - 1U) {
    CHECK(data.update(1, value_of<counted>(6)));  // cells stay as they are
    CHECK(data.get(1, &counted::visits) == -1);
    CHECK(data.update(1, &counted::visits, 9) && data.update(1, &counted::name, 10));
    CHECK(data.get(1)->visits == 9 && data.get(1)->name == 10);
    CHECK(data.async_compare_swap(1, &counted::visits, 9, 11).get() == 9);
    // Small types wrap, and the number counts, not the word that holds it.
    CHECK(data.update(1, &counted::small, 65535));
    CHECK(data.fetch_add(1, &counted::small, 3) == 65535);
    CHECK(data.get(1, &counted::small) == 2);
    CHECK(data.compare_swap(1, &counted::small, 2, 7) == 2);
    CHECK(data.get(1, &counted::small) == 7);
    CHECK(data.fetch_add(1, &counted::small, static_cast<std::uint16_t>(-8)) == 7);
    CHECK(data.get(1, &counted::small) == 65535);
    // What no cell can hold is refused, and has changed nothing.
    const std::int64_t limit = std::int64_t{1} << 59;
    CHECK_THROWS(data.update(1, &counted::visits, limit), "a cell holds numbers from -2^59");
    CHECK_THROWS(data.fetch_add(1, &counted::visits, limit), "a cell holds numbers from -2^59");
    CHECK_THROWS(data.compare_swap(1, &counted::visits, 11, limit), "a cell holds numbers");
    CHECK(data.update(1, &counted::visits, limit - 1));
    CHECK_THROWS(data.fetch_add(1, &counted::visits, 1), "fetch_add by, or to, 1");
    CHECK_THROWS(data.async_fetch_add(1, &counted::visits, 1).get(), "async_fetch_add by, or to");
    CHECK(data.get(1, &counted::visits) == limit - 1);
    counted huge{};
    huge.visits = limit;
    CHECK_THROWS(data.put(3, huge), "a cell holds numbers from -2^59");
    CHECK(!data.contains(3));
    CHECK_THROWS(data.fetch_add(1, &counted::name, 1), "of a member that is no cell");
    CHECK(data.erase(1));
    CHECK(!data.fetch_add(1, &counted::visits, 1));
    CHECK(data.put(1, value_of<counted>(8)));
    CHECK(data.fetch_add(1, &counted::visits, 1) == 0);
  }
  far::barrier();
  CHECK(data.get(1, &counted::visits) == 1);
  far::barrier();
}

/// A placement of the user's, and another one later.
FAR_TEST(placements) {
  struct on_rank {
    far::rank_t shift = 0;
    far::rank_t operator()(int key, far::rank_t members) const {
      return (static_cast<far::rank_t>(key) + shift) % members;
    }
  };
  const int all = static_cast<int>(far::nprocs()), n = 10 * all;
  far::store<int, large, on_rank> data(10, {}, on_rank{});
  far::store<int, int, on_rank> small(10, {}, on_rank{});
  far::store<std::string, std::string, by_length> texts(10);
  for (int i = static_cast<int>(far::rank()); i < n; i += all) {
    CHECK(data.put(i, value_of<large>(i)));
    CHECK(small.put(i, i));
    CHECK(texts.put(map_types::make<std::string>::of(i), value_of<std::string>(i)));
  }
  far::barrier();
  for (int i = 0; i < n; ++i) {
    CHECK_EQ(data.owner(i), static_cast<far::rank_t>(i % all));
    CHECK(texts.get(map_types::make<std::string>::of(i)) == value_of<std::string>(i));
  }
  far::future<int> waits = small.when(n + 3);
  data.move_to(on_rank{1});
  small.move_to(on_rank{1});
  std::size_t own = 0;
  for (auto entry : data.local()) {
    ++own;
    CHECK_EQ(data.owner(entry.key), far::rank());
  }
  CHECK_EQ(own, 10u);
  CHECK(data.verify().good() && small.verify().good());
  CHECK_EQ(data.size(), static_cast<std::size_t>(n));
  CHECK_EQ(small.size(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    CHECK_EQ(data.owner(i), static_cast<far::rank_t>((i + 1) % all));
    CHECK(data.get(i) == value_of<large>(i));
    CHECK(small.get(i) == i);
  }
  far::barrier();
  if (far::rank() == 0) CHECK(small.put(n + 3, 33));  // who waited goes on
  CHECK_EQ(waits.get(), 33);
  small.fence();
}

/// Readers of values that stay as they were put keep copies, in ranks of one thread.
FAR_TEST(values_that_stay) {
  far::store_options once;
  once.mutability = far::mutability::once;
  far::store<int, large> data(10, once);
  const int n = 20;
  for (int i = static_cast<int>(far::rank()); i < n; i += static_cast<int>(far::nprocs()))
    data.put(i, value_of<large>(i));
  far::barrier();
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < n; ++i) CHECK(data.get(i) == value_of<large>(i));
  const auto& here = far::detail::here();
  if (!here.link.coherent() && here.threads == far::thread_level::single) {
    far::stats::enable();
    auto before = far::stats::snapshot();
    for (int i = 0; i < n; ++i) CHECK(data.get(i) == value_of<large>(i));
    CHECK_EQ((far::stats::snapshot() - before)[far::operation::get].count, 0u);
  }
  CHECK_THROWS(data.update(1, value_of<large>(2)), "made with mutability::once");
  CHECK_THROWS(data.update_if(1, 1, value_of<large>(2)), "made with mutability::once");
  CHECK_THROWS(data.modify(1, [](large&) {}), "made with mutability::once");
  CHECK_THROWS(data.erase(1), "made with mutability::once");
  CHECK_THROWS(data.async_erase(1), "made with mutability::once");
  data.clear();
  CHECK(!data.get(1));
  far::barrier();
  once.on_duplicate = far::on_duplicate::replace;
  CHECK_THROWS((far::store<int, large>(10, once)), "Choose on_duplicate::keep or error");
}

/// A store of a part of the ranks, and one that moves to another handle.
FAR_TEST(teams_and_handles) {
  far::team half = far::world().split(far::rank() % 2);
  far::store_options with;
  with.over = half;
  with.name = "halves";
  far::store<int, large> data(10, with);
  const int me = static_cast<int>(half.rank());
  data.put(me, value_of<large>(me));
  data.post(100 + me, value_of<large>(me));
  CHECK_EQ(data.fence().activated, std::uint64_t{half.size()});
  CHECK_EQ(data.name(), std::string("halves"));
  CHECK_EQ(data.size(), 2 * std::size_t{half.size()});
  far::store<int, large> moved = std::move(data);
  CHECK(moved.get(100) == value_of<large>(0));
  CHECK_THROWS(data.get(1), "it was moved from");
  moved.reserve(1000);
  CHECK(moved.statistics().buckets >= 1000);
  CHECK(moved.get(100) == value_of<large>(0));
  far::barrier();
}

}  // namespace store_tests

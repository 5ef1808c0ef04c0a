// far::store: what docs/costs.md says of it, counted.
#include "harness.hpp"
#include "store_types.hpp"

namespace store_costs_tests {

namespace {

using namespace store_types;
using far::operation;

struct cost {
  std::uint64_t gets, puts, atomics, waits;
  bool operator==(const cost&) const = default;
};

std::ostream& operator<<(std::ostream& out, const cost& c) {
  return out << c.gets << "R " << c.puts << "W " << c.atomics << "A " << c.waits << " waits";
}

template <class Work>
cost count(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto made = far::stats::snapshot() - before;
  far::stats::disable();
  return {made[operation::get].count, made[operation::put].count, made[operation::atomic].count,
          made.waits};
}

/// What an operation costs, if it is not sent to the owner; then it is one message.
template <class Store, class Work>
void check_cost(Store& data, Work work, const cost& expected) {
  const bool sent = data.engine_of(far::container_operation::find) == far::engine::rpc;
  const auto before = data.engine_use().messages;
  const cost made = count(work);
  if (sent)
    CHECK_EQ(data.engine_use().messages - before, 1u);
  else
    CHECK_EQ(made, expected);
}

/// Rank 0 measures, on keys that another rank holds, and that nobody else uses.
template <class Store, class Work>
void on_one(Store& data, Work work) {
  far::barrier();
  if (far::rank() == 0 && far::nprocs() > 1) {
    std::vector<int> keys;
    for (int i = 0; keys.size() < 40; ++i)
      if (data.owner(i) == 1) keys.push_back(i);
    work(keys);
  }
  far::barrier();
}

}  // namespace

FAR_TEST(costs_of_values_in_buckets) {
  far::store<int, std::array<std::int64_t, 8>> data(4000);  // 64 bytes
  on_one(data, [&](const std::vector<int>& keys) {
    const std::array<std::int64_t, 8> v{1};
    const int key = keys[0];
    check_cost(data, [&] { CHECK(data.put(key, v)); }, cost{0, 1, 1, 2});
    check_cost(data, [&] { CHECK(data.get(key).has_value()); }, cost{1, 0, 0, 1});
    check_cost(data, [&] { CHECK(!data.get(keys[1])); }, cost{1, 0, 0, 1});
    check_cost(data, [&] { CHECK(data.get_versioned(key).has_value()); }, cost{1, 0, 0, 1});
    check_cost(data, [&] { CHECK(data.update(key, v)); }, cost{1, 1, 1, 3});
    check_cost(data, [&] { CHECK(data.modify(key, [](auto& x) { ++x[0]; })); }, cost{1, 1, 1, 3});
    check_cost(data, [&] { CHECK(!data.put(key, v)); }, cost{1, 0, 1, 2});
    check_cost(data, [&] { CHECK(data.erase(key)); }, cost{1, 0, 1, 2});
  });
  CHECK(data.empty());
  far::barrier();
}

FAR_TEST(costs_of_objects) {
  far::store<int, large> data(4000);
  on_one(data, [&](const std::vector<int>& keys) {
    const large v = value_of<large>(1);
    const int key = keys[0];
    CHECK(data.put(keys[1], v));  // memory for 16 has been taken
    check_cost(data, [&] { CHECK(data.put(key, v)); }, cost{0, 2, 1, 3});
    // Its place is known from the put.
    check_cost(data, [&] { CHECK(data.get(key).has_value()); }, cost{1, 0, 0, 1});
    check_cost(data, [&] { CHECK(data.update(key, v)); }, cost{1, 1, 1, 3});
    check_cost(
        data, [&] { CHECK(data.modify(key, [](large& x) { ++x.first; })); }, cost{1, 1, 1, 3});
    check_cost(data, [&] { CHECK(data.get(key, &large::first).has_value()); }, cost{1, 0, 0, 1});
    check_cost(data, [&] { CHECK(data.erase(key)); }, cost{2, 0, 2, 4});
    if (data.engine_of(far::container_operation::find) == far::engine::rpc) return;
    // Atomics of 32 puts are one each, and those that take memory.
    const cost one = count([&] { CHECK(data.put(keys[2], v)); });
    const cost many = count([&] {
      for (int i = 3; i < 35; ++i) CHECK(data.put(keys[static_cast<std::size_t>(i)], v));
    });
    CHECK_EQ(one, (cost{0, 2, 1, 3}));
    CHECK(many.atomics >= 32 && many.atomics <= 32 + 2 * 8);
    CHECK(many.puts >= 64 && many.puts <= 64 + 2 * 4);
  });
  // Another rank, which does not know the place.
  far::barrier();
  if (far::rank() == 0) data.put(1 << 20, value_of<large>(3));
  far::barrier();
  for (int i = 1000000; i < 1000100; ++i) CHECK(!data.contains(i));  // it knows the tables
  if (far::rank() == far::nprocs() - 1 && data.owner(1 << 20) != far::rank()) {
    check_cost(data, [&] { CHECK(data.get(1 << 20).has_value()); }, cost{2, 0, 0, 2});
    check_cost(data, [&] { CHECK(data.get(1 << 20).has_value()); }, cost{1, 0, 0, 1});
  }
  CHECK_EQ(far::all_reduce(1U), far::nprocs());
}

/// Keys that have been read once are known, but for a few that shared their row with too many.
FAR_TEST(costs_of_objects_read_again) {
  constexpr int keys = 3000;
  far::store<int, large> data(keys);
  for (int i = 0; i < keys; ++i)
    if (data.owner(i) == far::rank()) data.put(i, value_of<large>(i));
  far::barrier();
  if (far::rank() == 0) {
    std::uint64_t elsewhere = 0;
    for (int i = 0; i < keys; ++i) elsewhere += data.owner(i) != 0;
    auto read_all = [&] {
      for (int i = 0; i < keys; ++i) CHECK(data.get(i) == value_of<large>(i));
    };
    read_all();
    const std::uint64_t gets = count(read_all).gets;
    if (data.engine_of(far::container_operation::find) == far::engine::rma)
      CHECK(gets <= elsewhere + elsewhere / 8);
  }
  far::barrier();
}

FAR_TEST(costs_of_cells) {
  far::store<int, counted> data(4000);
  on_one(data, [&](const std::vector<int>& keys) {
    const int key = keys[0];
    CHECK(data.put(key, value_of<counted>(1)));
    CHECK(data.get(key).has_value());
    // Cells do not travel by messages.
    CHECK(data.fetch_add(key, &counted::visits, 1).has_value());
    CHECK_EQ(count([&] { data.fetch_add(key, &counted::visits, 1); }), (cost{0, 0, 1, 1}));
    CHECK_EQ(count([&] { data.compare_swap(key, &counted::visits, 2, 3); }), (cost{0, 0, 1, 1}));
    CHECK_EQ(count([&] { data.get(key, &counted::visits); }), (cost{0, 0, 1, 1}));
    CHECK_EQ(count([&] { data.update(key, &counted::visits, 4); }), (cost{0, 0, 2, 2}));
    CHECK(data.get(key, &counted::visits) == 4);
  });
  CHECK_EQ(far::all_reduce(1U), far::nprocs());
}

FAR_TEST(costs_of_posts) {
  far::store<int, large> data(4000);
  on_one(data, [&](const std::vector<int>& keys) {
    data.post(keys[0], value_of<large>(1));  // makes the ring
    CHECK_EQ(count([&] { data.post(keys[1], value_of<large>(2)); }), (cost{0, 1, 1, 2}));
  });
  CHECK_EQ(data.fence().activated, far::nprocs() > 1 ? 2u : 0u);
}

FAR_TEST(costs_of_own_keys) {
  far::store<int, large> data(4000);
  far::store<int, int> small(4000);
  int mine = 0, too = 0;
  while (data.owner(mine) != far::rank()) ++mine;
  while (small.owner(too) != far::rank()) ++too;
  data.put(mine, value_of<large>(1));
  far::barrier();
  const cost made = count([&] {
    CHECK(data.get(mine).has_value() && data.update(mine, value_of<large>(2)));
    CHECK(data.modify(mine, [](large& v) { ++v.first; }));
    CHECK(data.erase(mine) && data.put(mine, value_of<large>(3)));
    CHECK(small.put(too, 1) && small.get(too) == 1 && small.update(too, 2) && small.erase(too));
    for (auto entry : data.local()) CHECK_EQ(entry.key, mine);
    data.post(mine + 0, value_of<large>(4));
  });
  CHECK_EQ(made, (cost{0, 0, 0, 0}));
  far::barrier();
}

}  // namespace store_costs_tests

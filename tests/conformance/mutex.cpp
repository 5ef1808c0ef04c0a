// far::mutex: one rank at a time, in the order of asking, and what it did is there for the next.
#include "harness.hpp"

#include <mutex>
#include <numeric>

namespace mutex_tests {

using far::operation;
using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0, flushes = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics, "
               << c.flushes << " flushes";
  }
};

template <class Work>
cost cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[operation::get].count, t[operation::put].count, t[operation::atomic].count,
          t[operation::flush].count};
}

}  // namespace

/// Plain reads and writes of data on all ranks: only the mutex keeps them apart.
FAR_TEST(what_it_guards_is_consistent) {
  far::mutex door(far::nprocs() - 1);
  auto cells = objects_on_each_rank<long>(2);
  constexpr int times = 15;
  for (int i = 0; i < times; ++i) {
    std::lock_guard inside(door);
    for (auto cell : cells) {
      auto both = far::get(cell, 2);
      CHECK_EQ(both[1], -both[0]);
      far::put(cell, both[0] + 1);
      far::put(cell + 1, both[1] - 1);
    }
  }
  far::barrier();
  CHECK_EQ(far::get(cells[0]), static_cast<long>(times * far::nprocs()));
  release(cells);
}

FAR_TEST(trying_takes_it_only_if_it_is_free) {
  far::mutex door;
  auto cell = shared_objects<long>(far::nprocs() / 2);
  constexpr int times = 10;
  int refused = 0;
  for (int done = 0; done < times;) {
    if (!door.try_lock()) {
      ++refused;
      far::detail::here().wait_round();
      continue;
    }
    std::lock_guard inside(door, std::adopt_lock);
    far::put(cell, far::get(cell) + 1);
    ++done;
  }
  far::barrier();
  CHECK_EQ(far::get(cell), static_cast<long>(times * far::nprocs()));
  CHECK(far::nprocs() > 1 || refused == 0);
  if (far::rank() == 0) door.lock();
  far::barrier();
  CHECK(!door.try_lock());
  far::barrier();
  if (far::rank() == 0) door.unlock();
  far::barrier();
  bool mine = far::rank() == far::nprocs() - 1 && door.try_lock();
  CHECK_EQ(mine, far::rank() == far::nprocs() - 1);
  if (mine) door.unlock();
  release(cell);
}

/// Those who wait enter in the order in which they came. Each comes when its predecessor is in
/// line.
FAR_TEST(it_is_fair) {
  far::mutex door;
  auto entered = shared_objects<far::rank_t>(0, 1 + far::nprocs());  // how many, and who
  far::rank_t me = far::rank();
  if (me == 0) door.lock();
  far::barrier();
  auto await_last = [&](far::rank_t who) {
    while (door.last_in_line() != who) far::detail::here().wait_round();
  };
  if (me != 0) {
    await_last(me - 1);
    door.lock();
    far::rank_t before = far::get(entered);
    far::put(entered, before + 1);
    far::put(entered + 1 + before, me);
  } else {
    await_last(far::nprocs() - 1);
  }
  door.unlock();
  far::barrier();
  std::vector<far::rank_t> expected(far::nprocs() - 1);
  std::iota(expected.begin(), expected.end(), 1u);
  CHECK_EQ(far::get(entered + 1, expected.size()), expected);
  CHECK(!door.last_in_line());
  release(entered);
}

FAR_TEST(many_mutexes) {
  constexpr std::size_t n = 10;
  far::mutex_set locks(n);
  CHECK_EQ(locks.size(), n);
  auto cells = shared_objects<long>(0, n);
  auto random = far_test::random_engine();
  std::vector<long> mine(n);
  for (int i = 0; i < 20; ++i) {
    // Two at a time, without deadlock: std::scoped_lock tries and backs off.
    std::size_t a = random() % n, b = (a + 1 + random() % (n - 1)) % n;
    CHECK_EQ(locks.host_of(a), a % far::nprocs());
    auto first = locks[a], second = locks[b];
    std::scoped_lock both(first, second);
    for (auto which : {a, b}) {
      auto cell = cells + static_cast<std::ptrdiff_t>(which);
      far::put(cell, far::get(cell) + 1);
      ++mine[which];
    }
  }
  far::barrier();
  far::all_reduce(std::span(mine));
  CHECK_EQ(far::get(cells, n), mine);
  CHECK_THROWS(locks[n], "of a far::mutex_set of 10");
  CHECK_EQ(far::mutex_set(0).size(), 0u);
  release(cells);
}

FAR_TEST(on_a_host_and_in_teams) {
  auto half = far::world().split(static_cast<int>(far::rank() % 2));
  far::mutex_set locks(3, half.size() - 1, {.name = "halves", .over = half});
  CHECK_EQ(locks.host_of(2), half.size() - 1);
  CHECK_EQ(locks.name(), "halves");
  auto cells = objects_on_each_rank<long>();
  auto cell = cells[half.world_rank(0)];
  for (int i = 0; i < 12; ++i) {
    auto lock = locks[static_cast<std::size_t>(i % 3)];
    std::lock_guard inside(lock);
    if (i % 3 == 0) far::put(cell, far::get(cell) + 1);
  }
  far::barrier();
  CHECK_EQ(far::get(cell), static_cast<long>(4 * half.size()));
  release(cells);
}

/// What it guards may also be accumulated, or stored to own memory.
FAR_TEST(all_kinds_of_changes_are_handed_over) {
  far::mutex door;
  auto cells = shared_objects<double>(0, 8);
  double one = 1;
  for (int i = 0; i < 12; ++i) {
    std::lock_guard inside(door);
    auto now = far::get(cells, 8);
    for (double value : now) CHECK_EQ(value, now[0]);
    if (double* own = far::rank() == 0 ? cells.local() : nullptr)
      for (int k = 0; k < 8; ++k) own[k] = now[0] + 1;
    else
      far::accumulate_strided(cells, &one,
                              {.counts = {1, 8}, .far_strides = {1}, .local_strides = {0}});
  }
  far::barrier();
  CHECK_EQ(far::get(cells), 12.0 * far::nprocs());
  release(cells);
}

FAR_TEST(errors_of_use) {
  far::mutex door(0, {.name = "door"});
  if (far::rank() == 0) {
    CHECK_THROWS(door.unlock(), "does not hold");
    door.lock();
    CHECK_THROWS(door.lock(), "wait for itself");
    CHECK(!door.try_lock());
  }
  far::barrier();
  if (far::rank() != 0) CHECK_THROWS(door.unlock(), "'door', which this thread does not hold");
  far::barrier();
  if (far::rank() == 0) door.unlock();
  CHECK_THROWS(far::mutex(far::nprocs()), "not in a team");
}

FAR_TEST(costs) {
  far::mutex_set locks(far::nprocs());
  auto lock = locks[(far::rank() + 1) % far::nprocs()];
  CHECK_EQ(cost_of([&] { lock.lock(); }), cost{.atomics = 1});
  CHECK_EQ(cost_of([&] { lock.unlock(); }), (cost{.atomics = 1, .flushes = 1}));
  CHECK_EQ(cost_of([&] { CHECK(lock.try_lock()); }), cost{.atomics = 1});
  lock.unlock();
  far::barrier();
  // Held by rank 0, and rank 1 waits: 2 atomics to get in line, 1 to hand over.
  far::mutex door;
  if (far::rank() == 0) door.lock();
  far::barrier();
  if (far::rank() == 1) {
    CHECK_EQ(cost_of([&] { door.lock(); }).atomics, 2u);
    CHECK_EQ(cost_of([&] { door.unlock(); }), (cost{.atomics = 1, .flushes = 1}));
  }
  if (far::rank() == 0) {
    while (far::nprocs() > 1 && door.last_in_line() != 1u) far::detail::here().wait_round();
    auto handing_over = cost_of([&] { door.unlock(); });
    CHECK_EQ(handing_over.flushes, 1u);
    // One more if it comes between its successor's two.
    CHECK(handing_over.atomics == 1 || (handing_over.atomics == 2 && far::nprocs() > 1));
  }
}

}  // namespace mutex_tests

// far::stats counts every operation once, with its bytes: the cost tables are checked by it.
#include "harness.hpp"

namespace statistics_tests {

using far::operation;
using far_test::objects_on_each_rank;
using far_test::release;

namespace {

struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0, flushes = 0, barriers = 0, allocations = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics, "
               << c.flushes << " flushes, " << c.barriers << " barriers, " << c.allocations
               << " allocations";
  }
};

template <class Work>
far::operation_totals count(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  return far::stats::snapshot() - before;
}

template <class Work>
cost cost_of(Work work) {
  auto t = count(work);
  return {t[operation::get].count,   t[operation::put].count,     t[operation::atomic].count,
          t[operation::flush].count, t[operation::barrier].count, t[operation::allocation].count};
}

}  // namespace

FAR_TEST(counting_can_be_interrupted) {
  auto arrays = objects_on_each_rank<long>(1);
  auto p = arrays[(far::rank() + 1) % far::nprocs()];
  auto made = count([&] {
    far::get(p);
    far::stats::disable();
    far::get(p);
    CHECK_EQ(far::stats::snapshot()[operation::get].count, 0u);
    far::stats::disable();
    far::stats::enable();
    far::get(p);
  });
  CHECK_EQ(made[operation::get].count, 2u);
  far::barrier();
  release(arrays);
}

FAR_TEST(counts_operations_exactly) {
  auto arrays = objects_on_each_rank<long>(100);
  auto p = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<long> buffer(100);
  CHECK_EQ(cost_of([] {}), cost{});
  CHECK_EQ(cost_of([&] { far::get(p); }), cost{.gets = 1});
  CHECK_EQ(cost_of([&] { far::get(p, 100); }), cost{.gets = 1});
  CHECK_EQ(cost_of([&] { far::async_get(p).get(); }), cost{.gets = 1});
  CHECK_EQ(cost_of([&] { far::async_get(p, buffer.data(), 9).get(); }), cost{.gets = 1});
  CHECK_EQ(cost_of([&] { far::put(p, 1L); }), cost{.puts = 1});
  CHECK_EQ(cost_of([&] { far::put(p, buffer.data(), 50); }), cost{.puts = 1});
  CHECK_EQ(cost_of([&] { far::async_put(p, 1L).get(); }), cost{.puts = 1});
  CHECK_EQ(cost_of([&] { far::async_put(p, buffer.data(), 5).get(); }), cost{.puts = 1});
  CHECK_EQ(cost_of([&] { p[3] += 4; }), (cost{.gets = 1, .puts = 1}));
  CHECK_EQ(cost_of([&] { far::flush(); }), cost{.flushes = 1});
  CHECK_EQ(cost_of([&] { far::flush(p.rank()); }), cost{.flushes = 1});
  CHECK_EQ(cost_of([] { far::barrier(); }), cost{.barriers = 1});
  CHECK_EQ(cost_of([] { far::dealloc(far::alloc<int>()); }), cost{.allocations = 2});
  release(arrays);
}

FAR_TEST(every_atomic_is_one) {
  auto words = objects_on_each_rank<std::uint64_t>();
  auto p = words[(far::rank() + 1) % far::nprocs()];
  cost one{.atomics = 1};
  CHECK_EQ(cost_of([&] { far::fetch_add(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_sub(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_and(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_or(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_xor(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_min(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::fetch_max(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::swap(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::compare_swap(p, 1, 2); }), one);
  CHECK_EQ(cost_of([&] { far::atomic_load(p); }), one);
  CHECK_EQ(cost_of([&] { far::atomic_store(p, 1); }), one);
  CHECK_EQ(cost_of([&] { far::async_fetch_add(p, 1).get(); }), one);
  CHECK_EQ(cost_of([&] { far::async_fetch_sub(p, 1).get(); }), one);
  CHECK_EQ(cost_of([&] { far::async_swap(p, 1).get(); }), one);
  CHECK_EQ(cost_of([&] { far::async_compare_swap(p, 1, 2).get(); }), one);
  release(words);
}

FAR_TEST(counts_bytes_and_time) {
  auto arrays = objects_on_each_rank<std::uint32_t>(1000);
  auto p = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<std::uint32_t> buffer(1000);
  auto totals = count([&] {
    far::get(p);
    far::get(p, buffer.data(), 10);
    far::get(p, buffer.data(), 0);
    far::put(p, buffer.data(), 1000);
    far::put(p, 1u);
    far::fetch_add(p, 1);
  });
  CHECK_EQ(totals[operation::get].count, 3u);
  CHECK_EQ(totals[operation::get].bytes, 44u);
  CHECK_EQ(totals[operation::put].count, 2u);
  CHECK_EQ(totals[operation::put].bytes, 4004u);
  CHECK_EQ(totals[operation::atomic].count, 1u);
  CHECK_EQ(totals[operation::atomic].bytes, 4u);
  CHECK(totals[operation::put].nanoseconds > 0);
  CHECK_EQ(totals[operation::flush].count, 0u);
  release(arrays);
}

FAR_TEST(collectives_are_counted_once) {
  auto totals = count([] {
    far::all_reduce(1);
    far::broadcast(2, 0);
    far::all_gather(3.0);
  });
  CHECK_EQ(totals[operation::collective].count, 3u);
  CHECK_EQ(totals[operation::get].count, 0u);  // their own traffic is not the program's
  CHECK_EQ(totals[operation::put].count, 0u);
  CHECK_EQ(totals[operation::atomic].count, 0u);
}

FAR_TEST(names) {
  CHECK_EQ(std::string(far::name_of(operation::get)), "get");
  CHECK_EQ(std::string(far::name_of(operation::allocation)), "allocation");
}

}  // namespace statistics_tests

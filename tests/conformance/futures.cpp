// far::future: values, chains, failures, when_all and coroutines.
#include "harness.hpp"

#include <memory>
#include <numeric>
#include <string>

namespace futures_tests {

using far_test::objects_on_each_rank;
using far_test::release;

namespace {

far::ptr<long> next_of(const std::vector<far::ptr<long>>& arrays) {
  return arrays[(far::rank() + 1) % far::nprocs()];
}

far::future<long> sum_of_three(far::ptr<long> p) {
  auto second = far::async_get(p + 1);  // begun before the first is waited for
  long a = co_await far::async_get(p);
  long b = co_await std::move(second);
  long c = co_await far::async_get(p + 2);
  co_return a + b + c;
}

far::future<void> follow(far::ptr<long> p, long steps, long& end) {
  long at = 0;
  for (long i = 0; i < steps; ++i) at = co_await far::async_get(p + at);
  end = at;
}

far::future<long> fails_after(far::ptr<long> p) {
  long a = co_await far::async_get(p);
  if (a >= 0) throw std::runtime_error("no good value " + std::to_string(a));
  co_return a;
}

far::future<long> nested(far::ptr<long> p) {
  long sum = co_await sum_of_three(p);
  long again = co_await sum_of_three(p);
  try {
    co_await fails_after(p);
  } catch (const std::runtime_error&) {
    co_return sum + again;
  }
  co_return -1;
}

}  // namespace

FAR_TEST(ready_futures) {
  auto f = far::future<int>::ready(5);
  CHECK(f.valid());
  CHECK(f.is_ready());
  CHECK_EQ(f.get(), 5);
  auto v = far::future<void>::ready();
  CHECK(v.is_ready());
  v.wait();
  v.get();
  auto s = far::future<std::string>::ready("text");
  CHECK_EQ(s.get(), "text");
  auto u = far::future<std::unique_ptr<int>>::ready(std::make_unique<int>(3));  // move-only values
  CHECK_EQ(*u.get(), 3);
}

FAR_TEST(gets_become_ready) {
  auto arrays = objects_on_each_rank<long>(4, far::rank() * 10L);
  auto f = far::async_get(next_of(arrays));
  for (int i = 0; i < 100'000'000 && !f.is_ready(); ++i) {
  }
  CHECK(f.is_ready());
  CHECK_EQ(f.get(), static_cast<long>((far::rank() + 1) % far::nprocs()) * 10);
  release(arrays);
}

FAR_TEST(chains) {
  auto arrays = objects_on_each_rank<long>(4, 20L);
  auto p = next_of(arrays);
  CHECK_EQ(far::async_get(p).then([](long v) { return v + 1; }).get(), 21);
  CHECK_EQ(far::async_get(p)
               .then([](long v) { return std::to_string(v); })
               .then([](std::string s) { return s + "!"; })
               .get(),
           "20!");
  long seen = 0;
  far::async_get(p).then([&](long v) { seen = v; }).get();  // to void
  CHECK_EQ(seen, 20);
  CHECK_EQ(far::async_get(p).then([&](long) {}).then([] { return 4; }).get(), 4);  // from void
  CHECK_EQ(
      far::async_get(p)
          .then([&](long v) { return far::async_get(p + 1).then([v](long w) { return v + w; }); })
          .get(),
      40);  // a future is waited for in turn
  far::async_put(p + 2, 5L).then([] { far::flush(); }).get();
  far::async_get(p)
      .then([p](long v) { return far::async_put(p + 3, v * 2); })
      .then([] { far::flush(); })
      .wait();
  far::barrier();
  CHECK_EQ(far::get(p + 2), 5);
  CHECK_EQ(far::get(p + 3), 40);
  CHECK_EQ(
      far::future<int>::ready(1).then([](int v) { return far::future<int>::ready(v + 1); }).get(),
      2);
  release(arrays);
}

FAR_TEST(failures_pass_through_chains) {
  auto arrays = objects_on_each_rank<long>(1, 1L);
  auto p = next_of(arrays);
  int called = 0;
  auto failing = [&](long) -> long { throw std::runtime_error("thrown by a continuation"); };
  CHECK_THROWS(far::async_get(p).then(failing).get(), "thrown by a continuation");
  CHECK_THROWS(far::async_get(p).then(failing).then([&](long v) { return ++called, v; }).get(),
               "thrown by a continuation");
  CHECK_THROWS(far::future<long>::ready(1).then(failing).then([&](long) { ++called; }).get(),
               "thrown by a continuation");
  CHECK_EQ(called, 0);
  auto failed =
      far::future<int>::failed(std::make_exception_ptr(std::runtime_error("from the start")));
  CHECK(failed.is_ready());
  CHECK_THROWS(std::move(failed).then([&](int) { ++called; }).get(), "from the start");
  CHECK_EQ(called, 0);
  bool finally = false;
  far::async_get(p).then(failing).finally([&](far::future<long> f) {
    finally = true;
    CHECK_THROWS(f.get(), "thrown by a continuation");
  });
  CHECK(finally || p);  // on a transport that is not done yet it runs in a later call
  for (int i = 0; i < 100'000'000 && !finally; ++i) far::progress();
  CHECK(finally);
  release(arrays);
}

FAR_TEST(when_all_of_several) {
  auto arrays = objects_on_each_rank<long>(2, 6L);
  auto p = next_of(arrays);
  auto [a, b, nothing, text] =
      far::when_all(far::async_get(p), far::async_get(p + 1), far::async_put(p + 1, 6L),
                    far::future<std::string>::ready("x"))
          .get();
  CHECK_EQ(a, 6);
  CHECK_EQ(b, 6);
  CHECK_EQ(text, "x");
  static_assert(std::is_same_v<decltype(nothing), std::monostate>);
  CHECK(far::when_all().is_ready());
  CHECK_THROWS(far::when_all(far::async_get(p), far::async_get(p).then([](long) -> int {
                 throw std::runtime_error("one of them");
               })).get(),
               "one of them");
  release(arrays);
}

FAR_TEST(when_all_of_many) {
  constexpr std::size_t n = 300;
  auto arrays = objects_on_each_rank<long>(n);
  auto own = arrays[far::rank()];
  std::vector<long> values(n);
  std::iota(values.begin(), values.end(), 1000L);
  far::put(own, values.data(), n);
  far::barrier();
  std::vector<far::future<long>> gets;
  for (std::size_t i = 0; i < n; ++i)
    gets.push_back(far::async_get(next_of(arrays) + static_cast<std::ptrdiff_t>(i)));
  CHECK_EQ(far::when_all(std::move(gets)).get(), values);
  CHECK(far::when_all(std::vector<far::future<long>>()).get().empty());

  far::barrier();
  std::vector<far::future<void>> puts;
  for (std::size_t i = 0; i < n; ++i)
    puts.push_back(
        far::async_put(next_of(arrays) + static_cast<std::ptrdiff_t>(i), &values[n - 1 - i], 1));
  far::future<void> all_put = far::when_all(std::move(puts));
  all_put.get();
  far::when_all(std::vector<far::future<void>>()).get();
  far::barrier();
  CHECK_EQ(far::get(own), 1000 + static_cast<long>(n) - 1);
  CHECK_EQ(far::get(own + (n - 1)), 1000);

  std::vector<far::future<long>> with_failure;
  for (int i = 0; i < 5; ++i)
    with_failure.push_back(far::async_get(own).then([i](long v) -> long {
      if (i == 3) throw std::runtime_error("the fourth");
      return v;
    }));
  CHECK_THROWS(far::when_all(std::move(with_failure)).get(), "the fourth");
  release(arrays);
}

FAR_TEST(coroutines) {
  auto arrays = objects_on_each_rank<long>(6);
  auto own = arrays[far::rank()];
  long values[] = {3, 0, 5, 1, 2, 4};  // a cycle 0 3 1 0; 2 5 4 2
  far::put(own, values, 6);
  far::barrier();
  auto p = next_of(arrays);
  CHECK_EQ(sum_of_three(p).get(), 8);
  CHECK_EQ(nested(p).get(), 16);
  CHECK_THROWS(fails_after(p).get(), "no good value 3");
  long end = -1;
  follow(p, 5, end).get();
  CHECK_EQ(end, 1);  // 3 1 0 3 1
  std::vector<far::future<long>> many;
  for (int i = 0; i < 50; ++i) many.push_back(nested(p));
  for (auto& one : many) CHECK_EQ(one.get(), 16);
  CHECK_EQ(sum_of_three(p).then([](long v) { return v * 2; }).get(), 16);
  release(arrays);
}

FAR_TEST(empty_futures_say_so) {
  far::future<int> nothing;
  CHECK(!nothing.valid());
  CHECK_THROWS(nothing.get(), "holds nothing");
  CHECK_THROWS(nothing.wait(), "holds nothing");
  CHECK_THROWS(nothing.is_ready(), "holds nothing");
  CHECK_THROWS(nothing.then([](int) {}), "holds nothing");
  auto full = far::future<int>::ready(1);
  auto taken = std::move(full);
  CHECK_EQ(taken.get(), 1);
  CHECK(!full.valid());
  CHECK_THROWS(full.get(), "moved from");
  auto chained = far::future<int>::ready(2);
  auto result = std::move(chained).then([](int v) { return v; });
  CHECK_EQ(result.get(), 2);
  CHECK(!chained.valid());
  CHECK_THROWS(chained.get(), "holds nothing");
}

FAR_TEST(abandoned_futures) {
  auto arrays = objects_on_each_rank<long>(1, 9L);
  auto counter = std::make_shared<int>(0);
  for (int i = 0; i < 50; ++i) {
    auto dropped = far::async_get(next_of(arrays));  // its destructor does not wait
    far::async_get(next_of(arrays))
        .then([counter](long v) { *counter += static_cast<int>(v); })
        .wait();
  }
  CHECK_EQ(*counter, 450);
  // What was dropped reads the memory all the same: it must be there until then.
  while (!far::detail::here().in_flight.empty()) far::progress();
  release(arrays);
}

// All ranks keep many chains in flight to all ranks.
FAR_TEST(many_chains_in_flight) {
  constexpr std::size_t n = 100;
  auto arrays = objects_on_each_rank<long>(n);
  std::vector<long> values(n);
  std::iota(values.begin(), values.end(), far::rank() * 1000L);
  far::put(arrays[far::rank()], values.data(), n);
  auto counters = objects_on_each_rank<long>(1, 0L);
  std::vector<far::future<long>> chains;
  for (std::size_t i = 0; i < n; ++i)
    for (far::rank_t of = 0; of < far::nprocs(); ++of)
      chains.push_back(far::async_get(arrays[of] + static_cast<std::ptrdiff_t>(i))
                           .then([at = counters[of]](long v) {
                             return far::async_fetch_add(at, v).then([v](long) { return v; });
                           }));
  auto all = far::when_all(std::move(chains)).get();
  for (std::size_t k = 0; k < all.size(); ++k)
    CHECK_EQ(all[k],
             static_cast<long>(k % far::nprocs()) * 1000 + static_cast<long>(k / far::nprocs()));
  far::barrier();
  long each = far::rank() * 1000L * n + static_cast<long>(n * (n - 1) / 2);
  CHECK_EQ(far::atomic_load(counters[far::rank()]), each * far::nprocs());
  release(arrays);
  release(counters);
}

}  // namespace futures_tests

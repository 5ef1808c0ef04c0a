// The Bloom filters against std::set: no key is lost, new keys are told as new once, and keys that
// are not in are claimed as rarely as asked. And what they stand on: far::hash.
#include "amounts.hpp"
#include "harness.hpp"

#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/plain_bloom_filter.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <unordered_set>

namespace bloom_tests {

using far::operation;

namespace {

/// A few 10,000 operations a run are enough where there are many runs.
using amounts::simulated;
std::uint64_t scale() {
  return simulated() ? 1 : static_cast<std::uint64_t>(std::max(40 / amounts::share(), 1));
}

/// Without padding: hashed by its bytes.
struct position {
  std::int32_t x, y;
  bool operator==(const position&) const = default;
};

/// Padding and a far::serializer of fixed length.
struct reading {
  char kind;
  long value;
};

/// Of variable length.
struct word {
  std::string text;
  std::vector<int> pages;
};

/// What std::hash knows.
struct person {
  std::string name;
};

}  // namespace

}  // namespace bloom_tests

template <>
struct far::serializer<bloom_tests::reading> {
  using reading = bloom_tests::reading;
  using fixed = std::pair<char, long>;
  static fixed pack(const reading& r) { return {r.kind, r.value}; }
  static reading unpack(const fixed& f) { return {f.first, f.second}; }
};

template <>
struct far::serializer<bloom_tests::word> {
  using word = bloom_tests::word;
  static void save(far::writer& out, const word& w) { out << w.text << w.pages; }
  static word load(far::reader& in) {
    word w;
    in >> w.text >> w.pages;
    return w;
  }
};

template <>
struct std::hash<bloom_tests::person> {
  std::size_t operator()(const bloom_tests::person& p) const { return p.name.size(); }
};

namespace bloom_tests {

namespace {

struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics";
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
  return {t[operation::get].count, t[operation::put].count, t[operation::atomic].count};
}

bool coherent() { return far::detail::here().link.coherent(); }

/// Inserts keys of `make(i)` from all ranks, then looks: all of them are in, and of as many others
/// no more than asked for.
template <class Filter, class Make>
void holds_its_rate(double rate, std::uint64_t keys, Make make) {
  far::rank_t me = far::rank(), n = far::nprocs();
  Filter filter(keys, rate);
  for (std::uint64_t i = me; i < keys; i += n) filter.insert(make(i));
  far::barrier();
  std::uint64_t missing = 0, claimed = 0, asked = 0;
  for (std::uint64_t i = me; i < keys; i += n) missing += !filter.find(make(i));
  CHECK_EQ(missing, 0u);
  for (std::uint64_t i = keys + me; i < 5 * keys; i += n) claimed += filter.find(make(i)), ++asked;
  claimed = far::all_reduce(claimed), asked = far::all_reduce(asked);
  double expected = rate * static_cast<double>(asked);
  // Four standard deviations, of the questions and of how full the filter came out.
  double slack = 4 * std::sqrt(expected) + 0.15 * expected;
  CHECK(static_cast<double>(claimed) <= expected + slack);
  CHECK(static_cast<double>(claimed) >= 0.5 * expected - slack);  // and no memory is wasted
  auto seen = filter.statistics();
  double estimated = seen.estimated_rate * static_cast<double>(asked);
  CHECK(std::abs(static_cast<double>(claimed) - estimated) <= 4 * std::sqrt(estimated) + 1);
  CHECK(seen.skew >= 1 && seen.skew < 1 + 6 / std::sqrt(static_cast<double>(keys) / n));
  far_test::note("rate ", rate, " asked, ",
                 static_cast<double>(claimed) / static_cast<double>(asked), " measured, ",
                 seen.estimated_rate, " estimated, ",
                 static_cast<double>(filter.bits()) / static_cast<double>(keys), " bits a key");
}

template <class Filter, class Make>
void agrees_with_a_set(Make make) {
  using Key = decltype(make(0));
  Filter filter(4000, 1e-6);
  const int operations = simulated() ? 60 : 300;
  auto random = far_test::random_engine();
  std::set<std::uint64_t> in;
  for (int i = 0; i < operations; ++i) {
    // Each rank has numbers of its own: nobody else inserts them.
    std::uint64_t number = random() % 100 * far::nprocs() + far::rank();
    Key key = make(number);
    if (random() % 2 == 0)
      CHECK_EQ(filter.insert(key), in.insert(number).second);
    else
      CHECK_EQ(filter.find(key), in.contains(number));
  }
}

}  // namespace

FAR_TEST(hash_is_the_same_everywhere) {
  CHECK_EQ(far::hash<int>()(0), 0xe220a8397b1dcdafu);
  CHECK_EQ(far::hash<std::string>()("abc"), 0x34f459e50965f6eeu);
  CHECK_EQ(far::hash<std::string>()(std::string(100, 'x')), 0xb15244137c792a71u);
  CHECK_EQ(far::hash<double>()(0.0), far::hash<double>()(-0.0));
  CHECK_EQ(far::hash<std::string>()("view"), far::hash<std::string_view>()("view"));
  CHECK_EQ(far::hash<int>()(7), far::hash<long>()(7));
  auto everywhere = [](std::uint64_t h) { return far::broadcast(h, 0) == h; };
  CHECK(everywhere(far::hash<word>()({"a", {1, 2}})));
  CHECK(everywhere(far::hash<reading>()({'a', 7})));
  CHECK(everywhere(far::hash<std::map<std::string, double>>()({{"a", 1.5}, {"b", 2}})));
  CHECK(everywhere(far::hash<person>()({"Ann"})));
  CHECK(everywhere(far::hash<std::vector<bool>>()({true, false})));
  CHECK(everywhere(far::hash<far::ptr<int>>()(far::ptr<int>(1, 64))));
}

FAR_TEST(hash_is_even_and_tells_apart) {
  // Every bit of the hash is set for about half of the keys, and flips with half of the changes.
  const int keys = simulated() ? 200 : 2000;
  auto look = [&](auto make) {
    std::array<int, 64> ones{};
    std::unordered_set<std::uint64_t> seen;
    for (int i = 0; i < keys; ++i) {
      std::uint64_t h = make(i);
      seen.insert(h);
      for (unsigned b = 0; b < 64; ++b) ones[b] += h >> b & 1;
    }
    CHECK_EQ(seen.size(), static_cast<std::size_t>(keys));
    for (int n : ones) CHECK(std::abs(n - keys / 2) < 5 * std::sqrt(keys) / 2);
  };
  look([](int i) { return far::hash<int>()(i); });
  look([](int i) { return far::hash<int>()(i) ^ far::hash<int>()(i ^ 1 << i % 31); });
  look([](int i) { return far::hash<std::string>()(std::to_string(i)); });
  look([](int i) { return far::hash<std::string>()("some longer text, " + std::to_string(i)); });
  look([](int i) {
    return far::hash<std::string>()(std::string(static_cast<std::size_t>(i), '\0'));
  });
  look([](int i) { return far::hash<std::pair<int, int>>()({i / 50, i % 50}); });
  look([](int i) { return far::hash<std::array<std::string, 2>>()({"x", std::to_string(i)}); });
  look([](int i) { return far::hash<position>()({i, -i}); });
  look([](int i) { return far::hash<reading>()({'x', i}); });
  look([](int i) { return far::hash<word>()({"same", {i}}); });
  look([](int i) { return far::hash<double>()(i * 0.25); });
  CHECK(far::hash<std::pair<int, int>>()({1, 2}) != far::hash<std::pair<int, int>>()({2, 1}));
  CHECK(far::hash<std::string>()("") != far::hash<std::string>()(std::string(1, '\0')));
}

FAR_TEST(sizes) {
  using namespace far::detail;
  std::vector<double> rates = {0.5, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-6, 1e-9};
  if (simulated() || far::rank() != 0) rates = {0.01};  // the same everywhere, and slow
  for (double rate : rates) {
    for (std::uint64_t keys : {std::uint64_t{10'000}, std::uint64_t{100'000'000}}) {
      bloom_shape plain = plain_bloom_shape(keys, rate), blocked = blocked_bloom_shape(keys, rate);
      double mean = static_cast<double>(keys) / (static_cast<double>(blocked.bits) / 64);
      CHECK(blocked_rate(blocked_hits(blocked.bits_per_key), mean) <= rate);
      CHECK(blocked_rate(blocked_hits(blocked.bits_per_key), mean * 1.01) > rate * 0.999);
      CHECK(blocked.bits >= plain.bits);
      // Known to be enough by experiment, for 10 % to 0.001 %: a factor of |ln rate|.
      if (rate <= 0.1 && rate >= 1e-5)
        CHECK(static_cast<double>(blocked.bits) <
              static_cast<double>(plain.bits) * -std::log(rate));
    }
  }
  CHECK_EQ(plain_bloom_shape(100'000'000, 0.001).bits / 8 / 1'000'000, 179);  // 172 MiB or so
  CHECK(blocked_bloom_shape(0, 0.01).bits >= 64);
  CHECK_THROWS(far::bloom_filter<int>(10, 0), "rates from");
  CHECK_THROWS(far::plain_bloom_filter<int>(10, 1.5), "rates from");
}

FAR_TEST(rates_of_false_positives) {
  auto number = [](std::uint64_t i) { return i; };
  auto text = [](std::uint64_t i) { return "key " + std::to_string(i); };
  holds_its_rate<far::bloom_filter<std::uint64_t>>(0.1, 150 * scale(), number);
  holds_its_rate<far::bloom_filter<std::uint64_t>>(0.01, 400 * scale(), number);
  holds_its_rate<far::bloom_filter<std::string>>(0.02, 200 * scale(), text);
  // A bad hash, which is all that the standard asks for.
  holds_its_rate<far::bloom_filter<std::uint64_t, std::hash<std::uint64_t>>>(0.02, 200 * scale(),
                                                                             number);
}

FAR_TEST(rates_of_the_plain_filter) {
  auto number = [](std::uint64_t i) { return i; };
  auto text = [](std::uint64_t i) { return "key " + std::to_string(i); };
  holds_its_rate<far::plain_bloom_filter<std::uint64_t>>(0.1, 100 * scale(), number);
  holds_its_rate<far::plain_bloom_filter<std::string>>(0.01, 100 * scale(), text);
}

FAR_TEST(integers) {
  agrees_with_a_set<far::bloom_filter<int>>([](std::uint64_t i) { return static_cast<int>(i); });
  agrees_with_a_set<far::plain_bloom_filter<int>>(
      [](std::uint64_t i) { return static_cast<int>(i); });
}

FAR_TEST(strings) {
  auto text = [](std::uint64_t i) { return std::string(i % 40, 'a') + std::to_string(i); };
  agrees_with_a_set<far::bloom_filter<std::string>>(text);
  agrees_with_a_set<far::plain_bloom_filter<std::string>>(text);
}

FAR_TEST(user_defined_types) {
  agrees_with_a_set<far::bloom_filter<position>>(
      [](std::uint64_t i) { return position{static_cast<int>(i), 7}; });
  agrees_with_a_set<far::bloom_filter<reading>>(
      [](std::uint64_t i) { return reading{'r', static_cast<long>(i)}; });
  agrees_with_a_set<far::bloom_filter<word>>(
      [](std::uint64_t i) { return word{"w", {static_cast<int>(i)}}; });
  agrees_with_a_set<far::plain_bloom_filter<word>>(
      [](std::uint64_t i) { return word{"w", {static_cast<int>(i)}}; });
}

FAR_TEST(exactly_one_is_told_that_a_key_is_new) {
  const std::uint64_t keys = simulated() ? 100 : 300;
  far::bloom_filter<std::uint64_t> filter(keys * 30, 1e-6);
  std::uint64_t told = 0;
  for (std::uint64_t i = 0; i < keys; ++i) told += filter.insert(i);
  CHECK_EQ(far::all_reduce(told), keys);
  far::barrier();
  for (std::uint64_t i = 0; i < keys; ++i) CHECK(!filter.insert(i));
}

FAR_TEST(the_plain_filter_tells_one_or_more) {
  const std::uint64_t keys = simulated() ? 20 : 100;
  far::plain_bloom_filter<std::uint64_t> filter(keys * 30, 1e-6);
  std::vector<std::uint64_t> told(keys);
  for (std::uint64_t i = 0; i < keys; ++i) {
    told[i] = filter.insert(i);
    CHECK(filter.find(i));
  }
  far::all_reduce(std::span(told));
  for (std::uint64_t n : told) CHECK(n >= 1 && n <= far::nprocs());
  far::barrier();
  for (std::uint64_t i = 0; i < keys; ++i) CHECK(!filter.insert(i));
}

FAR_TEST(bulk_and_async) {
  auto look = [](auto filter, bool once) {
    const std::uint64_t n = simulated() ? 150 : 1500;  // more than are in flight at once
    std::vector<std::uint64_t> keys(n);
    for (std::uint64_t i = 0; i < n; ++i) keys[i] = (i % (n - 50)) * far::nprocs() + far::rank();
    std::vector<bool> fresh = filter.insert(std::span<const std::uint64_t>(keys));
    CHECK_EQ(fresh.size(), n);
    // The first n - 50 are new; of those that are there twice either one is told so.
    std::map<std::uint64_t, int> told;
    for (std::uint64_t i = 0; i < n; ++i) told[keys[i]] += fresh[i];
    for (auto [key, times] : told) CHECK(times == 1 || (times == 2 && !once));
    keys.push_back(~std::uint64_t{far::rank()});
    std::vector<bool> found = filter.find(std::span<const std::uint64_t>(keys));
    for (std::uint64_t i = 0; i < n; ++i) CHECK(found[i]);
    CHECK(!found[n]);
    auto first = filter.async_insert(keys[n]);
    CHECK(first.get());
    auto second = filter.async_insert(keys[n]);
    auto there = filter.async_find(keys[0]);
    CHECK(!second.get());
    CHECK(there.get());
    CHECK(!filter.async_find(~std::uint64_t{far::rank()} - far::nprocs()).get());
    CHECK(filter.insert(std::span<const std::uint64_t>()).empty());
  };
  // Few enough false positives that no key seems to be there before, whatever the order.
  look(far::bloom_filter<std::uint64_t>(1500 * far::nprocs(), 1e-9), true);
  far::barrier();
  look(far::plain_bloom_filter<std::uint64_t>(1500 * far::nprocs(), 1e-9), false);
}

FAR_TEST(clear_and_statistics) {
  auto look = [](auto filter) {
    auto empty = filter.statistics();
    CHECK_EQ(empty.bits, filter.bits());
    CHECK_EQ(empty.bits_set, 0u);
    CHECK(empty.estimated_rate == 0 && empty.load == 0);
    if (far::rank() == 0) CHECK(filter.insert("one"));
    far::barrier();
    auto one = filter.statistics();
    CHECK(one.bits_set <= filter.bits_per_key());
    CHECK(one.bits_set + 1 >= filter.bits_per_key());  // the plain one may meet a bit twice
    CHECK(filter.find("one"));
    filter.clear();
    CHECK(!filter.find("one"));
    CHECK_EQ(filter.statistics().bits_set, 0u);
    filter.insert("two");
    CHECK(filter.find("two"));
  };
  look(far::bloom_filter<std::string>(1000, 0.001));
  look(far::plain_bloom_filter<std::string>(1000, 0.001));
}

FAR_TEST(over_a_team_and_moved) {
  far::team half = far::world().split(static_cast<int>(far::rank() % 2));
  far::bloom_filter<far::rank_t> filter(100, 1e-6, {.name = "half", .over = half});
  CHECK_EQ(filter.name(), "half");
  filter.insert(far::rank());
  far::barrier(half);
  for (far::rank_t i = 0; i < far::nprocs(); ++i)
    CHECK_EQ(filter.find(i), i % 2 == far::rank() % 2);
  far::barrier(half);
  auto moved = std::move(filter);
  CHECK(moved.find(far::rank()));
  CHECK_THROWS(filter.find(far::rank()), "moved from");
}

FAR_TEST(costs) {
  far::bloom_filter<int> filter(1000, 0.001);
  CHECK_EQ(cost_of([&] { filter.insert(1); }), cost{.atomics = 1});
  CHECK_EQ(cost_of([&] { filter.find(1); }), cost{.gets = 1});
  CHECK_EQ(count([&] { filter.insert(2); }).waits, 1u);
  CHECK_EQ(count([&] { filter.find(2); }).waits, 1u);
  std::vector<int> keys(100);
  for (int i = 0; i < 100; ++i) keys[static_cast<std::size_t>(i)] = i;
  std::span<const int> all(keys);
  CHECK_EQ(cost_of([&] { filter.insert(all); }), cost{.atomics = 100});
  CHECK_EQ(cost_of([&] { filter.find(all); }), cost{.gets = 100});
  if (!coherent()) {
    CHECK(count([&] { filter.insert(all); }).waits <= 1);
    CHECK(count([&] { filter.find(all); }).waits <= 1);
  }
  far::plain_bloom_filter<int> plain(1000, 0.001);
  std::uint64_t k = plain.bits_per_key();
  CHECK_EQ(k, 10u);
  CHECK_EQ(cost_of([&] { plain.insert(1); }), cost{.atomics = k});
  CHECK_EQ(cost_of([&] { plain.find(1); }), cost{.gets = k});
  CHECK_EQ(cost_of([&] { plain.insert(all); }), cost{.atomics = 100 * k});
  if (!coherent()) {
    CHECK(count([&] { plain.insert(2); }).waits <= 1);
    CHECK(count([&] { plain.find(all); }).waits <= 1);
  }
}

FAR_TEST(promises) {
  far::bloom_filter<int> filter(1000, 0.001);
  CHECK(filter.insert(static_cast<int>(far::rank()), far::concurrency::insert));
  far::barrier();
  CHECK(filter.find(static_cast<int>(far::rank()), far::concurrency::find));
  far::barrier();
  if (far::rank() != 0) return;  // others would be told of the broken promise too
  filter.insert(1000);
  if (FARSIDE_CHECKED)
    CHECK_THROWS(filter.find(1, far::concurrency::find), "a promise was broken on bloom_filter");
}

}  // namespace bloom_tests

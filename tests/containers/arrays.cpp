// far::array, far::darray and far::counter against std::vector: every size and distribution, ranges
// across ranks, elements of many types, atomics, promises, and what each operation costs.
#include "harness.hpp"

#include <farside/containers/array.hpp>
#include <farside/containers/counter.hpp>
#include <farside/containers/darray.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

namespace arrays_tests {

using far::concurrency;
using far::operation;

namespace {

/// Not trivially copyable, of fixed length, and without a default constructor.
struct date {
  int year, month;
  date(int y, int m) : year(y), month(m) {}
  date(const date& other) : year(other.year), month(other.month) {}
  date& operator=(const date&) = default;
  bool operator==(const date&) const = default;
};

struct point {
  double x, y;
  bool operator==(const point&) const = default;
};

}  // namespace

}  // namespace arrays_tests

template <>
struct far::serializer<arrays_tests::date> {
  using date = arrays_tests::date;
  using fixed = std::array<int, 2>;
  static fixed pack(const date& d) { return {d.year, d.month}; }
  static date unpack(const fixed& f) { return date(f[0], f[1]); }
};

namespace arrays_tests {

namespace {

struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0, waits = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics, " << c.waits
               << " waits";
  }
};

template <class Work>
cost cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[operation::get].count, t[operation::put].count, t[operation::atomic].count, t.waits};
}

bool coherent() { return far::detail::here().link.coherent(); }

static_assert(std::random_access_iterator<far::darray<long>::iterator>);
static_assert(std::random_access_iterator<far::darray<date>::iterator>);
static_assert(std::random_access_iterator<decltype(std::declval<far::array<long>>().begin())>);
static_assert(std::sized_sentinel_for<far::darray<long>::iterator, far::darray<long>::iterator>);

/// Writes, reads and compares, one rank at a time, in random pieces.
template <class Array, class Make>
void agrees_with_a_vector(Array& a, Make make) {
  using T = typename Array::value_type;
  std::size_t n = a.size();
  std::vector<T> model;
  for (std::size_t i = 0; i < n; ++i) model.push_back(make(i));
  a.assign(model);
  auto random = far_test::common_random_engine(n);
  for (int round = 0; round < 12; ++round) {
    far::rank_t writer = static_cast<far::rank_t>(random() % far::nprocs());
    std::size_t first = n == 0 ? 0 : random() % (n + 1), count = random() % (n - first + 1);
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(make(random() % 1000));
    std::copy(values.begin(), values.end(), model.begin() + static_cast<std::ptrdiff_t>(first));
    if (far::rank() == writer) a.put(first, std::span<const T>(values));
    std::size_t single = n == 0 ? 0 : random() % n;
    T value = make(random() % 1000);
    far::barrier();  // puts of two rounds may not overlap
    if (n != 0) {
      model[single] = value;
      if (far::rank() == writer) a[single] = value;
    }
    far::barrier();
    first = n == 0 ? 0 : far_test::random_engine(round)() % (n + 1);
    count = n - first;
    std::vector<T> got(count, make(0));
    a.get(first, std::span<T>(got));
    CHECK(std::equal(got.begin(), got.end(), model.begin() + static_cast<std::ptrdiff_t>(first)));
    if (n != 0) CHECK(a.get(single) == model[single] && static_cast<T>(a[single]) == model[single]);
    far::barrier();
  }
  CHECK(a.to_vector() == model);
  CHECK(a.all_to_vector() == model);
  if (n != 0) {
    a.fill(make(3));
    CHECK(a.to_vector() == std::vector<T>(n, make(3)));
    far::barrier();
  }
}

template <class T, class Make>
void of_every_size(Make make) {
  far::rank_t p = far::nprocs();
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{p} - 1, std::size_t{p},
                        std::size_t{p} + 1, std::size_t{3} * p + 2, std::size_t{50}}) {
    far::darray<T> spread(n);
    CHECK_EQ(spread.size(), n);
    agrees_with_a_vector(spread, make);
    far::array<T> hosted(static_cast<far::rank_t>(n % p), n);
    agrees_with_a_vector(hosted, make);
  }
}

}  // namespace

FAR_TEST(integers) {
  of_every_size<int>([](std::size_t i) { return static_cast<int>(i * 7); });
}

FAR_TEST(elements_of_other_types) {
  auto look = [](auto make) {
    using T = decltype(make(0));
    far::darray<T> spread(2 * far::nprocs() + 1);
    agrees_with_a_vector(spread, make);
    far::array<T> hosted(far::nprocs() - 1, 9);
    agrees_with_a_vector(hosted, make);
  };
  look([](std::size_t i) { return point{static_cast<double>(i), 0.5}; });
  look([](std::size_t i) { return std::pair(static_cast<int>(i), static_cast<char>(i % 100)); });
  look([](std::size_t i) { return std::tuple(i, 2.5F * static_cast<float>(i)); });
  look([](std::size_t i) { return date(static_cast<int>(i), 2); });
  look([](std::size_t i) {
    return std::array<std::pair<short, long>, 2>{{{1, 2}, {3, static_cast<long>(i)}}};
  });
  look([](std::size_t i) { return static_cast<char>(i); });
}

FAR_TEST(booleans) {
  far::darray<bool> flags(2 * far::nprocs(), false);
  flags.put(2 * far::rank(), true);
  far::barrier();
  for (std::size_t i = 0; i < flags.size(); ++i) CHECK_EQ(flags.get(i), i % 2 == 0);
  CHECK_EQ(flags.to_vector().size(), flags.size());
}

FAR_TEST(strings_in_boxes) {
  far::array<far::box<std::string>> names(0, far::nprocs());
  std::string own = "the name of rank " + std::to_string(far::rank());
  names.put(far::rank(), far::box<std::string>::pack(own));
  far::barrier();
  for (far::rank_t i = 0; i < far::nprocs(); ++i)
    CHECK_EQ(names.get(i).unpack(), "the name of rank " + std::to_string(i));
  far::barrier();
  names.get(far::rank()).release();
}

FAR_TEST(blocks) {
  far::rank_t p = far::nprocs(), me = far::rank();
  for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{p} - 1, std::size_t{p} + 1,
                        std::size_t{7} * p + 3}) {
    far::darray<std::uint64_t> a(n);
    std::size_t next = 0;
    for (far::rank_t member = 0; member < p; ++member) {
      auto [first, count] = a.block(member);
      CHECK_EQ(first, next);
      CHECK_EQ(count, n / p + (member < n % p));
      for (std::size_t i = first; i < first + count; ++i) CHECK_EQ(a.owner(i), member);
      next = first + count;
    }
    CHECK_EQ(next, n);
    CHECK_EQ(a.local_size(), a.block(me).second);
    CHECK_EQ(a.local().size(), a.block(me).second);
    CHECK_EQ(a.local_begin(), a.block(me).first);
    auto seen = a.statistics();
    CHECK_EQ(seen.bytes, 8 * n);
    CHECK_EQ(seen.smallest_part, n / p);
    CHECK_EQ(seen.largest_part, (n + p - 1) / p);
    a.for_each_local([](std::size_t i, std::uint64_t& x) { x = 10 * i; });
    far::barrier();
    for (std::size_t i = 0; i < n; ++i) CHECK_EQ(a.get(i), 10 * i);
    for (std::size_t i = 0; i < n; ++i) CHECK_EQ(far::get(a.ptr(i)), 10 * i);
    for (std::size_t i = 0; i < a.local_size(); ++i)
      CHECK_EQ(a.local()[i], 10 * (a.local_begin() + i));
    far::barrier();
  }
  far::array<int> hosted(p - 1, 5);
  CHECK_EQ(hosted.host(), p - 1);
  CHECK_EQ(hosted.local().size(), me == p - 1 ? 5u : 0u);
  far::darray<date> dates(2 * p + 1, date(1, 1));
  dates.for_each_local([](std::size_t i, date& d) { d.year += static_cast<int>(i); });
  far::barrier();
  CHECK(dates.get(2 * p) == date(1 + 2 * static_cast<int>(p), 1));
}

FAR_TEST(iterators) {
  far::darray<int> a(3 * far::nprocs() + 1, 0);
  auto n = static_cast<int>(a.size());
  if (far::rank() == 0) {
    std::vector<int> mixed(a.size());
    std::iota(mixed.begin(), mixed.end(), 0);
    std::shuffle(mixed.begin(), mixed.end(), far_test::random_engine());
    auto from = mixed.begin();
    for (auto x : a) x = *from++;
    CHECK_EQ(std::accumulate(a.begin(), a.end(), 0), n * (n - 1) / 2);
    CHECK_EQ(std::find(a.begin(), a.end(), mixed[2]) - a.begin(), 2);
    std::sort(a.begin(), a.end());
    CHECK(std::is_sorted(a.begin(), a.end()));
    std::reverse(a.begin(), a.end());
    CHECK_EQ(static_cast<int>(a.begin()[0]), n - 1);
    CHECK(std::max_element(a.begin(), a.end()) == a.begin());
    auto it = a.begin();
    it += n - 1;
    CHECK(it < a.end() && it + 1 == a.end() && a.end() - it == 1 && it-- != it &&
          1 + it == a.end() - 1);
    a[0] += 5;
    a[0] *= 2;
    CHECK_EQ(a.get(0), 2 * (n - 1 + 5));
  }
  far::barrier();
  far::array<int> hosted(0, 4);
  hosted.fill(2);
  CHECK_EQ(std::accumulate(hosted.begin(), hosted.end(), 0), 8);
  CHECK_EQ(hosted.end() - hosted.begin(), 4);
  far::array<date> dates(0, 4);
  dates.fill(date(2, 2));
  CHECK_EQ(std::count(dates.begin(), dates.end(), date(2, 2)), 4);
}

FAR_TEST(async_access) {
  std::size_t n = 5 * far::nprocs() + 3;
  far::darray<long> a(n, -1L);
  far::rank_t me = far::rank();
  std::vector<far::future<void>> puts;
  for (std::size_t i = me; i < n; i += far::nprocs())
    puts.push_back(a.async_put(i, static_cast<long>(i)));
  far::when_all(std::move(puts)).get();
  far::barrier();
  std::vector<far::future<long>> gets;
  for (std::size_t i = 0; i < n; ++i) gets.push_back(a.async_get(i));
  auto got = far::when_all(std::move(gets)).get();
  for (std::size_t i = 0; i < n; ++i) CHECK_EQ(got[i], i);
  std::vector<long> all(n, 7);
  a.async_get(0, std::span(all)).get();
  CHECK_EQ(all, got);
  far::barrier();
  if (me == 0) {
    std::reverse(all.begin(), all.end());
    a.async_put(0, std::span<const long>(all)).get();
  }
  far::barrier();
  CHECK_EQ(a.get(0), n - 1);
  CHECK_EQ(a.async_get(n - 1).get(), 0);
  far::array<date> dates(0, 2);
  dates.fill(date(1, 2));
  CHECK(dates.async_get(1).get() == date(1, 2));
  a.async_get(0, std::span<long>()).get();
}

FAR_TEST(atomics) {
  std::size_t n = 7;
  far::darray<std::int64_t> a(n, 0);
  constexpr int rounds = 40;
  for (int i = 0; i < rounds; ++i) {
    a.fetch_add(static_cast<std::size_t>(i) % n, 3);
    a.fetch_sub(static_cast<std::size_t>(i) % n, 1);
  }
  a.async_fetch_add(0, 1).get();
  far::barrier();
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a.get(i);
  CHECK_EQ(sum, (2 * rounds + 1) * static_cast<std::int64_t>(far::nprocs()));
  far::barrier();
  a.fill(0);
  bool won = a.compare_swap(3, 0, far::rank() + 1) == 0;
  CHECK_EQ(far::all_reduce(static_cast<int>(won)), 1);
  if (won) CHECK_EQ(a.get(3), far::rank() + 1);
  a.fetch_max(4, far::rank());
  a.fetch_min(5, -static_cast<std::int64_t>(far::rank()));
  bool first = a.swap(6, 1) == 0;
  CHECK_EQ(far::all_reduce(static_cast<int>(first)), 1);
  far::barrier();
  CHECK_EQ(a.get(4), far::nprocs() - 1);
  CHECK_EQ(a.get(5), 1 - static_cast<std::int64_t>(far::nprocs()));
  CHECK_EQ(a.async_compare_swap(6, 1, 1).get(), 1);
}

FAR_TEST(costs) {
  far::rank_t p = far::nprocs();
  far::darray<long> a(4 * p, 1L);
  std::size_t next = 4 * ((far::rank() + 1) % p);
  CHECK_EQ(cost_of([&] { a.get(next); }), (cost{.gets = 1, .waits = 1}));
  CHECK_EQ(cost_of([&] { a.put(next, 5); }), cost{.puts = 1});
  CHECK_EQ(cost_of([&] { a[next] = a[next + 1]; }), (cost{.gets = 1, .puts = 1, .waits = 1}));
  far::flush();
  CHECK_EQ(cost_of([&] { a.fetch_add(next + 2, 5); }), (cost{.atomics = 1, .waits = 1}));
  CHECK_EQ(cost_of([&] { a.async_get(next).get(); }).gets, 1u);
  std::vector<long> all(4 * p);
  cost whole = cost_of([&] { a.get(0, std::span(all)); });
  CHECK_EQ(whole.gets, p);
  if (!coherent()) CHECK(whole.waits <= 1);
  CHECK_EQ(cost_of([&] { a.get(2, std::span(all).first(1)); }).gets, 1u);
  far::barrier();
  if (far::rank() == 0)
    CHECK_EQ(cost_of([&] { a.put(0, std::span<const long>(all)); }), cost{.puts = p});
  CHECK_EQ(cost_of([&] { a.get(0, std::span<long>()); }), cost{});
  far::barrier();
  std::size_t mine = a.local_begin();
  CHECK_EQ(cost_of([&] {
             a.put(mine, 77, concurrency::find | concurrency::modify | concurrency::owner_only);
             CHECK_EQ(
                 a.get(mine, concurrency::find | concurrency::modify | concurrency::owner_only),
                 77);
           }),
           cost{});
  far::barrier();
  CHECK_EQ(a.get(next), 77);
}

FAR_TEST(promises) {
  far::darray<int> a(2 * far::nprocs(), 0);
  auto mine = concurrency::find | concurrency::modify | concurrency::owner_only;
  std::size_t own = 2 * far::rank();
  // Own puts come before own loads, though they may not have landed.
  a.put(own, 1, concurrency::modify | concurrency::find);
  CHECK_EQ(a.get(own, mine), 1);
  std::vector<int> two{2, 3};
  a.put(own, std::span<const int>(two), concurrency::modify | concurrency::find);
  CHECK_EQ(a.get(own + 1, mine), 3);
  far::barrier();
  CHECK_EQ(a.get((own + 2) % a.size(), concurrency::find), 2);
  far::barrier();
  if (far::nprocs() > 1) CHECK_THROWS(a.get((own + 2) % a.size(), mine), "promised to be local");
  far::barrier();
  if (far::rank() != 0) return;  // others would be told of the broken promise too
  a.put(own, 5);
  if (FARSIDE_CHECKED)
    CHECK_THROWS(a.get(own, concurrency::find), "a promise was broken on darray");
  else
    CHECK_EQ(a.get(own, concurrency::find | concurrency::modify), 5);
}

FAR_TEST(misuse_is_told) {
  far::darray<int> a(3, 0, {.name = "small"});
  CHECK_THROWS(a.get(3), "darray 'small': get of 1 elements at index 3, but it has 3");
  CHECK_THROWS(a.put(~std::size_t{0}, 1), "but it has 3");
  std::vector<int> four(4);
  CHECK_THROWS(a.get(0, std::span(four)), "get of 4 elements at index 0");
  CHECK_THROWS(a.put(2, std::span<const int>(four).first(2)), "put of 2 elements at index 2");
  CHECK_THROWS(a.fetch_add(3, 1), "fetch_add");
  CHECK_THROWS(a.ptr(3), "ptr of 1");
  CHECK_THROWS(a.assign(four), "assign of 4 values");
  CHECK_THROWS(a.block(far::nprocs()), "block of member");
  CHECK_THROWS(far::array<int>(far::nprocs(), 4), "is not in a team");
  CHECK_THROWS(far::counter(0, far::nprocs()), "is not in a team");
  auto b = std::move(a);
  CHECK_THROWS(a.size(), "moved from");
  CHECK_EQ(b.size(), 3u);
}

FAR_TEST(over_a_team) {
  far::team half = far::world().split(static_cast<int>(far::rank() % 2));
  far::darray<far::rank_t> a(5 * half.size(), {.over = half});
  a.for_each_local([&](std::size_t, far::rank_t& x) { x = far::rank(); });
  far::barrier(half);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK_EQ(a.get(i), half.world_rank(a.owner(i)));
  far::array<int> b(half.size() - 1, 3, {.over = half});
  b.fill(static_cast<int>(far::rank() % 2));
  CHECK_EQ(b.get(2), far::rank() % 2);
  far::barrier(half);
}

FAR_TEST(memory_is_given_back) {
  far::barrier();
  far::dealloc(far::alloc<char>());
  std::size_t in_use = far::detail::here().heap.in_use();
  {
    far::darray<long> a(1000 * far::nprocs());
    far::array<long> b(0, 1000);
    far::counter c;
    CHECK(far::detail::here().heap.in_use() >= in_use + 8000);
  }
  far::dealloc(far::alloc<char>());
  CHECK_EQ(far::detail::here().heap.in_use(), in_use);
}

FAR_TEST(counter_gives_every_ticket_once) {
  far::counter tickets(100, far::nprocs() - 1);
  CHECK_EQ(tickets.host(), far::nprocs() - 1);
  std::vector<std::uint64_t> mine;
  std::vector<far::future<std::uint64_t>> later;
  for (std::uint64_t i = 0; i < 30; ++i) {
    if (i % 3 == 0) {
      later.push_back(tickets.async_next());
      continue;
    }
    std::uint64_t n = i % 3, first = tickets.next(n);
    CHECK(mine.empty() || first > mine.back());  // tickets of one rank rise
    for (std::uint64_t k = 0; k < n; ++k) mine.push_back(first + k);
    CHECK(tickets.value() > mine.back());
  }
  for (auto& ticket : later) mine.push_back(ticket.get());
  std::set<std::uint64_t> all;
  for (const auto& part : far::all_gather(mine)) all.insert(part.begin(), part.end());
  CHECK_EQ(all.size(), 40 * far::nprocs());
  CHECK_EQ(*all.begin(), 100u);
  CHECK_EQ(*all.rbegin(), 100 + 40 * far::nprocs() - 1);
  far::barrier();
  CHECK_EQ(tickets.value(), 100 + 40 * far::nprocs());
  tickets.reset(7);
  CHECK(tickets.value() >= 7);
  tickets.reset();
  CHECK_EQ(tickets.value(), 0u);
  CHECK_EQ(cost_of([&] { tickets.value(); }), (cost{.gets = 1, .waits = 1}));
  far::barrier();
  CHECK_EQ(cost_of([&] { tickets.next(); }), (cost{.atomics = 1, .waits = 1}));
}

}  // namespace arrays_tests

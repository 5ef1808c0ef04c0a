// far::rpc: results, arguments, functions of all kinds, errors, order; answers of any size.
#include "rank_state.hpp"

#include <farside/core/rpc.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <variant>

namespace rpc_tests {

using namespace messages;

namespace {

struct date {
  int year;
  std::string month;
  bool operator==(const date&) const = default;
};

int twice(int x) { return 2 * x; }
int thrice(int x) noexcept { return 3 * x; }

struct adder {
  long amount;
  long operator()(long x) const { return x + amount; }
};

struct prefixer {
  std::string prefix;
  std::string operator()(const std::string& s) const { return prefix + s; }
};

std::vector<int> numbers(std::size_t n, int first) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

struct unreadable {
  int x = 0;
};

}  // namespace

}  // namespace rpc_tests

template <>
struct far::serializer<rpc_tests::date> {
  using date = rpc_tests::date;
  static void save(far::writer& out, const date& d) { out << d.year << d.month; }
  static date load(far::reader& in) {
    date d;
    in >> d.year >> d.month;
    return d;
  }
};

template <>
struct far::serializer<rpc_tests::prefixer> {
  using prefixer = rpc_tests::prefixer;
  static void save(far::writer& out, const prefixer& p) { out << p.prefix; }
  static prefixer load(far::reader& in) { return {in.read<std::string>()}; }
};

template <>
struct far::serializer<std::shared_ptr<rpc_tests::unreadable>> {  // what is written cannot be read
                                                                  // again
  using unreadable = rpc_tests::unreadable;
  static void save(far::writer& out, const std::shared_ptr<unreadable>& p) { out << p->x; }
  static std::shared_ptr<unreadable> load(far::reader&) {
    throw std::runtime_error("this type cannot be read");
  }
};

namespace rpc_tests {

FAR_TEST(results_come_back_from_every_rank) {
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    auto who = far::rpc(r, [](int x) { return std::pair(far::rank(), x + 1); }, 41);
    CHECK_EQ(who.get(), std::pair(r, 42));
  }
}

FAR_TEST(arguments_and_results_of_many_types) {
  far::rank_t to = next_rank();
  CHECK_EQ(far::rpc(to, [] { return 7; }).get(), 7);
  CHECK_EQ(far::rpc(to, [](std::string s) { return s + "!"; }, std::string("far")).get(), "far!");
  CHECK_EQ(far::rpc(
               to, [](date d) { return date{d.year + 1, d.month}; }, date{1969, "July"})
               .get(),
           (date{1970, "July"}));
  using map = std::map<std::string, std::vector<int>>;
  map m{{"a", {1, 2}}, {"b", {}}};
  CHECK(far::rpc(to, [](map&& x) { return std::move(x); }, m).get() == m);
  auto mixed = far::rpc(
                   to,
                   [](char c, double d, std::optional<int> o, std::tuple<int, std::string> t) {
                     return std::tuple(std::get<1>(t) + c, d * 2, o.value_or(-1), std::get<0>(t));
                   },
                   'x', 1.5, std::optional<int>(), std::tuple(3, std::string("y")))
                   .get();
  CHECK(mixed == std::tuple(std::string("yx"), 3.0, -1, 3));
  using either = std::variant<int, std::string>;
  CHECK(far::rpc(to, [](const either& e) { return e; }, either("text")).get() == either("text"));
  auto p = far::make<int>(far::rank() + 5);
  CHECK_EQ(far::rpc(to, [](far::ptr<int> at) { return far::get(at); }, p).get(), far::rank() + 5);
  far::rpc(to, [](int) {}, 1).get();
  far::barrier();
  far::dealloc(p);
}

FAR_TEST(functions_of_all_kinds) {
  far::rank_t to = next_rank();
  CHECK_EQ(far::rpc(to, twice, 4).get(), 8);
  CHECK_EQ(far::rpc(to, &thrice, 4).get(), 12);
  CHECK_EQ(far::rpc(to, adder{10}, 4).get(), 14);
  CHECK_EQ(far::rpc(to, prefixer{"pre"}, std::string("fix")).get(), "prefix");
  CHECK_EQ(far::rpc(to, std::plus<>(), 2, 3).get(), 5);
  // Of shared libraries, which the kernel loads anywhere in each process.
  double (*scale)(double, int) = &::ldexp;
  CHECK_EQ(far::rpc(to, scale, 3.0, 4).get(), 48.0);
  int (*absolute)(int) = &std::abs;
  CHECK_EQ(far::rpc(to, absolute, -3).get(), 3);
  // A pointer that only the run tells.
  int (*chosen)(int) = far::rank() % 2 == 0 ? &twice : static_cast<int (*)(int)>(&thrice);
  CHECK_EQ(far::rpc(to, chosen, 1).get(), far::rank() % 2 == 0 ? 2 : 3);
}

FAR_TEST(a_rank_may_send_to_itself) {
  CHECK_EQ(far::rpc(far::rank(), [] { return far::rank(); }).get(), far::rank());
  on_each_rank<int> seen;
  for (int i = 0; i < 10; ++i)
    far::rpc_ff(far::rank(), [](far::ptr<int*> at) { ++of(at); }, seen.at(far::rank()));
  far::quiesce();
  CHECK_EQ(*seen, 10);
}

FAR_TEST(sizes_around_every_limit) {
  far::rank_t to = next_rank();
  std::size_t ring = far::detail::ring_bytes(far::nprocs());
  std::vector<std::size_t> sizes{0, 1, 100, 103, 104, 105, 111, 112, 113, 4000};
  for (std::size_t around : {ring / 4, ring / 2, ring})
    for (std::size_t less : {100, 64, 56, 48, 40, 8, 1, 0}) sizes.push_back(around - less);
  sizes.push_back(3 * ring + 17);
  if (!far::detail::ranks_are_simulated()) sizes.push_back(std::size_t{5} << 20);
  for (std::size_t n : sizes) {
    std::string s(n, static_cast<char>('a' + n % 26));
    if (n != 0) s.back() = '$';
    auto both = far::rpc(to, [](const std::string& x) { return x + "<"; }, s).get();
    CHECK_EQ(both.size(), n + 1);
    CHECK(both == s + "<");
  }
}

FAR_TEST(large_ones_from_all_to_all) {
  std::vector<far::future<std::vector<int>>> answers;
  std::size_t n = 30'000;
  for (far::rank_t r = 0; r < far::nprocs(); ++r)
    answers.push_back(far::rpc(
        r,
        [](std::vector<int> v) {
          std::reverse(v.begin(), v.end());
          return v;
        },
        numbers(n + r, static_cast<int>(far::rank()))));
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    auto expected = numbers(n + r, static_cast<int>(far::rank()));
    std::reverse(expected.begin(), expected.end());
    CHECK(answers[r].get() == expected);
  }
}

FAR_TEST(many_in_flight) {
  std::vector<far::future<long>> answers;
  long n = scaled(2000);
  for (long i = 0; i < n; ++i)
    answers.push_back(
        far::rpc(static_cast<far::rank_t>(i) % far::nprocs(), [](long x) { return x * x; }, i));
  long wrong = 0;
  for (long i = 0; i < n; ++i) wrong += answers[static_cast<std::size_t>(i)].get() != i * i;
  CHECK_EQ(wrong, 0);
}

FAR_TEST(errors_travel_back) {
  far::rank_t to = next_rank();
  std::string rank_text = "rank " + std::to_string(to);
  auto f =
      far::rpc(to, [](int x) -> int { throw std::runtime_error("no " + std::to_string(x)); }, 3);
  bool caught = false;
  try {
    f.get();
  } catch (const far::rpc_error& e) {
    caught = true;
    CHECK(std::string(e.what()).find(rank_text) != std::string::npos);
    CHECK(std::string(e.what()).find("no 3") != std::string::npos);
  }
  CHECK(caught);
  CHECK_THROWS(far::rpc(to, [] { throw 3; }).get(), "no std::exception");
  std::size_t length = 5000;
  CHECK_THROWS(
      far::rpc(
          to, [](std::size_t n) { throw std::runtime_error(std::string(n, 'z') + "!"); }, length)
          .get(),
      std::string(length, 'z') + "!");
  auto broken = std::make_shared<unreadable>();
  CHECK_THROWS(far::rpc(to, [](std::shared_ptr<unreadable>) {}, broken).get(), "cannot be read");
  CHECK_THROWS(far::rpc(to, [] { return std::make_shared<unreadable>(); }).get(), "cannot be read");
  CHECK_THROWS(far::rpc(far::nprocs(), [] {}), "only");
  CHECK_THROWS(far::rpc_ff(far::nprocs(), [] {}), "only");
  CHECK_EQ(far::rpc(to, [] { return 1; }).get(), 1);  // and all goes on
}

FAR_TEST(handlers_may_ask_others) {
  // Around all ranks and back: each handler answers when the next one has.
  struct around {
    static far::future<long> go(far::rank_t left) {
      long mine = static_cast<long>(far::rank()) + 1;
      if (left == 0) return far::future<long>::ready(mine);
      return far::rpc(next_rank(), go, left - 1).then([mine](long rest) { return mine + rest; });
    }
    static far::future<int> fail(int left) {
      if (left == 0) throw std::runtime_error("at the end");
      return far::rpc(next_rank(), fail, left - 1);
    }
  };
  long n = far::nprocs();
  CHECK_EQ(far::rpc(next_rank(), &around::go, far::nprocs() - 1).get(), n * (n + 1) / 2);
  CHECK_THROWS(far::rpc(next_rank(), &around::fail, 3).get(), "at the end");
}

FAR_TEST(continuations_and_coroutines) {
  auto chain =
      far::rpc(
          next_rank(), [](int x) { return x + 1; }, 1)
          .then([](int x) { return far::rpc(next_rank(2), [](int y) { return y * 10; }, x); })
          .then([](int x) { return x + 3; });
  CHECK_EQ(chain.get(), 23);
  auto routine = [](far::rank_t a, far::rank_t b) -> far::future<std::string> {
    auto first = co_await far::rpc(a, [] { return std::to_string(far::rank()); });
    auto second = co_await far::rpc(
        b, [](std::string s) { return s + "," + std::to_string(far::rank()); }, first);
    co_return second + ".";
  };
  CHECK_EQ(routine(next_rank(), next_rank(2)).get(),
           std::to_string(next_rank()) + "," + std::to_string(next_rank(2)) + ".");
  // A continuation may wait.
  auto waits = far::rpc(next_rank(), [] { return 1; }).then([](int x) {
    return x + far::rpc(next_rank(), [] { return 5; }).get();
  });
  CHECK_EQ(waits.get(), 6);
}

FAR_TEST(abandoned_futures) {
  on_each_rank<int> seen;
  for (int i = 0; i < 100; ++i)
    static_cast<void>(far::rpc(
        next_rank(),
        [](far::ptr<int*> at) { return std::string(static_cast<std::size_t>(++of(at)), 'x'); },
        seen.at(next_rank())));
  far::quiesce();
  CHECK_EQ(*seen, 100);
}

FAR_TEST(messages_of_a_pair_keep_their_order) {
  struct log {
    std::map<far::rank_t, std::vector<int>> from;
  };
  on_each_rank<log> seen;
  auto random = far_test::random_engine();
  std::vector<int> sent(far::nprocs());
  std::vector<far::future<void>> answers;
  for (int i = 0, n = scaled(400); i < n; ++i) {
    far::rank_t to = static_cast<far::rank_t>(random() % far::nprocs());
    auto note = [](far::ptr<log*> at, far::rank_t from, int number, const std::string&) {
      of(at).from[from].push_back(number);
    };
    // Short and long ones, more than a ring too; with an answer and without.
    std::string ballast(random() % 8 != 0 ? random() % 100 : random() % 80'000, 'b');
    if (random() % 2 == 0)
      far::rpc_ff(to, note, seen.at(to), far::rank(), sent[to]++, ballast);
    else
      answers.push_back(far::rpc(to, note, seen.at(to), far::rank(), sent[to]++, ballast));
    if (random() % 16 == 0) far::progress();
  }
  far::quiesce();
  for (auto& answer : answers) CHECK(answer.is_ready());
  auto expected = far::all_to_all(sent);
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    auto& got = seen->from[r];
    CHECK_EQ(got.size(), expected[r]);
    CHECK(got == numbers(got.size(), 0));
  }
}

FAR_TEST(flushed_puts_are_there_before_a_message) {
  auto words = far_test::objects_on_each_rank<std::uint64_t>(16);
  on_each_rank<int> wrong;
  far::rank_t to = next_rank();
  for (std::uint64_t round = 1; round <= 30; ++round) {
    std::vector<std::uint64_t> values(16, round);
    far::put(words[to], values.data(), 16);
    far::flush(to);
    far::rpc(
        to,
        [](far::ptr<int*> at, far::ptr<std::uint64_t> data, std::uint64_t expected) {
          for (auto x : far::get(data, 16)) of(at) += x != expected;
        },
        wrong.at(to), words[to], round)
        .get();
  }
  far::quiesce();
  CHECK_EQ(*wrong, 0);
  far_test::release(words);
}

FAR_TEST(puts_that_a_handler_flushed_are_there_before_its_answer) {
  auto words = far_test::objects_on_each_rank<std::uint64_t>(16);
  far::ptr<std::uint64_t> third = words[next_rank(2)];
  far::rank_t to = next_rank();
  long wrong = 0;
  for (std::uint64_t round = 1; round <= 30 && far::rank() == 0; ++round) {
    far::rpc(
        to,
        [](far::ptr<std::uint64_t> data, std::uint64_t x) {
          std::vector<std::uint64_t> values(8, x);
          far::put(data, values.data(), 8);
          far::flush(data.rank());
        },
        third, round)
        .get();
    for (auto x : far::get(third, 8)) wrong += x != round;
  }
  CHECK_EQ(wrong, 0);
  far_test::release(words);
}

FAR_TEST(handlers_run_while_a_rank_waits_in_a_barrier) {
  on_each_rank<int> seen;
  if (far::rank() == 0) {
    for (far::rank_t r = 1; r < far::nprocs(); ++r)  // all others are in the barrier below
      CHECK_EQ(far::rpc(r, [](far::ptr<int*> at) { return ++of(at); }, seen.at(r)).get(), 1);
    *seen = 1;
  }
  far::barrier();
  CHECK_EQ(*seen, 1);
}

#if FARSIDE_CHECKED
FAR_TEST(a_handler_that_waits_is_told) {
  far::rank_t to = next_rank();
  CHECK_THROWS(far::rpc(to, [] { far::barrier(); }).get(), "the handler of a message waits");
  CHECK_THROWS(far::rpc(to, [] { far::rpc(next_rank(), [] {}).get(); }).get(),
               "the handler of a message waits for a future");
  CHECK_THROWS(far::rpc(to, [] { far::quiesce(); }).get(), "the handler of a message waits");
  far::quiesce();
}
#endif

}  // namespace rpc_tests

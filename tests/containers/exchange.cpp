// far::exchange against the values that were sent: nothing is lost, doubled, torn or out of order,
// with rings of one value and with handlers that send.
#include "harness.hpp"
#include "spread_over_cores.hpp"

#include <farside/algorithms/exchange.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>

namespace exchange_tests {

using far::operation;

namespace {

/// Not trivially copyable, of fixed length.
struct date {
  int year, month;
  date(int y, int m) : year(y), month(m) {}
  date(const date& other) : year(other.year), month(other.month) {}
  date& operator=(const date&) = default;
  auto operator<=>(const date&) const = default;
};

/// Of variable length.
struct record {
  std::string name;
  std::vector<long> numbers;
  auto operator<=>(const record&) const = default;
};

/// Of variable length. It cannot be loaded if its number ends in 9.
struct spoilt_by_nines {
  std::string number{};
};

}  // namespace

}  // namespace exchange_tests

template <>
struct far::serializer<exchange_tests::spoilt_by_nines> {
  using value = exchange_tests::spoilt_by_nines;
  static void save(far::writer& out, const value& v) { out << v.number; }
  static value load(far::reader& in) {
    value v{in.read<std::string>()};
    if (v.number.ends_with('9')) throw std::runtime_error("spoilt");
    return v;
  }
};

template <>
struct far::serializer<exchange_tests::date> {
  using date = exchange_tests::date;
  using fixed = std::array<int, 2>;
  static fixed pack(const date& d) { return {d.year, d.month}; }
  static date unpack(const fixed& f) { return date(f[0], f[1]); }
};

template <>
struct far::serializer<exchange_tests::record> {
  using record = exchange_tests::record;
  static void save(far::writer& out, const record& r) { out << r.name << r.numbers; }
  static record load(far::reader& in) {
    record r;
    in >> r.name >> r.numbers;
    return r;
  }
};

namespace exchange_tests {

namespace {

struct parcel {
  far::rank_t from;
  far::rank_t to;
  std::uint64_t number;
  std::uint64_t check;
};

parcel make_parcel(far::rank_t from, far::rank_t to, std::uint64_t number) {
  return {from, to, number, number * 0x9e3779b97f4a7c15 + from * 1000003 + to};
}
bool good(const parcel& p) { return p.check == make_parcel(p.from, p.to, p.number).check; }

/// What all ranks sent to this one, sorted: the oracle.
template <class T>
std::vector<T> sent_here(const std::vector<std::pair<far::rank_t, T>>& sent) {
  std::vector<std::vector<T>> by_target(far::nprocs());
  for (const auto& [to, value] : sent) by_target[to].push_back(value);
  auto parts = far::all_to_all(by_target);
  std::vector<T> all;
  for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::sort(all.begin(), all.end());
  return all;
}

template <class T, class Make>
void everyone_to_everyone(std::size_t each, std::size_t message_bytes, std::size_t messages,
                          Make make) {
  far_test::spread_over_cores apart(far::rank());
  auto random = far_test::random_engine(message_bytes);
  far::exchange<T> mail({}, message_bytes, messages);
  for (int phase = 0; phase < 3; ++phase) {
    std::vector<std::pair<far::rank_t, T>> sent;
    std::vector<T> got;
    auto keep = [&](std::span<const T> some) { got.insert(got.end(), some.begin(), some.end()); };
    for (std::size_t i = 0; i < each; ++i) {
      auto to = static_cast<far::rank_t>(random() % far::nprocs());
      sent.emplace_back(to, make(random));
      switch (random() % 8) {
        case 0:
          mail.send(to, sent.back().second, keep);
          break;
        case 1:
          mail.receive(keep);
          [[fallthrough]];
        default:
          mail.send(to, sent.back().second);
      }
      if (random() % 64 == 0) mail.ship();
    }
    mail.finish(keep);
    std::sort(got.begin(), got.end());
    CHECK(got == sent_here(sent));
  }
}

struct cost {
  std::uint64_t puts = 0, atomics = 0, flushes = 0, waits = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.puts << " puts, " << c.atomics << " atomics, " << c.flushes << " flushes, "
               << c.waits << " waits";
  }
};

template <class Work>
cost cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[operation::put].count, t[operation::atomic].count, t[operation::flush].count, t.waits};
}

}  // namespace

FAR_TEST(integers) {
  auto make = [](auto& random) { return static_cast<int>(random()); };
  everyone_to_everyone<int>(300, 0, 4, make);
  everyone_to_everyone<int>(100, 64, 2, make);
  everyone_to_everyone<int>(60, 4, 2, make);  // one value a message, two in a ring
}

FAR_TEST(values_of_fixed_length) {
  everyone_to_everyone<std::pair<int, char>>(100, 40, 3, [](auto& random) {
    return std::pair(static_cast<int>(random()), static_cast<char>(random() % 128));
  });
}

FAR_TEST(strings) {
  auto make = [](auto& random) {
    return std::string(random() % 90, static_cast<char>('a' + random() % 26));
  };
  everyone_to_everyone<std::string>(100, 0, 4, make);
  everyone_to_everyone<std::string>(40, 17, 2, make);  // most values span several messages
  everyone_to_everyone<std::string>(5, 1, 2, make);
}

FAR_TEST(user_defined_types) {
  everyone_to_everyone<date>(100, 24, 2, [](auto& random) {
    return date(static_cast<int>(random() % 3000), static_cast<int>(random() % 12));
  });
  everyone_to_everyone<record>(40, 100, 2, [](auto& random) {
    return record{std::to_string(random()), std::vector<long>(random() % 20, 7)};
  });
}

FAR_TEST(values_of_one_sender_keep_their_order) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<parcel> mail({}, 2 * sizeof(parcel), 2);
  std::vector<std::uint64_t> next(far::nprocs());
  auto look = [&](std::span<const parcel> some) {
    for (const parcel& p : some) {
      CHECK(good(p));
      CHECK_EQ(p.to, far::rank());
      CHECK_EQ(p.number, next[p.from]++);
    }
  };
  constexpr std::uint64_t each = 40;
  for (std::uint64_t i = 0; i < each; ++i)
    for (far::rank_t to = 0; to < far::nprocs(); ++to)
      mail.send(to, make_parcel(far::rank(), to, i), look);
  mail.finish(look);
  for (std::uint64_t n : next) CHECK_EQ(n, each);
}

FAR_TEST(all_to_one_through_a_tiny_inbox) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<parcel> mail({}, sizeof(parcel), 2);
  constexpr std::uint64_t each = 150;
  std::uint64_t got = 0, sum = 0;
  auto look = [&](std::span<const parcel> some) {
    for (const parcel& p : some) {
      CHECK(good(p));
      got += 1, sum += p.number;
    }
  };
  for (std::uint64_t i = 0; i < each; ++i) mail.send(0, make_parcel(far::rank(), 0, i), look);
  mail.finish(look);
  CHECK_EQ(got, far::rank() == 0 ? each * far::nprocs() : 0);
  CHECK_EQ(sum, far::rank() == 0 ? far::nprocs() * (each * (each - 1) / 2) : 0);
  CHECK_EQ(mail.statistics().bytes_sent, each * sizeof(parcel));
  CHECK_EQ(mail.statistics().messages, each);
  CHECK_EQ(mail.statistics().bytes_handled, got * sizeof(parcel));
  CHECK_EQ(mail.statistics().largest_backlog, 0u);  // all was handled at once
}

FAR_TEST(senders_that_never_receive_do_not_block_each_other) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<parcel> mail({}, sizeof(parcel), 2);
  far::rank_t n = far::nprocs();
  for (std::uint64_t i = 0; i < 60; ++i)
    for (far::rank_t k = 0; k < std::min<far::rank_t>(n, 8); ++k) {
      far::rank_t to = (far::rank() + k) % n;
      mail.send(to, make_parcel(far::rank(), to, i));
    }
  std::uint64_t got = 0;
  mail.finish([&](std::span<const parcel> some) {
    for (const parcel& p : some) CHECK(good(p));
    got += some.size();
  });
  CHECK_EQ(got, 60 * std::min<far::rank_t>(n, 8));
}

FAR_TEST(phases_do_not_mix) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<std::uint64_t> mail({}, 16, 2);
  for (std::uint64_t phase = 0; phase < 12; ++phase) {
    std::uint64_t to_each = far_test::common_random_engine(phase)() % 3, got = 0;
    for (far::rank_t to = 0; to < far::nprocs(); ++to)
      for (std::uint64_t i = 0; i < to_each; ++i) mail.send(to, phase);
    mail.finish([&](std::span<const std::uint64_t> some) {
      for (auto of : some) CHECK_EQ(of, phase);
      got += some.size();
    });
    CHECK_EQ(got, to_each * far::nprocs());
  }
}

FAR_TEST(one_value_a_phase) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<std::uint64_t> mail({}, 16, 2);
  auto random = far_test::common_random_engine();
  for (std::uint64_t phase = 0; phase < 60; ++phase) {
    auto from = random() % far::nprocs(), to = random() % far::nprocs();
    if (from == far::rank()) mail.send(static_cast<far::rank_t>(to), phase);
    std::uint64_t got = 0;
    mail.finish([&](std::span<const std::uint64_t> some) {
      for (auto of : some) CHECK_EQ(of, phase);
      got += some.size();
    });
    CHECK_EQ(got, to == far::rank() ? 1 : 0);
  }
}

FAR_TEST(handlers_that_multiply) {
  // Each value but the last sends two more: some are handled after a member has been counted, and
  // some before.
  far_test::spread_over_cores apart(far::rank());
  far::exchange<int> mail({}, 4, 2);
  auto random = far_test::random_engine();
  auto anyone = [&] { return static_cast<far::rank_t>(random() % far::nprocs()); };
  std::uint64_t handled = 0, before = 0;
  for (int phase = 0; phase < 25; ++phase) {
    constexpr int depth = 5;
    if (phase % far::nprocs() == far::rank()) mail.send(anyone(), depth);
    mail.finish([&](std::span<const int> some) {
      for (int left : some) {
        ++handled;
        if (left > 1) mail.send(anyone(), left - 1), mail.send(anyone(), left - 1);
      }
    });
    std::uint64_t now = far::all_reduce(std::uint64_t{handled});
    CHECK_EQ(now - before, (1u << depth) - 1);
    before = now;
  }
}

FAR_TEST(handlers_that_send_on) {
  // Tokens that walk at random until they have made their hops.
  struct token {
    std::uint32_t hops;
    std::uint32_t id;
  };
  far_test::spread_over_cores apart(far::rank());
  far::exchange<token> mail({}, 2 * sizeof(token), 2);
  auto random = far_test::random_engine();
  std::uint64_t hops = 0, arrived = 0;
  auto anyone = [&] { return static_cast<far::rank_t>(random() % far::nprocs()); };
  auto walk = [&](std::span<const token> some) {
    for (token t : some) {
      ++hops;
      if (t.hops > 1)
        mail.send(anyone(), token{t.hops - 1, t.id});
      else
        ++arrived;
    }
  };
  std::uint64_t walked = 0;
  for (int phase = 0; phase < 4; ++phase) {
    std::uint32_t tokens = phase == 3 ? 1 : 10;  // at last few enough that all seem idle meanwhile
    for (std::uint32_t i = 0; i < tokens; ++i) {
      std::uint32_t to_go = phase == 3 ? 40 : static_cast<std::uint32_t>(1 + random() % 10);
      if (phase == 3 && far::rank() != 0) break;
      walked += to_go;
      mail.send(anyone(), token{to_go, i});
    }
    mail.finish(walk);
    auto all = far::all_reduce(std::uint64_t{hops}),
         planned = far::all_reduce(std::uint64_t{walked});
    CHECK_EQ(all, planned);
    CHECK_EQ(far::all_reduce(std::uint64_t{arrived}),
             phase == 3 ? 30 * far::nprocs() + 1 : 10u * (phase + 1) * far::nprocs());
  }
}

FAR_TEST(handlers_that_answer_through_full_rings) {
  struct letter {
    far::rank_t from;
    std::uint32_t asks;  ///< 0 for an answer
  };
  far_test::spread_over_cores apart(far::rank());
  far::exchange<letter> mail({}, sizeof(letter), 2);
  std::uint64_t answers = 0;
  auto answer = [&](std::span<const letter> some) {
    for (const letter& l : some)
      if (l.asks == 0)
        ++answers;
      else
        for (std::uint32_t i = 0; i < l.asks; ++i) mail.send(l.from, letter{far::rank(), 0});
  };
  for (int i = 0; i < 20; ++i)
    for (far::rank_t k = 0; k < std::min<far::rank_t>(far::nprocs(), 6); ++k)
      mail.send((far::rank() + k) % far::nprocs(), letter{far::rank(), 3}, answer);
  mail.finish(answer);
  CHECK_EQ(answers, 60 * std::min<far::rank_t>(far::nprocs(), 6));
}

FAR_TEST(strings_from_handlers) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<std::string> mail({}, 24, 2);
  std::vector<std::string> got;
  auto handle = [&](std::span<const std::string> some) {
    for (const auto& text : some)
      if (text.starts_with("echo "))
        mail.send(static_cast<far::rank_t>(std::stoul(text.substr(5))),
                  std::string(40, 'x') + text.substr(5));
      else
        got.push_back(text);
  };
  for (int i = 0; i < 20; ++i)
    mail.send((far::rank() + 1) % far::nprocs(), "echo " + std::to_string(far::rank()), handle);
  mail.finish(handle);
  CHECK_EQ(got.size(), 20u);
  for (const auto& text : got) CHECK_EQ(text, std::string(40, 'x') + std::to_string(far::rank()));
}

FAR_TEST(receive_handles_what_has_arrived) {
  far::exchange<int> mail({}, 4, 8);
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  CHECK_EQ(mail.receive([](std::span<const int>) {}), 0u);
  far::barrier();
  for (int i = 0; i < 5; ++i) mail.send(next, i);
  std::vector<int> got;
  while (got.size() < 5)
    if (mail.receive([&](std::span<const int> s) { got.insert(got.end(), s.begin(), s.end()); }) ==
        0)
      far::detail::here().wait_round();
  CHECK_EQ(got, (std::vector<int>{0, 1, 2, 3, 4}));
  mail.finish([](std::span<const int>) { CHECK(false); });
}

FAR_TEST(spans_travel_as_a_whole) {
  far::exchange<long> mail({}, 160, 3);
  std::vector<long> values(333);
  std::iota(values.begin(), values.end(), 1000 * far::rank());
  std::vector<long> got;
  auto keep = [&](std::span<const long> s) { got.insert(got.end(), s.begin(), s.end()); };
  mail.send((far::rank() + 1) % far::nprocs(), std::span<const long>(values), keep);
  mail.finish(keep);
  far::rank_t before = (far::rank() + far::nprocs() - 1) % far::nprocs();
  std::iota(values.begin(), values.end(), 1000 * before);
  CHECK_EQ(got, values);
}

FAR_TEST(over_a_team) {
  far::team half = far::world().split(static_cast<int>(far::rank() % 2));
  far::exchange<far::rank_t> mail({.name = "half", .over = half});
  CHECK_EQ(mail.size(), half.size());
  CHECK_EQ(mail.name(), "half");
  for (far::rank_t to = 0; to < half.size(); ++to) mail.send(to, far::rank());
  std::vector<far::rank_t> got;
  mail.finish([&](std::span<const far::rank_t> s) { got.insert(got.end(), s.begin(), s.end()); });
  std::sort(got.begin(), got.end());
  std::vector<far::rank_t> expected;
  for (far::rank_t i = 0; i < half.size(); ++i) expected.push_back(half.world_rank(i));
  CHECK_EQ(got, expected);
}

FAR_TEST(costs) {
  far::exchange<std::uint64_t> mail({}, 80, 4);
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  CHECK_EQ(cost_of([&] {
             for (std::uint64_t i = 0; i < 9; ++i) mail.send(next, i);
           }),
           cost{});
  CHECK_EQ(cost_of([&] { mail.send(next, 9); }),
           (cost{.puts = 1, .atomics = 1, .flushes = 1, .waits = 2}));
  std::vector<std::uint64_t> many(20);
  CHECK_EQ(cost_of([&] { mail.send(next, std::span<const std::uint64_t>(many)); }),
           (cost{.puts = 2, .atomics = 2, .flushes = 2, .waits = 4}));
  std::size_t got = 0;
  mail.finish([&](auto some) { got += some.size(); });
  CHECK_EQ(got, 30u);
  // Nothing to send: one wave.
  cost idle = cost_of([&] { mail.finish([](auto) {}); });
  CHECK(idle.puts <= 1);
}

namespace {

/// Sends `each` values to everybody by `send(to, value)`, whatever that throws, and compares what
/// has been handled with what was sent.
template <class Send, class Finish>
void nothing_is_lost_though(std::uint64_t each, const std::vector<std::string>& got, Send send,
                            Finish finish) {
  const far::rank_t me = far::rank(), n = far::nprocs();
  for (std::uint64_t i = 0; i < each; ++i)
    for (far::rank_t to = 0; to < n; ++to)
      for (std::string value = far::text(me, ":", i, std::string(i % 40, 'x'));;) {
        try {
          send(to, value);
          break;
        } catch (const std::runtime_error&) {  // not sent: again
        }
      }
  finish();
  std::vector<std::string> sorted = got, expected;
  for (far::rank_t from = 0; from < n; ++from)
    for (std::uint64_t i = 0; i < each; ++i)
      expected.push_back(far::text(from, ":", i, std::string(i % 40, 'x')));
  std::sort(sorted.begin(), sorted.end());
  std::sort(expected.begin(), expected.end());
  CHECK(sorted == expected);
}

}  // namespace

// A handler that throws has handled what it was given; a send that throws has sent nothing.
FAR_TEST(handlers_that_throw_while_values_are_sent) {
  far_test::spread_over_cores apart(far::rank());
  far::exchange<std::string> mail({}, 32, 2);
  std::vector<std::string> got;
  std::uint64_t turns = 0, calls = 0, thrown = 0;
  auto keep = [&](std::span<const std::string> some) {
    got.insert(got.end(), some.begin(), some.end());
  };
  auto throws_at_times = [&](std::span<const std::string> some) {
    keep(some);
    if (++calls % 3 == 0) ++thrown, throw std::runtime_error("enough");
  };
  nothing_is_lost_though(
      40, got,
      [&](far::rank_t to, const std::string& value) {
        if (turns++ % 2 == 0) {
          mail.send(to, value, throws_at_times);
          return;
        }
        mail.send(to, value);
        try {
          mail.receive(throws_at_times);
        } catch (const std::runtime_error&) {  // that of receive
        }
      },
      [&] { mail.finish(keep); });
  if (far::nprocs() > 1) CHECK(far::all_reduce(thrown) != 0);
}

FAR_TEST(a_handler_that_throws_in_finish_throws_on_all) {
  far_test::spread_over_cores apart(far::rank());
  const far::rank_t me = far::rank(), n = far::nprocs();
  far::exchange<std::string> mail({.name = "letters"}, 32, 2);
  for (far::rank_t culprit = 0; culprit < std::min<far::rank_t>(n, 3); ++culprit) {
    for (far::rank_t to = 0; to < n; ++to)
      for (int i = 0; i < 3; ++i) mail.send(to, std::string(20, 'x'));
    CHECK_THROWS(mail.finish([&](std::span<const std::string>) {
      if (me == culprit) throw std::runtime_error("no more letters");
    }),
                 me == culprit ? "no more letters" : "letters': a handler threw on rank");
    CHECK_EQ(far::all_reduce(1), static_cast<int>(n));
    // It is empty, and works.
    std::vector<std::string> got;
    nothing_is_lost_though(
        8, got, [&](far::rank_t to, const std::string& value) { mail.send(to, value); },
        [&] {
          mail.finish([&](std::span<const std::string> some) {
            got.insert(got.end(), some.begin(), some.end());
          });
        });
  }
}

// A value that cannot be loaded is left out, and said; all others are handled.
FAR_TEST(values_that_cannot_be_loaded) {
  const far::rank_t me = far::rank(), n = far::nprocs();
  far::exchange<spoilt_by_nines> mail({}, 64, 2);
  std::uint64_t got = 0;
  auto count = [&](std::span<const spoilt_by_nines> some) { got += some.size(); };
  for (int i = 0; i < 30; ++i)
    for (;;) {
      try {
        mail.send((me + 1) % n, spoilt_by_nines{std::to_string(i)}, count);
        break;
      } catch (const std::runtime_error&) {
      }
    }
  try {  // it drops what comes after one that it cannot load
    mail.finish(count);
    CHECK_EQ(got, 27u);
  } catch (const std::exception& e) {
    CHECK(std::string(e.what()).find("spoilt") != std::string::npos);
    CHECK(got <= 27u);
  }
  CHECK_EQ(far::all_reduce(1), static_cast<int>(n));
}

FAR_TEST(memory_is_given_back) {
  far::barrier();
  far::dealloc(far::alloc<char>());
  std::size_t in_use = far::detail::here().heap.in_use();
  {
    far::exchange<int> mail({}, 100, 4);
    far::exchange<int> moved = std::move(mail);
    CHECK(far::detail::here().heap.in_use() > in_use + 100 * 4 * far::nprocs());
    CHECK_THROWS(mail.send(0, 1), "moved from");
    moved.send(0, 1);
    moved.finish([](auto) {});
  }
  far::dealloc(far::alloc<char>());
  CHECK_EQ(far::detail::here().heap.in_use(), in_use);
}

FAR_TEST(misuse_is_told) {
  CHECK_THROWS(far::exchange<int>({}, 8, 1), "at least 2");
  far::exchange<int> mail({.name = "mail"}, 8, 2);
  CHECK_THROWS(mail.send(far::nprocs(), 1), "positions in the team");
  int handled = 0;
  auto wrong = [&](std::span<const int> some) {
    handled += static_cast<int>(some.size());
    CHECK_THROWS(mail.receive([](auto) {}), "A handler may only send");
    CHECK_THROWS(mail.finish([](auto) {}), "exchange 'mail': finish was called by a handler");
  };
  mail.send(far::rank(), 1);
  mail.finish(wrong);
  CHECK_EQ(handled, 1);
}

}  // namespace exchange_tests

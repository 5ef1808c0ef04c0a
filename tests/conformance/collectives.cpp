// Every collective, from every root, of every kind of type and of lengths around each border of
// the implementation, against what a loop over all ranks gives.
#include "harness.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace collectives_tests {

/// A value that cannot always be serialized.
struct moody {
  std::string text{};
  bool refuses = false;
  far::rank_t spoilt_on = ~far::rank_t{0};  ///< there it cannot be loaded
};

/// Of fixed length, and not trivially copyable.
struct moody_number {
  int value = 0;
  explicit moody_number(int v = 0) : value(v) {}
  moody_number(const moody_number& other) : value(other.value) {}
  moody_number& operator=(const moody_number&) = default;
};

}  // namespace collectives_tests

template <>
struct far::serializer<collectives_tests::moody_number> {
  using fixed = int;
  static int pack(const collectives_tests::moody_number& m) {
    if (m.value < 0) throw std::runtime_error("not in the mood");
    return m.value;
  }
  static collectives_tests::moody_number unpack(int value) {
    return collectives_tests::moody_number(value);
  }
};

template <>
struct far::serializer<collectives_tests::moody> {
  static void save(far::writer& out, const collectives_tests::moody& m) {
    if (m.refuses) throw std::runtime_error("not in the mood");
    out << m.text << m.spoilt_on;
  }
  static collectives_tests::moody load(far::reader& in) {
    collectives_tests::moody m;
    in >> m.text >> m.spoilt_on;
    if (m.spoilt_on == far::rank()) throw std::runtime_error("it is spoilt");
    return m;
  }
};

namespace collectives_tests {

namespace {

using far::rank_t;

struct point {
  double x, y;
  int label;
  friend bool operator==(const point&, const point&) = default;
};

/// 2x2 matrices over the integers modulo 2^64: associative, not commutative.
struct matrix {
  std::uint64_t a = 1, b = 0, c = 0, d = 1;
  friend bool operator==(const matrix&, const matrix&) = default;
  friend matrix operator*(const matrix& l, const matrix& r) {
    return {l.a * r.a + l.b * r.c, l.a * r.b + l.b * r.d, l.c * r.a + l.d * r.c,
            l.c * r.b + l.d * r.d};
  }
};

/// Composition of i -> table[i]: not commutative, and `Words` words long.
template <std::size_t Words>
struct permutation {
  std::uint32_t table[Words];
  friend bool operator==(const permutation&, const permutation&) = default;
};
struct compose {
  template <std::size_t Words>
  permutation<Words> operator()(const permutation<Words>& f, const permutation<Words>& g) const {
    permutation<Words> result;
    for (std::size_t i = 0; i < Words; ++i) result.table[i] = g.table[f.table[i]];
    return result;
  }
};
template <std::size_t Words>
permutation<Words> permutation_of(rank_t rank) {
  permutation<Words> result;
  std::iota(std::begin(result.table), std::end(result.table), 0u);
  std::mt19937_64 random(rank + 17);
  std::shuffle(std::begin(result.table), std::end(result.table), random);
  return result;
}

/// A trivially copyable type with an alignment larger than any slot's.
struct alignas(64) aligned {
  std::uint64_t value;
  friend bool operator==(const aligned&, const aligned&) = default;
  friend aligned operator+(aligned l, aligned r) { return {l.value + r.value}; }
};

/// A type of the user's own, of variable length.
struct record {
  std::string name;
  std::vector<int> values;
  std::map<std::string, std::vector<double>> tables;
  friend bool operator==(const record&, const record&) = default;
};

record record_of(rank_t rank) {
  record result;
  result.name = "rank " + std::to_string(rank) + std::string(rank * 300, '*');
  for (rank_t i = 0; i < rank * 7; ++i) result.values.push_back(static_cast<int>(i * rank));
  result.tables["one"] = std::vector<double>(rank, 0.5 * rank);
  result.tables["empty"] = {};
  return result;
}

std::string text_of(rank_t rank, std::size_t length) {
  std::string result = "<" + std::to_string(rank) + ">";
  while (result.size() < length) result += static_cast<char>('a' + (result.size() * 7 + rank) % 26);
  return result;
}

// Elements of 8 bytes: around the slot of a wave (1 KiB) and the stage (64 KiB).
constexpr std::size_t lengths[] = {0,    1,    2,    127,   128,   129,    1000,
                                   8191, 8192, 8193, 16384, 16385, 100'000};

std::uint64_t item(rank_t rank, std::size_t i) {
  return (rank + 1) * 0x9e37'79b9'7f4a'7c15u + i * i;
}

std::vector<std::uint64_t> items(rank_t rank, std::size_t n) {
  std::vector<std::uint64_t> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = item(rank, i);
  return result;
}

/// A check for templates of many types: short, as there are hundreds of it.
[[gnu::noinline]] void expect(bool good, const char* what) {
  far_test::report(good, __FILE__, __LINE__, what);
}

/// One value of `make(rank)` through every collective that takes any type.
template <class T, class Make>
void check_values(Make make) {
  rank_t n = far::nprocs(), me = far::rank();
  std::vector<T> all, out, in;
  for (rank_t r = 0; r < n; ++r) all.push_back(make(r));
  for (rank_t root = 0; root < n; ++root) {
    expect(far::broadcast<T>(all[me], root) == all[root], "broadcast");
    expect(far::gather<T>(all[me], root) == (me == root ? all : out), "gather");
  }
  expect(far::all_gather<T>(all[me]) == all, "all_gather");
  for (rank_t j = 0; j < n; ++j) {
    out.push_back(make(me * n + j));
    in.push_back(make(j * n + me));
  }
  expect(far::all_to_all(out) == in, "all_to_all");
}

/// The reductions of one value with an operator that is associative, against a fold in order.
template <class T, class Op, class Make>
void check_folds(Make make, Op op) {
  rank_t n = far::nprocs(), me = far::rank();
  T mine = make(me), first = make(99);
  std::vector<T> prefix{make(0)};
  for (rank_t r = 1; r < n; ++r) prefix.push_back(static_cast<T>(op(prefix.back(), make(r))));
  expect(far::all_reduce<T>(mine, op) == prefix.back(), "all_reduce");
  for (rank_t root = 0; root < n; ++root)
    expect(far::reduce<T>(mine, root, op) == (me == root ? prefix.back() : T()), "reduce");
  expect(far::scan<T>(mine, op) == prefix[me], "scan");
  expect(far::exclusive_scan<T>(mine, first, op) == (me == 0 ? first : prefix[me - 1]),
         "exclusive_scan");
}

}  // namespace

}  // namespace collectives_tests

template <>
struct far::serializer<collectives_tests::record> {
  using record = collectives_tests::record;
  static void save(far::writer& out, const record& r) { out << r.name << r.values << r.tables; }
  static record load(far::reader& in) {
    record r;
    in >> r.name >> r.values >> r.tables;
    return r;
  }
};

namespace collectives_tests {

FAR_TEST(values_of_small_types) {
  check_values<int>([](rank_t r) { return static_cast<int>(r) * -3; });
  check_values<char>([](rank_t r) { return static_cast<char>('a' + r % 26); });
  check_values<double>([](rank_t r) { return 1.0 / (r + 1); });
  check_values<bool>([](rank_t r) { return r % 3 == 1; });
  check_values<point>([](rank_t r) { return point{0.5 * r, -1.0 * r, static_cast<int>(r)}; });
  check_values<far::ptr<long>>([](rank_t r) { return far::ptr<long>(r, 64 * r + 8); });
  check_values<aligned>([](rank_t r) { return aligned{r}; });
}

FAR_TEST(values_of_variable_length) {
  check_values<std::string>([](rank_t r) { return text_of(r, r % 16 * 40); });
  check_values<std::string>(
      [](rank_t r) { return r % 2 == 0 ? std::string() : text_of(r, 1020 + r % 16); });
  check_values<std::vector<std::string>>([](rank_t r) {
    std::vector<std::string> result;
    for (rank_t i = 0; i < r % 16; ++i) result.push_back(text_of(r, i));
    return result;
  });
  check_values<std::pair<int, double>>(
      [](rank_t r) { return std::pair(static_cast<int>(r), 0.25 * r); });
  check_values<std::optional<std::string>>(
      [](rank_t r) { return r % 2 == 0 ? std::optional<std::string>() : text_of(r, 10); });
  check_values<record>(record_of);
}

FAR_TEST(values_larger_than_a_slot_and_than_a_stage) {
  auto make = []<std::size_t Words>(std::integral_constant<std::size_t, Words>) {
    check_values<permutation<Words>>([](rank_t r) { return permutation_of<Words>(r); });
    check_folds<permutation<Words>>([](rank_t r) { return permutation_of<Words>(r); }, compose());
  };
  make(std::integral_constant<std::size_t, 255>());       // with a flag just in a slot
  make(std::integral_constant<std::size_t, 256>());       // 1 KiB: with a flag just not
  make(std::integral_constant<std::size_t, 3000>());      // more than a slice of the stage
  if (far::nprocs() <= 16)                                // each rank has two from every other
    make(std::integral_constant<std::size_t, 20'000>());  // more than a stage
}

FAR_TEST(folds_of_numbers) {
  auto number = [](rank_t r) { return static_cast<long>((r * 7 + 3) % 5) - 2; };
  check_folds<long>(number, std::plus<>());
  check_folds<long>(number, std::multiplies<>());
  check_folds<long>(number, far::minimum());
  check_folds<long>(number, far::maximum());
  check_folds<std::uint64_t>([](rank_t r) { return item(r, 1); }, std::bit_xor<>());
  check_folds<double>([](rank_t r) { return 0.5 * r; }, std::plus<>());
  check_folds<short>([](rank_t r) { return static_cast<short>(r - 3); }, std::plus<>());
  check_folds<bool>([](rank_t r) { return r % 2 == 0; }, std::logical_and<>());
  check_folds<bool>([](rank_t r) { return r == 1; }, std::logical_or<>());
  check_folds<aligned>([](rank_t r) { return aligned{r + 1}; }, std::plus<>());
}

FAR_TEST(folds_keep_the_order_of_the_ranks) {
  check_folds<std::string>([](rank_t r) { return text_of(r, 3); }, std::plus<>());
  check_folds<std::string>([](rank_t r) { return text_of(r, r % 8 == 1 ? 30'000 : 0); },
                           std::plus<>());
  check_folds<matrix>([](rank_t r) { return matrix{r + 1, 2, r, 3}; }, std::multiplies<>());
  check_folds<permutation<16>>(permutation_of<16>, compose());
  auto first = [](auto a, auto) { return a; };
  auto last = [](auto, auto b) { return b; };
  check_folds<rank_t>([](rank_t r) { return r; }, first);
  check_folds<rank_t>([](rank_t r) { return r; }, last);
}

FAR_TEST(folds_of_strings_by_minimum_and_maximum) {
  check_folds<std::string>([](rank_t r) { return text_of((r * 5 + 2) % 7, 20); }, far::minimum());
  check_folds<std::string>([](rank_t r) { return text_of((r * 5 + 2) % 7, 20); }, far::maximum());
}

FAR_TEST(minimum_and_maximum_keep_the_first_of_equals) {
  struct by_first {
    int first;
    rank_t whose;
    bool operator<(const by_first& o) const { return first < o.first; }
  };
  CHECK_EQ(far::all_reduce(by_first{5, far::rank()}, far::minimum()).whose, rank_t{0});
  CHECK_EQ(far::all_reduce(by_first{5, far::rank()}, far::maximum()).whose, rank_t{0});
  rank_t last = far::nprocs() - 1;
  int mine = far::rank() == last ? 1 : 2;
  CHECK_EQ(far::all_reduce(by_first{mine, far::rank()}, far::minimum()).whose, last);
}

FAR_TEST(exclusive_scan_begins_with_nothing) {
  CHECK_EQ(far::exclusive_scan(5), 5 * static_cast<int>(far::rank()));
  std::string all;
  for (rank_t r = 0; r < far::rank(); ++r) all += text_of(r, 2);
  CHECK_EQ(far::exclusive_scan(text_of(far::rank(), 2)), all);
}

FAR_TEST(broadcast_of_spans) {
  rank_t n = far::nprocs(), me = far::rank();
  for (std::size_t length : lengths)
    for (rank_t root = 0; root < n; root += length > 20'000 ? 3 : 1) {
      auto values = items(me, length);
      far::broadcast(std::span(values), root);
      CHECK(values == items(root, length));
    }
}

FAR_TEST(broadcast_of_bytes_of_odd_lengths) {
  rank_t n = far::nprocs(), me = far::rank();
  for (std::size_t length :
       {1u, 3u, 1023u, 1024u, 1025u, 65535u, 65536u, 65537u, 131071u, 131073u}) {
    rank_t root = static_cast<rank_t>(length % n);
    std::string around(length + 2, static_cast<char>('A' + me));
    far::broadcast(std::span(around).subspan(1, length), root);
    CHECK(around.substr(1, length) == std::string(length, static_cast<char>('A' + root)));
    CHECK_EQ(around.front(), static_cast<char>('A' + me));  // nothing but the span is written
    CHECK_EQ(around.back(), static_cast<char>('A' + me));
  }
}

FAR_TEST(all_reduce_of_spans) {
  rank_t n = far::nprocs(), me = far::rank();
  for (std::size_t length : lengths) {
    auto values = items(me, length);
    std::vector<std::uint64_t> sums(length), largest(length);
    for (rank_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < length; ++i) {
        sums[i] += item(r, i);
        largest[i] = std::max(largest[i], item(r, i));
      }
    far::all_reduce(std::span(values));
    CHECK(values == sums);
    values = items(me, length);
    far::all_reduce(std::span(values), far::maximum());
    CHECK(values == largest);
  }
}

FAR_TEST(all_reduce_of_spans_keeps_the_order) {
  rank_t n = far::nprocs(), me = far::rank();
  auto make = [](rank_t r, std::size_t i) { return matrix{r + i, r, i, r * i + 1}; };
  for (std::size_t length : {1u, 31u, 32u, 33u, 2047u, 2048u, 2049u, 7000u}) {
    std::vector<matrix> values(length), expected(length);
    for (std::size_t i = 0; i < length; ++i) {
      values[i] = make(me, i);
      for (rank_t r = 0; r < n; ++r) expected[i] = expected[i] * make(r, i);
    }
    far::all_reduce(std::span(values), std::multiplies<>());
    CHECK(values == expected);
  }
}

FAR_TEST(all_reduce_of_spans_of_other_types) {
  rank_t n = far::nprocs(), me = far::rank();
  std::vector<char> letters(3001, static_cast<char>(me));
  far::all_reduce(std::span(letters), far::maximum());
  CHECK(letters == std::vector<char>(3001, static_cast<char>(n - 1)));

  bool flags[1500] = {};
  flags[me] = flags[1499] = true;
  far::all_reduce(std::span<bool>(flags), std::logical_or<>());
  for (std::size_t i = 0; i < 1500; ++i) CHECK_EQ(flags[i], i < n || i == 1499);

  std::vector<aligned> wide(100, aligned{me});
  far::all_reduce(std::span(wide));
  CHECK(wide == std::vector<aligned>(100, aligned{n * (n - 1) / 2}));

  std::vector<permutation<5000>> tables{permutation_of<5000>(me), permutation_of<5000>(me + 1)};
  far::all_reduce(std::span(tables), compose());
  for (rank_t k = 0; k < 2; ++k) {
    auto expected = permutation_of<5000>(k);
    for (rank_t r = 1; r < n; ++r) expected = compose()(expected, permutation_of<5000>(r + k));
    CHECK(tables[k] == expected);
  }
}

FAR_TEST(all_gather_of_spans) {
  rank_t n = far::nprocs(), me = far::rank();
  for (std::size_t length : lengths) {
    if (n > 16 && length > 20'000) continue;  // where all ranks share the memory of one process
    std::vector<std::uint64_t> expected;
    for (rank_t r = 0; r < n; ++r) {
      auto theirs = items(r, length);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    const auto values = items(me, length);
    CHECK(far::all_gather(std::span(values)) == expected);
  }
}

FAR_TEST(strings_of_very_different_lengths) {
  rank_t n = far::nprocs(), me = far::rank();
  auto length = [&](rank_t from, rank_t to) -> std::size_t {
    if (from == to) return 0;
    return from == 0 && to == n - 1 ? 300'000 : (from * 13 + to * 5) % 11 * 900;
  };
  std::vector<std::string> out, in;
  for (rank_t j = 0; j < n; ++j) {
    out.push_back(text_of(me, length(me, j)));
    in.push_back(text_of(j, length(j, me)));
  }
  for (int round = 0; round < 3; ++round) CHECK(far::all_to_all(out) == in);

  std::vector<std::string> all;
  for (rank_t r = 0; r < n; ++r) all.push_back(text_of(r, r == 1 ? 200'001 : r * 3));
  CHECK(far::all_gather(all[me]) == all);
  for (rank_t root = 0; root < n; ++root)
    CHECK(far::gather(all[me], root) == (me == root ? all : std::vector<std::string>()));
}

FAR_TEST(all_to_all_needs_a_value_for_each_member) {
  std::vector<int> wrong(far::nprocs() + 1);
  CHECK_THROWS(far::all_to_all(wrong), "one value for each");
  CHECK_THROWS(far::all_to_all(std::vector<std::string>()), "one value for each");
}

FAR_TEST(a_root_must_be_a_member) {
  rank_t n = far::nprocs();
  int values[4] = {};
  CHECK_THROWS(far::broadcast(1, n), "is not in a team");
  CHECK_THROWS(far::broadcast(std::string("x"), n), "is not in a team");
  CHECK_THROWS(far::broadcast(std::span<int>(values), n), "is not in a team");
  CHECK_THROWS(far::gather(1, n + 5), "is not in a team");
  CHECK_THROWS(far::gather(std::string("x"), n), "is not in a team");
  CHECK_THROWS(far::reduce(1, n), "is not in a team");
  CHECK_THROWS(far::broadcast(1, 0xffff'ffffu), "is not in a team");
}

FAR_TEST(collectives_do_not_wait_for_puts_but_barrier_does) {
  rank_t n = far::nprocs(), me = far::rank();
  auto mine = far::alloc<std::uint64_t>(n);
  auto everywhere = far::all_gather(mine);
  for (int round = 1; round <= 20; ++round) {
    for (rank_t r = 0; r < n; ++r)
      far::put(everywhere[r] + me, static_cast<std::uint64_t>(round) * 100 + me);
    far::barrier();
    for (rank_t r = 0; r < n; ++r)
      CHECK_EQ(far::get(mine + r), static_cast<std::uint64_t>(round) * 100 + r);
    far::barrier();
  }
  far::dealloc(mine);
}

FAR_TEST(many_small_collectives_in_a_row) {
  rank_t n = far::nprocs(), me = far::rank();
  for (rank_t i = 0; i < 300; ++i) {
    CHECK_EQ(far::broadcast(me * 1000 + i, i % n), i % n * 1000 + i);
    CHECK_EQ(far::all_reduce(me + i), n * (n - 1) / 2 + n * i);
  }
}

FAR_TEST(random_sequences) {
  // The same sequence on all ranks, each rank with delays of its own: slots and stages are used
  // again while some are late.
  rank_t n = far::nprocs(), me = far::rank();
  auto common = far_test::common_random_engine();
  auto own = far_test::random_engine();
  for (int round = 0; round < 150; ++round) {
    std::uint64_t seed = common();
    auto kind = common() % 9;
    auto root = static_cast<rank_t>(common() % n);
    std::size_t length = std::size_t{1} << common() % 15;
    length += common() % length;
    auto values_of = [&](rank_t r) {
      std::vector<std::uint64_t> result(length);
      for (std::size_t i = 0; i < length; ++i) result[i] = (seed + i) * (r + 1);
      return result;
    };
    if (own() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 400));
    if (own() % 4 == 0) std::this_thread::yield();
    if (kind == 0) {
      CHECK_EQ(far::broadcast(seed * (me + 1), root), seed * (root + 1));
    } else if (kind == 1) {
      auto values = values_of(me);
      far::broadcast(std::span(values), root);
      CHECK(values == values_of(root));
    } else if (kind == 2) {
      auto values = values_of(me);
      far::all_reduce(std::span(values));
      bool same = true;
      for (std::size_t i = 0; i < length; ++i) same &= values[i] == (seed + i) * (n * (n + 1) / 2);
      CHECK(same);
    } else if (kind == 3) {
      auto values = values_of(me);
      auto all = far::all_gather(std::span(values));
      bool same = all.size() == n * length;
      for (rank_t r = 0; same && r < n; ++r) {
        auto theirs = values_of(r);
        same = std::equal(theirs.begin(), theirs.end(),
                          all.begin() + static_cast<std::ptrdiff_t>(r * length));
      }
      CHECK(same);
    } else if (kind == 4) {
      CHECK(far::broadcast(text_of(me, length), root) == text_of(root, length));
    } else if (kind == 5) {
      std::vector<rank_t> out(n), in(n);
      for (rank_t j = 0; j < n; ++j) out[j] = me * 100 + j, in[j] = j * 100 + me;
      CHECK_EQ(far::all_to_all(out), in);
    } else if (kind == 6) {
      CHECK_EQ(far::scan(seed), seed * (me + 1));
    } else if (kind == 7) {
      auto texts = far::gather(text_of(me, (me + 1) * 100), root);
      CHECK_EQ(texts.size(), me == root ? n : 0u);
      for (rank_t r = 0; r < texts.size(); ++r) CHECK(texts[r] == text_of(r, (r + 1) * 100));
    } else {
      far::barrier();
    }
  }
}

// A serializer that throws on one rank makes the collective throw on all, and they stay in step.
FAR_TEST(what_one_rank_cannot_serialize_none_gets) {
  const rank_t me = far::rank(), n = far::nprocs();
  const char* why = "not in the mood";
  auto join = [](const moody& a, const moody& b) { return moody{a.text + b.text}; };
  for (rank_t culprit = 0; culprit < std::min<rank_t>(n, 5); ++culprit) {
    moody mine{"fine", me == culprit};
    CHECK_THROWS(far::all_gather(mine), why);
    CHECK_THROWS(far::gather(mine, n - 1 - culprit), why);
    CHECK_THROWS(far::broadcast(mine, culprit), why);
    CHECK_THROWS(far::all_reduce(mine, join), why);
    CHECK_THROWS(far::scan(mine, join), why);
    std::vector<moody> several(n, moody{"fine"});
    several[n - 1].refuses = me == culprit;
    CHECK_THROWS(far::all_to_all(several), why);
    std::vector<moody_number> numbers(n, moody_number(1));  // of fixed length
    if (me == culprit) numbers[0].value = -1;
    CHECK_THROWS(far::all_to_all(numbers), why);
    CHECK_THROWS(far::all_gather(numbers[0]), why);
    CHECK_EQ(far::all_reduce(1), static_cast<int>(n));
    CHECK_EQ(far::all_gather(moody{"fine"}).size(), std::size_t{n});
    CHECK_EQ(far::broadcast(moody{"fine"}, culprit).text, std::string("fine"));
  }
}

// So does one that cannot read what others have sent.
FAR_TEST(what_one_rank_cannot_load_none_gets) {
  const rank_t n = far::nprocs();
  const char* why = "it is spoilt";
  auto join = [](const moody& a, const moody& b) { return moody{a.text + b.text}; };
  for (rank_t culprit = 0; culprit < std::min<rank_t>(n, 3); ++culprit) {
    moody mine{"fine", false, culprit};
    CHECK_THROWS(far::all_gather(mine), why);
    CHECK_THROWS(far::gather(mine, culprit), why);
    if (n > 1) CHECK_THROWS(far::broadcast(mine, (culprit + 1) % n), why);
    CHECK_THROWS(far::all_reduce(mine, join), why);
    CHECK_THROWS(far::all_to_all(std::vector<moody>(n, mine)), why);
    CHECK_EQ(far::all_reduce(1), static_cast<int>(n));
  }
}

// An operator that throws wherever it is called, or on one rank alone.
FAR_TEST(an_operator_that_throws_on_one_rank_throws_on_all) {
  const rank_t me = far::rank(), n = far::nprocs();
  const char* why = "overflow";
  if (n == 1) {
    CHECK_EQ(far::all_reduce(7, [](int, int) -> int { throw std::runtime_error("overflow"); }), 7);
    return;
  }
  auto add = [](long a, long b) {
    if (a + b >= 100) throw std::overflow_error("overflow");
    return a + b;
  };
  auto add_boxed = [&](const std::vector<long>& a, const std::vector<long>& b) {
    return std::vector<long>{add(a[0], b[0])};
  };
  for (rank_t culprit = 0; culprit < std::min<rank_t>(n, 3); ++culprit) {
    const long mine = me == culprit ? 200 : 1;
    CHECK_THROWS(far::all_reduce(mine, add), why);
    CHECK_THROWS(far::reduce(mine, n - 1, add), why);
    CHECK_THROWS(far::scan(mine, add), why);
    CHECK_THROWS(far::all_reduce(std::vector<long>{mine}, add_boxed), why);
    // Spans that fit a wave, and that do not: they keep their values.
    for (std::size_t length : {2, 200, 30000}) {
      std::vector<long> values(length, 1), before;
      values[length / 2] = mine;
      before = values;
      CHECK_THROWS(far::all_reduce(std::span<long>(values), add), why);
      CHECK(values == before);
    }
    // Only one rank's operator throws, though all fold the same.
    auto refuse = [&](const std::vector<long>& a, const std::vector<long>& b) {
      if (me == culprit) throw std::overflow_error("overflow");
      return std::vector<long>{a[0] + b[0]};
    };
    CHECK_THROWS(far::all_reduce(std::vector<long>{1}, refuse), why);
    CHECK_EQ(far::all_reduce(1L, add), static_cast<long>(n));
    CHECK_EQ(far::scan(1L, add), static_cast<long>(me + 1));
    CHECK_EQ(far::exclusive_scan(1L, 0L, add), static_cast<long>(me));
  }
  // The last rank's value is in no exclusive scan, but that of the one before is.
  if (n > 2) CHECK_THROWS(far::exclusive_scan(me == n - 2 ? 200L : 1L, 0L, add), why);
}

FAR_TEST(collectives_are_counted) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  far::all_reduce(1);
  far::broadcast(std::string("abc"), 0);
  far::barrier();
  auto cost = far::stats::snapshot() - before;
  CHECK_EQ(cost[far::operation::collective].count, 2u);
  CHECK_EQ(cost[far::operation::barrier].count, 1u);
}

}  // namespace collectives_tests

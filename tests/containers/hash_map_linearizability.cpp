// hash_map: every history of overlapping operations can be explained by some order of them, also
// while the map grows, and with keys that come and go.
#include "full_segments.hpp"
#include "histories.hpp"
#include "map_types.hpp"

namespace hash_map_linearizability_tests {

namespace {

using namespace map_types;
using spec = linearizability::map;

/// Values as a map of any kind holds them.
template <class V>
struct as_number {
  static V pack(std::uint64_t n) { return static_cast<V>(n); }
  static std::uint64_t unpack(const V& v) { return static_cast<std::uint64_t>(v); }
};
template <>
struct as_number<triple> {
  static triple pack(std::uint64_t n) { return {n, ~n, n * 3}; }
  static std::uint64_t unpack(const triple& t) {
    if (t.b != ~t.a || t.c != 3 * t.a) return ~std::uint64_t{0};  // torn: no history explains it
    return t.a;
  }
};
template <>
struct as_number<std::string> {
  static std::string pack(std::uint64_t n) { return std::string(n % 30, 'v') + std::to_string(n); }
  static std::uint64_t unpack(const std::string& s) {
    auto digits = s.find_first_of("0123456789");
    return digits == std::string::npos ? ~std::uint64_t{0} : std::stoull(s.substr(digits));
  }
};

/// A log in which operations that find no room have not happened.
template <class Log>
struct forgiving {
  template <class Call, class Body>
  void run(const Call& call, Body body) {
    try {
      log.run(call, body);
    } catch (const far::allocation_error&) {
      log.cancel_last();
      ++refusals;
    }
  }
  Log& log;
  int refusals = 0;
};

/// What one rank does in one history: some operations on few keys, and others that make the map
/// grow: `fill` of those for 5 on few keys.
template <class K, class V, class Map, class Log, class Random>
void act(Map& map, Log& log, Random& random, int operations, unsigned fill) {
  using number = as_number<V>;
  for (int i = 0; i < operations; ++i) {
    // Few values: words that stay the same when they are replaced hide whether they have come.
    std::uint64_t k = random() % 2, v = random() % (random() % 2 ? 3 : 1000);
    K key = make<K>::of(static_cast<int>(k));
    V value = number::pack(v);
    histories::linger later(random);
    switch (random() % (5 + fill)) {
      case 0:
        log.run(spec::insert(k, v), [&] {
          later();
          return map.insert(key, value);
        });
        break;
      case 1:
        log.run(spec::insert_or_assign(k, v), [&] {
          later();
          return map.insert_or_assign(key, value);
        });
        break;
      case 2:
        log.run(spec::find(k), [&]() -> std::optional<std::uint64_t> {
          later();
          auto found = map.find(key);
          if (!found) return std::nullopt;
          return number::unpack(*found);
        });
        break;
      case 3:
        log.run(spec::erase(k), [&] {
          later();
          return map.erase(key);
        });
        break;
      case 4:
        log.run(spec::fetch_add(k, v), [&] {
          auto add = [](const V& a, const V& b) {
            return number::pack(number::unpack(a) + number::unpack(b));
          };
          later();
          std::optional<V> before;
          if constexpr (std::integral<V>)
            before = map.accumulate(key, value);
          else
            before = map.accumulate(key, value, add);
          return before ? number::unpack(*before) : 0;
        });
        break;
      default: {
        // Others, each once, so that tables fill up: part of the history, but nobody contends.
        std::uint64_t other = 100 + random() % 100000;
        log.run(spec::insert(other, v),
                [&] { return map.insert(make<K>::of(static_cast<int>(other)), value); });
      }
    }
  }
}

template <class K, class V, class Hash = far::hash<K>>
void check_histories(const char* name, int wanted, bool fill) {
  histories::tally all;
  auto random = far_test::random_engine();
  int per_rank = far::nprocs() <= 4 ? 7 : far::nprocs() <= 8 ? 4 : 1;
  for (int i = 0; i < histories::many(wanted); ++i) {
    // Some tables so small that a key's first buckets reach past their end, and most larger ones,
    // whose operations go shorter ways.
    far::hash_map<K, V, Hash> map(fill || i % 4 == 0 ? 0 : 64);
    for (int k = 0; fill && k < 5; ++k)  // nearly as many as make it grow
      map.insert(make<K>::of(200000 + static_cast<int>(random() % 100000)), as_number<V>::pack(1));
    histories::one<spec>(all,
                         [&](auto& log) { act<K, V>(map, log, random, per_rank, fill ? 1 : 0); });
  }
  all.print(name);
}

/// The same in segments that are nearly full.
template <class K, class V, class Hash = far::hash<K>>
void check_histories_without_room(const char* name, int wanted) {
  histories::tally all;
  auto random = far_test::random_engine();
  int per_rank = far::nprocs() <= 4 ? 8 : far::nprocs() <= 8 ? 5 : 2;
  constexpr std::size_t room = std::size_t{64} << 10;
  full_segments::ballast most(room, std::size_t{1} << 40, 4096);
  for (int i = 0; i < histories::many(wanted); ++i) {
    far::hash_map<K, V, Hash> map(0);
    for (int k = 0; k < 5; ++k)
      map.insert(make<K>::of(200000 + static_cast<int>(random() % 100000)), as_number<V>::pack(1));
    far::barrier();
    constexpr std::size_t spares[] = {0, 0, 0, 0, 0, 500, 1000, 2000};
    full_segments::ballast rest(spares[random() % std::size(spares)], room);
    int refusals = 0;
    histories::one<spec>(all, [&](auto& log) {
      forgiving<std::remove_reference_t<decltype(log)>> kind{log};
      act<K, V>(map, kind, random, per_rank, 5);
      refusals = kind.refusals;
    });
    all.with_refusals += far::all_reduce(refusals) != 0;
    rest.give_back();
    far::barrier();
    if (i % 8 == 0) {  // it works on
      map.clear();
      CHECK(map.insert(make<K>::of(static_cast<int>(far::rank())), as_number<V>::pack(7)));
      far::barrier();
      CHECK_EQ(map.size(), static_cast<std::size_t>(far::nprocs()));
    }
  }
  all.print(name);
  CHECK(all.with_refusals != 0);
}

}  // namespace

FAR_TEST(histories_of_counts) { check_histories<int, std::uint64_t>("hash_map", 300, false); }
FAR_TEST(histories_of_counts_growing) {
  check_histories<int, std::uint64_t>("hash_map, growing,", 300, true);
}
FAR_TEST(histories_of_structures) {
  check_histories<int, triple>("hash_map of structures, growing,", 300, true);
}
FAR_TEST(histories_of_strings) {
  check_histories<std::string, std::string>("hash_map of strings, growing,", 150, true);
}
FAR_TEST(histories_of_colliding_keys) {
  check_histories<int, std::uint64_t, collides_always>("hash_map, colliding,", 150, true);
}

FAR_TEST(histories_without_room) {
  check_histories_without_room<int, std::uint64_t>("hash_map, without room,", 300);
}
FAR_TEST(histories_of_structures_without_room) {
  check_histories_without_room<int, triple>("hash_map of structures, without room,", 300);
}
FAR_TEST(histories_of_strings_without_room) {
  check_histories_without_room<std::string, std::string>("hash_map of strings, without room,", 150);
}

/// Words that are the same in two versions of a value, and others in the next: one that lands late
/// must not land on what came after it.
FAR_TEST(words_that_come_again) {
  auto random = far_test::random_engine();
  const int each = std::max(4, 300 / static_cast<int>(far::nprocs()));
  far::hash_map<int, triple> map(16);
  auto add = [](triple to, const triple& step) {
    return triple{to.a + step.a, to.b + step.b, to.c + step.c};
  };
  triple added{0, 0, 0};
  map.insert(1, added);
  for (int i = 0; i < each; ++i) {
    const auto which = random() % 3;
    const triple step{which == 0, which == 1, which == 2};
    map.accumulate(1, step, add);
    added = add(added, step);
  }
  far::barrier();
  auto found = map.find(1);
  CHECK(found.has_value());
  CHECK_EQ(found->a, far::all_reduce(added.a));
  CHECK_EQ(found->b, far::all_reduce(added.b));
  CHECK_EQ(found->c, far::all_reduce(added.c));
}

/// Words that have not come are zero, and so is the key that is looked for. It is never there, but
/// others with its hash are on their way.
FAR_TEST(nobody_is_taken_for_zero) {
  constexpr std::uint64_t keys = 6;
  const std::uint64_t others = std::max<std::uint64_t>(far::nprocs() - 1, 1);
  for (int round = 0; round < 20; ++round) {
    far::hash_map<std::uint64_t, std::uint64_t, collides_always> map(64);
    for (std::uint64_t i = 1; i <= keys; ++i)
      if (far::nprocs() == 1 || i % others + 1 == far::rank()) CHECK(map.insert(i, 7));
    for (int look = 0; far::rank() == 0 && look < 20; ++look) CHECK(!map.find(0));
    far::barrier();
    CHECK_EQ(map.size(), keys);
    CHECK(!map.find(0));
  }
}

}  // namespace hash_map_linearizability_tests

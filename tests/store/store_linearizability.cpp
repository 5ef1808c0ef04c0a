// far::store: every history of overlapping operations can be explained by some order of them, also
// while the index grows, longer values take other places, and memory runs out.
#include "containers/full_segments.hpp"
#include "containers/histories.hpp"
#include "store_specification.hpp"
#include "store_types.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace store_linearizability_tests {

using spec = linearizability::keyed_store;

/// In the bucket.
struct small_pair {
  std::uint64_t a, b, check;
};
/// At its owner.
struct large_pair {
  std::uint64_t a, b, check, more[9];
};
/// The same with a cell.
struct counted_pair {
  std::uint64_t a, b, check;
  std::int64_t cell;
};
/// With two, of which an erasure has to end both.
struct counted_twice {
  std::uint64_t a, b, check;
  std::int64_t other, cell;
};
/// As long as its part b says.
struct long_pair {
  std::uint64_t a = 0, b = 0, check = 0;
  std::vector<std::uint64_t> more;
};

}  // namespace store_linearizability_tests

template <>
struct far::cells_of<store_linearizability_tests::counted_pair>
    : far::cells<&store_linearizability_tests::counted_pair::cell> {};
template <>
struct far::cells_of<store_linearizability_tests::counted_twice>
    : far::cells<&store_linearizability_tests::counted_twice::other,
                 &store_linearizability_tests::counted_twice::cell> {};
template <>
struct far::serializer<store_linearizability_tests::long_pair> {
  using value = store_linearizability_tests::long_pair;
  static void save(far::writer& out, const value& v) { out << v.a << v.b << v.check << v.more; }
  static value load(far::reader& in) {
    value v;
    in >> v.a >> v.b >> v.check >> v.more;
    return v;
  }
};

namespace store_linearizability_tests {

namespace {

template <class V>
V pack(std::uint64_t a) {
  V v{};
  v.a = a, v.b = 0, v.check = ~a;
  if constexpr (requires { v.more.size(); })
    v.more.assign(a % 40, a);
  else if constexpr (requires { v.more[0]; })
    for (auto& word : v.more) word = a;
  return v;
}
template <class V>
std::uint64_t unpack(const V& v) {
  bool whole = v.check == ~v.a;
  if constexpr (requires { v.more[0]; })
    for (auto word : v.more) whole = whole && word == v.a;
  if constexpr (requires { v.more.size(); }) whole = whole && v.more.size() == v.a % 40;
  return whole ? v.a << 32 | v.b : ~std::uint64_t{0};  // torn: no history explains it
}
template <class V>
inline constexpr bool has_cell = far::cells_of<V>::count != 0;

/// A log in which operations that find no room have not happened.
template <class Log>
struct forgiving {
  template <class Body>
  void run(const spec::call& call, Body body) {
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

using answer = spec::answer;
template <class T>
answer maybe(const std::optional<T>& found) {
  return found ? answer(true, static_cast<std::uint64_t>(*found)) : answer(false);
}

/// What one rank does in one history. `others`: of ten operations, how many put other keys.
template <class V, class Log, class Random>
void act(far::store<int, V>& data, Log& log, Random& random, int operations, unsigned others,
         std::uint64_t& unique) {
  using enum spec::operation;
  std::optional<far::versioned<V>> seen[2];
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t k = random() % 2, a = ++unique;
    const int key = static_cast<int>(k);
    histories::linger later(random);
    auto run = [&](const spec::call& call, auto body) {
      log.run(call, [&] {
        later();
        return answer(body());
      });
    };
    if (random() % 10 < others) {
      const std::uint64_t other = 100 + random() % 100000;
      run(spec::of(put, other, a),
          [&] { return answer(data.put(static_cast<int>(other), pack<V>(a))); });
      continue;
    }
    switch (random() % (has_cell<V> ? 13 : 9)) {
      case 0:
      case 1:
        run(spec::of(put, k, a), [&] { return answer(data.put(key, pack<V>(a))); });
        break;
      case 2:
        run(spec::of(erase, k), [&] { return answer(data.erase(key)); });
        break;
      case 3:
        run(spec::of(update, k, a), [&] { return answer(data.update(key, pack<V>(a))); });
        break;
      case 4:
        run(spec::of(get, k), [&] {
          seen[k] = data.get_versioned(key);
          return seen[k] ? answer(true, unpack(seen[k]->value)) : answer(false);
        });
        [[fallthrough]];
      case 5:
        if (!seen[k]) break;
        run(spec::of(update_if, k, a, unpack(seen[k]->value)),
            [&] { return answer(data.update_if(key, seen[k]->version, pack<V>(a))); });
        break;
      case 6:
        run(spec::of(exchange, k, a), [&] {
          std::uint64_t old = 0;
          const bool there = data.modify(key, [&](V& v) {
            old = unpack(v);
            v = pack<V>(a);
          });
          return there ? answer(true, old) : answer(false);
        });
        break;
      case 7:
        run(spec::of(set_part, k, a), [&] { return answer(data.update(key, &V::b, a)); });
        break;
      case 8:
        if (random() % 2)
          run(spec::of(get_part, k), [&] { return maybe(data.get(key, &V::b)); });
        else
          run(spec::of(get, k), [&] {
            auto found = data.get(key);
            return found ? answer(true, unpack(*found)) : answer(false);
          });
        break;
      default:
        if constexpr (has_cell<V>) {
          if (i % 3 == 0)
            run(spec::of(swap_cell, k, a, 3),
                [&] { return maybe(data.compare_swap(key, &V::cell, 3, static_cast<long>(a))); });
          else if (i % 3 == 1)
            run(spec::of(read_cell, k), [&] {
              if (random() % 2) return maybe(data.get(key, &V::cell));
              const auto found = data.get(key);  // by a get, as the rest of the value
              return found ? answer(true, static_cast<std::uint64_t>(found->cell)) : answer(false);
            });
          else
            run(spec::of(add, k, 3), [&] { return maybe(data.fetch_add(key, &V::cell, 3)); });
        }
    }
  }
}

template <class V>
void check_histories(const char* name, int wanted, bool growing) {
  histories::tally all;
  auto random = far_test::random_engine();
  const int per_rank = far::nprocs() <= 4 ? 7 : far::nprocs() <= 8 ? 4 : 1;
  std::uint64_t unique = std::uint64_t{far::rank()} << 20;
  for (int i = 0; i < histories::many(wanted); ++i) {
    far::store<int, V> data(growing || i % 4 == 0 ? 0 : 64);
    for (int k = 0; growing && k < 5; ++k)  // nearly as many as make it grow
      data.put(200000 + static_cast<int>(random() % 100000), pack<V>(1));
    histories::one<spec>(
        all, [&](auto& log) { act<V>(data, log, random, per_rank, growing ? 3 : 0, unique); });
  }
  all.print(name);
}

/// The same in segments that are nearly full.
template <class V>
void check_histories_without_room(const char* name, int wanted) {
  histories::tally all;
  auto random = far_test::random_engine();
  const int per_rank = far::nprocs() <= 4 ? 8 : far::nprocs() <= 8 ? 5 : 2;
  std::uint64_t unique = std::uint64_t{far::rank()} << 20;
  constexpr std::size_t room = std::size_t{96} << 10;
  full_segments::ballast most(room, std::size_t{1} << 40, 4096);
  for (int i = 0; i < histories::many(wanted); ++i) {
    far::store<int, V> data(0);
    for (int k = 0; k < 5; ++k) data.put(200000 + static_cast<int>(random() % 100000), pack<V>(1));
    far::barrier();
    constexpr std::size_t spares[] = {0, 0, 0, 0, 0, 500, 1000, 2000};
    full_segments::ballast rest(spares[random() % std::size(spares)], room);
    int refusals = 0;
    histories::one<spec>(all, [&](auto& log) {
      forgiving<std::remove_reference_t<decltype(log)>> kind{log};
      act<V>(data, kind, random, per_rank, 5, unique);
      refusals = kind.refusals;
    });
    all.with_refusals += far::all_reduce(refusals) != 0;
    rest.give_back();
    far::barrier();
    if (i % 8 == 0) {  // it works on
      data.clear();
      CHECK(data.put(static_cast<int>(far::rank()), pack<V>(7)));
      far::barrier();
      CHECK_EQ(data.size(), static_cast<std::size_t>(far::nprocs()));
    }
  }
  all.print(name);
  CHECK(all.with_refusals != 0);
}

}  // namespace

FAR_TEST(histories_in_buckets) { check_histories<small_pair>("store, in buckets,", 100, false); }
FAR_TEST(histories_in_buckets_growing) {
  check_histories<small_pair>("store, in buckets, growing,", 60, true);
}
FAR_TEST(histories_of_objects) { check_histories<large_pair>("store of objects,", 100, false); }
FAR_TEST(histories_of_objects_growing) {
  check_histories<large_pair>("store of objects, growing,", 100, true);
}
FAR_TEST(histories_with_cells) { check_histories<counted_pair>("store with cells,", 100, false); }
FAR_TEST(histories_with_two_cells) {
  check_histories<counted_twice>("store with two cells, growing,", 100, true);
}
FAR_TEST(histories_of_any_length) {
  check_histories<long_pair>("store of values of any length,", 100, true);
}
/// Words that are the same in two versions of a value, and others in the next: one that lands late
/// must not land on what came after it.
FAR_TEST(words_that_come_again) {
  using counters = std::array<std::uint64_t, 12>;
  auto random = far_test::random_engine();
  const int each = std::max(4, 200 / static_cast<int>(far::nprocs()));
  far::store<int, counters> data(16);
  if (far::rank() == 0) CHECK(data.put(1, counters{}));
  far::barrier();
  counters added{};
  for (int i = 0; i < each; ++i) {
    const std::size_t which = random() % 3 * 5;
    ++added[which];
    CHECK(data.modify(1, [which](counters& v) { ++v[which]; }));
  }
  far::barrier();
  const counters found = data.get(1).value_or(counters{});
  for (std::size_t w = 0; w < 12; ++w) CHECK_EQ(found[w], far::all_reduce(added[w]));
  far::barrier();
}

/// Whoever reads while others write has all of one version.
FAR_TEST(values_that_are_whole) {
  using words = std::array<std::uint64_t, 128>;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  auto goes_on = [&](std::uint64_t i) {
    return amounts::simulated() ? i < 20 : std::chrono::steady_clock::now() < end;
  };
  far::store<int, words> data(16);
  auto filled = [](std::uint64_t n) {
    words v;
    v.fill(n);
    return v;
  };
  if (far::rank() == 0) CHECK(data.put(1, filled(0)));
  far::barrier();
  std::uint64_t torn = 0;
  for (std::uint64_t i = 0; goes_on(i); ++i) {
    if (far::rank() == 0) {
      data.update(1, filled(i));
      continue;
    }
    const words v = i % 2 == 0 ? *data.get(1) : data.get_versioned(1)->value;
    torn += std::any_of(v.begin(), v.end(), [&](std::uint64_t w) { return w != v[0]; });
  }
  CHECK_EQ(torn, 0u);
  far::barrier();
}

FAR_TEST(histories_of_objects_without_room) {
  check_histories_without_room<large_pair>("store of objects, without room,", 60);
}
FAR_TEST(histories_of_any_length_without_room) {
  check_histories_without_room<long_pair>("store of values of any length, without room,", 60);
}

}  // namespace store_linearizability_tests

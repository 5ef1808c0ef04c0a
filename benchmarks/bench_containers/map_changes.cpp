// hash_map: inserting, assigning, counting, erasing. The floor is a table of each rank alone, with
// as many entries as the map has.
#include "floor_table.hpp"
#include "rows.hpp"

#include <array>
#include <utility>

namespace far::bench {
namespace {

/// New keys into a map that has held as many before and is empty now, so that all of its memory has
/// been touched: a first touch is the operating system's work. What the loops need they have in
/// variables of their own, see maps.cpp.
///
/// `shared`: so few that ranks send lines to and fro, which a table of one process never does. The
/// floor that does as much is a plain table that all share; that of one process shows
/// what sharing costs.
void inserts(suite& s, const char* where, std::size_t entries, bool shared) {
  auto name = [&](const char* what) { return text("hash_map ", what, ", ", where); };
  auto by_one = [&](const char* what) {
    return name(shared ? (what + std::string(" beside a table of one process")).c_str() : what);
  };
  constexpr std::array titles{"insert", "insert among inserts", "insert, 512 at once"};
  constexpr std::array sharing_titles{"insert beside a shared plain table",
                                      "insert, 512 at once, beside a shared plain table"};
  const bool alone = !shared || s.asks_for("of one process");
  auto wanted = [&](const std::string& title) { return s.wants(title); };
  if (!(alone && std::ranges::any_of(titles, wanted, by_one)) &&
      std::ranges::none_of(sharing_titles, wanted, name))
    return;
  const std::size_t all = entries * nprocs();
  hash_map<word, word> map(all);
  own_table floor(all);
  const word first = word{rank()} << 40;
  auto ours = [&]<concurrency With>() {
    return prepared{entries, [&map] { map.clear(); },
                    [&map, first](std::size_t n) {
                      auto& to = map;
                      const word from = first;
                      for (word i = 0; i < n; ++i) to.insert(key_of(from + i), i, With);
                    }};
  };
  auto plain = prepared{all, [&floor] { floor.clear(); },
                        [&floor, first](std::size_t n) {
                          auto& to = floor;
                          const word from = first;
                          for (word i = 0; i < n; ++i) to.insert(key_of(from + i), i);
                        }};
  std::vector<std::pair<word, word>> some(512);
  auto bulk = prepared{entries, [&map] { map.clear(); },
                       [&](std::size_t n) {
                         for (std::size_t done = 0; done < n; done += some.size()) {
                           std::size_t now = std::min(some.size(), n - done);
                           for (std::size_t i = 0; i < now; ++i)
                             some[i] = {key_of(first + done + i), i};
                           map.insert(std::span<const std::pair<word, word>>(some.data(), now));
                         }
                       }};
  for (word i = 0; i < entries; ++i) map.insert(key_of(first + i), i);
  if (alone) {
    s.compare(by_one(titles[0]), time_of_one(), ours.template operator()<concurrency::everything>(),
              plain);
    s.compare(by_one(titles[1]), time_of_one(), ours.template operator()<concurrency::insert>(),
              plain);
    s.compare(by_one(titles[2]), time_of_one(), bulk, plain);
  }
  if (coherent()) {
    shared_table table(all);
    auto sharing = prepared{entries, [&table] { table.clear(); },
                            [&table, first](std::size_t n) {
                              auto& to = table;
                              const word from = first;
                              for (word i = 0; i < n; ++i) to.insert(key_of(from + i), i);
                            }};
    s.compare(name(sharing_titles[0]), time_of_one(),
              ours.template operator()<concurrency::everything>(), sharing);
    s.compare(name(sharing_titles[1]), time_of_one(), bulk, sharing);
  }
  barrier();
}

/// Does something to one key after another. What its loop needs it has in variables of its own, see
/// maps.cpp; what is done is part of the loop, as it is where no function is handed over.
template <class Visit>
auto in_turn(const std::vector<word>& keys, Visit visit) {
  return [&keys, visit, from = std::size_t{0}](std::size_t n) mutable {
    const word* all = keys.data();
    const std::size_t count = keys.size();
    std::size_t at = from;
    Visit one = visit;
    while (n-- > 0) {
      one(all[at]);
      if (++at == count) at = 0;
    }
    from = at;
  };
}

/// Keys that are there, of all ranks.
void updates(suite& s, const char* where, std::size_t entries) {
  auto name = [&](const char* what) { return text("hash_map ", what, ", ", where); };
  constexpr std::array titles{"accumulate", "accumulate, 512 at once", "insert_or_assign",
                              "modify",     "erase and insert",        "insert, key is there"};
  if (std::ranges::none_of(titles, [&](const char* t) { return s.wants(name(t)); })) return;
  hash_map<word, word> map(entries * nprocs());
  own_table floor(entries * nprocs());
  std::vector<word> keys;
  for (word i = 0; i < entries; ++i) {
    map.insert(key_of(rank() * entries + i), 1);
    keys.push_back(key_of((rank() + i) % nprocs() * entries + i));
  }
  for (word i = 0; i < entries * nprocs(); ++i) floor.insert(key_of(i), 1);
  barrier();
  auto each = [&keys](auto change) { return in_turn(keys, change); };
  auto add = each([&](word key) { floor.add(key, 1); });
  s.compare(name(titles[0]), time_of_one(),
            each([&](word key) __attribute__((always_inline)) { map.accumulate(key, 1); }), add);
  std::vector<std::pair<word, word>> some(512);
  s.compare(
      name(titles[1]), time_of_one(),
      [&, at = std::size_t{0}](std::size_t n) mutable {
        for (std::size_t done = 0; done < n; done += some.size()) {
          std::size_t now = std::min(some.size(), n - done);
          for (std::size_t i = 0; i < now; ++i) {
            some[i] = {keys[at], 1};
            if (++at == keys.size()) at = 0;
          }
          map.accumulate(std::span<const std::pair<word, word>>(some.data(), now));
        }
      },
      add);
  s.compare(name(titles[2]), time_of_one(),
            each([&](word key) __attribute__((always_inline)) { map.insert_or_assign(key, 3); }),
            each([&](word key) { floor.assign(key, 3); }));
  s.compare(name(titles[3]), time_of_one(), each([&](word key) __attribute__((always_inline)) {
              map.modify(key, [](word& v) {
                v = v * 3 + 1;
                v >>= 8;
              });
            }),
            add);
  s.measure_alone(name(titles[4]), time_of_one(),
                  each([&](word key) __attribute__((always_inline)) {
                    map.erase(key);
                    map.insert(key, 1);
                  }));
  s.compare(name(titles[5]), time_of_one(),
            each([&](word key) __attribute__((always_inline)) { map.insert(key, 3); }),
            each([&](word key) { floor.insert(key, 3); }));
  barrier();
}

/// A rank's own keys while nobody else is there.
void local(suite& s, std::size_t entries) {
  constexpr std::array titles{"hash_map find, local", "hash_map insert, local",
                              "hash_map accumulate, local"};
  if (std::ranges::none_of(titles, [&](const char* t) { return s.wants(t); })) return;
  hash_map<word, word> map(entries * nprocs());
  own_table floor(entries);
  std::vector<word> keys;
  for (word i = 0; keys.size() < entries; ++i)
    if (map.owner(key_of(i)) == rank()) keys.push_back(key_of(i));
  for (word key : keys) floor.insert(key, 1), map.insert(key, 1, concurrency::owner_only);
  auto each = [&keys](auto visit) { return in_turn(keys, visit); };
  s.compare(titles[0], time_of_one(), each([&](word key) __attribute__((always_inline)) {
              keep(*map.find(key, concurrency::owner_only));
            }),
            each([&](word key) { keep(*floor.find(key)); }));
  s.compare(titles[2], time_of_one(), each([&](word key) __attribute__((always_inline)) {
              map.accumulate(key, 1, std::plus<>(), concurrency::owner_only);
            }),
            each([&](word key) { floor.add(key, 1); }));
  s.compare(titles[1], time_of_one(),
            prepared{entries, [&map] { map.clear(); },
                     [&](std::size_t n) {
                       auto& to = map;
                       const word* all = keys.data();
                       for (word i = 0; i < n; ++i) to.insert(all[i], i, concurrency::owner_only);
                     }},
            prepared{entries, [&floor] { floor.clear(); },
                     [&](std::size_t n) {
                       auto& to = floor;
                       const word* all = keys.data();
                       for (word i = 0; i < n; ++i) to.insert(all[i], i);
                     }});
  barrier();
}

}  // namespace

void map_change_rows(suite& s) {
  std::size_t small = 1 << 12, large = coherent() ? std::size_t{1} << 20 : std::size_t{1} << 16;
  inserts(s, "in the cache", small, coherent() && nprocs() > 1);
  inserts(s, "beyond the cache", large, false);
  updates(s, "in the cache", small);
  updates(s, "beyond the cache", large);
  local(s, small);
}

}  // namespace far::bench

// hash_map: finding. All ranks look for keys of all ranks in one map, or in 16 of them; the floor
// is as many tables with the same entries that all of them read.
#include "floor_table.hpp"
#include "rows.hpp"

#include <array>
#include <numeric>

#if defined(FARSIDE_BENCH_ABSL)
#include <absl/container/flat_hash_map.h>
#endif

namespace far::bench {
namespace {

/// A number below `n` for each of them, one cycle through all: following it visits every one.
std::vector<word> one_cycle(std::size_t n) {
  std::vector<word> order(n), next(n);
  std::iota(order.begin(), order.end(), word{0});
  for (std::size_t i = n - 1; i > 0; --i) std::swap(order[i], order[mix(i) % i]);
  for (std::size_t i = 0; i < n; ++i) next[order[i]] = order[(i + 1) % n];
  return next;
}

/// Maps, and a floor, that hold the same n entries a rank. Key number i has as its value the number
/// of the key to look for after it.
class filled {
 public:
  filled(std::size_t entries, std::size_t maps) : n(entries), all(n * nprocs()) {
    for (std::size_t m = 0; m < maps; ++m) this->maps.emplace_back(all / maps);
    const bool shared = coherent();
    const std::size_t words = floor_table::bytes_for(all / maps) / sizeof(word);
    if (!shared || rank() == 0) memory_ = alloc<word>(maps * words);
    if (shared) memory_ = broadcast(memory_, 0);
    for (std::size_t m = 0; m < maps; ++m)
      floors.emplace_back(memory_.local() + m * words, all / maps);
    std::vector<word> next = one_cycle(all);
    if (!shared || rank() == 0) {
      for (floor_table& floor : floors) floor.clear();
      for (word i = 0; i < all; ++i) floors[i % maps].insert(key_of(i), next[i]);
    }
    for (word i = rank() * n; i < (rank() + 1) * n; ++i)
      this->maps[i % maps].insert(key_of(i), next[i]);
    for (word i = 0; i < all; ++i) keys.push_back(key_of(i));
    first = rank() * n;
    barrier();
  }
  ~filled() {
    barrier();
    if (!coherent() || rank() == 0) dealloc(memory_);
  }
  filled(const filled&) = delete;

  std::size_t n, all;
  std::vector<word> keys;
  std::vector<hash_map<word, word>> maps;
  std::vector<floor_table> floors;
  word first;

 private:
  ptr<word> memory_ = nullptr;
};

// Loops have what they need in variables of their own: an operation with an order makes a compiler
// load anew what others might have changed, and a plain one does not.

/// Each key is found in the value of the last one.
template <class Find>
auto chain(const std::vector<word>& all, word first, Find find) {
  return [&all, find, from = first](std::size_t n) mutable {
    const word* keys = all.data();
    word at = from;
    Find one = find;
    while (n-- > 0) at = one(keys[at]);
    from = at;
    keep(at);
  };
}

/// Keys in an order that depends on nothing. `find(key, i)` if it wants to know which key it is.
template <class Find>
auto independent(const std::vector<word>& all, word first, Find find) {
  return [&all, find, from = first](std::size_t n) mutable {
    const word* keys = all.data();
    const std::size_t count = all.size();
    word at = from, sum = 0;
    Find one = find;
    while (n-- > 0) {
      if constexpr (requires { one(keys[at], at); })
        sum += one(keys[at], at);
      else
        sum += one(keys[at]);
      if (++at == count) at = 0;
    }
    from = at;
    keep(sum);
  };
}

template <class Find>
auto chain(const filled& t, Find find) {
  return chain(t.keys, t.first, find);
}
template <class Find>
auto independent(const filled& t, Find find) {
  return independent(t.keys, t.first, find);
}

template <class Find>
auto missing(Find find) {
  return [find, from = word{1} << 40](std::size_t n) mutable {
    word at = from, sum = 0;
    Find one = find;
    while (n-- > 0) sum += one(key_of(at++));
    from = at;
    keep(sum);
  };
}

auto missing_together(const hash_map<word, word>& map) {
  return [&map, at = word{1} << 40, keys = std::vector<word>(),
          found = std::vector<std::optional<word>>()](std::size_t n) mutable {
    word sum = 0;
    for (std::size_t many; n > 0; n -= many) {
      keys.clear();
      for (many = 0; many < std::min(n, std::size_t{512}); ++many) keys.push_back(key_of(at++));
      map.find(keys, found);
      for (const auto& value : found) sum += value.has_value();
    }
    keep(sum);
  };
}

void finds(suite& s, const char* where, std::size_t entries) {
  auto name = [&](const char* what) { return text("hash_map ", what, ", ", where); };
  constexpr std::array titles{"find, one after another",
                              "find, independent",
                              "find among finds, one after another",
                              "find among finds, independent",
                              "find, 512 at once",
                              "find among finds, 512 at once",
                              "miss, independent",
                              "miss, 512 at once"};
  if (std::ranges::none_of(titles, [&](const char* t) { return s.wants(name(t)); })) return;
  filled t(entries, 1);
  hash_map<word, word>& map = t.maps[0];
  auto floor = [&table = t.floors[0]](word key) { return *table.find(key); };
  auto find = [&map](word key) __attribute__((always_inline)) { return *map.find(key); };
  auto promised = [&map](word key)
                      __attribute__((always_inline)) { return *map.find(key, concurrency::find); };
  s.compare(name(titles[0]), time_of_one(), chain(t, find), chain(t, floor));
  s.compare(name(titles[1]), time_of_one(), independent(t, find), independent(t, floor));
  s.compare(name(titles[2]), time_of_one(), chain(t, promised), chain(t, floor));
  s.compare(name(titles[3]), time_of_one(), independent(t, promised), independent(t, floor));
  auto bulk = [&t, &map](concurrency with) {
    return [&t, &map, with, at = t.first](std::size_t n) mutable {
      constexpr std::size_t many = 512;
      std::vector<std::optional<word>> found;
      word sum = 0;
      while (n > 0) {
        std::size_t now = std::min({many, n, t.all - at});
        map.find(std::span<const word>(t.keys.data() + at, now), found, with);
#pragma GCC unroll 8  // what counts is that they are there
        for (const auto& value : found) sum += *value;
        at = at + now == t.all ? 0 : at + now;
        n -= now;
      }
      keep(sum);
    };
  };
  s.compare(name(titles[4]), time_of_one(), bulk(concurrency::everything), independent(t, floor));
  s.compare(name(titles[5]), time_of_one(), bulk(concurrency::find), independent(t, floor));
  auto floor_missing =
      missing([&table = t.floors[0]](word key) { return word{table.find(key) != nullptr}; });
  s.compare(name(titles[6]), time_of_one(),
            missing([&map](word key) { return word{map.contains(key)}; }), floor_missing);
  s.compare(name(titles[7]), time_of_one(), missing_together(map), floor_missing);
}

void many_maps(suite& s, std::size_t entries) {
  constexpr std::size_t count = 16;
  if (!s.wants("hash_map find, 16 maps")) return;
  filled t(entries, count);
  auto find = [maps = t.maps.data()](word key, std::size_t i)
                  __attribute__((always_inline)) { return *maps[i % count].find(key); };
  auto floor = [tables = t.floors.data()](word key, std::size_t i) {
    return *tables[i % count].find(key);
  };
  s.compare("hash_map find, 16 maps, independent", time_of_one(), independent(t, find),
            independent(t, floor));
}

#if defined(FARSIDE_BENCH_ABSL)
/// Takes an optimiser's word that keys are random for it, as ours are mixed already.
void floor_against_peer(suite& s, const char* where, std::size_t entries) {
  auto name = [&](const char* what) { return text("floor table ", what, ", ", where); };
  constexpr std::array titles{"find, one after another, against absl",
                              "find, independent, against absl", "find and add, against absl"};
  if (std::ranges::none_of(titles, [&](const char* t) { return s.wants(name(t)); })) return;
  own_table table(entries);
  absl::flat_hash_map<word, word> peer;
  peer.reserve(entries);
  std::vector<word> next = one_cycle(entries), keys;
  for (word i = 0; i < entries; ++i) {
    keys.push_back(key_of(i));
    table.insert(keys[i], next[i]);
    peer.emplace(keys[i], next[i]);
  }
  auto ours = [table = &table](word key) { return *table->find(key); };
  auto theirs = [peer = &peer](word key) { return peer->find(key)->second; };
  s.compare(name(titles[0]), time_of_one(), chain(keys, 0, ours), chain(keys, 0, theirs));
  s.compare(name(titles[1]), time_of_one(), independent(keys, 0, ours),
            independent(keys, 0, theirs));
  auto add = [table = &table](word key) {
    table->add(key, 1);
    return word{0};
  };
  s.compare(name(titles[2]), time_of_one(), independent(keys, 0, add),
            independent(keys, 0, [peer = &peer](word key) { return (*peer)[key] += 1; }));
}
#endif

}  // namespace

void map_rows(suite& s) {
  std::size_t small = 1 << 12, large = coherent() ? std::size_t{1} << 20 : std::size_t{1} << 16;
  finds(s, "in the cache", small);
  finds(s, "beyond the cache", large);
  many_maps(s, small);
#if defined(FARSIDE_BENCH_ABSL)
  floor_against_peer(s, "in the cache", small);
  floor_against_peer(s, "beyond the cache", large);
#endif
}

}  // namespace far::bench

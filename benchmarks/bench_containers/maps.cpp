// hash_map: finding. All ranks look for keys of all ranks in one map, or in 16 of them; the floor
// is one table with the same entries that all of them read.
#include "floor_table.hpp"
#include "rows.hpp"

#include <array>
#include <memory>
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
  for (std::size_t i = n - 1; i > 0; --i) std::swap(order[i], order[detail::mix(i) % i]);
  for (std::size_t i = 0; i < n; ++i) next[order[i]] = order[(i + 1) % n];
  return next;
}

/// Maps, and a floor, that hold the same n entries a rank. Key number i has as its value the number
/// of the key to look for after it.
class filled {
 public:
  filled(std::size_t entries, std::size_t maps) : n(entries), all(n * nprocs()) {
    for (std::size_t m = 0; m < maps; ++m) this->maps.emplace_back(all / maps);
    ptr<word> memory = nullptr;
    bool one_table = coherent();
    std::size_t bytes = floor_table::bytes_for(all);
    if (!one_table || rank() == 0) memory = alloc<word>(bytes / sizeof(word));
    if (one_table) memory = broadcast(memory, 0);
    memory_ = memory;
    floor = std::make_unique<floor_table>(memory.local(), all);
    std::vector<word> next = one_cycle(all);
    if (!one_table || rank() == 0) {
      floor->clear();
      for (word i = 0; i < all; ++i) floor->insert(key_of(i), next[i]);
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
  std::unique_ptr<floor_table> floor;
  word first;

 private:
  ptr<word> memory_ = nullptr;
};

/// Each key is found in the value of the last one.
template <class Find>
auto chain(const filled& t, Find find) {
  return [&t, find, at = t.first](std::size_t n) mutable {
    while (n-- > 0) at = find(t.keys[at]);
    keep(at);
  };
}

/// Keys in an order that depends on nothing.
template <class Find>
auto independent(const filled& t, Find find) {
  return [&t, find, at = t.first](std::size_t n) mutable {
    word sum = 0;
    while (n-- > 0) {
      sum += find(t.keys[at]);
      if (++at == t.all) at = 0;
    }
    keep(sum);
  };
}

template <class Find>
auto missing(Find find) {
  return [find, at = word{1} << 40](std::size_t n) mutable {
    word sum = 0;
    while (n-- > 0) sum += find(key_of(at++));
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
  auto name = [&](const char* what) { return detail::text("hash_map ", what, ", ", where); };
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
  auto floor = [&t](word key) { return *t.floor->find(key); };
  auto find = [&map](word key) __attribute__((always_inline)) { return *map.find(key); };
  auto promised = [&map](word key)
                      __attribute__((always_inline)) { return *map.find(key, promise::find); };
  s.compare(name(titles[0]), time_of_one(), chain(t, find), chain(t, floor));
  s.compare(name(titles[1]), time_of_one(), independent(t, find), independent(t, floor));
  s.compare(name(titles[2]), time_of_one(), chain(t, promised), chain(t, floor));
  s.compare(name(titles[3]), time_of_one(), independent(t, promised), independent(t, floor));
  auto bulk = [&t, &map](promise with) {
    return [&t, &map, with, at = t.first](std::size_t n) mutable {
      constexpr std::size_t many = 512;
      std::vector<std::optional<word>> found;
      word sum = 0;
      while (n > 0) {
        std::size_t now = std::min({many, n, t.all - at});
        map.find(std::span<const word>(t.keys.data() + at, now), found, with);
        for (const auto& value : found) sum += *value;
        at = at + now == t.all ? 0 : at + now;
        n -= now;
      }
      keep(sum);
    };
  };
  s.compare(name(titles[4]), time_of_one(), bulk(promise::everything), independent(t, floor));
  s.compare(name(titles[5]), time_of_one(), bulk(promise::find), independent(t, floor));
  auto floor_missing = missing([&t](word key) { return word{t.floor->find(key) != nullptr}; });
  s.compare(name(titles[6]), time_of_one(),
            missing([&map](word key) { return word{map.contains(key)}; }), floor_missing);
  s.compare(name(titles[7]), time_of_one(), missing_together(map), floor_missing);
}

void many_maps(suite& s, std::size_t entries) {
  constexpr std::size_t count = 16;
  if (!s.wants("hash_map find, 16 maps")) return;
  filled t(entries, count);
  s.compare("hash_map find, 16 maps, independent", time_of_one(),
            independent(t,
                        [&t, at = std::size_t(t.first)](word key) mutable {
                          word value = *t.maps[at % count].find(key);
                          if (++at == t.all) at = 0;
                          return value;
                        }),
            independent(t, [&t](word key) { return *t.floor->find(key); }));
}

#if defined(FARSIDE_BENCH_ABSL)
/// Takes an optimiser's word that keys are random for it, as ours are mixed already.
void floor_against_peer(suite& s, const char* where, std::size_t entries) {
  auto name = [&](const char* what) { return detail::text("floor table ", what, ", ", where); };
  if (!s.wants(name("find"))) return;
  own_table table(entries);
  absl::flat_hash_map<word, word> peer;
  peer.reserve(entries);
  std::vector<word> next = one_cycle(entries), keys;
  for (word i = 0; i < entries; ++i) {
    keys.push_back(key_of(i));
    table.insert(keys[i], next[i]);
    peer.emplace(keys[i], next[i]);
  }
  auto chained = [&](auto find) {
    return [&keys, find, at = word{0}](std::size_t n) mutable {
      while (n-- > 0) at = find(keys[at]);
      keep(at);
    };
  };
  auto each = [&](auto find) {
    return [&keys, find, at = word{0}](std::size_t n) mutable {
      word sum = 0;
      while (n-- > 0) {
        sum += find(keys[at]);
        if (++at == keys.size()) at = 0;
      }
      keep(sum);
    };
  };
  auto ours = [&](word key) { return *table.find(key); };
  auto theirs = [&](word key) { return peer.find(key)->second; };
  s.compare(name("find, one after another, against absl"), time_of_one(), chained(ours),
            chained(theirs));
  s.compare(name("find, independent, against absl"), time_of_one(), each(ours), each(theirs));
  s.compare(name("find and add, against absl"), time_of_one(), each([&](word key) {
              table.add(key, 1);
              return word{0};
            }),
            each([&](word key) { return peer[key] += 1; }));
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

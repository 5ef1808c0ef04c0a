// Beside floors: a find of hash_map, a memcpy of the bytes, a loop over a vector or a plain table.
#include "rows.hpp"

#include <farside/containers/hash_map.hpp>

#include <cstring>
#include <numeric>

namespace far::bench {
namespace {

/// Keys that look random, and are all different.
word key_of(word i) { return mix(i) >> 4; }

/// All ranks read random entries of all.
template <class V>
void small_gets(suite& s) {
  const std::string name = text("get ", sizeof(V), " B, beside find of hash_map");
  if (!s.wants(name)) return;
  constexpr word each = 4096;
  store<word, V> ours(each * nprocs());
  hash_map<word, V> floor(each * nprocs());
  for (word i = rank() * each; i < (rank() + 1) * each; ++i) {
    V value{};
    reinterpret_cast<word&>(value) = i;
    ours.put(key_of(i), value);
    floor.insert(key_of(i), value);
  }
  std::vector<word> keys(each * nprocs());
  for (word i = 0; i < keys.size(); ++i) keys[i] = key_of(i);
  barrier();
  auto all_of = [&keys](auto get) {
    return [&keys, get, at = std::size_t{0}](std::size_t n) mutable {
      word sum = 0;
      for (; n > 0; --n) {
        sum += reinterpret_cast<const word&>(*get(keys[at]));
        if (++at == keys.size()) at = 0;
      }
      keep(sum);
    };
  };
  s.compare(name, time_of_one(), all_of([&](word key) { return ours.get(key); }),
            all_of([&](word key) { return floor.find(key); }));
  barrier();
}

/// Values of the other rank, at places that this one knows; the floor copies the same bytes from where
/// they lie, which is in far memory if that is coherent.
template <std::size_t Bytes>
void large_gets(suite& s) {
  const std::string name = text("get ", Bytes, " B, place known, beside memcpy");
  if (!s.wants(name)) return;
  constexpr word count = 16;
  store<word, block<Bytes>, on_rank> ours(count);
  const ptr<block<Bytes>> mine = alloc<block<Bytes>>(count);
  const auto floor = native().coherent() ? broadcast(mine, 0) : mine;
  for (word key = 0; key < count; ++key) {
    if (rank() == 0) ours.put(key, block_of<Bytes>(key));
    if (floor == mine)
      std::memcpy(static_cast<void*>(mine.local() + key), block_of<Bytes>(key).data(), Bytes);
  }
  barrier();
  for (word key = 0; key < count; ++key) keep((*ours.get(key))[0]);
  s.compare(
      name, time_of_one(),
      [&ours, key = word{0}](std::size_t n) mutable {
        word sum = 0;
        while (n-- > 0) sum += (*ours.get(key++ % count))[3];
        keep(sum);
      },
      [from = floor.local(), key = word{0}](std::size_t n) mutable {
        word sum = 0;
        while (n-- > 0) {
          block<Bytes> to;
          std::memcpy(to.data(), from + key++ % count, Bytes);
          keep(to.data());
          sum += to[3];
        }
        keep(sum);
      });
  barrier();
  dealloc(mine);
}

/// Passes over what one rank has. An iteration is one of them.
template <std::size_t Bytes, class Entries>
auto passes(Entries entries) {
  return [entries](std::size_t n) mutable {
    word sum = 0;
    for (; n > 0; --n)
      for (const auto& [key, value] : entries()) {
        sum += key;
        for (const word w : value) sum += w;
      }
    keep(sum);
  };
}

/// A table that has no more than it must: entries where their hashes say, each with a flag.
template <std::size_t Bytes>
struct flat_table {
  struct bucket {
    word taken = 0, key = 0;
    block<Bytes> value{};
  };
  std::vector<bucket> buckets;

  explicit flat_table(std::size_t capacity) : buckets(capacity) {}
  void add(word key, const block<Bytes>& value) {
    std::size_t at = mix(key) % buckets.size();
    while (buckets[at].taken != 0) at = (at + 1) % buckets.size();
    buckets[at] = {1, key, value};
  }
};

/// What one rank has, beside a vector of the same keys and values, and beside a hash table as full as
/// the store's index, where values lie in that.
template <std::size_t Bytes>
void own_part(suite& s) {
  const std::string name = text("local(), values of ", Bytes, " B, beside a loop over a ");
  if (!s.wants(name + "vector") && !s.wants(name + "table")) return;
  constexpr word count = std::clamp<word>((1 << 19) / Bytes, 16, 4096);
  store<word, block<Bytes>, by_number> ours(count * nprocs());
  std::vector<std::pair<word, block<Bytes>>> plain;
  for (word key = rank(); key < count * nprocs(); key += nprocs()) {
    ours.put(key, block_of<Bytes>(key));
    plain.emplace_back(key, block_of<Bytes>(key));
  }
  barrier();
  auto own = passes<Bytes>([&ours] { return ours.local(); });
  if (s.wants(name + "vector"))
    s.compare(name + "vector", time_of_one(), own,
              passes<Bytes>([&plain]() -> auto& { return plain; }));
  barrier();
  if (Bytes > 64 || !s.wants(name + "table")) return;
  flat_table<Bytes> table(ours.statistics().buckets / nprocs());
  for (const auto& [key, value] : plain) table.add(key, value);
  s.compare(name + "table", time_of_one(), own, [&table](std::size_t n) {
    word sum = 0;
    for (; n > 0; --n)
      for (const auto& one : table.buckets)
        if (one.taken != 0) {
          sum += one.key;
          for (const word w : one.value) sum += w;
        }
    keep(sum);
  });
  barrier();
}

}  // namespace

void floor_rows(suite& s) {
  if (!is_first_way()) return;
  small_gets<word>(s);
  small_gets<block<128>>(s);
  large_gets<5832>(s);
  own_part<8>(s);
  own_part<128>(s);
  own_part<5832>(s);
}

}  // namespace far::bench

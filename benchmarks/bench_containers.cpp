// What the operations of the containers cost beside their floors, measured in the same run:
//
//   hash_map       a single-process open-addressing table of the same bucket size, hash and load,
//   in the
//                  memory of the same segment. "one after another": the next key depends on the
//                  value found, so that nothing overlaps; "independent": a CPU overlaps what it
//                  can.
//   buffer         the counting loop on that table
//   fast_queue     memcpy of the same bytes
//   two pushers    one pusher on the same queue
//   counter        fetch_add on one word; Bloom filter: the same atomic or load on the same words
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/counter.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map_buffer.hpp>

#include "harness.hpp"

#include <array>
#include <cstring>
#include <memory>

namespace far::bench {
namespace {

using word = std::uint64_t;

/// The floor: what a careful programmer writes for one process. Linear probing, two thirds full.
class plain_table {
 public:
  explicit plain_table(std::size_t entries)
      : capacity_(entries + entries / 2 + 64), memory_(alloc<word>(capacity_ * 4)) {
    buckets_ = reinterpret_cast<bucket*>(memory_.local());
    clear();
  }
  ~plain_table() { dealloc(memory_); }
  plain_table(const plain_table&) = delete;

  void clear() { std::memset(static_cast<void*>(buckets_), 0, capacity_ * sizeof(bucket)); }
  bool insert(word key, word value) {
    bucket& b = at(key);
    if (b.used) return false;
    b = {1, 0, value, key};
    return true;
  }
  const word* find(word key) {
    bucket& b = at(key);
    return b.used ? &b.value : nullptr;
  }
  void add(word key, word value) {
    bucket& b = at(key);
    if (!b.used) b = {1, 0, 0, key};
    b.value += value;
  }

 private:
  struct bucket {
    word used, spare, value, key;
  };
  bucket& at(word key) {
    word i = detail::reduce_hash(hash<word>()(key), capacity_);
    while (buckets_[i].used && buckets_[i].key != key)
      if (++i == capacity_) i = 0;
    return buckets_[i];
  }

  std::size_t capacity_;
  ptr<word> memory_;
  bucket* buckets_;
};

word key_of(word i) { return detail::mix(i) >> 4; }

/// Keys that every rank's tables hold: those of this rank alone for the floor, of all for the map.
struct filled {
  std::size_t n;
  std::vector<word> keys;  ///< half of them of other ranks, in the map
  plain_table floor;
  hash_map<word, word> map;

  explicit filled(std::size_t entries) : n(entries), floor(entries), map(entries * nprocs()) {
    for (std::size_t i = 0; i < n; ++i) {
      word mine = key_of(rank() * n + i);
      map.insert(mine, i);
      word looked_for = key_of(((rank() + i) % nprocs()) * n + i);
      keys.push_back(looked_for);
      floor.insert(looked_for, i);
    }
    barrier();
  }
};

void finds(suite& s, const char* where, std::size_t entries) {
  auto name = [&](const char* what) { return detail::text("hash_map ", what, ", ", where); };
  if (!s.wants(name("find")) && !s.wants(name("miss")) && !s.wants(name("accumulate"))) return;
  filled t(entries);
  word mask = t.n - 1;
  auto chain = [&](auto find) {
    return [&t, mask, find, at = word{0}](std::size_t n) mutable {
      while (n-- > 0) at = (at + find(t.keys[at]) * 7 + 1) & mask;
      keep(at);
    };
  };
  auto all = [&](auto find) {
    return [&t, mask, find, at = word{0}](std::size_t n) mutable {
      word sum = 0;
      while (n-- > 0) sum += find(t.keys[at++ & mask]);
      keep(sum);
    };
  };
  auto ours = [&t](word key) { return *t.map.find(key); };
  auto promised = [&t](word key) { return *t.map.find(key, promise::find); };
  auto floor = [&t](word key) { return *t.floor.find(key); };
  s.compare(name("find, one after another"), time_of_one(), chain(ours), chain(floor));
  s.compare(name("find, independent"), time_of_one(), all(ours), all(floor));
  s.compare(name("find among finds, independent"), time_of_one(), all(promised), all(floor));
  auto bulk = [&t, mask, at = word{0}](std::size_t n) mutable {
    constexpr std::size_t many = 512;
    for (std::size_t done = 0; done < n; done += many) {
      std::span<const word> keys(t.keys.data() + (at & mask & ~(many - 1)),
                                 std::min(many, n - done));
      keep(t.map.find(keys).size());
      at += many;
    }
  };
  s.compare(name("find, 512 at once"), time_of_one(), bulk, all(floor));
  auto missing = [&](auto find) {
    return [find, at = word{1} << 40](std::size_t n) mutable {
      word sum = 0;
      while (n-- > 0) sum += find(key_of(at++));
      keep(sum);
    };
  };
  s.compare(name("miss, independent"), time_of_one(),
            missing([&t](word key) { return word{t.map.contains(key)}; }),
            missing([&t](word key) { return word{t.floor.find(key) != nullptr}; }));
  auto adds = [&](auto add) {
    return [&t, mask, add, at = word{0}](std::size_t n) mutable {
      while (n-- > 0) add(t.keys[at++ & mask]);
    };
  };
  s.compare(name("accumulate"), time_of_one(), adds([&t](word key) { t.map.accumulate(key, 1); }),
            adds([&t](word key) { t.floor.add(key, 1); }));
  s.compare(name("insert_or_assign"), time_of_one(),
            adds([&t](word key) { t.map.insert_or_assign(key, 3); }),
            adds([&t](word key) { t.floor.add(key, 1); }));
  barrier();
}

void inserts(suite& s, std::size_t entries) {
  if (!s.wants("hash_map insert")) return;
  {
    hash_map<word, word> map(entries * nprocs());
    plain_table floor(entries);
    word next = word{rank()} << 40, floor_next = next;
    s.compare(
        "hash_map insert", time_of_one(),
        [&](std::size_t n) {
          while (n-- > 0) map.insert(key_of(next++), 1);
        },
        [&](std::size_t n) {
          while (n-- > 0) floor.insert(key_of(floor_next++), 1);
        });
    barrier();
  }
  hash_map<word, word> map(entries * nprocs());
  plain_table floor(entries);
  word next = word{rank()} << 40, floor_next = next;
  std::vector<std::pair<word, word>> some(512);
  s.compare(
      "hash_map insert, 512 at once", time_of_one(),
      [&](std::size_t n) {
        for (std::size_t done = 0; done < n; done += some.size()) {
          for (auto& entry : some) entry = {key_of(next++), 1};
          map.insert(
              std::span<const std::pair<word, word>>(some.data(), std::min(some.size(), n - done)));
        }
      },
      [&](std::size_t n) {
        while (n-- > 0) floor.insert(key_of(floor_next++), 1);
      });
  barrier();
}

/// Every key comes eight times, far apart.
void counting(suite& s, std::size_t entries) {
  for (auto [name, alongside] :
       {std::pair("hash_map_buffer accumulate, 8 a key", promise::everything),
        std::pair("hash_map_buffer accumulate, 8 a key, alone", promise::local)}) {
    if (!s.wants(name)) continue;
    hash_map<word, word> map(entries * nprocs());
    hash_map_buffer<hash_map<word, word>> buffer(map, {.alongside = alongside});
    plain_table floor(entries);
    word at = 0, floor_at = 0;
    word first = rank() * entries;
    auto key = [&](word i) {
      return key_of(first + i % (entries / 8) + (i / entries) * (entries / 8) % entries);
    };
    s.compare(
        name, time_of_one(),
        [&](std::size_t n) {
          while (n-- > 0) buffer.accumulate(key(at++), 1);
          buffer.flush();
        },
        [&](std::size_t n) {
          while (n-- > 0) floor.add(key(floor_at++), 1);
        });
    barrier();
  }
}

void queues(suite& s, std::size_t most) {
  if (s.wants("fast_queue push")) {
    constexpr std::size_t many = 1024;
    std::vector<word> values(many, rank());
    fast_queue<word> queue(0, most * nprocs());
    ptr<word> area = alloc<word>(most);
    word* to = area.local();
    // Both go round: a queue is emptied, memory is begun again.
    s.compare(
        "fast_queue push, 1024 at once", bandwidth(many * 8),
        [&](std::size_t n) {
          std::size_t room = 0;
          while (n-- > 0) {
            if (room == 0) {
              queue.clear();
              room = most / many;
            }
            queue.push(values);
            --room;
          }
        },
        [&](std::size_t n) {
          std::size_t room = 0;
          while (n-- > 0) {
            if (room == 0) {
              barrier();
              barrier();
              room = most / many;
            }
            std::memcpy(to + (most / many - room) * many, values.data(), many * 8);
            keep(to);
            --room;
          }
        });
    dealloc(area);
    barrier();
  }
  auto pushes = [&](auto& queue, rank_t pushers) {
    return [&queue, pushers, most](std::size_t n) {
      while (n > 0) {
        std::size_t now = std::min(n, most);
        queue.clear();
        if (rank() >= nprocs() - pushers)
          for (std::size_t i = 0; i < now; ++i) queue.push(i);
        n -= now;
      }
      barrier();
    };
  };
  auto pairs = [&](const char* name, auto& queue) {
    s.compare(detail::text(name, " push, two pushers against one"), time_of_one(),
              pushes(queue, std::min<rank_t>(2, nprocs())), pushes(queue, 1));
  };
  if (s.wants("circular_queue push")) {
    circular_queue<word> queue(0, 2 * most);
    pairs("circular_queue", queue);
    s.measure_alone("circular_queue push and local_pop, host", time_of_one(), [&](std::size_t n) {
      if (rank() == 0)
        while (n-- > 0) {
          queue.push(n);
          queue.local_pop();
        }
      barrier();
    });
    queue.clear();
    circular_queue<word, queue_protocol::two_atomics> theirs(0, 2 * most);
    pairs("circular_queue, two_atomics", theirs);
  }
}

void small_ones(suite& s, std::size_t words) {
  if (s.wants("counter next")) {
    counter tickets;
    auto at = broadcast(rank() == 0 ? make<word>(0) : ptr<word>(nullptr), 0);
    s.compare(
        "counter next", time_of_one(),
        [&](std::size_t n) {
          while (n-- > 0) keep(tickets.next());
        },
        [&](std::size_t n) {
          while (n-- > 0) keep(fetch_add(at, 1));
        });
    barrier();
    if (rank() == 0) dealloc(at);
  }
  if (!s.wants("bloom_filter")) return;
  bloom_filter<word> filter(words);
  word next = word{rank()} << 40;
  ptr<word> area = alloc<word>(words / 4);
  for (std::size_t i = 0; i < words / 4; ++i) put(area + static_cast<std::ptrdiff_t>(i), 0);
  auto parts = all_gather(area);
  auto place = [&](word key) {
    word h = hash<word>()(key);
    return parts[h % parts.size()] + static_cast<std::ptrdiff_t>(detail::reduce_hash(h, words / 4));
  };
  barrier();
  s.compare(
      "bloom_filter insert", time_of_one(),
      [&](std::size_t n) {
        while (n-- > 0) keep(filter.insert(next++));
      },
      [&](std::size_t n) {
        while (n-- > 0) keep(fetch_or(place(next++), 5));
      });
  s.compare(
      "bloom_filter find", time_of_one(),
      [&](std::size_t n) {
        while (n-- > 0) keep(filter.find(next++));
      },
      [&](std::size_t n) {
        while (n-- > 0) keep(get(place(next++)));
      });
  barrier();
  dealloc(area);
}

void run(suite& s) {
  bool coherent = detail::here().link.coherent();
  s.say(coherent ? "floor: plain memory of this process"
                 : "floor: plain memory of this process, which far memory cannot reach; see "
                   "benchmarks/README.md");
  std::size_t large = coherent ? std::size_t{1} << 20 : std::size_t{1} << 16;
  finds(s, "in the cache", 1 << 11);
  finds(s, "beyond the cache", large);
  inserts(s, 4 * large);
  counting(s, large);
  queues(s, 1 << 16);
  small_ones(s, 1 << 20);
}

}  // namespace
}  // namespace far::bench

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(
        count, words, "Measures the containers' operations beside their floors.", far::bench::run);
  });
}

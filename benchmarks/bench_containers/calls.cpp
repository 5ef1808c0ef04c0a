// Where ranks share no memory: the operations of containers beside the raw calls of the transport
// that do the same work, on the same memory of the next rank.
#include "../access.hpp"
#include "rows.hpp"

#include <farside/containers/circular_queue.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>

#include <vector>

namespace far::bench {

#if defined(FARSIDE_USE_MPI) || defined(FARSIDE_USE_SHMEM)
namespace {

constexpr std::size_t entries = std::size_t{1} << 14;

/// Keys that belong to the next rank: this rank's n-th lot of them.
std::vector<word> keys_of_next(const hash_map<word, word>& map, word lot) {
  std::vector<word> keys;
  for (word i = (lot * nprocs() + rank()) * (entries * 8) * nprocs(); keys.size() < entries; ++i)
    if (map.owner(key_of(i)) == (rank() + 1) % nprocs()) keys.push_back(key_of(i));
  return keys;
}

/// A word of the home bucket of each.
std::vector<by_calls::place> homes_of(const hash_map<word, word>& map, by_calls& calls,
                                      const std::vector<word>& keys, std::ptrdiff_t which = 0) {
  std::vector<by_calls::place> result;
  auto& engine = map.implementation();
  for (word key : keys) {
    auto place = engine.place_of(key);
    auto& table = engine.tables.of(place.member);
    result.push_back(
        calls.at(table.bucket_at(place.home(table.capacity), engine.bucket_words) + which));
  }
  return result;
}

/// Of the first rank, while the others wait: for what ends with atomics. Open MPI locks for each,
/// and the locks of all ranks share a line. Where two ranks use them at once, the same raw calls
/// take now 50 ns and now 230, and beside themselves 0.6 to 1.6 times as long.
template <class Work>
auto alone(Work work) {
  auto one = [work](std::size_t n) mutable {
    if (rank() == 0) work(n);
  };
  if constexpr (requires { work.prepare(); })
    return prepared{work.most, work.prepare, one};
  else
    return one;
}

template <class Ours, class Floor>
void compare_alone(suite& s, const std::string& what, const std::string& calls, Ours ours,
                   Floor floor) {
  s.compare(what + ", one rank alone, beside " + calls, time_of_one(), alone(ours), alone(floor));
}

void map_calls(suite& s, by_calls& calls) {
  hash_map<word, word> map(2 * entries * nprocs());
  std::vector<word> keys = keys_of_next(map, 0), absent = keys_of_next(map, 1);
  std::vector<by_calls::place> homes = homes_of(map, calls, keys),
                               absent_homes = homes_of(map, calls, absent);
  auto each = [](auto& over, auto work) {
    return [&over, work, at = std::size_t{0}](std::size_t n) mutable {
      while (n-- > 0) work(over[at++ % entries]);
    };
  };
  word body[32] = {};
  auto insert_raw = [&](by_calls::place p) {
    calls.compare_swap(p, 0, 0);
    calls.write(p, body, 24);
    calls.flush();
  };
  compare_alone(s, "hash_map insert", "compare_swap + put + flush",
                prepared{entries, [&map] { map.clear(); },
                         [&](std::size_t n) {
                           for (std::size_t i = 0; i < n; ++i) map.insert(keys[i], i);
                         }},
                prepared{entries, [&map] { map.clear(); }, each(homes, insert_raw)});
  map.clear();
  for (std::size_t i = 0; i < entries; ++i) map.insert(keys[i], i);
  barrier();
  auto get = [&](by_calls::place p) { calls.read(p, body, 256); };
  auto get_raw = each(homes, get);
  s.compare("hash_map find, beside get", time_of_one(),
            each(keys, [&](word key) { keep(*map.find(key)); }), get_raw);
  s.compare("hash_map find among finds, beside get", time_of_one(),
            each(keys, [&](word key) { keep(*map.find(key, concurrency::find)); }), get_raw);
  s.compare("hash_map miss, beside get", time_of_one(),
            each(absent, [&](word key) { keep(map.contains(key)); }), each(absent_homes, get));
  s.measure_alone("hash_map find, 512 at once", time_of_one(),
                  [&, found = std::vector<std::optional<word>>()](std::size_t n) mutable {
                    for (std::size_t done = 0; done < n; done += 512)
                      map.find(std::span<const word>(keys.data() + done % entries,
                                                     std::min<std::size_t>(512, n - done)),
                               found);
                  });
  std::vector<by_calls::place> values = homes_of(map, calls, keys, 2);
  compare_alone(
      s, "hash_map accumulate, place known", "fetch_add",
      [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) map.accumulate(keys[i % 64], 1);
      },
      [&](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) calls.fetch_add(values[i % 64], 1);
      });
  compare_alone(s, "hash_map insert_or_assign", "get + compare_swap",
                each(keys, [&](word key) { map.insert_or_assign(key, 3); }),
                each(homes, [&](by_calls::place p) {
                  calls.read(p, body, 256);
                  calls.compare_swap(p, 0, 0);
                }));
  barrier();
}

void queue_calls(suite& s, by_calls& calls) {
  std::vector<circular_queue<word>> each;
  std::vector<fast_queue<word>> fast;
  for (rank_t host = 0; host < nprocs(); ++host) {
    each.emplace_back(host, entries);
    fast.emplace_back(host, entries);
  }
  rank_t next = (rank() + 1) % nprocs();
  ptr<word> area = alloc<word>(8 + 2 * entries);
  ptr<word> other = all_gather(area)[next];
  auto pushes = [&](auto& queues) {
    return prepared{entries,
                    [&queues] {
                      for (auto& queue : queues) queue.clear();
                    },
                    [&queue = queues[next]](std::size_t n) {
                      for (std::size_t i = 0; i < n; ++i) queue.push(i);
                    }};
  };
  auto by_hand = [&](bool complete) {
    return [&, complete](std::size_t n) {
      word element[2] = {};
      for (std::size_t i = 0; i < n; ++i) {
        calls.fetch_add(calls.at(other), 1);
        calls.write(calls.at(other + static_cast<std::ptrdiff_t>(8 + i % entries * 2)), element,
                    complete ? 16 : 8);
        if (complete) calls.flush();
      }
    };
  };
  compare_alone(s, "circular_queue push", "fetch_add + put + flush", pushes(each), by_hand(true));
  compare_alone(s, "fast_queue push", "fetch_add + put", pushes(fast), by_hand(false));
  barrier();
}

}  // namespace

void call_rows(suite& s) {
  by_calls calls;
  map_calls(s, calls);
  queue_calls(s, calls);
}
#else
void call_rows(suite&) {}
#endif

}  // namespace far::bench

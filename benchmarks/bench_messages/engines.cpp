// Maps and queues by messages to the owner (engine::rpc), each beside the same operation one-sided
// (engine::rma), which is its floor. All that is asked for lies on rank 0, which serves.
#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>

#include "rows.hpp"

namespace far::bench {
namespace {

constexpr std::size_t most = std::size_t{1} << 14;
using table = hash_map<word, word>;

/// Keys of rank 0, others for each rank.
std::vector<word> keys_of_rank_0(const table& map) {
  std::vector<word> keys;
  for (word key = word{rank()} << 32; keys.size() < most; ++key)
    if (map.owner(key) == 0) keys.push_back(key);
  return keys;
}

/// One after the other of the keys, with the same keys in both maps.
template <class Work>
auto each_key(table& map, const std::vector<word>& keys, Work work) {
  return clients([&map, &keys, work, at = std::size_t{0}]() mutable {
    work(map, keys[at]);
    at = (at + 1) % keys.size();
  });
}

/// Keys that are new: the map is cleared before.
template <class Work>
auto each_new_key(table& map, const std::vector<word>& keys, Work work) {
  return prepared{most, [&map] { map.clear(); },
                  [&map, &keys, work](std::size_t n) {
                    clients([&, at = std::size_t{0}]() mutable { work(map, keys[at++]); })(n);
                  }};
}

void map_rows(suite& s) {
  const std::size_t entries = 2 * most * nprocs() * nprocs();
  table asked(entries, {.name = "asked", .engine = engine::rpc});
  table direct(entries, {.name = "direct", .engine = engine::rma});
  auto keys = keys_of_rank_0(asked);
  auto compare = [&](const char* name, auto work) {
    s.compare(text("hash_map ", name, ", by rpc against rma"), time_of_one(),
              each_key(asked, keys, work), each_key(direct, keys, work));
  };
  auto insert = [](table& map, word key) { map.insert(key, key); };
  s.compare("hash_map insert, by rpc against rma", time_of_one(), each_new_key(asked, keys, insert),
            each_new_key(direct, keys, insert));
  for (table* map : {&asked, &direct}) {
    map->clear();
    for (word key : keys) map->insert(key, key);
  }
  barrier();
  compare("find", [](table& map, word key) { keep(*map.find(key)); });
  compare("find among finds",
          [](table& map, word key) { keep(*map.find(key, concurrency::find)); });
  compare("accumulate", [](table& map, word key) { map.accumulate(key, 1); });
  compare("modify", [](table& map, word key) { map.modify(key, [](word& value) { value ^= 1; }); });
  auto at_once = [&](table& map) {
    return clients([&map, &keys] { keep(map.find(std::span<const word>(keys).first(64)).size()); });
  };
  s.compare("hash_map find, 64 at once, by rpc against rma", time_of_one(), at_once(asked),
            at_once(direct));
}

/// Pushes to the queue of rank 0; it is cleared before.
template <class Queue>
auto pushes(Queue& queue) {
  return prepared{most, [&queue] { queue.clear(); },
                  [&queue](std::size_t n) { clients([&queue] { queue.push(1); })(n); }};
}
/// Pops from a queue that has been filled before.
template <class Queue>
auto pops(Queue& queue) {
  return prepared{most,
                  [&queue] {
                    queue.clear();
                    if (rank() != 0 || nprocs() == 1) queue.push(std::vector<word>(most, 1));
                    barrier();
                  },
                  [&queue](std::size_t n) { clients([&queue] { keep(queue.pop()); })(n); }};
}

template <class Queue>
void queue_rows(suite& s, const char* name) {
  const std::size_t capacity = most * nprocs();
  Queue asked(0, capacity, {.name = "asked", .engine = engine::rpc});
  Queue direct(0, capacity, {.name = "direct", .engine = engine::rma});
  s.compare(text(name, " push, by rpc against rma"), time_of_one(), pushes(asked), pushes(direct));
  s.compare(text(name, " pop, by rpc against rma"), time_of_one(), pops(asked), pops(direct));
}

}  // namespace

void engine_rows(suite& s) {
  map_rows(s);
  queue_rows<circular_queue<word>>(s, "circular_queue");
  queue_rows<checksum_queue<word>>(s, "checksum_queue");
  queue_rows<fast_queue<word>>(s, "fast_queue");
}

}  // namespace far::bench

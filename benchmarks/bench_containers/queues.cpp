// Queues: pushes of many elements beside memcpy, two pushers beside one, one queue and one a rank.
#include "rows.hpp"

#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/fast_queue.hpp>

#include <cstring>
#include <vector>

namespace far::bench {
namespace {

using word = std::uint64_t;
constexpr std::size_t room = std::size_t{1} << 16;  ///< elements for each rank

/// All ranks push 1,024 words at once to a queue on rank 0; the floor copies them to the memory of
/// rank 0 that has been copied to before, as the queue's has, by this rank or another: they take
/// the blocks in turn, and who begins is another one each time.
void blocks(suite& s) {
  constexpr std::size_t many = 1024, room = std::size_t{1} << 18;
  constexpr const char* name = "fast_queue push, 1024 at once, one pusher";
  constexpr const char* all = "fast_queue push, 1024 at once, all ranks";
  constexpr const char* pops = "fast_queue pop, 1024 at once";
  if (!s.wants(name) && !s.wants(all) && !s.wants(pops)) return;
  std::vector<word> values(many, rank());
  fast_queue<word> queue(0, room * nprocs());
  ptr<word> area = nullptr;
  if (!coherent() || rank() == 0) area = alloc<word>(room * nprocs());
  if (coherent()) area = broadcast(area, 0);
  word* to = area.local();
  std::size_t laps = 0;
  auto each_block = [&](rank_t copiers, std::size_t n, auto one) __attribute__((always_inline)) {
    const std::size_t each = coherent() ? copiers : 1;
    const std::size_t first = (rank() + mix(++laps)) % each;
    if (rank() < nprocs() - copiers) return;
    for (std::size_t i = 0; i < n; ++i) one(to + (i * each + first) * many), keep(to);
  };
  auto fill = [&](word* at) { std::memcpy(at, values.data(), many * 8); };
  auto copy = [&](rank_t copiers) {
    return prepared{room / many, [] {},
                    [&, copiers](std::size_t n) { each_block(copiers, n, fill); }};
  };
  auto push = [&](rank_t pushers) {
    return prepared{room / many, [&] { queue.clear(); },
                    [&, pushers](std::size_t n) {
                      if (rank() < nprocs() - pushers) return;
                      while (n-- > 0) queue.push(values);
                    }};
  };
  s.compare(name, bandwidth(many * 8), push(1), copy(1));
  s.compare(all, bandwidth(many * 8), push(nprocs()), copy(nprocs()));
  // What is popped, or copied back, anybody has just written.
  s.compare(pops, bandwidth(many * 8),
            prepared{room / many,
                     [&] {
                       queue.clear();
                       for (std::size_t i = 0; i < room / many; ++i) queue.push(values);
                       barrier();
                     },
                     [&](std::size_t n) {
                       while (n-- > 0) keep(queue.pop(many).size());
                     }},
            prepared{room / many,
                     [&] {
                       each_block(nprocs(), room / many, fill);
                       barrier();
                     },
                     [&](std::size_t n) {
                       each_block(nprocs(), n, [&](const word* at) {
                         std::memcpy(values.data(), at, many * 8);
                       });
                     }});
  barrier();
  if (!coherent() || rank() == 0) dealloc(area);
}

/// The last `pushers` ranks push, one element at a time.
template <class Queue>
auto pushes(Queue& queue, rank_t pushers, concurrency with = concurrency::everything) {
  return prepared{room, [&queue] { queue.clear(); },
                  [&queue, pushers, with](std::size_t n) {
                    if (rank() >= nprocs() - pushers)
                      for (std::size_t i = 0; i < n; ++i) queue.push(i, with);
                  }};
}

template <class Queue>
void pairs(suite& s, const char* name) {
  auto title = text(name, " push, two pushers against one");
  if (!s.wants(title)) return;
  Queue queue(0, 2 * room);
  s.compare(title, time_of_one(), pushes(queue, std::min<rank_t>(2, nprocs())), pushes(queue, 1));
}

template <class Queue>
void singles(suite& s, const char* name) {
  auto title = [&](const char* what) { return text(name, what); };
  if (!s.wants(title(" push, all to one")) && !s.wants(title(" push, one a rank")) &&
      !s.wants(title(" push among pushes")) && !s.wants(title(" push and pop")))
    return;
  {
    Queue queue(0, room * nprocs());
    s.measure_alone(title(" push, all to one"), time_of_one(), pushes(queue, nprocs()));
    s.measure_alone(title(" push among pushes, all to one"), time_of_one(),
                    pushes(queue, nprocs(), concurrency::push));
  }
  std::vector<Queue> each;
  for (rank_t host = 0; host < nprocs(); ++host) each.emplace_back(host, room);
  Queue& next = each[(rank() + 1) % nprocs()];
  s.measure_alone(title(" push, one a rank"), time_of_one(),
                  prepared{room,
                           [&each] {
                             for (Queue& queue : each) queue.clear();
                           },
                           [&next](std::size_t n) {
                             for (std::size_t i = 0; i < n; ++i) next.push(i);
                           }});
  s.measure_alone(title(" push and pop, own"), time_of_one(),
                  prepared{room,
                           [&each] {
                             for (Queue& queue : each) queue.clear();
                           },
                           [&own = each[rank()]](std::size_t n) {
                             while (n-- > 0) {
                               own.push(n);
                               keep(own.pop());
                             }
                           }});
}

}  // namespace

void queue_rows(suite& s) {
  blocks(s);
  pairs<circular_queue<word>>(s, "circular_queue");
  pairs<circular_queue<word, queue_protocol::two_atomics>>(s, "circular_queue, two_atomics");
  pairs<checksum_queue<word>>(s, "checksum_queue");
  singles<circular_queue<word>>(s, "circular_queue");
  singles<checksum_queue<word>>(s, "checksum_queue");
}

}  // namespace far::bench

// counter: beside fetch_add on one word. Bloom filter: beside the same atomic or load on as many
// words.
#include "rows.hpp"

#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/counter.hpp>

namespace far::bench {
namespace {

using word = std::uint64_t;

void tickets(suite& s) {
  if (!s.wants("counter next")) return;
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

void filters(suite& s, std::size_t keys) {
  if (!s.wants("bloom_filter insert") && !s.wants("bloom_filter find")) return;
  bloom_filter<word> filter(keys);
  word next = word{rank()} << 40;
  const std::size_t words = keys / 4;
  ptr<word> area = alloc<word>(words);
  for (std::size_t i = 0; i < words; ++i) put(area + static_cast<std::ptrdiff_t>(i), 0);
  auto parts = all_gather(area);
  auto place = [&](word key) {
    word h = hash<word>()(key);
    return parts[h % parts.size()] + static_cast<std::ptrdiff_t>(reduce_hash(h, words));
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

}  // namespace

void small_rows(suite& s) {
  tickets(s);
  filters(s, std::size_t{1} << 20);
}

}  // namespace far::bench

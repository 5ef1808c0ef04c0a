// hash_map_buffer: counting. Every key comes eight times, far apart; the floor is the same loop on
// a table of each rank alone.
#include "floor_table.hpp"
#include "rows.hpp"

#include <farside/algorithms/hash_map_buffer.hpp>

#include <utility>

namespace far::bench {

void buffer_rows(suite& s) {
  const std::size_t entries = coherent() ? std::size_t{1} << 20 : std::size_t{1} << 16;
  for (auto [name, alongside] :
       {std::pair("hash_map_buffer accumulate, 8 a key", concurrency::everything),
        std::pair("hash_map_buffer accumulate, 8 a key, alone", concurrency::owner_only)}) {
    if (!s.wants(name)) continue;
    hash_map<word, word> map(entries * nprocs());
    hash_map_buffer<hash_map<word, word>> buffer(map, {.alongside = alongside});
    own_table floor(entries);
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

}  // namespace far::bench

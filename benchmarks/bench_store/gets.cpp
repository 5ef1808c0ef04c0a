// Gets of values on another rank: of 128 bytes, by how many entries there are, and of large ones.
#include "rows.hpp"

namespace far::bench {
namespace {

using entries_128 = store<word, block<128>, on_rank>;

/// `count` entries on rank 0, by whichever engine.
entries_128 filled(std::size_t count, engine by) {
  entries_128 all(count, {{.engine = by}});
  if (rank() == 0)
    for (word key = 0; key < count; ++key) all.put(key, block_of<128>(key));
  barrier();
  return all;
}

/// Gets of all keys before, so that ranks know where values lie.
auto gets(const entries_128& from, std::size_t count) {
  if (rank() != 0)
    for (word key = 0; key < count; ++key) keep((*from.get(key))[0]);
  return clients([&from, keys = some_numbers(count)]() mutable {
    const word key = keys.next();
    if ((*from.get(key))[3] != key) std::abort();
  });
}

/// Each rank reads values of the next one.
template <std::size_t Bytes>
void neighbour(suite& s, const char* size) {
  const std::string name = text("get ", size, " from the neighbour");
  if (!s.wants(name)) return;
  constexpr std::size_t count = 64;
  store<word, block<Bytes>, by_number> all(count * nprocs());
  for (word i = 0; i < count; ++i) {
    const word key = i * nprocs() + rank();
    all.put(key, block_of<Bytes>(key));
  }
  barrier();
  auto read = [&all, i = word{0}]() mutable {
    const word key = i++ % count * nprocs() + (rank() + 1) % nprocs();
    if ((*all.get(key))[1] != key) std::abort();
  };
  for (std::size_t i = 0; i < count; ++i) read();
  s.measure_alone(name, bandwidth(Bytes),
                  [&read](std::size_t n) {
                    while (n-- > 0) read();
                  },
                  {{text("Gets of ", size, " from the neighbour, bandwidth of each rank"), "ranks",
                    text(transport_name(), ", ", strategy_name()), 1.0 * nprocs()}});
  barrier();
}

}  // namespace

void get_rows(suite& s) {
  const std::string figure = "A get of 128 bytes, " + transport_name();
  for (std::size_t count : {1, 10, 100, 1000, 10000, 100000}) {
    auto title = [&](const char* by) { return text("get 128 B, ", count, " entries, ", by); };
    auto measure = [&](const char* by, engine which, const std::string& series) {
      if (!s.wants(title(by))) return;
      auto all = filled(count, which);
      s.measure_alone(title(by), time_of_one(), gets(all, count),
                      {{figure, "entries", series, 1.0 * static_cast<double>(count)}});
      barrier();
    };
    // A thread that serves changes nothing for one-sided gets.
    if (!served_by_thread()) measure("rma", engine::rma, text("rma, ", strategy_name()));
    measure("rpc", engine::rpc, text("rpc, ", strategy_name(), ", ", served_how()));
    if (!is_first_way() || !s.wants(title("own key"))) continue;
    auto all = filled(count, engine::rma);
    s.measure_alone(title("own key"), time_of_one(),
                    [&, keys = some_numbers(count)](std::size_t n) mutable {
                      if (rank() == 0)
                        while (n-- > 0) keep((*all.get(keys.next()))[3]);
                    },
                    {{figure, "entries", "own key", 1.0 * static_cast<double>(count)}});
    barrier();
  }
}

void neighbour_rows(suite& s) {
  if (served_by_thread()) return;
  neighbour<1024>(s, "1 KiB");
  neighbour<65536>(s, "64 KiB");
}

}  // namespace far::bench

// Gets of 128 bytes, beside lists at the owner: it is sent a key, and searches for it from the first
// entry on, as a network card matches an arriving message against a list of receives.
#include "rows.hpp"

#include <farside/core/rpc.hpp>

#include <list>

namespace far::bench {
namespace {

/// Entries of one rank, in some lists.
struct listed {
  struct entry {
    word key;
    block<128> value;
  };
  std::vector<std::list<entry>> lists;

  listed(std::size_t count, std::size_t many) : lists(many) {
    for (word key = 0; key < count; ++key) list_of(key).push_back({key, block_of<128>(key)});
  }
  std::list<entry>& list_of(word key) { return lists[mix(key) % lists.size()]; }
  block<128> find(word key) {
    for (const entry& one : list_of(key))
      if (one.key == key) return one.value;
    return {};
  }
};
/// Of rank 0; ranks may be threads of one process, so it is behind a far pointer.
using host = ptr<listed*>;

block<128> find_there(host at, word key) { return (*at.local())->find(key); }

}  // namespace

void matching_rows(suite& s) {
  if (!is_first_way() || nprocs() == 1) return;
  const std::string figure = "A get of 128 bytes by matching, " + transport_name();
  for (std::size_t count : {1, 1000, 10000, 100000}) {
    auto measure = [&](const char* by, auto prepare) {
      const std::string title = text("matching, ", count, " entries, ", by);
      if (!s.wants(title)) return;
      prepare([&](auto work) {
        s.measure_alone(title, time_of_one(), work,
                        {{figure, "entries", by, static_cast<double>(count)}});
        barrier();
      });
    };
    auto by_lists = [&](std::size_t many) {
      return [=](auto measured) {
        listed entries(rank() == 0 ? count : 0, many);
        auto mine = alloc<listed*>();
        put(mine, &entries);
        const host at = broadcast(mine, 0);
        measured(clients([at, keys = some_numbers(count)]() mutable {
          const word key = keys.next();
          if (rpc(0, find_there, at, key).get()[3] != key) std::abort();
        }));
        dealloc(mine);
      };
    };
    auto by_store = [&](engine by, bool own) {
      return [=](auto measured) {
        store<word, block<128>, on_rank> all(count, {{.engine = by}});
        if (rank() == 0)
          for (word key = 0; key < count; ++key) all.put(key, block_of<128>(key));
        barrier();
        auto get = [&all, keys = some_numbers(count)]() mutable {
          keep((*all.get(keys.next()))[3]);
        };
        if (own) {
          measured([&](std::size_t n) {
            if (rank() == 0)
              while (n-- > 0) get();
          });
        } else {
          if (rank() != 0)
            for (word key = 0; key < count; ++key) keep((*all.get(key))[3]);
          measured(clients(get));
        }
      };
    };
    measure("one list at the owner", by_lists(1));
    measure("5 lists at the owner", by_lists(5));
    measure("store by rpc", by_store(engine::rpc, false));
    measure("store", by_store(engine::rma, false));
    measure("own key", by_store(engine::rma, true));
  }
}

}  // namespace far::bench

// What hash_map does that is longer than a line or two: operations that are not waited for, and
// those on the whole map.
#pragma once

#include <farside/containers/detail/map/bulk.hpp>
#include <farside/containers/detail/map/iteration.hpp>
#include <farside/containers/detail/pair_file/save_and_load.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Begins an operation on one item: a future of `finish(outcome)`. It is sent to the owner of the
/// key, if that is how it travels, or its first window is on its way when this returns.
template <class Core, class Op, class Item, class Finish>
auto begin(Core& m, Op op, const Item& item, concurrency with, Finish finish) {
  using T = typename Core::traits;
  const key_location where = m.place_of(key_of<typename Core::K>(item));
  using value = std::invoke_result_t<Finish&, typename Core::outcome_type>;
  if constexpr (Op::can_be_sent)
    if (m.sends_to_owner(Op::kind, where.member, with))
      return async_call_owner(m, where.member, op, item, with, finish);
  table& t = m.tables.of(where.member);
  if (t.direct != nullptr || includes(with, concurrency::owner_only))
    return future<value>::ready(finish(perform<if_blocked::wait>(m, op, item, with)));
  auto seen = std::make_shared<bucket_window<T>>(t, where);
  auto begin_get = [&] {
    stale_reads until_begun(m.c.link);
    return async_get(seen->from(), seen->to(), seen->words());
  };
  return begin_get().then([&m, op, item, with, finish, seen, epoch = m.tables.epoch,
                           until_done = m.choice.under_way()]() mutable {
    // After a barrier the table may be gone: then from the beginning.
    auto* still = epoch == m.tables.epoch ? seen.get() : nullptr;
    return finish(perform<if_blocked::wait>(m, op, item, with, still));
  });
}

/// Collective.
template <class Core>
void clear(Core& m) {
  auto note = calling<"hash_map::clear">(m);
  m.choice.settle(m.c);
  barrier(m.members);
  m.clear_own();
  barrier(m.members);
}

/// A member has 1.5 buckets for each entry and some more: more than 2 of them no table has.
template <class T>
void require_buckets(const std::string& what, std::size_t entries, rank_t members) {
  require_possible(what, entries, 2 * sizeof(typename T::entry), members);
}

/// Collective.
template <class Core>
void reserve(Core& m, std::size_t entries) {
  auto note = calling<"hash_map::reserve">(m);
  require_buckets<typename Core::traits>("hash_map '" + m.label + "' reserve", entries,
                                         m.members.size());
  barrier(m.members);
  const word wanted = m.capacity_for(entries, m.members.size());
  do_together(
      m.members, m.full_name() + ": reserve",
      [&] {
        table& t = settled(m, m.members.rank());
        if (t.capacity < wanted) move_table(m, m.members.rank(), t, wanted);
      },
      [] {});  // a table that is larger than it need be does no harm
  barrier(m.members);
}

/// How many gets a find of the entry in bucket `i` needs after the first one: far_access::fetch().
template <class T>
std::uint64_t further_gets(word home, word i, word capacity) {
  if constexpr (!T::linear) return 0;  // a get for each bucket: mean_probes says it
  using entry = typename T::entry;
  std::uint64_t gets = 0;
  word first = home, count = std::min(window<entry>, capacity - home);
  for (; i - first >= count; ++gets) {
    first = first + count == capacity ? 0 : first + count;
    count = std::min(next_window<entry>(count), capacity - first);
  }
  return gets;
}

/// What a table of this rank holds. `mean_probes`: their sum.
template <class Statistics, class Core, class T = typename Core::traits>
Statistics load_of(Core& m, table& t) {
  Statistics load;
  load.buckets = t.capacity;
  std::vector<word> hashes;
  m.each_taken(t, [&](word i, const typename T::entry& e) {
    bool again;
    if (!value_in<T>(e, again)) {
      ++load.erased;
      return;
    }
    ++load.entries;
    auto key = T::key_store::unpack(e.key());
    if (!key) return;
    hashes.push_back(T::hash_of(*key));
    const word home = m.place_of(*key).home(t.capacity);
    probe_cursor<T> at(home, t.capacity);
    word probes = 1;
    for (; at.index() != i; at.next()) ++probes;
    load.mean_probes += static_cast<double>(probes);
    load.displaced += probes > 1;
    load.further_gets += further_gets<T>(home, i, t.capacity);
    load.most_probes = std::max(load.most_probes, probes);
  });
  load.fewest_entries = load.most_entries = load.entries;
  std::ranges::sort(hashes);
  for (std::size_t i = 1, alike = 0; i < hashes.size(); ++i) {
    alike = hashes[i] == hashes[i - 1] ? alike + 1 : 0;
    load.equal_hashes += alike;
  }
  return load;
}

/// Collective.
template <class Statistics, class Core>
Statistics statistics(Core& m) {
  auto note = calling<"hash_map::statistics">(m);
  barrier(m.members);
  Statistics all = all_reduce(
      load_of<Statistics>(m, settled(m, m.members.rank())),
      [](Statistics a, const Statistics& b) {
        a.entries += b.entries, a.erased += b.erased, a.buckets += b.buckets;
        a.mean_probes += b.mean_probes, a.displaced += b.displaced;
        a.further_gets += b.further_gets, a.equal_hashes += b.equal_hashes;
        a.most_probes = std::max(a.most_probes, b.most_probes);
        a.fewest_entries = std::min(a.fewest_entries, b.fewest_entries);
        a.most_entries = std::max(a.most_entries, b.most_entries);
        return a;
      },
      m.members);
  all.bytes = all.buckets * sizeof(typename Core::entry);
  const auto entries = static_cast<double>(all.entries);
  all.load_factor =
      static_cast<double>(all.entries + all.erased) / static_cast<double>(all.buckets);
  if (all.entries != 0) {
    all.mean_probes /= entries;
    all.skew = static_cast<double>(all.most_entries) * m.members.size() / entries;
  }
  return all;
}

/// Collective. `Iterator` goes over the entries of a member.
template <class Core, class Iterator = iterator<Core>>
void save(Core& m, const std::string& path) {
  auto note = calling<"hash_map::save">(m);
  barrier(m.members);
  pair_file::save(m.members, m.full_name() + " save(" + path + ")", path,
                  [&] { return Iterator(m, m.members.rank(), 1); });
}

/// What keys and values take besides buckets, as long as this is there.
struct bytes_on_trial {
  std::vector<ptr<std::byte>> taken;
  ~bytes_on_trial() {
    for (const ptr<std::byte> at : taken) dealloc(at);
  }
};

/// Collective. `add` adds a span of entries. `try_room` takes what some blocks of them will take
/// besides buckets, and gives it back. Nothing else takes memory meanwhile: what was there is there
/// for them.
template <class V, class Core, class TryRoom, class Add>
void load(Core& m, const std::string& path, TryRoom try_room, Add add) {
  auto note = calling<"hash_map::load">(m);
  const std::string what = m.full_name() + " load(" + path + ")";
  pair_file::load<typename Core::K, V>(
      m.members, what, path,
      [&](std::uint64_t entries, const auto& mine) {
        barrier(m.members);  // sizes are told
        reserve(m, m.total_size() + entries);
        do_together(m.members, what, [&] { try_room(mine); }, [] {});
        barrier(m.members);
      },
      add);
}
/// Collective: the entries become those of a map.
template <class Core>
void load(const fast_handle& tables, const container_handle<Core>& state, const std::string& path) {
  using V = typename Core::V;
  using T = typename Core::traits;
  load<V>(
      *state, path,
      [](const auto& blocks) {
        if constexpr (!T::in_place) {
          bytes_on_trial bytes;
          for (const auto& entries : blocks)
            for (const auto& [key, value] : entries) {
              T::key_store::try_room(key, bytes.taken);
              T::value_store::try_room(value, bytes.taken);
            }
        }
      },
      [&](std::span<const std::pair<typename Core::K, V>> entries) {
        update_many(tables, state, assign_there(), entries, concurrency::everything);
      });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

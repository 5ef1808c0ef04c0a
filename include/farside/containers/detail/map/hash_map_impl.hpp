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

/// What a table of this rank holds.
struct table_load {
  std::uint64_t entries = 0, erased = 0, buckets = 0, probes = 0, most_probes = 0;
  std::uint64_t displaced = 0, further_gets = 0, equal_hashes = 0;
};

/// How many gets a find of the entry in bucket `i` needs after the first one: far_access::fetch().
template <class T>
std::uint64_t further_gets(word home, word i, word capacity) {
  if constexpr (!T::linear) return 0;  // a get for each bucket: mean_probes says it
  std::uint64_t gets = 0;
  word first = home, count = std::min<word>(window<typename T::entry>, capacity - home);
  for (; i - first >= count; ++gets) {
    first = first + count == capacity ? 0 : first + count;
    count = std::min<word>(std::min<word>(2 * count, 512 / T::bucket_words), capacity - first);
  }
  return gets;
}

/// How many entries between the home of a key and bucket `i`, where it lies, have the same 64 bits of
/// hash.
template <class Core, class Access, class T = typename Core::traits>
std::uint64_t hashed_alike(Core& m, table& t, Access& in, const typename T::key_type& key, word i) {
  std::uint64_t alike = 0;
  const word hash = T::hash_of(key);
  probe_cursor<T> at(m.place_of(key).home(t.capacity), t.capacity);
  for (; at.index() != i; at.next()) {
    typename T::entry e;
    const head h = in.top(at.index());
    bool again;
    if (h.what() == state::empty ||
        in.template read<if_blocked::wait>(at.index(), h, e) != read_result::whole ||
        !value_in<T>(e, again))
      continue;
    auto other = T::key_store::unpack(e.key());
    alike += other && T::hash_of(*other) == hash;
  }
  return alike;
}

template <class Core, class T = typename Core::traits>
table_load load_of(Core& m, table& t) {
  table_load load;
  load.buckets = t.capacity;
  m.with_access(t, [&](auto& in) {
    for (word i = 0; i < t.capacity; ++i) {
      typename T::entry e;
      const head h = in.top(i);
      if (h.what() == state::empty ||
          in.template read<if_blocked::wait>(i, h, e) != read_result::whole)
        continue;
      bool again;
      if (!value_in<T>(e, again)) {
        ++load.erased;
        continue;
      }
      ++load.entries;
      auto key = T::key_store::unpack(e.key());
      if (!key) continue;
      probe_cursor<T> at(m.place_of(*key).home(t.capacity), t.capacity);
      word probes = 1;
      for (; at.index() != i; at.next()) ++probes;
      load.probes += probes;
      load.displaced += probes > 1;
      load.further_gets += further_gets<T>(m.place_of(*key).home(t.capacity), i, t.capacity);
      if (probes > 1) load.equal_hashes += hashed_alike(m, t, in, *key, i);
      load.most_probes = std::max(load.most_probes, probes);
    }
  });
  return load;
}

/// Collective.
template <class Statistics, class Core>
Statistics statistics(Core& m) {
  auto note = calling<"hash_map::statistics">(m);
  barrier(m.members);
  const table_load mine = load_of(m, settled(m, m.members.rank()));
  const auto all = all_gather(mine, m.members);
  Statistics result;
  result.fewest_entries = mine.entries;
  std::uint64_t probes = 0;
  for (const table_load& part : all) {
    result.entries += part.entries;
    result.erased += part.erased;
    result.buckets += part.buckets;
    probes += part.probes;
    result.displaced += part.displaced;
    result.further_gets += part.further_gets;
    result.equal_hashes += part.equal_hashes;
    result.most_probes = std::max(result.most_probes, part.most_probes);
    result.fewest_entries = std::min(result.fewest_entries, part.entries);
    result.most_entries = std::max(result.most_entries, part.entries);
  }
  result.bytes = result.buckets * sizeof(typename Core::entry);
  const auto buckets = static_cast<double>(result.buckets);
  result.load_factor = static_cast<double>(result.entries + result.erased) / buckets;
  if (result.entries != 0) {
    const auto entries = static_cast<double>(result.entries);
    result.mean_probes = static_cast<double>(probes) / entries;
    result.skew =
        static_cast<double>(result.most_entries) * static_cast<double>(all.size()) / entries;
  }
  return result;
}

/// Collective. `Iterator` goes over the entries of a member.
template <class Core, class Iterator = iterator<Core>>
void save(Core& m, const std::string& path) {
  auto note = calling<"hash_map::save">(m);
  barrier(m.members);
  pair_file::save(m.members, m.full_name() + " save(" + path + ")", path,
                  [&] { return Iterator(m, m.members.rank(), 1); });
}

/// Collective. `add` adds a span of entries.
template <class V, class Core, class Add>
void load(Core& m, const std::string& path, Add add) {
  auto note = calling<"hash_map::load">(m);
  pair_file::load<typename Core::K, V>(
      m.members, m.full_name() + " load(" + path + ")", path,
      [&](std::uint64_t entries) { reserve(m, entries); }, add);
}
/// Collective: the entries become those of a map.
template <class Core>
void load(const fast_handle& tables, const container_handle<Core>& state, const std::string& path) {
  using V = typename Core::V;
  load<V>(*state, path, [&](std::span<const std::pair<typename Core::K, V>> entries) {
    update_many(tables, state, assign_there(), entries, concurrency::everything);
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

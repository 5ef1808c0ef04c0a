// hash_map: what is longer than a line or two.
#pragma once

#include <farside/containers/hash_map.hpp>

#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

// --- not waited for ------------------------------------------------------------------------------

/// Fetches the first window of a key's buckets and then calls `finish(engine, place, window)`.
template <class K, class V, class Hash, class Probing>
template <class Finish>
auto hash_map<K, V, Hash, Probing>::with_window_in_flight(const K& key, concurrency with,
                                                          Finish finish) const {
  using window = detail::map::prefetched<engine>;
  using result = std::invoke_result_t<Finish&, engine&, const detail::map::place&, window*>;
  engine& e = *state_;
  detail::map::place p = e.place_of(key);
  detail::map::table& t = e.tables.of(p.member);
  if (t.direct != nullptr || includes(with, concurrency::owner_only))
    return future<result>::ready(finish(e, p, static_cast<window*>(nullptr)));
  auto w = std::make_shared<window>();
  w->in = &t;
  w->first = p.home(t.capacity);
  w->count = std::min<std::uint64_t>(w->buckets.size(), t.capacity - w->first);
  auto* to = reinterpret_cast<std::uint64_t*>(w->buckets.data());
  auto begin_get = [&] {
    detail::stale_reads until_begun(e.c.link);
    return async_get(t.bucket_at(w->first, engine::bucket_words), to,
                     w->count * engine::bucket_words);
  };
  return begin_get().then([&e, p, w, finish = std::move(finish), epoch = e.tables.epoch,
                           until_done = e.choice.under_way()]() mutable {
    // After a barrier the table may be gone: then from the beginning.
    return finish(e, p, epoch == e.tables.epoch ? w.get() : nullptr);
  });
}

/// Sends an operation of `kind` to the owner of its key, if that is how it travels: a future of
/// `result(answer)`. Else, and if the owner could not, `finish(engine, place, window)`.
template <class K, class V, class Hash, class Probing>
template <class What, class Item, class Result, class Finish>
auto hash_map<K, V, Hash, Probing>::begin(container_operation kind, const What& what,
                                          const Item& item, concurrency with, Result result,
                                          Finish finish) const {
  engine& e = *state_;
  const K& key = detail::map::key_of<K>(item);
  detail::map::place p = e.place_of(key);
  if (e.asks(kind, p.member, with))
    return e.ask_later(p.member, what, item, with, result, [p, finish](engine& alone) mutable {
      return finish(alone, p, static_cast<detail::map::prefetched<engine>*>(nullptr));
    });
  return with_window_in_flight(key, with, std::move(finish));
}

template <class K, class V, class Hash, class Probing>
auto hash_map<K, V, Hash, Probing>::async_find(const K& key, concurrency with) const
    -> future<std::optional<V>> {
  enter(container_operation::find, "find", key, with);
  return begin(
      container_operation::find, detail::map::find_there{}, key, with,
      [](auto answer) { return std::move(answer.value); },
      [key, with](engine& e, const auto& p, auto* window) {
        return e.find_alone(key, p, with, window);
      });
}

template <class K, class V, class Hash, class Probing>
future<bool> hash_map<K, V, Hash, Probing>::async_insert(const K& key, const V& value,
                                                         concurrency with) {
  enter(container_operation::insert, "insert", key, with);
  return begin(
      container_operation::insert, detail::map::insert_there{}, value_type(key, value), with,
      [](auto answer) { return answer.created; },
      [key, value, with](engine& e, const auto& p, auto* window) {
        return e.update_alone(key, p, detail::map::keep<V>{value}, with, window).created;
      });
}

template <class K, class V, class Hash, class Probing>
future<bool> hash_map<K, V, Hash, Probing>::async_insert_or_assign(const K& key, const V& value,
                                                                   concurrency with) {
  enter(container_operation::modify, "insert_or_assign", key, with);
  return begin(
      container_operation::modify, detail::map::assign_there{}, value_type(key, value), with,
      [](auto answer) { return answer.created; },
      [key, value, with](engine& e, const auto& p, auto* window) {
        return e.update_alone(key, p, detail::map::replace<V>{value}, with, window).created;
      });
}

template <class K, class V, class Hash, class Probing>
future<bool> hash_map<K, V, Hash, Probing>::async_erase(const K& key, concurrency with) {
  enter(container_operation::erase, "erase", key, with);
  return begin(
      container_operation::erase, detail::map::erase_there{}, key, with,
      [](auto answer) { return answer.created; },
      [key, with](engine& e, const auto& p, auto* window) {
        return e.erase_alone(key, p, with, window);
      });
}

template <class K, class V, class Hash, class Probing>
template <class Op>
auto hash_map<K, V, Hash, Probing>::async_accumulate(const K& key, const V& value, Op op,
                                                     concurrency with) -> future<std::optional<V>> {
  detail::require_combines<Op, V>();
  enter(container_operation::modify, "accumulate", key, with);
  auto finish = [key, value, op, with](engine& e, const auto& p, auto* window) mutable {
    return e.update_alone(key, p, detail::map::combine<V, Op>{value, op}, with, window).old;
  };
  if constexpr (detail::travels<Op>)
    return begin(
        container_operation::modify, detail::map::accumulate_there<Op>{op}, value_type(key, value),
        with, [](auto answer) { return std::move(answer.value); }, finish);
  else
    return with_window_in_flight(key, with, finish);
}

template <class K, class V, class Hash, class Probing>
template <class F>
  requires std::invocable<F&, V&>
future<V> hash_map<K, V, Hash, Probing>::async_modify(const K& key, F change, concurrency with) {
  enter(container_operation::modify, "modify", key, with);
  auto finish = [key, change, with](engine& e, const auto& p, auto* window) mutable {
    std::optional<V> made;
    auto remember = [&](V& value) {
      change(value);
      made = value;
    };
    e.update_alone(key, p, detail::map::transform<V, decltype(remember)>{remember}, with, window);
    return *std::move(made);
  };
  if constexpr (detail::travels<F>)
    return begin(
        container_operation::modify, detail::map::modify_there<F>{change}, key, with,
        [](auto answer) { return *std::move(answer.value); }, finish);
  else
    return with_window_in_flight(key, with, finish);
}

// --- many
// ------------------------------------------------------------------------------------------

template <class K, class V, class Hash, class Probing>
auto hash_map<K, V, Hash, Probing>::find(std::span<const K> keys, concurrency with) const
    -> std::vector<std::optional<V>> {
  std::vector<std::optional<V>> results;
  find(keys, results, with);
  return results;
}

template <class K, class V, class Hash, class Probing>
void hash_map<K, V, Hash, Probing>::find(std::span<const K> keys,
                                         std::vector<std::optional<V>>& results,
                                         concurrency with) const {
  engine& e = enter_many(container_operation::find, "find", keys, with);
  results.resize(keys.size());
  if (e.asks_many(container_operation::find, with))
    return e.ask_many(
        detail::map::find_there{}, keys, with,
        [&](std::size_t i, auto answer) { results[i] = std::move(answer.value); },
        [&](std::size_t i) { results[i] = e.find_alone(keys[i], e.place_of(keys[i]), with); });
  if constexpr (engine::may_be_coherent && engine::finds_together) {
    if (e.reaches_all()) {
      auto missed = [&](std::size_t i) {
        results[i] =
            e.find_slowly(keys[i], with, static_cast<detail::map::prefetched<engine>*>(nullptr));
      };
      if (includes(concurrency::find | concurrency::owner_only, with))
        return e.template find_together<true>(keys.data(), keys.size(), results.data(), missed);
      return e.template find_together<false>(keys.data(), keys.size(), results.data(), missed);
    }
  }
  detail::map::with_windows<false>(
      e, keys.size(), with, [&](std::size_t i) -> const K& { return keys[i]; },
      [&](std::size_t i, const auto& p, auto* window) {
        results[i] = e.find(keys[i], p, with, window);
      });
}

template <class K, class V, class Hash, class Probing>
std::vector<bool> hash_map<K, V, Hash, Probing>::contains(std::span<const K> keys,
                                                          concurrency with) const {
  auto values = find(keys, with);
  std::vector<bool> results(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) results[i] = values[i].has_value();
  return results;
}

template <class K, class V, class Hash, class Probing>
std::size_t hash_map<K, V, Hash, Probing>::insert(std::span<const value_type> entries,
                                                  concurrency with) {
  engine& e = enter_many(container_operation::insert, "insert", entries, with);
  if (!e.asks_many(container_operation::insert, with))
    return detail::map::insert_many(e, entries, with);
  return detail::map::count_asked(
      e, detail::map::insert_there{}, entries, with, [&](std::size_t i) {
        const auto& [key, value] = entries[i];
        return e.update_alone(key, e.place_of(key), detail::map::keep<V>{value}, with).created;
      });
}

template <class K, class V, class Hash, class Probing>
std::size_t hash_map<K, V, Hash, Probing>::insert_or_assign(std::span<const value_type> entries,
                                                            concurrency with) {
  engine& e = enter_many(container_operation::modify, "insert_or_assign", entries, with);
  if (e.asks_many(container_operation::modify, with))
    return detail::map::count_asked(
        e, detail::map::assign_there{}, entries, with, [&](std::size_t i) {
          const auto& [key, value] = entries[i];
          return e.update_alone(key, e.place_of(key), detail::map::replace<V>{value}, with).created;
        });
  return detail::map::update_many(e, entries, with, [](detail::map::handed<V> value) {
    return detail::map::replace<V>{value};
  });
}

template <class K, class V, class Hash, class Probing>
std::size_t hash_map<K, V, Hash, Probing>::erase(std::span<const K> keys, concurrency with) {
  engine& e = enter_many(container_operation::erase, "erase", keys, with);
  if (e.asks_many(container_operation::erase, with))
    return detail::map::count_asked(e, detail::map::erase_there{}, keys, with, [&](std::size_t i) {
      return e.erase_alone(keys[i], e.place_of(keys[i]), with);
    });
  std::size_t erased = 0;
  detail::map::with_windows<true>(
      e, keys.size(), with, [&](std::size_t i) -> const K& { return keys[i]; },
      [&](std::size_t i, const auto& p, auto* window) {
        erased += e.erase_alone(keys[i], p, with, window);
      });
  return erased;
}

template <class K, class V, class Hash, class Probing>
template <class Op>
void hash_map<K, V, Hash, Probing>::accumulate(std::span<const value_type> entries, Op op,
                                               concurrency with) {
  detail::require_combines<Op, V>();
  engine& e = enter_many(container_operation::modify, "accumulate", entries, with);
  if constexpr (detail::travels<Op>)
    if (e.asks_many(container_operation::modify, with)) {
      detail::map::count_asked(e, detail::map::accumulate_there<Op>{op}, entries, with,
                               [&](std::size_t i) {
                                 const auto& [key, value] = entries[i];
                                 detail::map::combine<V, Op> update{value, op};
                                 return e.update_alone(key, e.place_of(key), update, with).created;
                               });
      return;
    }
  detail::map::update_many(e, entries, with, [&op](detail::map::handed<V> value) {
    return detail::map::combine<V, Op>{value, op};
  });
}

// --- the whole
// ---------------------------------------------------------------------------------------

template <class K, class V, class Hash, class Probing>
void hash_map<K, V, Hash, Probing>::clear() {
  engine& e = *state_;
  auto note = detail::calling<"hash_map::clear">(e);
  e.choice.settle(e.c);
  barrier(e.members);
  e.clear_own();
  barrier(e.members);
}

template <class K, class V, class Hash, class Probing>
void hash_map<K, V, Hash, Probing>::reserve(std::size_t entries) {
  engine& e = *state_;
  auto note = detail::calling<"hash_map::reserve">(e);
  require_buckets("hash_map '" + e.label + "' reserve", entries, e.members.size());
  barrier(e.members);
  std::uint64_t wanted = e.capacity_for(entries, e.members.size());
  detail::do_together(
      e.members, e.full_name() + ": reserve",
      [&] {
        detail::map::table& t = e.settled(e.members.rank());
        if (t.capacity < wanted) e.move_table(e.members.rank(), t, wanted);
      },
      [] {});  // a table that is larger than it need be does no harm
  barrier(e.members);
}

template <class K, class V, class Hash, class Probing>
hash_map_statistics hash_map<K, V, Hash, Probing>::statistics() const {
  engine& e = *state_;
  auto note = detail::calling<"hash_map::statistics">(e);
  barrier(e.members);
  auto mine = e.measure(e.settled(e.members.rank()));
  auto all = all_gather(mine, e.members);
  hash_map_statistics result;
  result.fewest_entries = mine.entries;
  std::uint64_t probes = 0;
  for (const auto& part : all) {
    result.entries += part.entries;
    result.erased += part.erased;
    result.buckets += part.buckets;
    probes += part.probes;
    result.most_probes = std::max(result.most_probes, part.most_probes);
    result.fewest_entries = std::min(result.fewest_entries, part.entries);
    result.most_entries = std::max(result.most_entries, part.entries);
  }
  result.bytes = result.buckets * sizeof(typename engine::entry);
  auto buckets = static_cast<double>(result.buckets);
  result.load_factor = static_cast<double>(result.entries + result.erased) / buckets;
  if (result.entries != 0) {
    auto entries = static_cast<double>(result.entries);
    result.mean_probes = static_cast<double>(probes) / entries;
    result.skew =
        static_cast<double>(result.most_entries) * static_cast<double>(all.size()) / entries;
  }
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND

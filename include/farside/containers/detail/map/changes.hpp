// engine: insert, assign, accumulate, modify and erase.
#pragma once

#include <farside/containers/detail/map/engine.hpp>

#include <functional>

namespace far::inline FARSIDE_BACKEND::detail::map {

template <class K, class V, class Hash, class Probing>
template <class Update, class Access>
auto engine<K, V, Hash, Probing>::update_in(Access& in, table*& t, const place& p, const K& key,
                                            const Update& with, image& made)
    -> std::optional<outcome> {
  if constexpr (!Update::changes && in_place) {
    // Most inserts find their home empty: take it without a look.
    if (!std::exchange(made.tried_home, true) && t->settled &&
        create(in, {found::empty, p.home(t->capacity)}, p, key, with, made, true)) {
      count_taken(p.member, *t, 0);
      return outcome{true};
    }
  }
  entry e;
  position at = probe(in, *t, p, key, e);
  switch (at.what) {
    case found::empty:
      if (!t->settled) throw_if_may_not_wait(c);
      if (!create(in, at, p, key, with, made, false)) return std::nullopt;
      count_taken(p.member, *t, at.step);
      return outcome{true};
    case found::full:
      grow(p.member, *t);
      [[fallthrough]];
    case found::gone:
    case found::mine_moved:
      t = &settled_next(p.member, *t);
      return std::nullopt;
    case found::mine:
      break;
  }
  if constexpr (cells) {
    if (e.top().what() == state::cell) return update_cell(in, t, p, at, e, key, with);
  }
  return update_plain(in, t, p, at, e, with, made);
}

template <class K, class V, class Hash, class Probing>
template <class Update, class Access>
auto engine<K, V, Hash, Probing>::update_plain(Access& in, table*& t, const place& p, position at,
                                               entry& e, const Update& with, image& made)
    -> std::optional<outcome> {
  head h = e.top();
  if (h.frozen()) return await_move(t, p), std::nullopt;
  bool was_there = h.what() == state::plain;
  std::optional<V> old;
  if (was_there) {
    if constexpr (!Update::changes) return outcome{};
    if constexpr (Update::uses_old) {
      old = value_store::unpack(e.value());
      if (!old) return std::nullopt;  // replaced while we read it
    }
  }
  if constexpr (Update::uses_old)
    made.set_value(old ? with.next(*old) : V(with.initial()));
  else
    made.set_value(with.initial());
  head wanted = h.next_version(state::plain);
  if (FARSIDE_MUTANT(map_version_not_counted))
    wanted = head(state::plain, h.fingerprint(), h.version());
  if (!in.change(at.index, h, wanted) && !FARSIDE_MUTANT(map_lost_race_taken_for_won))
    return std::nullopt;
  entry fresh = e;
  std::copy_n(made.content.value(), entry::value_words, fresh.value());
  made.has_value = false;
  in.write_through(at.index, wanted, fresh, false);
  if (was_there)
    value_store::release(e.value());
  else
    count_revived(p.member);
  return outcome{!was_there, std::move(old)};
}

template <class K, class V, class Hash, class Probing>
template <class Update, class Access>
auto engine<K, V, Hash, Probing>::update_cell(Access& in, table*& t, const place& p, position at,
                                              entry& e, const K& key, const Update& with)
    -> std::optional<outcome> {
  word seen = e.value()[0];
  if (seen & cell::frozen) return await_move(t, p), std::nullopt;
  bool was_there = !(seen & cell::absent);
  if (was_there) {
    if constexpr (!Update::changes) return outcome{};
    if constexpr (adds<Update>) {
      const bool strained = cell::strained(seen);
      if (strained) {
        throw_if_may_not_wait(c);
        if (widen_if_there_is_room(p.member, *t)) return std::nullopt;
      }
      if (cell::small_step(with.value) && cell::bears_more(seen)) {
        if (!strained) remember(at, *t, key);
        return add_to(in, t, p, at.index, with.value);
      }
    }
  }
  std::optional<V> old;
  if (was_there) old = cell::decode<V>(seen);
  V wanted = old ? V(with.next(*old)) : V(with.initial());
  if (!cell::fits(wanted)) {
    throw_if_may_not_wait(c);
    if (in.change_cell(at.index, seen, seen | cell::widen)) move_table(p.member, *t, t->capacity);
    return std::nullopt;
  }
  word desired = cell::encode(wanted) | (seen & cell::widen);
  if (!in.change_cell(at.index, seen, desired)) return std::nullopt;
  in.settle();
  if (!was_there) count_revived(p.member);
  return outcome{!was_there, old};
}

/// One atomic; nothing if it did not count, as the cell was erased or moves.
template <class K, class V, class Hash, class Probing>
template <class Access>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::add_to(Access& in, table*& t, const place& p,
                                                            word index, V step)
    -> std::optional<outcome> {
  auto amount = static_cast<word>(static_cast<std::int64_t>(step));
  word old = in.add_to_cell(index, amount);
  in.settle();
  return what_adding_did(in, *t, p, index, old, amount);
}

template <class K, class V, class Hash, class Probing>
template <class Access>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::what_adding_did(Access& in, table& t,
                                                                     const place& p, word index,
                                                                     word old, word amount)
    -> std::optional<outcome> {
  if (old & (cell::frozen | cell::absent) && !FARSIDE_MUTANT(map_frozen_cell_counts)) [[unlikely]]
    return std::nullopt;
  if (cell::strained(old + amount)) [[unlikely]]
    strain(in, t, p, index, old + amount);
  return outcome{false, cell::decode<V>(old)};
}

/// A cell has come to hold more than it should.
template <class K, class V, class Hash, class Probing>
template <class Access>
[[gnu::noinline]] void engine<K, V, Hash, Probing>::strain(Access& in, table& t, const place& p,
                                                           word index, word value) {
  word expected = value;
  in.change_cell(index, expected, expected | cell::widen);
  if (may_not_wait(c))
    on_behalf_.strained = true;  // done already: who asked for it moves the table
  else
    widen_if_there_is_room(p.member, t);
}

/// Moves a table so that its strained cells become plain buckets. What has strained one has taken
/// effect, so this does not throw. Without room the next addition tries again, and throws if the
/// cell cannot bear it.
template <class K, class V, class Hash, class Probing>
bool engine<K, V, Hash, Probing>::widen_if_there_is_room(rank_t member, table& t) {
  try {
    move_table(member, t, t.capacity);
    return true;
  } catch (const allocation_error&) {
    return false;
  }
}

/// add_to() of a cell whose place this rank knows; nothing if it knows none, or it did not count.
/// Most of what an addition takes is the transport's, and what comes between two of its calls is
/// waited for: so few words are looked at.
template <class K, class V, class Hash, class Probing>
template <class Update>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::add_to_known(handed<K> key, const Update& with)
    -> std::optional<outcome> {
  auto* known = known_.find(tables.epoch, key);
  if (known == nullptr || !cell::small_step(with.value)) return std::nullopt;
  auto amount = static_cast<word>(static_cast<std::int64_t>(with.value));
  const ptr<word> at = known->at;
  word old = fetch_add(at, amount);
  far_access<entry>::settle(c, at.rank());
  if (cell::simple(old) && cell::simple(old + amount)) [[likely]]
    return outcome{false, cell::decode<V>(old)};
  return after_adding(*known, at, key, old, amount);
}

/// Where the cell was erased, or moves, or has become too large. Others that were served meanwhile
/// may have put another cell in the place of the known one: whoever adds next sees that it is too
/// large, too.
template <class K, class V, class Hash, class Probing>
[[gnu::noinline, gnu::cold]] auto engine<K, V, Hash, Probing>::after_adding(
    typename known_cells<K, Hash>::cell_place& known, ptr<word> at, handed<K> key, word old,
    word amount) -> std::optional<outcome> {
  if (known.at != at) {
    if (old & (cell::frozen | cell::absent)) return std::nullopt;
    return outcome{false, cell::decode<V>(old)};
  }
  far_access<entry> in(c, *known.in);
  auto done = what_adding_did(in, *known.in, place_of(key), known.index, old, amount);
  if (!done || cell::strained(old + amount)) known.forget();
  return done;
}

template <class K, class V, class Hash, class Probing>
template <class Access>
std::optional<bool> engine<K, V, Hash, Probing>::erase_in(Access& in, table*& t, const place& p,
                                                          const K& key) {
  entry e;
  position at = probe(in, *t, p, key, e);
  if (at.what == found::empty || (at.what == found::full && !has_next(*t))) return false;
  if (at.what != found::mine) {
    if (!may_not_wait(c)) help(p.member, *t);
    t = &tables.next_of(p.member, *t);
    return std::nullopt;
  }
  if constexpr (cells) {
    if (e.top().what() == state::cell) {
      word seen = e.value()[0];
      if (seen & cell::frozen) return await_move(t, p), std::nullopt;
      if (seen & cell::absent) return false;
      if (!in.change_cell(at.index, seen, cell::absent | cell::bias)) return std::nullopt;
      in.settle();
      count_erased(p.member);
      return true;
    }
  }
  head h = e.top();
  if (h.frozen()) return await_move(t, p), std::nullopt;
  if (h.what() == state::erased) return false;
  if (!in.change(at.index, h, h.as(state::erased))) return std::nullopt;
  in.settle();
  value_store::release(e.value());
  count_erased(p.member);
  return true;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

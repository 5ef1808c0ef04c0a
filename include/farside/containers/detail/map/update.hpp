// Changing a key in one table: insert, assign, accumulate, modify and erase, over any way to the
// buckets.
#pragma once

#include <farside/containers/detail/map/probe.hpp>
#include <farside/containers/detail/map/update_kinds.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// An operation under way, from attempt to attempt: a bucket being prepared, whose bytes, if it has
/// any elsewhere, are freed unless it was used; and what earlier attempts have found out.
template <class T>
struct new_bucket {
  using V = typename T::mapped_type;

  new_bucket() {
    // g++-12 does not see that a key which was never set is not released.
    if constexpr (!T::key_store::in_place) std::fill_n(content.key(), T::entry::key_words, word{0});
  }
  new_bucket(const new_bucket&) = delete;
  ~new_bucket() {
    if constexpr (!T::key_store::in_place)
      if (has_key) T::key_store::release(content.key());
    drop_value();
  }
  FARSIDE_HOT void set_key(const typename T::key_type& key) {
    if (!has_key) T::key_store::pack(key, content.key());
    has_key = true;
  }
  FARSIDE_HOT void set_value(const V& value) {
    drop_value();
    T::value_store::pack(value, content.value());
    has_value = true;
  }
  /// The value of a new entry: in a cell if it fits one.
  FARSIDE_HOT state fill(const V& value) {
    if constexpr (T::cells) {
      if (cell::fits(value)) [[likely]] {
        content.value()[0] = cell::encode(value);
        return state::cell;
      }
    }
    set_value(value);
    return state::plain;
  }
  FARSIDE_HOT void drop_value() {
    if constexpr (!T::value_store::in_place)
      if (has_value) T::value_store::release(content.value());
    has_value = false;
  }
  typename T::entry content;
  bool has_key = false, has_value = false;
  bool unseen = true;    ///< no bucket of the key has been looked at
  bool settled = true;   ///< all of the table before the one at hand has been moved into it
  bool no_room = false;  ///< for the table in which a strained cell would be a plain bucket
  word index = 0;        ///< where the key's bucket was found
};

/// Takes an empty bucket for a new key. False: another rank was faster. Nothing that can fail comes
/// after the head is won.
template <class T, class Access>
FARSIDE_HOT inline bool create(Access& in, word index, head seen, const key_location& where,
                               const typename T::key_type& key,
                               const typename T::mapped_type& value, new_bucket<T>& made) {
  made.set_key(key);
  const state what = made.fill(value);
  const head h(what, where.fingerprint(), seen.version() + 1);
  if (!change_head(in, index, seen, h) && !FARSIDE_MUTANT(map_home_taken_by_force)) return false;
  made.has_key = made.has_value = false;
  in.write(index, h, made.content, true);
  return true;
}

/// What an addition to a cell, which was `old`, has done. One to a cell that moves, or was erased, is
/// made but does not count: `again`. One that strains the cell marks it by `widen(its word)`.
template <class T, class Widen>
FARSIDE_HOT inline outcome_of<T> what_adding_did(word old, word amount, Widen widen) {
  if (old & (cell::frozen | cell::absent) && !FARSIDE_MUTANT(map_frozen_cell_counts)) [[unlikely]]
    return {result::again};
  outcome_of<T> done;
  done.value = cell::decode<typename T::mapped_type>(old);
  done.in_cell = true;
  if (cell::strained(old + amount)) [[unlikely]] {
    widen(old + amount);
    done.strained = true;
  }
  return done;
}
/// One atomic.
template <class T, class Access>
FARSIDE_HOT inline outcome_of<T> add_to_cell(Access& in, word index, typename T::mapped_type step) {
  const auto amount = static_cast<word>(static_cast<std::int64_t>(step));
  const word old = in.add_to_cell(index, amount);
  in.settle();
  return what_adding_did<T>(old, amount, [&](word now) __attribute__((always_inline)) {
    in.change(index, at_value, now, now | cell::widen);
  });
}

/// Of a cell that is there: `e` is a copy of its bucket.
template <if_blocked B, class T, class Access, class Update>
FARSIDE_HOT inline outcome_of<T> update_cell(Access& in, word index, const typename T::entry& e,
                                             const Update& by, bool no_room) {
  using V = typename T::mapped_type;
  constexpr bool waits = B == if_blocked::wait;
  word seen = e.value()[0];
  if (seen & cell::frozen) [[unlikely]]
    return {result::frozen};
  const bool was_there = !(seen & cell::absent);
  if constexpr (adds<Update>) {
    if (was_there && (!cell::strained(seen) || no_room)) [[likely]] {
      if (cell::small_step(by.value) && cell::bears_more(seen))
        return add_to_cell<T>(in, index, by.value);
    } else if (was_there) {
      return {waits ? result::strained : result::blocked};
    }
  }
  std::optional<V> old, next;
  if (was_there) old = cell::decode<V>(seen);
  const decision what = by.decide(was_there, old, next);
  if (what == decision::leave) return {};
  const bool writes = what == decision::write;
  if (writes && !cell::fits(*next)) {
    if (!waits) return {result::blocked};
    return {in.change(index, at_value, seen, seen | cell::widen) ? result::widen : result::again};
  }
  const word desired =
      writes ? cell::encode(*next) | (seen & cell::widen) : cell::absent | cell::bias;
  if (!in.change(index, at_value, seen, desired) && !FARSIDE_MUTANT(map_lost_swap_taken_for_won))
    return {result::again};
  in.settle();
  outcome<V> done{result::done, true};
  if (writes != was_there) done.count = writes ? counted::revived : counted::erased;
  if constexpr (Update::result_is == gives::old) done.value = old;
  if constexpr (Update::result_is == gives::made) done.value = next;
  return done;
}

/// Of a plain bucket, or of one that was erased: `e` is a copy of it.
template <if_blocked B, class T, class Access, class Update>
FARSIDE_HOT inline outcome_of<T> update_plain(Access& in, word index, typename T::entry& e,
                                              const Update& by, new_bucket<T>& made) {
  using V = typename T::mapped_type;
  head h = e.top();
  if (h.frozen()) return {result::frozen};
  const bool was_there = h.what() == state::plain;
  std::optional<V> old, next;
  if constexpr (Update::reads)
    if (was_there && !(old = T::value_store::unpack(e.value())))
      return {B == if_blocked::wait ? result::again : result::blocked};
  const decision what = by.decide(was_there, old, next);
  const bool writes = what == decision::write;
  outcome<V> done;
  if (what != decision::leave) {
    const bool was_entry = was_there && !(old && !T::is_entry(*old));
    const bool becomes_entry = writes && T::is_entry(*next);
    done.changed = true;
    if (was_entry != becomes_entry) done.count = becomes_entry ? counted::revived : counted::erased;
    if (writes) made.set_value(*next);
    head desired = writes ? h.next_version(state::plain) : h.as(state::erased);
    if (writes && FARSIDE_MUTANT(map_version_not_counted))
      desired = head(state::plain, h.fingerprint(), h.version());
    if (!change_head(in, index, h, desired) && !FARSIDE_MUTANT(map_lost_race_taken_for_won))
      return {result::again};
    if (writes) {
      typename T::entry fresh = e;
      std::copy_n(made.content.value(), T::entry::value_words, fresh.value());
      made.has_value = false;
      in.write(index, desired, fresh, false);
    } else {
      in.settle();
    }
    if (was_there) T::value_store::release(e.value());
  }
  if constexpr (Update::result_is == gives::old) done.value = std::move(old);
  if constexpr (Update::result_is == gives::made) done.value = std::move(next);
  return done;
}

/// One attempt to change a key in a table: done, or why not; then nothing has changed. The table of
/// a caller that waits is settled: all of the one before it has moved into it. One that gives up
/// does so where it is not, instead of creating an entry.
template <if_blocked B, class T, bucket_access<T> Access, class Update>
FARSIDE_HOT inline outcome_of<T> update(Access& in, const key_location& where,
                                        const typename T::key_type& key, const Update& by,
                                        new_bucket<T>& made) {
  // Most inserts find their home empty: they take it without a look, or after one at its head.
  if constexpr (!Update::changes && T::in_place)
    if (std::exchange(made.unseen, false) && made.settled &&
        create<T>(in, where.home(in.capacity()), head(), where, key, by.initial(), made))
      return {result::done, true, counted::at_home};
  lookup<T> found = probe<B, T>(in, where, key);
  if (found.what == result::mine) [[likely]] {
    made.index = found.index;
    if constexpr (T::cells) {
      if (found.content.top().what() == state::cell) [[likely]]
        return update_cell<B, T>(in, found.index, found.content, by, made.no_room);
    }
    return update_plain<B, T>(in, found.index, found.content, by, made);
  }
  if (found.what != result::absent) return {found.what};
  outcome_of<T> done;
  if constexpr (Update::creates) {
    if (B == if_blocked::give_up && !made.settled && !FARSIDE_MUTANT(map_fast_creates_unsettled))
      return {result::blocked};
    const typename T::mapped_type& initial = by.initial();
    if (!create<T>(in, found.index, found.seen, where, key, initial, made)) return {result::again};
    done.changed = true;
    done.count = found.at_home ? counted::at_home : counted::displaced;
    if constexpr (Update::result_is == gives::made) done.value = initial;
  }
  return done;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

// What nearly every operation does: entries in place, in a table that this rank knows, which is not
// moving, and nobody to wait for. The same protocol as everywhere, which gives up as soon as there
// is anything else, without having changed anything; then the full path begins anew.
//
//   where memory is coherent   probe and update over direct_access, and over local_access with
//                              concurrency::owner_only
//   elsewhere                  a find: probe over the first window, which one get brings
#pragma once

#include <farside/containers/detail/map/remote_calls.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Declined by the fast path. Out of line, so that the caller spills no registers.
template <class Core>
[[gnu::noinline]] std::optional<typename Core::V> find_otherwise(Core& m,
                                                                 pass_type<typename Core::K> key,
                                                                 concurrency with) {
  if (m.choice.any()) {
    const rank_t member = m.place_of(key).member;
    if (m.sends_to_owner(find_there::kind, member, with))
      if (auto found = call_owner(m, member, find_there(), key, with))
        return std::move(found->value);
  }
  return m.template find<if_blocked::wait>(key, with).value;
}

template <class Core, class Op, class Update>
[[gnu::noinline]] outcome<typename Core::V> update_otherwise(Core& m, Op& op,
                                                             pass_type<typename Core::K> key,
                                                             pass_type<Update> by,
                                                             concurrency with) {
  if constexpr (Op::can_be_sent) {
    if (m.choice.any()) {
      const rank_t member = m.place_of(key).member;
      if (m.sends_to_owner(Op::kind, member, with))
        if (auto done = call_owner(m, member, op, item_of<typename Core::V>(key, by), with))
          return *std::move(done);
    }
  }
  return m.template update<if_blocked::wait, Update>(key, by, with);
}

/// The table of a member, if the fast path may be taken, else null.
template <class T>
FARSIDE_HOT inline table* fast_table(const member_facts& of) {
  if constexpr (!has_fast_path || !T::in_place) return nullptr;
  // Relaxed: what is read of the table goes through this pointer, which orders it on every CPU, and
  // other threads of this rank have published it by a release.
  return of.fast.load(std::memory_order_relaxed);
}
template <class Core>
FARSIDE_HOT inline bool reaches_directly(const table& t) {
  return always_coherent<transport> || (Core::may_be_coherent && t.direct != nullptr);
}

/// The table of a key that this rank owns, if nobody else may be there.
FARSIDE_HOT inline bool is_alone(const table& t, concurrency with) {
  return includes(with, concurrency::owner_only) && t.own != nullptr;
}

/// A find in a window that has come.
template <class T>
FARSIDE_HOT inline found_value<T> find_in_window(bucket_window<T>& seen, const key_location& where,
                                                 const typename T::key_type& key,
                                                 concurrency with) {
  constexpr auto only_finds = concurrency::find | concurrency::owner_only;
  far_access<T, true> in(seen, includes(only_finds, with) ? verify::nothing : verify::key);
  return find_in<if_blocked::give_up, T>(in, where, key);
}

template <class Core, class T = typename Core::traits>
FARSIDE_HOT inline std::optional<typename T::mapped_type> find(const fast_handle& tables,
                                                               const container_handle<Core>& state,
                                                               const key_location& where,
                                                               const typename T::key_type& key,
                                                               concurrency with) {
  if (table* t = fast_table<T>(tables[where.member]); t != nullptr) [[likely]] {
    if (reaches_directly<Core>(*t)) {
      direct_access<T, true> in(*t);
      found_value<T> found = find_in<if_blocked::give_up, T>(in, where, key);
      if (found.what == result::done || FARSIDE_MUTANT(map_blocked_taken_for_absent)) [[likely]]
        return std::move(found.value);
    } else if (!always_coherent<transport> && !is_alone(*t, with)) {
      bucket_window<T> seen(*t, where);
      get_afar(t->rank(), seen.from().offset(), seen.to(), seen.words());
      found_value<T> found = find_in_window(seen, where, key, with);
      if (found.what == result::done) [[likely]]
        return std::move(found.value);
      return (*state).template find<if_blocked::wait>(key, with, &seen).value;
    }
  }
  return find_otherwise(*state, key, with);
}

/// One attempt at a change. Not done: nothing has changed.
template <class Core, class Update, class T = typename Core::traits>
FARSIDE_HOT inline outcome_of<T> try_update(const fast_handle& tables, Core* m,
                                            const key_location& where,
                                            const typename T::key_type& key, const Update& by,
                                            concurrency with) {
  constexpr auto give_up = if_blocked::give_up;
  outcome_of<T> done{result::blocked};
  if constexpr (Core::may_be_coherent) {
    if (table* t = fast_table<T>(tables[where.member]); t != nullptr && reaches_directly<Core>(*t))
        [[likely]] {
      new_bucket<T> made;
      if (is_alone(*t, with)) {
        local_access<T, true> in(*t, true);
        done = update<give_up, T>(in, *t, where, key, by, made);
      } else {
        direct_access<T, true> in(*t);
        done = update<give_up, T>(in, *t, where, key, by, made);
      }
      if (done.what == result::done) [[likely]]
        m->account_for(where.member, *t, done);
    }
  }
  return done;
}

/// A change: what is sent to owners for it is `op`, and what it does to the value is `by`.
template <class Core, class Op, class Update, class T = typename Core::traits>
FARSIDE_HOT inline outcome_of<T> update(const fast_handle& tables,
                                        const container_handle<Core>& state, Op& op,
                                        const key_location& where, const typename T::key_type& key,
                                        const Update& by, concurrency with) {
  auto done = try_update(tables, state.unchecked(), where, key, by, with);
  if (done.what == result::done) [[likely]]
    return done;
  return update_otherwise<Core, Op, Update>(*state, op, key, by, with);
}

/// The same of a key that this rank holds, which is never sent.
template <class Core, class Update>
FARSIDE_HOT inline void update_here(Core& m, const key_location& where, const typename Core::K& key,
                                    const Update& by, concurrency with) {
  if (try_update(m.tables.fast(), &m, where, key, by, with).what != result::done) [[unlikely]]
    m.template update<if_blocked::wait, Update>(key, by, with);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

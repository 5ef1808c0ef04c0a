// What nearly every operation does: entries in place, in a table that this rank knows, which is not
// moving, and nobody to wait for. The same protocol as everywhere, which gives up as soon as there
// is anything else, without having changed anything; then the full path begins anew.
//
// It is probe and update over direct_access, and over local_access with concurrency::owner_only.
// Where memory is not coherent there is none.
#pragma once

#include <farside/containers/detail/map/remote_calls.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Declined by the fast path. Out of line, so that the caller spills no registers.
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
template <class Core>
std::optional<typename Core::V> find_otherwise(Core& m, pass_type<typename Core::K> key,
                                               concurrency with) {
  find_there op;
  return update_otherwise<Core, find_there, look>(m, op, key, look(), with).value;
}

/// The table of a member, if the fast path may be taken and memory is coherent, else null.
template <class T>
FARSIDE_HOT inline member_facts::found fast_table(const member_facts& of) {
  if constexpr (!T::in_place || never_coherent<transport>) return {};
  return of.direct();
}

/// One attempt at a find. Not done: it was not to be had this way.
template <class T>
FARSIDE_HOT inline outcome_of<T> try_find(const member_facts& of, const key_location& where,
                                          const typename T::key_type& key) {
  const auto t = fast_table<T>(of);
  if (t.buckets == nullptr) [[unlikely]]
    return {result::blocked};
  direct_access<T, true> in(t.buckets, t.capacity);
  return find_in<if_blocked::give_up, T>(in, where, key);
}

template <class Core, class T = typename Core::traits>
FARSIDE_HOT inline std::optional<typename T::mapped_type> find(const fast_handle& tables,
                                                               const container_handle<Core>& state,
                                                               const key_location& where,
                                                               const typename T::key_type& key,
                                                               concurrency with) {
  auto found = try_find<T>(tables[where.member], where, key);
  if (found.what == result::done || FARSIDE_MUTANT(map_fast_blocked_is_absent)) [[likely]]
    return std::move(found.value);
  return find_otherwise(*state, key, with);
}

/// One attempt at a change: calls `take(outcome)` if it is done. False: nothing has changed.
/// (An outcome that is returned from either branch is put together in memory, and a CPU waits.)
template <class Core, class Update, class Take, class T = typename Core::traits>
FARSIDE_HOT inline bool try_update(const fast_handle& tables, Core* m, const key_location& where,
                                   const typename T::key_type& key, const Update& by,
                                   concurrency with, Take take) {
  const auto t = fast_table<T>(tables[where.member]);
  if (t.buckets == nullptr) [[unlikely]]
    return false;
  auto attempt = [&](auto in) __attribute__((always_inline)) {
    new_bucket<T> made;
    outcome_of<T> done = update<if_blocked::give_up, T>(in, where, key, by, made);
    if (done.what != result::done) [[unlikely]]
      return false;
    m->account_for(where.member, done);
    take(std::move(done));
    return true;
  };
  if (includes(with, concurrency::owner_only) && where.member == tables.me())
    return attempt(local_access<T, true>(t.buckets, t.capacity));
  return attempt(direct_access<T, true>(t.buckets, t.capacity));
}

/// A change: what is sent to owners for it is `op`, and what it does to the value is `by`.
template <class Core, class Op, class Update, class Take, class T = typename Core::traits>
FARSIDE_HOT inline void update(const fast_handle& tables, const container_handle<Core>& state,
                               Op& op, const key_location& where, const typename T::key_type& key,
                               const Update& by, concurrency with, Take take) {
  if (!try_update(tables, state.unchecked(), where, key, by, with, take)) [[unlikely]]
    take(update_otherwise<Core, Op, Update>(*state, op, key, by, with));
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

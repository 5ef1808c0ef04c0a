// Updates that look at what a key has, and then decide: to leave it, to write a value, or to remove
// it. Those of stores are such (containers/detail/store/index.hpp).
//
//   struct Update {
//     static constexpr bool changes;   // of an entry that is there: else a free home is taken unseen
//     static constexpr bool creates;   // of a key without an entry
//     decision decide(const V* old, V& next) const;   // null: no entry; communicates nothing
//     const V& initial() const;        // if it creates
//   };
//
// An outcome says with `created` whether anything was changed, and with `value` what was there.
// A decision of a value that one `counts_as_absent` is an entry that nobody has put, such as a
// parked one: neither it nor its end changes how many entries there are.
#pragma once

#include <farside/containers/detail/map/update.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

enum class decision { leave, write, remove };

template <if_blocked B, class T, class Access, class Update>
outcome_of<T> update_decided(Access& in, lookup<T>& found, const table& t,
                             const key_location& where, const typename T::key_type& key,
                             const Update& by, new_bucket<T>& made) {
  using V = typename T::mapped_type;
  static_assert(!T::cells && T::value_store::in_place);
  if (found.what != result::mine && found.what != result::absent) return {found.what};
  outcome<V> done;
  typename T::entry& e = found.content;
  head h = e.top();
  const bool has_bucket = found.what == result::mine;
  if (has_bucket) {
    if (h.frozen()) return {result::frozen};
    if (h.what() == state::plain) done.value = T::value_store::unpack(e.value());
  }
  V next{};
  const decision what = by.decide(done.value ? &*done.value : nullptr, next);
  if (what == decision::leave) return done;
  done.created = true;
  if (!has_bucket) {
    if (B == if_blocked::give_up && !t.settled.load(std::memory_order_relaxed))
      return {result::blocked};
    done.count = found.at_home ? counted::at_home : counted::displaced;
    if (!create<T>(in, found.index, found.seen, false, where, key, next, made))
      return {result::again};
    return done;
  }
  const bool was_entry = done.value && !done.value->counts_as_absent();
  if (what == decision::remove) {
    if (!in.change(found.index, h, h.as(state::erased))) return {result::again};
    in.settle();
    done.count = was_entry ? counted::erased : counted::nothing;
    return done;
  }
  const bool is_entry = !next.counts_as_absent();
  done.count = was_entry == is_entry ? counted::nothing
               : is_entry            ? counted::revived
                                     : counted::erased;
  made.set_value(next);
  const head desired = h.next_version(state::plain);
  if (!in.change(found.index, h, desired)) return {result::again};
  typename T::entry fresh = e;
  std::copy_n(made.content.value(), T::entry::value_words, fresh.value());
  made.has_value = false;
  in.write_through(found.index, desired, fresh, false);
  return done;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

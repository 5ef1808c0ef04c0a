// Gets in memory that this process reaches, which is what most gets are where ranks share memory: of
// values in buckets, and of objects, straight into the result. The protocols of map::find_in() and of
// read_object() (object.hpp), which give up as soon as there is anything else; then the full path begins
// anew.
#pragma once

#include <farside/containers/detail/store/object.hpp>

#include <optional>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// Operations on keys that this rank holds communicate with nobody, and count as nothing.
template <class Core>
class own_part {
 public:
  FARSIDE_HOT own_part(Core& m, const typename Core::K& key)
      : quiet_(m.c, m.c.counts && m.place_of(key).member == m.members.rank()) {}

 private:
  uncounted quiet_;
};

template <class Value, class Slot>
FARSIDE_HOT inline std::optional<Value> value_of(const std::optional<Slot>& found) {
  if (!found || found->is_parked()) return std::nullopt;
  return map::stored<Value>::read(found->words.data());
}

/// Out of line, so that the caller spills no registers.
template <class Value, class Core>
[[gnu::noinline]] std::optional<Value> get_from_bucket(const map::fast_handle& tables,
                                                       const container_handle<Core>& state,
                                                       const map::key_location& where,
                                                       const typename Core::K& key) {
  own_part<Core> free_of_charge(*state, key);
  return value_of<Value>(map::find(tables, state, where, key, concurrency::everything));
}

/// The slot of a key whose table this process reaches. Not done: it was not to be had this way.
template <class Core>
FARSIDE_HOT inline map::found_value<typename Core::T> find_directly(const map::fast_handle& tables,
                                                                    const map::key_location& where,
                                                                    const typename Core::K& key) {
  using T = typename Core::T;
  if constexpr (Core::may_be_coherent)
    if (map::table* t = map::fast_table<T>(tables[where.member]);
        t != nullptr && map::reaches_directly<Core>(*t)) [[likely]] {
      map::direct_access<T, true> in(*t);
      return map::find_in<if_blocked::give_up, T>(in, where, key);
    }
  return {map::result::blocked};
}

template <class Value>
inline constexpr bool can_be_got_directly =
    object<Value>::fixed && object<Value>::cells == 0 && plain<Value> &&
    std::is_trivially_default_constructible_v<Value> && !stays_in_bucket<Value>;

/// Copies the value of an object, if it is there whole.
template <class Value>
bool copy_directly(const place& from, const word* base, Value& to) {
  using layout = object<Value>;
  auto* words = const_cast<word*>(base);
  const head top(map::atomic(words[0]).load(std::memory_order_seq_cst));
  const bool sealed =
      map::atomic(words[layout::seal_at]).load(std::memory_order_acquire) == top.version() ||
      FARSIDE_MUTANT(store_seal_not_checked);
  if (!sealed || top.what() != live) return false;
  copy_words<true>(&to, words + layout::body_at, from.at.offset() + 8 * layout::body_at,
                   sizeof(Value));
  acquire_fence();  // a writer changes the head before any other word
  return map::atomic(words[0]).load(std::memory_order_seq_cst) == top.raw() ||
         FARSIDE_MUTANT(store_head_looked_at_once);
}

/// Makes the value where it is to be, without a copy, and without clearing it before.
template <class Value>
struct made_from {
  const place& from;
  const word* base;
  bool& whole;
  operator Value() const {
    Value value;
    whole = copy_directly(from, base, value);
    return value;
  }
};

/// Whether the value is in `to`. Else it is absent, or was not to be had this way.
template <class Core, class Value = typename Core::value_type>
bool get_directly(Core& m, const typename Core::K& key, std::optional<Value>& to) {
  if (!m.c.link.coherent() || m.c.counts || m.choice.any()) return false;
  const auto found = m.template locate<if_blocked::give_up>(key);
  if (found.what != map::result::mine) return false;
  bool whole = false;
  to.emplace(made_from<Value>{found.at, reach(m.c, found.at), whole});
  if (!whole) {
    to.reset();
    return false;
  }
  if (!found.remembered) m.remember(key, found.at);
  return true;
}

/// The value of a key, if it has one, by whatever way. There is one result, made where it goes.
template <class Core, class Value = typename Core::value_type>
std::optional<Value> get_object(Core& m, const typename Core::K& key) {
  std::optional<Value> result;
  if (const Value* kept = m.kept(key)) {
    result = *kept;
    return result;
  }
  if constexpr (can_be_got_directly<Value>)
    if (get_directly(m, key, result)) {
      m.keep(key, *result);
      return result;
    }
  own_part<Core> free_of_charge(m, key);
  std::optional<versioned<Value>> there;
  m.template find_value<if_blocked::wait>(key, there);
  if (there) {
    result = std::move(there->value);
    m.keep(key, *result);
  }
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

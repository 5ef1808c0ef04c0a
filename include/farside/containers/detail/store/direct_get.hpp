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
  return stored<Value>::read(found->words.data());
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

/// The value of a key, if it has one, by the full path.
template <class Core, class Value = typename Core::value_type>
[[gnu::noinline]] std::optional<Value> get_object_in_full(Core& m, const typename Core::K& key) {
  own_part<Core> free_of_charge(m, key);
  std::optional<versioned<Value>> there;
  m.template find_value<if_blocked::wait>(key, there);
  if (!there) return std::nullopt;
  m.keep(key, there->value);
  return std::move(there->value);
}

template <class Core, class Value>
std::optional<Value> get_perhaps_directly(Core& m, const typename Core::K& key) {
  typename Core::located found;
  if (m.c.link.coherent() && !m.c.counts && !m.choice.any())
    found = m.template locate<if_blocked::give_up>(key);
  const bool there = found.what == map::result::mine;
  bool whole = false;
  std::optional<Value> result =
      there ? std::optional<Value>(std::in_place,
                                   made_from<Value>{found.at, reach(m.c, found.at), whole})
            : std::optional<Value>();
  if (whole) [[likely]] {
    if (!found.remembered) m.remember(key, found.at);
    m.keep(key, *result);
  } else {
    result = get_object_in_full(m, key);
  }
  return result;
}

/// The same, by whatever way. There is one result, made where it goes; an empty optional of a large
/// value is not made before, as compilers clear it.
template <class Core, class Value = typename Core::value_type>
std::optional<Value> get_object(Core& m, const typename Core::K& key) {
  if (const Value* kept = m.kept(key)) [[unlikely]]
    return *kept;
  if constexpr (!can_be_got_directly<Value>) {
    return get_object_in_full(m, key);
  } else {
    return get_perhaps_directly<Core, Value>(m, key);
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

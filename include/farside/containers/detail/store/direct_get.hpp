// A get of an object in memory that this process reaches, straight into the result: what most gets of
// large values are where ranks share memory. The protocol of read_object() (object.hpp), which gives
// up as soon as there is anything else; then the full path begins anew.
#pragma once

#include <farside/containers/detail/store/object.hpp>

#include <optional>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail::stores {

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

/// Nothing: it is absent, or was not to be had this way.
template <class Core, class Value = typename Core::value_type>
std::optional<Value> get_directly(Core& m, const typename Core::K& key) {
  std::optional<Value> result;
  if (!m.c.link.coherent() || m.c.counts || m.choice.any()) return result;
  const auto found = m.template locate<if_blocked::give_up>(key);
  if (found.what != map::result::mine) return result;
  bool whole = false;
  result.emplace(made_from<Value>{found.at, reach(m.c, found.at), whole});
  if (!whole)
    result.reset();
  else if (!found.remembered)
    m.remember(key, found.at);
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

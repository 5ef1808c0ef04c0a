// What the operations of a map are: what they do to the value of a key, what is sent to owners for
// them, and what comes of them. The protocol is compiled for each kind.
#pragma once

#include <farside/containers/detail/dispatch/choice.hpp>
#include <farside/containers/detail/map/traits.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/context.hpp>

#include <functional>
#include <optional>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What an operation has done to the counts of a table.
enum class counted { nothing, at_home, displaced, erased, revived };

/// What has come of an operation. Owners send it to callers.
template <class V>
struct outcome {
  result what = result::done;
  bool changed = false;  ///< the key's bucket
  counted count = counted::nothing;
  bool strained = false;     ///< a cell has come to hold more than it should
  std::optional<V> value{};  ///< of find what was found, of others what they `give`
  bool in_cell = false;      ///< by an atomic on a cell, whose place may be remembered

  /// Whether an entry came or went.
  bool created() const { return count != counted::nothing; }

  /// Of one that is saved.
  static constexpr std::size_t longest = 1 + (fixed_length<V> ? sizeof(V) : std::size_t{1} << 32);

  void save(writer& out) const {
    out << static_cast<std::uint8_t>(changed | strained << 1 | value.has_value() << 2 |
                                     static_cast<int>(count) << 3);
    if (value) out << *value;
  }
  static outcome load(reader& in) {
    const int bits = in.read<std::uint8_t>();
    outcome o{result::done, (bits & 1) != 0, static_cast<counted>(bits >> 3), (bits & 2) != 0};
    if ((bits & 4) != 0) o.value.emplace(in.read<V>());
    return o;
  }
};

template <class T>
using outcome_of = outcome<typename T::mapped_type>;

/// Arguments that are small are passed by value, so that they stay in registers.
template <class T>
using pass_type =
    std::conditional_t<std::is_trivially_copyable_v<T> && sizeof(T) <= 16, T, const T&>;

/// Which value an update gives to its caller: none, the one that was there, or the one that is now.
enum class gives { nothing, old, made };

/// What is to become of the value of a key.
enum class decision { leave, write, remove };

// Updates:
//
//   static constexpr bool changes;    // a value that is there: else a free home is taken unseen
//   static constexpr bool creates;    // an entry where there is none
//   static constexpr bool reads;      // the value that is there
//   static constexpr gives result_is;
//   decision decide(bool is_there, const std::optional<V>& old, std::optional<V>& next) const;
//   initial() const;                  // the value of a new entry, if it creates
//
// decide() makes `next` what is to be written. It is given `old` if a value is there and `reads`. It
// communicates nothing. (Updates of stores: containers/detail/store/index.hpp.)
template <class V>
struct keep {  // insert
  static constexpr bool changes = false, creates = true, reads = false;
  static constexpr gives result_is = gives::nothing;
  pass_type<V> value;
  const V& initial() const { return value; }
  decision decide(bool is_there, const std::optional<V>&, std::optional<V>& next) const {
    if (is_there) return decision::leave;
    next.emplace(value);
    return decision::write;
  }
};
template <class V>
struct replace {  // insert_or_assign
  static constexpr bool changes = true, creates = true, reads = false;
  static constexpr gives result_is = gives::nothing;
  pass_type<V> value;
  const V& initial() const { return value; }
  decision decide(bool, const std::optional<V>&, std::optional<V>& next) const {
    next.emplace(value);
    return decision::write;
  }
};
template <class V, class Op>
struct combine {  // accumulate
  static constexpr bool changes = true, creates = true, reads = true;
  static constexpr gives result_is = gives::old;
  pass_type<V> value;
  Op& op;
  const V& initial() const { return value; }
  decision decide(bool is_there, const std::optional<V>& old, std::optional<V>& next) const {
    next.emplace(is_there ? static_cast<V>(op(*old, initial())) : initial());
    return decision::write;
  }
};
template <class V, class F>
struct transform {  // modify
  static constexpr bool changes = true, creates = true, reads = true;
  static constexpr gives result_is = gives::made;
  F& change;
  V initial() const {
    V value{};
    changed(value);
    return value;
  }
  decision decide(bool is_there, const std::optional<V>& old, std::optional<V>& next) const {
    changed(is_there ? next.emplace(*old) : next.emplace());
    return decision::write;
  }
  void changed(V& value) const {
    no_communication quiet("modify");
    change(value);
  }
};
struct remove {  // erase
  static constexpr bool changes = true, creates = false, reads = false;
  static constexpr gives result_is = gives::nothing;
  template <class V>
  decision decide(bool is_there, const std::optional<V>&, std::optional<V>&) const {
    return is_there ? decision::remove : decision::leave;
  }
};
struct look {  // find, which changes nothing: find_in() decides
  static constexpr bool changes = false, creates = false, reads = true;
  static constexpr gives result_is = gives::old;
};
template <class Update>
inline constexpr bool only_finds = std::is_same_v<Update, look>;

/// Additions that fetch_add makes.
template <class Update>
inline constexpr bool adds = false;
template <class V, class Op>
inline constexpr bool adds<combine<V, Op>> = std::is_same_v<std::remove_const_t<Op>, std::plus<>> ||
                                             std::is_same_v<std::remove_const_t<Op>, std::plus<V>>;

// Operations as they are sent to owners, each with one item: a key, or an entry. What has a
// function with something in it stays here. `update(item)` is what happens to the value.
template <container_operation Kind, template <class> class Update>
struct entry_there {
  static constexpr auto kind = Kind;
  static constexpr bool can_be_sent = true;
  template <class K, class V>
  Update<V> update(const std::pair<K, V>& entry) {
    return {entry.second};
  }
};
using insert_there = entry_there<container_operation::insert, keep>;
using assign_there = entry_there<container_operation::modify, replace>;
template <container_operation Kind, class Update>
struct key_there {
  static constexpr auto kind = Kind;
  static constexpr bool can_be_sent = true;
  template <class K>
  Update update(const K&) {
    return {};
  }
};
using find_there = key_there<container_operation::find, look>;
using erase_there = key_there<container_operation::erase, remove>;
template <class Op>
struct accumulate_there {
  static constexpr auto kind = container_operation::modify;
  static constexpr bool can_be_sent = is_stateless<Op>;
  template <class K, class V>
  combine<V, Op> update(const std::pair<K, V>& entry) {
    return {entry.second, op};
  }
  Op op;
};
template <class Update, class F>
struct function_there {
  static constexpr auto kind = container_operation::modify;
  static constexpr bool can_be_sent = is_stateless<F>;
  template <class K>
  Update update(const K&) {
    return {change};
  }
  F change;
};
template <class V, class F>
using modify_there = function_there<transform<V, F>, F>;

/// The key of an item. Told apart by their types alone: a key may well have a member `first`, as
/// pairs have.
template <class K>
const K& key_of(const K& key) {
  return key;
}
template <class K, class V>
const K& key_of(const std::pair<K, V>& entry) {
  return entry.first;
}

/// The item of an update: an entry if it has a value, else a key.
template <class V, class K, class Update>
auto item_of(const K& key, const Update& by) {
  if constexpr (requires { by.value; })
    return std::pair<K, V>(key, by.value);
  else
    return key;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

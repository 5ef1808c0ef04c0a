// What the operations of a map are: what they do to the value of a key, what is sent to owners for
// them, and what comes of them. The protocol is compiled for each kind.
#pragma once

#include <farside/containers/detail/dispatch/choice.hpp>
#include <farside/containers/detail/map/traits.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/context.hpp>

#include <functional>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What an operation has done to the counts of a table.
enum class counted { nothing, at_home, displaced, erased, revived };

/// What has come of an operation. Owners send it to callers.
template <class V>
struct outcome {
  result what = result::done;
  bool created = false;  ///< of erase: whether it was there
  counted count = counted::nothing;
  bool strained = false;     ///< a cell has come to hold more than it should
  std::optional<V> value{};  ///< of find what was found, of others what they `give`
  bool in_cell = false;      ///< by an atomic on a cell, whose place may be remembered

  /// Of one that is saved.
  static constexpr std::size_t longest = 1 + (fixed_length<V> ? sizeof(V) : std::size_t{1} << 32);

  void save(writer& out) const {
    out << static_cast<std::uint8_t>(created | strained << 1 | value.has_value() << 2 |
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

// What happens to a value that is there (`next`), and which one comes where none is (`initial`).
// `changes`: not if there is one. `reads`: `next` looks at it.
template <class V>
struct keep {  // insert
  static constexpr bool changes = false, reads = false;
  static constexpr gives result_is = gives::nothing;
  pass_type<V> value;
  const V& initial() const { return value; }
  const V& next(const V&) const { return value; }
};
template <class V>
struct replace {  // insert_or_assign
  static constexpr bool changes = true, reads = false;
  static constexpr gives result_is = gives::nothing;
  pass_type<V> value;
  const V& initial() const { return value; }
  const V& next(const V&) const { return value; }
};
template <class V, class Op>
struct combine {  // accumulate
  static constexpr bool changes = true, reads = true;
  static constexpr gives result_is = gives::old;
  pass_type<V> value;
  Op& op;
  const V& initial() const { return value; }
  V next(const V& old) const { return static_cast<V>(op(old, value)); }
};
template <class V, class F>
struct transform {  // modify
  static constexpr bool changes = true, reads = true;
  static constexpr gives result_is = gives::made;
  F& change;
  V initial() const { return next(V()); }
  V next(const V& old) const {
    V value = old;
    no_communication quiet("modify");
    change(value);
    return value;
  }
};
/// erase: no value comes.
struct remove {
  static constexpr bool changes = true, reads = false;
  static constexpr gives result_is = gives::nothing;
};
/// find: nothing happens to the value.
struct look {
  static constexpr bool changes = false, reads = true;
  static constexpr gives result_is = gives::old;
};
template <class Update>
inline constexpr bool erases = std::is_same_v<Update, remove>;
template <class Update>
inline constexpr bool only_finds = std::is_same_v<Update, look>;

/// What is to become of the value of a key.
enum class decision { leave, write, remove };

// Updates of stores (containers/detail/store/index.hpp) look at what is there, parked buckets among
// it, and then decide:
//
//   static constexpr bool changes;   // an entry that is there: else a free home is taken unseen
//   static constexpr bool creates;   // an entry where there is none
//   decision decide(const V* old, V& next) const;   // null: no entry; communicates nothing
//   const V& initial() const;        // if it creates
//
// An outcome says with `created` whether anything was changed, and with `value` what was there.
template <class Update>
inline constexpr bool decides = requires { Update::creates; };
template <class Update>
inline constexpr bool reads_old = Update::reads;
template <class Update>
  requires decides<Update>
inline constexpr bool reads_old<Update> = true;
template <class Update>
inline constexpr gives result_of = Update::result_is;
template <class Update>
  requires decides<Update>
inline constexpr gives result_of<Update> = gives::old;
/// Updates that leave a key without an entry if it has none.
template <class Update>
inline constexpr bool creates_none = erases<Update> || only_finds<Update>;
template <class Update>
  requires decides<Update>
inline constexpr bool creates_none<Update> = !Update::creates;

/// What an update makes of what a key has: `next` if it is to be written. `old` is there if there
/// is an entry whose value the update reads.
template <class Update, class V>
FARSIDE_HOT inline decision decide(const Update& by, bool is_there, const std::optional<V>& old,
                                   std::optional<V>& next) {
  if constexpr (decides<Update>) {
    return by.decide(old ? &*old : nullptr, next.emplace());
  } else if constexpr (erases<Update>) {
    return is_there ? decision::remove : decision::leave;
  } else {
    if (is_there && !Update::changes) return decision::leave;
    if constexpr (Update::reads)
      if (is_there) return next.emplace(by.next(*old)), decision::write;
    next.emplace(by.initial());
    return decision::write;
  }
}
/// Entries that nobody has put, such as parked ones: neither they nor their ends count.
template <class V>
bool is_entry(const std::optional<V>& value) {
  if constexpr (requires { value->counts_as_absent(); })
    return value && !value->counts_as_absent();
  else
    return value.has_value();
}

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
template <class V, class F>
struct modify_there {
  static constexpr auto kind = container_operation::modify;
  static constexpr bool can_be_sent = is_stateless<F>;
  template <class K>
  transform<V, F> update(const K&) {
    return {change};
  }
  F change;
};

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

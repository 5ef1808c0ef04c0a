// far::hash_map<K, V>: a hash table over all members of a team. Every rank reads and changes it, at
// any time, without the help of those who hold its parts; it grows by itself.
//
//   far::hash_map<std::string, int> ages(1000);      // collective
//   ages.insert("Ada", 36);                          // one-sided, like all below
//   if (auto age = ages.find("Ada")) ...
//   ages.accumulate("Ada", 1);                       // atomic create-or-add
//   ages["Ada"] = 37;
//
// Keys and values are of any serializable type; what is of fixed length is stored in place. Every
// operation takes effect at one moment between its call and its return (it is linearizable), also
// while the map grows. Costs in gets R, puts W, atomics A, and round trips waited for, are those of
// docs/costs.md; docs/protocols/hash_map.md says how it works and why it is right.
#pragma once

#include <farside/containers/detail/map/bulk.hpp>
#include <farside/containers/detail/map/engine.hpp>
#include <farside/containers/detail/map/iteration.hpp>
#include <farside/containers/detail/map/snapshot_file.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/future.hpp>
#include <farside/core/hash.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {
template <class Op, class V>
constexpr void require_combines() {
  static_assert(std::is_invocable_r_v<V, Op&, const V&, const V&>,
                "accumulate cannot combine values by this: op(value that is there, value that is "
                "given) must be possible and give a value. The operator stands before the promise: "
                "accumulate(key, value, std::plus<>(), far::concurrency::modify).");
}
}  // namespace detail

/// How full a map is, and how evenly; see hash_map::statistics.
struct hash_map_statistics {
  std::uint64_t entries = 0;
  std::uint64_t erased = 0;  ///< buckets whose key was erased; the next growth drops them
  std::uint64_t buckets = 0;
  std::uint64_t bytes = 0;  ///< of tables, without what variable-length keys and values take
  double load_factor = 0;   ///< (entries + erased) / buckets
  double mean_probes = 0;   ///< buckets looked at to find an entry
  std::uint64_t most_probes = 0;
  std::uint64_t fewest_entries = 0;  ///< on a member
  std::uint64_t most_entries = 0;
  double skew = 0;  ///< most_entries / mean
};

template <class K, class V, class Hash = hash<K>, class Probing = linear_probing>
class hash_map {
  using engine = detail::map::engine<K, V, Hash, Probing>;

 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;
  using iterator = detail::map::iterator<engine, K, V>;

  /// Of nothing; only assignment makes sense.
  hash_map() = default;

  /// Collective. Has room for `expected` entries before it grows for the first time.
  explicit hash_map(std::size_t expected, const container_options& with = {}) {
    detail::require_serializable<K>();
    detail::require_serializable<V>();
    team over = with.over ? with.over : world();
    require_buckets(with.name.empty() ? "hash_map" : "hash_map '" + with.name + "'", expected,
                    over.size());
    state_ = detail::container_handle<engine>(
        new engine(with, engine::capacity_for(expected, over.size())));
    quick_ = detail::map::quick_handle(state_->tables.quick());
  }

  // --- one key -----------------------------------------------------------------------------------

  /// Adds an entry if the key has none; the old value stays if it has. Returns whether it was
  /// added. A + W and 2 waits if the key's home bucket is free, else one more A and R. One-sided;
  /// complete on return, here and there.
  FARSIDE_HOT bool insert(const K& key, const V& value,
                          concurrency with = concurrency::everything) {
    check(container_operation::insert, "insert", key, with);
    return update(key, detail::map::keep<V>{value}, with).created;
  }

  /// Adds an entry, or replaces its value. Returns whether it was added. R + A + W, 3 waits; R + A
  /// and 2 waits if V is an integer and the key is there.
  bool insert_or_assign(const K& key, const V& value, concurrency with = concurrency::everything) {
    check(container_operation::modify, "insert_or_assign", key, with);
    return update(key, detail::map::replace<V>{value}, with).created;
  }

  /// The value of a key, if it has one. R, 1 wait, whatever runs at the same time; one R more for
  /// keys or values of variable length.
  FARSIDE_HOT std::optional<V> find(const K& key,
                                    concurrency with = concurrency::everything) const {
    check(container_operation::find, "find", key, with);
    if constexpr (engine::has_quick_ways) {
      if (const auto& tables = *quick_; tables.capacity != 0) [[likely]] {
        bool clear;
        auto found = includes(concurrency::find | concurrency::owner_only, with)
                         ? engine::template find_quickly<true>(tables, key, clear)
                         : engine::template find_quickly<false>(tables, key, clear);
        if (clear) [[likely]]
          return found;
      }
    }
    if constexpr (engine::has_quick_gets) {
      if (const auto& tables = *quick_;
          tables.by_gets != 0 && !includes(with, concurrency::owner_only))
        return state_.unchecked()->find_by_one_get(tables, key, with);
    }
    return find_otherwise(key, with);
  }
  FARSIDE_HOT bool contains(const K& key, concurrency with = concurrency::everything) const {
    return find(key, with).has_value();
  }

  /// Removes a key. Returns whether it was there. R + A, 2 waits.
  bool erase(const K& key, concurrency with = concurrency::everything) {
    engine& e = enter(container_operation::erase, "erase", key, with);
    return e.erase(key, e.place_of(key), with);
  }

  /// Replaces the value v of a key by op(v, value), or adds the entry if there is none, as one
  /// step. Returns what was there before. Adding integers to a key that this rank has added to
  /// before: A, 1 wait; the first time R + A, 2 waits. Else R + A + W, 3 waits. `op` may not
  /// communicate, and may be called more than once.
  template <class Op = std::plus<>>
  FARSIDE_HOT std::optional<V> accumulate(const K& key, const V& value, Op op = {},
                                          concurrency with = concurrency::everything) {
    detail::require_combines<Op, V>();
    check(container_operation::modify, "accumulate", key, with);
    return update(key, detail::map::combine<V, Op>{value, op}, with).old;
  }
  /// The same by +, with a promise.
  FARSIDE_HOT std::optional<V> accumulate(const K& key, const V& value, concurrency with) {
    return accumulate(key, value, std::plus<>(), with);
  }

  /// Calls `change(value)` on the value of a key, of V() if it has none, and stores the result, as
  /// one step. Returns the new value. `change` may not communicate, and may be called more than
  /// once. R + A + W, 3 waits. By engine::rpc a lambda without captures runs on the owner: what it
  /// names outside of itself is the owner's.
  template <class F>
    requires std::invocable<F&, V&>
  V modify(const K& key, F change, concurrency with = concurrency::everything) {
    engine& e = enter(container_operation::modify, "modify", key, with);
    if constexpr (detail::travels<F>)
      if (detail::map::place p = e.place_of(key);
          e.asks(container_operation::modify, p.member, with))
        if (auto done = e.ask(p.member, detail::map::modify_there<F>{change}, key, with))
          return *std::move(done->value);
    std::optional<V> made;
    auto remember = [&](V& value) {
      change(value);
      made = value;
    };
    update(key, detail::map::transform<V, decltype(remember)>{remember}, with);
    return *std::move(made);
  }

  /// What operator[] gives: reads by find, writes by insert_or_assign, adds by accumulate.
  class reference {
   public:
    operator V() const { return map_.find(key_).value_or(V()); }
    const reference& operator=(const V& value) const {
      map_.insert_or_assign(key_, value);
      return *this;
    }
    const reference& operator=(const reference& other) const { return *this = V(other); }
    const reference& operator+=(const V& value) const {
      map_.accumulate(key_, value);
      return *this;
    }

   private:
    friend hash_map;
    reference(hash_map& map, const K& key) : map_(map), key_(key) {}
    hash_map& map_;
    K key_;
  };
  reference operator[](const K& key) { return reference(*this, key); }

  // --- one key, not waited for
  // ---------------------------------------------------------------------

  /// Like the operations above; the first round trip is in flight on return, and the operation is
  /// complete when its future is ready. The map must live until then. By engine::rpc they are sent
  /// with others to the same rank, at the latest when this one next waits or makes progress.
  future<std::optional<V>> async_find(const K& key,
                                      concurrency with = concurrency::everything) const;
  future<bool> async_insert(const K& key, const V& value,
                            concurrency with = concurrency::everything);
  future<bool> async_insert_or_assign(const K& key, const V& value,
                                      concurrency with = concurrency::everything);
  future<bool> async_erase(const K& key, concurrency with = concurrency::everything);
  template <class Op = std::plus<>>
  future<std::optional<V>> async_accumulate(const K& key, const V& value, Op op = {},
                                            concurrency with = concurrency::everything);
  future<std::optional<V>> async_accumulate(const K& key, const V& value, concurrency with) {
    return async_accumulate(key, value, std::plus<>(), with);
  }
  template <class F>
    requires std::invocable<F&, V&>
  future<V> async_modify(const K& key, F change, concurrency with = concurrency::everything);

  // --- many keys
  // -----------------------------------------------------------------------------------

  /// The same for many keys, with many of them in flight together; results are in the order of the
  /// keys. Each takes effect at a moment of its own; changes of one key in the order in which they
  /// are given, finds in any.
  std::vector<std::optional<V>> find(std::span<const K> keys,
                                     concurrency with = concurrency::everything) const;
  /// The same into `results`, which become as many as the keys: a loop needs one vector.
  void find(std::span<const K> keys, std::vector<std::optional<V>>& results,
            concurrency with = concurrency::everything) const;
  std::vector<bool> contains(std::span<const K> keys,
                             concurrency with = concurrency::everything) const;
  /// Returns how many were new.
  std::size_t insert(std::span<const value_type> entries,
                     concurrency with = concurrency::everything);
  std::size_t insert_or_assign(std::span<const value_type> entries,
                               concurrency with = concurrency::everything);
  /// Returns how many were there.
  std::size_t erase(std::span<const K> keys, concurrency with = concurrency::everything);
  template <class Op = std::plus<>>
  void accumulate(std::span<const value_type> entries, Op op = {},
                  concurrency with = concurrency::everything);
  void accumulate(std::span<const value_type> entries, concurrency with) {
    accumulate(entries, std::plus<>(), with);
  }

  // --- the whole
  // -----------------------------------------------------------------------------------

  /// How many entries there are: what each rank had added and not erased when it last came to a
  /// barrier, and what this rank has by now. Exact after a barrier. One R for each member, 1 wait.
  std::size_t size() const { return state_->total_size(); }
  bool empty() const { return size() == 0; }

  /// Collective: removes all entries. Tables keep their sizes.
  void clear();

  /// Collective: makes room for `entries` altogether, so that the map does not grow before.
  void reserve(std::size_t entries);

  /// The entries whose keys this rank holds. Not collective.
  iterator begin() const { return iterator(*state_, state_->members.rank(), 1); }
  iterator end() const { return {}; }
  /// All entries, beginning with this rank's. Not collective; reads everybody's part.
  detail::map::range<iterator> everywhere() const {
    return {iterator(*state_, state_->members.rank(), state_->members.size())};
  }

  /// Collective: writes all entries to a file, or throws on all ranks and leaves a file of that
  /// name as it was. The file gets its name when all of it is on the disk, so that it is whole
  /// also if two jobs save to one name, or if this one is killed.
  void save(const std::string& path) const;
  /// Collective: adds the entries of a file that a map of the same types has saved, on any number
  /// of ranks; values that are there already are replaced. A file that is damaged, cut off or of
  /// other types throws on all ranks and leaves the map as it was; classes are told apart by their
  /// sizes alone. Takes memory for the entries twice while it runs. If the segments have no room
  /// for them it throws on all ranks, too, and the map may have some.
  void load(const std::string& path);

  /// Collective.
  hash_map_statistics statistics() const;

  /// The rank that holds a key.
  rank_t owner(const K& key) const {
    return state_->members.world_rank(state_->place_of(key).member);
  }
  /// How operations of a kind (concurrency::find, insert, modify or erase) reach the owners of
  /// keys. Local.
  far::engine engine_of(container_operation kind) const { return state_->choice.of(kind); }
  /// What this rank has sent to owners. Local.
  far::engine_use engine_use() const { return state_->choice.use(); }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  /// For what is built on it in this library.
  engine& implementation() const { return *state_; }

 private:
  friend detail::handle_access;
  explicit hash_map(detail::container_handle<engine> of)
      : state_(std::move(of)), quick_(state_->tables.quick()) {}

  /// A member has 1.5 buckets for each entry and some more: more than 2 of them no table has.
  static void require_buckets(const std::string& what, std::size_t entries, rank_t members) {
    detail::require_possible(what, entries, 2 * sizeof(typename engine::entry), members);
  }

  FARSIDE_HOT engine& enter(container_operation kind, const char* name, const K& key,
                            concurrency with) const {
    engine& e = *state_;
    if constexpr (FARSIDE_CHECKED) {
      detail::no_communication::check();
      // Whatever else is promised with it, `local` says that nobody else is there.
      e.overlaps.check(kind, name,
                       includes(with, concurrency::owner_only) ? concurrency::owner_only : with,
                       [&] { return detail::describe(key); });
      if (includes(with, concurrency::owner_only) && e.place_of(key).member != e.members.rank())
        detail::raise(
            e.kind_name, " '", e.label, "': ", name, "(", detail::describe(key),
            ") was promised to be local, but rank ", owner(key),
            " holds that key. Leave concurrency::owner_only out, or ask owner(key) first.");
    }
    return e;
  }
  engine& enter_many(container_operation kind, const char* name, std::span<const K> keys,
                     concurrency with) const {
    for (std::size_t i = 0; FARSIDE_CHECKED && i < keys.size(); ++i)
      enter(kind, name, keys[i], with);
    return *state_;
  }
  engine& enter_many(container_operation kind, const char* name,
                     std::span<const value_type> entries, concurrency with) const {
    for (std::size_t i = 0; FARSIDE_CHECKED && i < entries.size(); ++i)
      enter(kind, name, entries[i].first, with);
    return *state_;
  }

  /// What enter() does in checked builds, before a quick way.
  FARSIDE_HOT void check(container_operation kind, const char* name, const K& key,
                         concurrency with) const {
    if constexpr (FARSIDE_CHECKED) enter(kind, name, key, with);
  }

  template <class Update>
  FARSIDE_HOT auto update(const K& key, const Update& by, concurrency with) {
    if constexpr (engine::has_quick_ways) {
      typename engine::outcome done;
      const auto& tables = *quick_;
      auto quickly = [&]<bool Owned>() __attribute__((always_inline)) {
        return engine::template update_quickly<Owned>(
            tables, {tables, tables.changeable, key}, key, by, done,
            [this](rank_t of) { state_.unchecked()->count_away(of); });
      };
      // One of the two ways: a promise that only a running program knows is not worth both, nor one
      // that is behind a call. (Not const: a compiler would see to it too early, and know nothing.)
      bool owned = __builtin_constant_p(with) && includes(with, concurrency::owner_only);
      if (tables.changeable != 0) [[likely]]
        if (owned ? quickly.template operator()<true>() : quickly.template operator()<false>())
            [[likely]]
          return done;
    }
    if constexpr (engine::has_quick_gets) {
      if (const auto& tables = *quick_;
          tables.by_gets != 0 && !includes(with, concurrency::owner_only)) {
        engine& e = *state_.unchecked();
        if constexpr (engine::template changes_by_one_get<Update>)
          return e.template update_by_one_get<Update>(tables, key, by, with);
        else if constexpr (engine::template adds_by_one_atomic<Update>)
          return engine::outcome::of_old(e.template add_by_one_atomic<Update>(key, by, with));
        else if constexpr (engine::template creates_by_one_swap<Update>)
          return e.template create_by_one_swap<Update>(tables, key, by, with);
      }
    }
    return update_otherwise<Update>(key, by, with);
  }
  /// All that quick ways are not for. Apart from them, so that nothing has to be kept for it.
  [[gnu::noinline]] std::optional<V> find_otherwise(detail::map::handed<K> key,
                                                    concurrency with) const {
    engine& e = *state_;
    return e.find(key, e.place_of(key), with);
  }
  template <class Update>
  [[gnu::noinline]] auto update_otherwise(detail::map::handed<K> key,
                                          detail::map::handed<Update> by, concurrency with) {
    engine& e = *state_;
    return e.update(key, e.place_of(key), by, with);
  }

  template <class What, class Item, class Result, class Finish>
  auto begin(container_operation kind, const What& what, const Item& item, concurrency with,
             Result result, Finish finish) const;
  template <class Finish>
  auto with_window_in_flight(const K& key, concurrency with, Finish finish) const;

  detail::container_handle<engine> state_;
  detail::map::quick_handle quick_;
};

}  // namespace far::inline FARSIDE_BACKEND

#include <farside/containers/detail/map/hash_map_impl.hpp>
#include <farside/containers/detail/map/snapshot.hpp>

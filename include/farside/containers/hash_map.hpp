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

#include <farside/containers/detail/map/hash_map_impl.hpp>
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
  std::uint64_t displaced = 0;     ///< entries whose home bucket was another one's
  std::uint64_t further_gets = 0;  ///< after the first one, of a find of each entry from elsewhere
  std::uint64_t equal_hashes = 0;  ///< pairs of entries with the same 64 bits of hash, on a member
  std::uint64_t fewest_entries = 0;  ///< on a member
  std::uint64_t most_entries = 0;
  double skew = 0;  ///< most_entries / mean
};

template <class K, class V, class Hash = hash<K>, class Probing = linear_probing>
class hash_map {
  using core = detail::map::map_core<detail::map::map_traits<K, V, Hash, Probing>>;

 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;
  using iterator = detail::map::iterator<core>;

  /// An empty handle. Assign a map to it before use.
  hash_map() = default;

  /// Collective. Has room for `expected` entries before it grows for the first time.
  explicit hash_map(std::size_t expected, const container_options& with = {}) {
    detail::require_serializable<K>();
    detail::require_serializable<V>();
    team over = with.over ? with.over : world();
    detail::map::require_buckets<typename core::traits>(
        with.name.empty() ? "hash_map" : "hash_map '" + with.name + "'", expected, over.size());
    state_ =
        detail::container_handle<core>(new core(with, core::capacity_for(expected, over.size())));
    tables_ = state_->tables.fast();
  }

  // --- one key -----------------------------------------------------------------------------------

  /// Adds an entry if the key has none; the old value stays if it has. Returns whether it was
  /// added. A + W and 2 waits if the key's home bucket is free, else one more A and R. One-sided;
  /// complete on return, here and there.
  FARSIDE_HOT bool insert(const K& key, const V& value,
                          concurrency with = concurrency::everything) {
    return change("insert", detail::map::insert_there(), key, detail::map::keep<V>{value}, with)
        .created();
  }

  /// Adds an entry, or replaces its value. Returns whether it was added. R + A + W, 3 waits; R + A
  /// and 2 waits if V is an integer and the key is there.
  bool insert_or_assign(const K& key, const V& value, concurrency with = concurrency::everything) {
    return change("insert_or_assign", detail::map::assign_there(), key,
                  detail::map::replace<V>{value}, with)
        .created();
  }

  /// The value of a key, if it has one. R, 1 wait, whatever runs at the same time; one R more for
  /// keys or values of variable length.
  FARSIDE_HOT std::optional<V> find(const K& key,
                                    concurrency with = concurrency::everything) const {
    check(container_operation::find, "find", key, with);
    return detail::map::find(tables_, state_, located(key), key, with);
  }
  FARSIDE_HOT bool contains(const K& key, concurrency with = concurrency::everything) const {
    return find(key, with).has_value();
  }

  /// Removes a key. Returns whether it was there. R + A, 2 waits.
  bool erase(const K& key, concurrency with = concurrency::everything) {
    return change("erase", detail::map::erase_there(), key, detail::map::remove(), with).created();
  }

  /// Replaces the value v of a key by op(v, value), or adds the entry if there is none, as one
  /// step. Returns what was there before. Adding integers to a key that this rank has added to
  /// before: A, 1 wait; the first time R + A, 2 waits. Else R + A + W, 3 waits. `op` may not
  /// communicate, and may be called more than once.
  template <class Op = std::plus<>>
  FARSIDE_HOT std::optional<V> accumulate(const K& key, const V& value, Op op = {},
                                          concurrency with = concurrency::everything) {
    detail::require_combines<Op, V>();
    detail::map::accumulate_there<Op> there{std::move(op)};
    return change("accumulate", there, key, detail::map::combine<V, Op>{value, there.op}, with)
        .value;
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
  V modify(const K& key, F change_value, concurrency with = concurrency::everything) {
    detail::map::modify_there<V, F> there{std::move(change_value)};
    return *change("modify", there, key, there.update(key), with).value;
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

  // --- one key, not waited for -----------------------------------------------------------------

  /// Like the operations above; the first round trip is in flight on return, and the operation is
  /// complete when its future is ready. The map must live until then. By engine::rpc they are sent
  /// with others to the same rank, at the latest when this one next waits or makes progress.
  future<std::optional<V>> async_find(const K& key,
                                      concurrency with = concurrency::everything) const {
    return begin("find", detail::map::find_there(), key, with, value_of);
  }
  future<bool> async_insert(const K& key, const V& value,
                            concurrency with = concurrency::everything) {
    return begin("insert", detail::map::insert_there(), value_type(key, value), with, was_created);
  }
  future<bool> async_insert_or_assign(const K& key, const V& value,
                                      concurrency with = concurrency::everything) {
    return begin("insert_or_assign", detail::map::assign_there(), value_type(key, value), with,
                 was_created);
  }
  future<bool> async_erase(const K& key, concurrency with = concurrency::everything) {
    return begin("erase", detail::map::erase_there(), key, with, was_created);
  }
  template <class Op = std::plus<>>
  future<std::optional<V>> async_accumulate(const K& key, const V& value, Op op = {},
                                            concurrency with = concurrency::everything) {
    detail::require_combines<Op, V>();
    return begin("accumulate", detail::map::accumulate_there<Op>{std::move(op)},
                 value_type(key, value), with, value_of);
  }
  future<std::optional<V>> async_accumulate(const K& key, const V& value, concurrency with) {
    return async_accumulate(key, value, std::plus<>(), with);
  }
  template <class F>
    requires std::invocable<F&, V&>
  future<V> async_modify(const K& key, F change_value, concurrency with = concurrency::everything) {
    return begin("modify", detail::map::modify_there<V, F>{std::move(change_value)}, key, with,
                 [](auto done) { return *std::move(done.value); });
  }

  // --- many keys -------------------------------------------------------------------------------

  /// The same for many keys, with many of them in flight together; results are in the order of the
  /// keys. Each takes effect at a moment of its own; changes of one key in the order in which they
  /// are given, finds in any. If there is no room for one it throws, and others may have been made.
  std::vector<std::optional<V>> find(std::span<const K> keys,
                                     concurrency with = concurrency::everything) const {
    std::vector<std::optional<V>> results;
    find(keys, results, with);
    return results;
  }
  /// The same into `results`, which become as many as the keys: a loop needs one vector.
  void find(std::span<const K> keys, std::vector<std::optional<V>>& results,
            concurrency with = concurrency::everything) const {
    check_all(container_operation::find, "find", keys, with);
    detail::map::find_many(tables_, state_, keys, results, with);
  }
  std::vector<bool> contains(std::span<const K> keys,
                             concurrency with = concurrency::everything) const {
    std::vector<bool> results;
    for (const auto& value : find(keys, with)) results.push_back(value.has_value());
    return results;
  }
  /// Returns how many were new.
  std::size_t insert(std::span<const value_type> entries,
                     concurrency with = concurrency::everything) {
    return change_many("insert", detail::map::insert_there(), entries, with);
  }
  std::size_t insert_or_assign(std::span<const value_type> entries,
                               concurrency with = concurrency::everything) {
    return change_many("insert_or_assign", detail::map::assign_there(), entries, with);
  }
  /// Returns how many were there.
  std::size_t erase(std::span<const K> keys, concurrency with = concurrency::everything) {
    return change_many("erase", detail::map::erase_there(), keys, with);
  }
  template <class Op = std::plus<>>
  void accumulate(std::span<const value_type> entries, Op op = {},
                  concurrency with = concurrency::everything) {
    detail::require_combines<Op, V>();
    change_many("accumulate", detail::map::accumulate_there<Op>{std::move(op)}, entries, with);
  }
  void accumulate(std::span<const value_type> entries, concurrency with) {
    accumulate(entries, std::plus<>(), with);
  }

  // --- the whole -------------------------------------------------------------------------------

  /// How many entries there are: what each rank had added and not erased when it last came to a
  /// barrier, and what this rank has by now. Exact after a barrier. One R for each member, 1 wait.
  std::size_t size() const { return state_->total_size(); }
  bool empty() const { return size() == 0; }

  /// Collective: removes all entries. Tables keep their sizes.
  void clear() { detail::map::clear(*state_); }

  /// Collective: makes room for `entries` altogether, so that the map does not grow before.
  void reserve(std::size_t entries) { detail::map::reserve(*state_, entries); }

  /// The entries whose keys this rank holds. Not collective.
  iterator begin() const { return iterator(*state_, state_->members.rank(), 1); }
  iterator end() const { return {}; }
  /// All entries, beginning with this rank's. Not collective; reads everybody's part.
  detail::copying_range<iterator> everywhere() const {
    return {iterator(*state_, state_->members.rank(), state_->members.size())};
  }

  /// Collective: writes all entries to a file, or throws on all ranks and leaves a file of that
  /// name as it was. The file gets its name when all of it is on the disk, so that it is whole
  /// also if two jobs save to one name, or if this one is killed.
  void save(const std::string& path) const { detail::map::save(*state_, path); }
  /// Collective: adds the entries of a file that a map of the same types has saved, on any number
  /// of ranks; values that are there already are replaced. A file that is damaged, cut off or of
  /// other types throws on all ranks and leaves the map as it was; classes are told apart by their
  /// sizes alone. So does a segment without room for the entries (far::allocation_error): all keys
  /// of the file count as new ones there. Takes memory for the entries twice while it runs.
  void load(const std::string& path) { detail::map::load(tables_, state_, path); }

  /// Collective.
  hash_map_statistics statistics() const {
    return detail::map::statistics<hash_map_statistics>(*state_);
  }

  /// The rank that holds a key.
  rank_t owner(const K& key) const {
    return state_->members.world_rank(state_->place_of(key).member);
  }
  /// How operations of a kind (concurrency::find, insert, modify or erase) reach the owners of keys.
  /// Local.
  far::engine engine_of(container_operation kind) const { return state_->choice.of(kind); }
  /// What this rank has sent to owners. Local.
  far::engine_use engine_use() const { return state_->choice.use(); }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  /// For what is built on it in this library.
  core& implementation() const { return *state_; }

 private:
  friend detail::handle_access;
  explicit hash_map(detail::container_handle<core> of)
      : state_(std::move(of)), tables_(state_->tables.fast()) {}

  static constexpr auto was_created = [](auto done) { return done.created(); };
  static constexpr auto value_of = [](auto done) { return std::move(done.value); };

  FARSIDE_HOT detail::map::key_location located(const K& key) const {
    return {core::hash_of(key), tables_.members()};
  }

  /// Checked builds validate the call.
  FARSIDE_HOT void check([[maybe_unused]] container_operation kind,
                         [[maybe_unused]] const char* name, [[maybe_unused]] const K& key,
                         [[maybe_unused]] concurrency with) const {
    if constexpr (FARSIDE_CHECKED) {
      core& m = *state_;
      detail::no_communication::check();
      // Whatever else is promised with it, `owner_only` says that nobody else is there.
      const bool alone = includes(with, concurrency::owner_only);
      m.overlaps.check(kind, name, alone ? concurrency::owner_only : with,
                       [&] { return detail::describe(key); });
      if (alone && m.place_of(key).member != m.members.rank())
        detail::raise(
            m.kind_name, " '", m.label, "': ", name, "(", detail::describe(key),
            ") was promised to be local, but rank ", owner(key),
            " holds that key. Leave concurrency::owner_only out, or ask owner(key) first.");
    }
  }
  template <class Item>
  void check_all(container_operation kind, const char* name, std::span<const Item> items,
                 concurrency with) const {
    for (std::size_t i = 0; FARSIDE_CHECKED && i < items.size(); ++i)
      check(kind, name, detail::map::key_of<K>(items[i]), with);
  }

  template <class Op, class Update>
  FARSIDE_HOT auto change(const char* name, Op&& op, const K& key, const Update& by,
                          concurrency with) {
    check(std::remove_cvref_t<Op>::kind, name, key, with);
    typename core::outcome_type result;
    detail::map::update(tables_, state_, op, located(key), key, by, with,
                        [&](typename core::outcome_type&& done) { result = std::move(done); });
    return result;
  }
  template <class Op, class Item>
  std::size_t change_many(const char* name, Op op, std::span<const Item> items, concurrency with) {
    check_all(Op::kind, name, items, with);
    return detail::map::update_many(tables_, state_, std::move(op), items, with);
  }
  template <class Op, class Item, class Finish>
  auto begin(const char* name, Op op, const Item& item, concurrency with, Finish finish) const {
    check(Op::kind, name, detail::map::key_of<K>(item), with);
    return detail::map::begin(*state_, std::move(op), item, with, finish);
  }

  detail::container_handle<core> state_;
  detail::map::fast_handle tables_;
};

}  // namespace far::inline FARSIDE_BACKEND

// far::store<K, V, Placement>: data named by key, spread over the members of a team. Every rank puts,
// reads, changes and erases values of any size, at any time; a rank can wait for a key that is yet to
// come, and go on when somebody puts it.
//
//   far::store<int, matrix_block> blocks(1000);             // collective
//   blocks.put(7, block);                                    // one-sided
//   if (auto there = blocks.get(7)) ...
//   blocks.when(8).then([](matrix_block b) { ... });         // when it is put, by whomever
//   blocks.post(9, block);                                   // its owner puts it, sooner or later
//   blocks.fence();                                          // collective: now all posts are there
//
// Values of up to 64 bytes lie in the buckets of a hash table, others at the owner of their key, whom
// the placement chooses. All but post is linearizable. docs/protocols/store.md says how it works and
// why it is right, docs/costs.md what it costs, in gets R, puts W and atomics A.
#pragma once

#include <farside/containers/detail/store/cells.hpp>
#include <farside/containers/detail/store/direct_get.hpp>
#include <farside/containers/detail/store/local.hpp>
#include <farside/containers/detail/store/whole.hpp>

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

template <class K, class V, class Placement = by_hash<K>>
class store {
  using core = detail::stores::store_core<K, V, Placement>;
  using slot = typename core::V;
  using outcome = typename core::outcome;
  using changed = detail::stores::changed;
  using own_part = detail::stores::own_part<core>;
  static constexpr auto wait = detail::map::if_blocked::wait;

 public:
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;
  using iterator = detail::stores::entry_iterator<core>;
  using local_range = detail::stores::local_range<core>;

  /// An empty handle. Assign a store to it before use.
  store() = default;

  /// Collective. Has room for `expected` entries before its index grows for the first time.
  explicit store(std::size_t expected, const store_options& with = {}, Placement choose = {}) {
    detail::require_serializable<K>();
    detail::require_serializable<V>();
    if (with.mutability == mutability::once && with.on_duplicate == on_duplicate::replace)
      detail::raise(
          "store: on_duplicate::replace with mutability::once: a post would replace a value of "
          "which readers keep copies. Choose on_duplicate::keep or error, or mutability::any.");
    team over = with.over ? with.over : world();
    detail::map::require_buckets<typename core::T>(
        with.name.empty() ? "store" : "store '" + with.name + "'", expected, over.size());
    state_ = detail::container_handle<core>(
        new core(with, core::capacity_for(expected, over.size()), std::move(choose)));
    tables_ = state_->tables.fast();
    detail::stores::require_same_placement(*state_, state_->placing.choose);
  }

  // --- one key -----------------------------------------------------------------------------------

  /// Adds an entry. False if the key has one, which stays as it is. One-sided; complete on return,
  /// here and there. A + 2W + A/16, 3 waits; A + W, 2 waits for values of up to 64 bytes.
  bool put(const K& key, const V& value) {
    own_part free_of_charge(*state_, key);
    outcome counts;
    return state_->template put_value<wait>(key, value, counts) == changed::yes;
  }

  /// Asks the owner of the key to add an entry, which it does when it serves messages. The value has
  /// been copied on return; the entry is visible some time later, after fence() for certain. Where
  /// `pending_slots` posts of this rank wait at the owner already, this waits, too. One-sided. W + A,
  /// 2 waits; own keys: nothing.
  void post(const K& key, const V& value) {
    own_part free_of_charge(*state_, key);
    state_->posts.post(*state_, key, value);
  }

  /// The value of a key, if it has one. One-sided. Up to 64 bytes: R, 1 wait. Larger: R, 1 wait, if
  /// this rank remembers where it lies, else 2R, 2 waits.
  FARSIDE_HOT std::optional<V> get(const K& key) const {
    if constexpr (core::in_bucket) {
      const auto where = located(key);
      const auto found =
          detail::map::try_find<typename core::traits>(tables_[where.member], where, key);
      if (found.what == detail::map::result::done) [[likely]]
        return detail::stores::value_of<V>(found.value);
      return detail::stores::get_from_bucket<V>(tables_, state_, located(key), key);
    } else {
      return detail::stores::get_object(*state_, key);
    }
  }
  /// The same with its version, for update_if.
  std::optional<versioned<V>> get_versioned(const K& key) const {
    own_part free_of_charge(*state_, key);
    std::optional<versioned<V>> there;
    state_->template find_value<wait>(key, there);
    if (there) state_->keep(key, there->value);
    return there;
  }
  bool contains(const K& key) const { return get(key).has_value(); }

  /// Replaces the value of a key. False if it has none. Cells stay as they are. One-sided; complete
  /// on return. R + A + W, 3 waits; one R more where the place of a larger value is not remembered.
  bool update(const K& key, const V& value) {
    own_part free_of_charge(*state_, key);
    state_->require_mutable("update");
    return state_->template replace_value<wait>(key, value) == changed::yes;
  }
  /// The same if the value still has that version.
  bool update_if(const K& key, std::uint32_t version, const V& value) {
    own_part free_of_charge(*state_, key);
    state_->require_mutable("update_if");
    return state_->template replace_value<wait>(key, value, version) == changed::yes;
  }
  /// Calls `change(value)` on the value of a key, and stores the result, as one step. False if it
  /// has none. `change` may not communicate, and may be called more than once. Cells stay as they
  /// are. As update.
  template <class F>
    requires std::invocable<F&, V&>
  bool modify(const K& key, F change) {
    own_part free_of_charge(*state_, key);
    state_->require_mutable("modify");
    return state_->template modify_value<wait>(key, change) == changed::yes;
  }

  /// Removes a key. Returns whether it was there. R + A, 2 waits; larger values 2R + 2A, 4 waits,
  /// and A more for each cell.
  bool erase(const K& key) {
    own_part free_of_charge(*state_, key);
    state_->require_mutable("erase");
    outcome counts;
    detail::stores::place unlink;
    return state_->template erase_value<wait>(key, counts, unlink) == changed::yes;
  }

  /// A future of the value of a key: ready at once if it has one, else when somebody puts it. The
  /// value is the one that was put, also if the key is erased meanwhile. Nothing is polled: the rank
  /// that puts it tells the owner, who tells those that wait. As get, and a message if it is not there.
  future<V> when(const K& key) const {
    return state_->waiting.when(*state_, key, std::type_identity<V>());
  }

  // --- parts of a value --------------------------------------------------------------------------

  /// One member of the value of a key: `get(key, &node::weight)`. As get; of a cell (far::cells_of) A,
  /// 1 wait, where the place is remembered.
  template <class M, class C>
    requires std::derived_from<V, C>
  std::optional<M> get(const K& key, M C::* which) const {
    if (const std::size_t cell = detail::stores::cell_of<V>(which); cell < core::layout::cells)
      return read_cell<M>(key, cell);
    if (auto all = get(key)) return (*all).*which;
    return std::nullopt;
  }
  /// Replaces one member, as one step for the whole value. False if the key has none. As modify; of a
  /// cell 2A.
  template <class M, class C>
    requires std::derived_from<V, C>
  bool update(const K& key, M C::* which, const std::type_identity_t<M>& value) {
    if (const std::size_t cell = detail::stores::cell_of<V>(which); cell < core::layout::cells)
      return set_cell(key, cell, value);
    return modify(key, [&](V& all) { all.*which = value; });
  }
  /// Adds to a cell, and returns what it was. Nothing if the key has no value. One-sided. A, 1 wait,
  /// where the place of the value is remembered, else R + A.
  template <class M, class C>
    requires std::derived_from<V, C>
  std::optional<M> fetch_add(const K& key, M C::* which, std::type_identity_t<M> value) {
    const std::size_t cell = detail::stores::required_cell<V>(which, "fetch_add");
    own_part free_of_charge(*state_, key);
    return detail::stores::add_to_cell<M>(*state_, key, cell, value, "fetch_add");
  }
  /// Sets a cell to `desired` if it is `expected`. Returns what it was; nothing if the key has no
  /// value. One-sided. As fetch_add.
  template <class M, class C>
    requires std::derived_from<V, C>
  std::optional<M> compare_swap(const K& key, M C::* which, std::type_identity_t<M> expected,
                                std::type_identity_t<M> desired) {
    const std::size_t cell = detail::stores::required_cell<V>(which, "compare_swap");
    own_part free_of_charge(*state_, key);
    return detail::stores::swap_cell<M>(*state_, key, cell, expected, desired);
  }

  // --- one key, not waited for -----------------------------------------------------------------

  /// Like the operations above: futures of what they return, and what those throw is in the future.
  /// Gets, changes of values of up to 64 bytes, and additions to cells whose place is remembered have
  /// their first round trip in flight on return. Others are complete on return. One-sided, costs as
  /// above. The store must live until then.
  future<std::optional<V>> async_get(const K& key) const {
    if (const V* kept = state_->kept(key)) return future<std::optional<V>>::ready(*kept);
    return async_get_versioned(key).then([](std::optional<versioned<V>> found) {
      return found ? std::optional<V>(std::move(found->value)) : std::nullopt;
    });
  }
  future<std::optional<versioned<V>>> async_get_versioned(const K& key) const {
    return detail::stores::begin_finding(*state_, key);
  }
  future<bool> async_contains(const K& key) const {
    return async_get(key).then([](const std::optional<V>& found) { return found.has_value(); });
  }
  /// Changes, not waited for, as said above. One-sided.
  future<bool> async_put(const K& key, const V& value) {
    if constexpr (core::in_bucket)
      return detail::stores::begin_change(*state_, detail::stores::put_there(),
                                          std::pair<K, slot>(key, state_->slot_with(value)),
                                          [m = &*state_, key, value](const outcome& done) {
                                            if (done.changed && done.value)
                                              m->waiting.wake(*m, key, value);
                                            return done.changed;
                                          });
    else
      return detail::stores::at_once([&] { return put(key, value); });
  }
  future<bool> async_update(const K& key, const V& value) {
    return async_replace("async_update", key, value, -1);
  }
  future<bool> async_update_if(const K& key, std::uint32_t version, const V& value) {
    return async_replace("async_update_if", key, value, version);
  }
  template <class F>
    requires std::invocable<F&, V&>
  future<bool> async_modify(const K& key, F change) {
    state_->require_mutable("async_modify");
    if constexpr (core::in_bucket)
      return detail::stores::begin_change(
          *state_, detail::stores::transform_there<V, slot, F>{std::move(change)}, key,
          [](const outcome& done) { return done.changed; });
    else
      return detail::stores::at_once([&] { return modify(key, std::move(change)); });
  }
  future<bool> async_erase(const K& key) {
    state_->require_mutable("async_erase");
    if constexpr (core::in_bucket)
      return detail::stores::begin_change(*state_, detail::stores::remove_there<slot>(), key,
                                          [](const outcome& done) { return done.changed; });
    else
      return detail::stores::at_once([&] { return erase(key); });
  }
  /// Parts and cells, not waited for, as said above. One-sided.
  template <class M, class C>
    requires std::derived_from<V, C>
  future<std::optional<M>> async_get(const K& key, M C::* which) const {
    if (detail::stores::cell_of<V>(which) < core::layout::cells)
      return detail::stores::at_once([&] { return get(key, which); });
    return async_get(key).then([which](const std::optional<V>& all) {
      return all ? std::optional<M>((*all).*which) : std::nullopt;
    });
  }
  template <class M, class C>
    requires std::derived_from<V, C>
  future<bool> async_update(const K& key, M C::* which, const std::type_identity_t<M>& value) {
    if (detail::stores::cell_of<V>(which) < core::layout::cells)
      return detail::stores::at_once([&] { return update(key, which, value); });
    return async_modify(key, [which, value](V& all) { all.*which = value; });
  }
  template <class M, class C>
    requires std::derived_from<V, C>
  future<std::optional<M>> async_fetch_add(const K& key, M C::* which,
                                           std::type_identity_t<M> value) {
    constexpr const char* what = "async_fetch_add";
    const std::size_t cell = detail::stores::required_cell<V>(which, what);
    return detail::stores::begin_adding<M>(*state_, key, cell, value, what);
  }
  template <class M, class C>
    requires std::derived_from<V, C>
  future<std::optional<M>> async_compare_swap(const K& key, M C::* which,
                                              std::type_identity_t<M> expected,
                                              std::type_identity_t<M> desired) {
    return detail::stores::at_once([&] { return compare_swap(key, which, expected, desired); });
  }

  // --- many keys -------------------------------------------------------------------------------

  /// The same for many keys, in their order; each takes effect at a moment of its own. Gets are in
  /// flight together, 64 at a time. Results are in the order of the keys.
  std::vector<std::optional<V>> get(std::span<const K> keys) const {
    std::vector<std::optional<V>> results;
    results.reserve(keys.size());
    if constexpr (core::in_bucket) {
      std::vector<std::optional<slot>> found;
      detail::map::find_many(tables_, state_, keys, found, concurrency::everything);
      for (const auto& one : found)
        if (one && !one->is_parked())
          results.emplace_back(core::value_in(*one).value);
        else
          results.emplace_back();
    } else {
      constexpr std::size_t together = 64;
      std::vector<future<std::optional<V>>> begun;
      for (; !keys.empty(); keys = keys.subspan(begun.size())) {
        begun.clear();
        for (const K& key : keys.first(std::min(together, keys.size())))
          begun.push_back(async_get(key));
        for (auto& one : begun) results.push_back(one.get());
      }
    }
    return results;
  }
  /// Returns how many were new.
  std::size_t put(std::span<const value_type> entries) {
    std::size_t n = 0;
    for (const auto& [key, value] : entries) n += put(key, value);
    return n;
  }
  void post(std::span<const value_type> entries) {
    for (const auto& [key, value] : entries) post(key, value);
  }
  /// Returns how many were there.
  std::size_t update(std::span<const value_type> entries) {
    std::size_t n = 0;
    for (const auto& [key, value] : entries) n += update(key, value);
    return n;
  }
  std::size_t erase(std::span<const K> keys) {
    std::size_t n = 0;
    for (const K& key : keys) n += erase(key);
    return n;
  }

  // --- the whole -------------------------------------------------------------------------------

  /// The entries that this rank holds, as {key, value}: references to where they lie, no copies. What
  /// is written to a value is in the store. Local; no communication. No other rank may change those
  /// entries meanwhile, or read what is being written: put a barrier between. An iterator ends with
  /// the next put or erasure of this rank, which checked builds report.
  local_range local() { return {*state_}; }

  /// All entries, as copies, beginning with this rank's. Not collective; reads everybody's part.
  detail::copying_range<iterator> everywhere() const {
    return {iterator(*state_, state_->members.rank(), state_->members.size())};
  }

  /// Collective: returns when all posts of all ranks are visible, also those that continuations of
  /// when() have made meanwhile. A barrier, too. At least 2 all_reduces, one more for each round in
  /// which something was under way, 3 for the report, and a barrier. Throws on all ranks
  /// far::allocation_error if an owner has no room for a post, which stays pending until the next
  /// fence, and far::usage_error if on_duplicate::error was asked for and a post met its key.
  fence_report fence() { return detail::stores::fence(*state_); }

  /// How many entries there are: what each rank had added when it last came to a barrier, and what
  /// this rank has by now. Exact after a barrier or a fence. One R for each member, 1 wait.
  std::size_t size() const { return state_->total_size(); }
  bool empty() const { return size() == 0; }

  /// Collective: removes all entries. Who waits goes on waiting.
  void clear() { detail::stores::clear(*state_); }
  /// Collective: makes room in the index for `entries` altogether.
  void reserve(std::size_t entries) {
    auto note = detail::calling<"store::reserve">(*state_);
    detail::map::reserve(*state_, entries);
  }

  /// Collective: every entry goes to the rank that another placement says, which is the store's from
  /// then on. Puts and erases those that move. Throws far::allocation_error on all ranks if a segment
  /// has no room for what comes, and then all entries are where they were.
  void move_to(Placement next) { detail::stores::move_to(*state_, std::move(next)); }

  /// Collective: writes all entries to a file, as hash_map::save does.
  void save(const std::string& path) const {
    auto note = detail::calling<"store::save">(*state_);
    detail::map::save<core, iterator>(*state_, path);
  }
  /// Collective: adds the entries of a file that a store of the same types has saved, on any number of
  /// ranks; values that are there are replaced. As hash_map::load.
  void load(const std::string& path) { detail::stores::load(*state_, path); }

  /// Collective: looks at every entry, whether its placement says that its rank holds it, and whether
  /// its value is there.
  store_check verify() const { return detail::stores::verify<store_check>(*state_); }
  /// Collective.
  store_statistics statistics() const {
    auto result = detail::map::statistics<store_statistics>(*state_);
    detail::stores::add_statistics(*state_, result);
    return result;
  }

  /// The rank that holds a key. Local.
  rank_t owner(const K& key) const {
    return state_->members.world_rank(state_->place_of(key).member);
  }
  /// Whether operations of this kind travel one-sided or by messages to the owner, where there is a
  /// choice: not for post and when(), which are messages, nor for cells and the index of larger
  /// values. The same on all members. Local.
  engine engine_of(container_operation kind) const { return state_->choice.of(kind); }
  /// What this rank has sent to owners. Local.
  far::engine_use engine_use() const { return state_->choice.use(); }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  /// For what is built on it in this library.
  core& implementation() const { return *state_; }

 private:
  friend detail::handle_access;
  explicit store(detail::container_handle<core> of)
      : state_(std::move(of)), tables_(state_->tables.fast()) {}

  future<bool> async_replace(const char* what, const K& key, const V& value, std::int64_t only) {
    state_->require_mutable(what);
    if constexpr (core::in_bucket)
      return detail::stores::begin_change(*state_, detail::stores::replace_there{only},
                                          std::pair<K, slot>(key, state_->slot_with(value)),
                                          [](const outcome& done) { return done.changed; });
    else
      return detail::stores::at_once(
          [&] { return state_->template replace_value<wait>(key, value, only) == changed::yes; });
  }

  FARSIDE_HOT detail::map::key_location located(const K& key) const {
    if constexpr (std::is_same_v<Placement, by_hash<K>>)
      return {core::hash_of(key), tables_.members()};
    else
      return state_->place_of(key);
  }
  template <class M>
  std::optional<M> read_cell(const K& key, std::size_t cell) const {
    own_part free_of_charge(*state_, key);
    return detail::stores::number_of<M>(*state_, key, cell,
                                        [](ptr<std::uint64_t> at) { return atomic_load(at); });
  }
  template <class M>
  bool set_cell(const K& key, std::size_t cell, M value) {
    own_part free_of_charge(*state_, key);
    return detail::stores::set_cell(*state_, key, cell, value);
  }

  detail::container_handle<core> state_;
  detail::map::fast_handle tables_;
};

}  // namespace far::inline FARSIDE_BACKEND

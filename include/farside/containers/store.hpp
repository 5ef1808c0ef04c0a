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

#include <farside/containers/detail/store/direct_get.hpp>
#include <farside/containers/detail/store/local.hpp>
#include <farside/containers/detail/store/whole.hpp>

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
  void post(const K& key, const V& value) { state_->posts.post(*state_, key, value); }

  /// The value of a key, if it has one. One-sided. Up to 64 bytes: R, 1 wait. Larger: R, 1 wait, if
  /// this rank remembers where it lies, else 2R, 2 waits.
  std::optional<V> get(const K& key) const {
    own_part free_of_charge(*state_, key);
    if constexpr (core::in_bucket) {
      const detail::map::key_location where = state_->place_of(key);
      const auto found = detail::map::find(tables_, state_, where, key, concurrency::everything);
      if (!found || found->is_parked()) return std::nullopt;
      return detail::map::stored<V>::read(found->words.data());
    }
    if (const V* kept = state_->kept(key)) return *kept;
    if constexpr (detail::stores::can_be_got_directly<V>)
      if (auto found = detail::stores::get_directly(*state_, key)) {
        state_->keep(key, *found);
        return found;
      }
    if (auto found = get_versioned(key)) return std::move(found->value);
    return std::nullopt;
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
  /// has none. `change` may not communicate, and may be called more than once. As update.
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
      return number_of<M>(key, cell, [](ptr<word> at) { return atomic_load(at); });
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
    detail::stores::require_cell<M>();
    const std::size_t cell = required_cell(which, "fetch_add");
    if (!number::small_step(value) || sizeof(M) == 8) require_number(value, "fetch_add");
    const auto step = static_cast<word>(static_cast<std::int64_t>(value));
    bool too_large = false;
    auto old = number_of<M>(key, cell, [&](ptr<word> at) {
      const word was = far::fetch_add(at, step);
      too_large = !(was & number::absent) && number::strained(was + step);
      if (too_large) far::fetch_add(at, 0 - step);
      return was;
    });
    if (old && too_large) refuse_number("fetch_add", value);
    return old;
  }
  /// Sets a cell to `desired` if it is `expected`. Returns what it was; nothing if the key has no
  /// value. One-sided. As fetch_add.
  template <class M, class C>
    requires std::derived_from<V, C>
  std::optional<M> compare_swap(const K& key, M C::* which, std::type_identity_t<M> expected,
                                std::type_identity_t<M> desired) {
    detail::stores::require_cell<M>();
    const std::size_t cell = required_cell(which, "compare_swap");
    require_number(desired, "compare_swap");
    return number_of<M>(key, cell, [&](ptr<word> at) {
      return far::compare_swap(at, number::encode(expected), number::encode(desired));
    });
  }

  // --- one key, not waited for -----------------------------------------------------------------

  /// Like the operations above. Of values in buckets the first round trip is in flight on return, and
  /// the operation is complete when its future is ready; of larger ones it is complete on return. The
  /// store must live until then.
  future<std::optional<V>> async_get(const K& key) const {
    if constexpr (core::in_bucket)
      return detail::map::begin(*state_, detail::map::find_there(), key, concurrency::everything,
                                [](outcome done) -> std::optional<V> {
                                  if (!done.value || done.value->is_parked()) return std::nullopt;
                                  return core::value_in(*done.value).value;
                                });
    else
      return at_once([&] { return get(key); });
  }
  future<bool> async_put(const K& key, const V& value) {
    if constexpr (core::in_bucket)
      return detail::map::begin(*state_, detail::stores::put_there(),
                                std::pair<K, slot>(key, state_->slot_with(value)),
                                concurrency::everything, [m = &*state_, key, value](outcome done) {
                                  if (done.created && done.value) m->waiting.wake(*m, key, value);
                                  m->changes += done.created;
                                  return done.created;
                                });
    else
      return at_once([&] { return put(key, value); });
  }
  future<bool> async_update(const K& key, const V& value) {
    state_->require_mutable("async_update");
    if constexpr (core::in_bucket)
      return begin_change(detail::stores::replace_there(),
                          std::pair<K, slot>(key, state_->slot_with(value)));
    else
      return at_once([&] { return update(key, value); });
  }
  future<bool> async_update_if(const K& key, std::uint32_t version, const V& value) {
    state_->require_mutable("async_update_if");
    if constexpr (core::in_bucket)
      return begin_change(detail::stores::replace_there{version},
                          std::pair<K, slot>(key, state_->slot_with(value)));
    else
      return at_once([&] { return update_if(key, version, value); });
  }
  future<bool> async_erase(const K& key) {
    state_->require_mutable("async_erase");
    if constexpr (core::in_bucket)
      return begin_change(detail::stores::remove_there<slot>(), key);
    else
      return at_once([&] { return erase(key); });
  }

  // --- many keys -------------------------------------------------------------------------------

  /// The same for many keys, in their order; each takes effect at a moment of its own. Gets of values
  /// in buckets are in flight together, 64 at a time. Results are in the order of the keys.
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
      for (const K& key : keys) results.push_back(get(key));
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
  detail::map::range<iterator> everywhere() const {
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
  void reserve(std::size_t entries) { detail::map::reserve(*state_, entries); }

  /// Collective: every entry goes to the rank that another placement says, which is the store's from
  /// then on. Puts and erases those that move. Throws far::allocation_error on all ranks if a segment
  /// has no room for what comes, and then all entries are where they were.
  void move_to(Placement next) { detail::stores::move_to(*state_, std::move(next)); }

  /// Collective: writes all entries to a file, as hash_map::save does.
  void save(const std::string& path) const { detail::map::save<core, iterator>(*state_, path); }
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

  using word = detail::map::word;
  using number = detail::map::cell;

  /// Operations on keys that this rank holds communicate with nobody, and count as nothing.
  class own_part {
   public:
    FARSIDE_HOT own_part(core& m, const K& key)
        : quiet_(m.c, m.c.counts && m.place_of(key).member == m.members.rank()) {}

   private:
    detail::uncounted quiet_;
  };

  template <class F>
  static auto at_once(F f) {
    using R = decltype(f());
    try {
      return future<R>::ready(f());
    } catch (...) {
      return future<R>::failed(std::current_exception());
    }
  }
  template <class Op, class Item>
  future<bool> begin_change(Op op, const Item& item) {
    return detail::map::begin(*state_, std::move(op), item, concurrency::everything,
                              [m = &*state_](outcome done) {
                                m->changes += done.count == detail::map::counted::erased;
                                return done.created;
                              });
  }

  template <class M, class C>
    requires std::derived_from<V, C>
  static std::size_t required_cell(M C::* which, const char* what) {
    const std::size_t cell = detail::stores::cell_of<V>(which);
    if (cell == core::layout::cells)
      detail::raise("store: ", what,
                    " of a member that is no cell. Name it in far::cells_of<V>, or use modify().");
    return cell;
  }
  template <class M>
  static void require_number(M value, const char* what) {
    if (!number::fits(value)) refuse_number(what, value);
  }
  template <class M>
  [[noreturn]] static void refuse_number(const char* what, M value) {
    detail::raise("store: ", what, " by, or to, ", value,
                  ": a cell holds numbers from -2^59 to 2^59 - 1. Keep smaller ones in it, or use "
                  "modify() on a member that is no cell.");
  }
  template <class M, class Work>
  std::optional<M> number_of(const K& key, std::size_t cell, Work work) const {
    own_part free_of_charge(*state_, key);
    if (auto old = state_->with_cell(key, cell, work)) return number::decode<M>(*old);
    return std::nullopt;
  }
  template <class M>
  bool set_cell(const K& key, std::size_t cell, M value) {
    require_number(value, "update");
    own_part free_of_charge(*state_, key);
    return state_
        ->with_cell(key, cell,
                    [&](ptr<word> at) {
                      word now = atomic_load(at);
                      while (!(now & number::absent)) {
                        const word was = far::compare_swap(at, now, number::encode(value));
                        if (was == now) break;
                        now = was;
                      }
                      return now;
                    })
        .has_value();
  }

  detail::container_handle<core> state_;
  detail::map::fast_handle tables_;
};

}  // namespace far::inline FARSIDE_BACKEND

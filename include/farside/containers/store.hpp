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

#include <farside/containers/detail/store/local.hpp>
#include <farside/containers/detail/store/whole.hpp>

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
  }

  // --- one key -----------------------------------------------------------------------------------

  /// Adds an entry. False if the key has one, which stays as it is. One-sided; complete on return,
  /// here and there. A + 2W + A/16, 3 waits; A + W, 2 waits for values of up to 64 bytes.
  bool put(const K& key, const V& value) {
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
    if (auto found = get_versioned(key)) return std::move(found->value);
    return std::nullopt;
  }
  /// The same with its version, for update_if.
  std::optional<versioned<V>> get_versioned(const K& key) const {
    std::optional<versioned<V>> there;
    state_->template find_value<wait>(key, there);
    return there;
  }
  bool contains(const K& key) const { return get(key).has_value(); }

  /// Replaces the value of a key. False if it has none. Cells stay as they are. One-sided; complete
  /// on return. R + A + W, 3 waits; one R more where the place of a larger value is not remembered.
  bool update(const K& key, const V& value) {
    return state_->template replace_value<wait>(key, value) == changed::yes;
  }
  /// The same if the value still has that version.
  bool update_if(const K& key, std::uint32_t version, const V& value) {
    return state_->template replace_value<wait>(key, value, version) == changed::yes;
  }
  /// Calls `change(value)` on the value of a key, and stores the result, as one step. False if it
  /// has none. `change` may not communicate, and may be called more than once. As update.
  template <class F>
    requires std::invocable<F&, V&>
  bool modify(const K& key, F change) {
    return state_->template modify_value<wait>(key, change) == changed::yes;
  }

  /// Removes a key. Returns whether it was there. R + A, 2 waits; larger values 2R + 2A, 4 waits,
  /// and A more for each cell.
  bool erase(const K& key) {
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

  // --- the whole -------------------------------------------------------------------------------

  /// The entries that this rank holds, as {key, value}: references to where they lie, no copies. What
  /// is written to a value is in the store. Local; no communication. No other rank may change those
  /// entries meanwhile, or read what is being written: put a barrier between. An iterator ends with
  /// the next put or erasure of this rank, which checked builds report.
  local_range local() { return {*state_}; }

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
  void reserve(std::size_t entries) { detail::stores::reserve(*state_, entries); }

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

  detail::container_handle<core> state_;
  detail::map::fast_handle tables_;
};

}  // namespace far::inline FARSIDE_BACKEND

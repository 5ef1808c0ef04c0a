// A hash map's state, and its operations in full: all that the fast path declines (fast_path.hpp).
// docs/protocols/hash_map.md has the states, the invariants and why it is right.
#pragma once

#include <farside/base/environment.hpp>
#include <farside/containers/detail/concurrency_check.hpp>
#include <farside/containers/detail/dispatch/choice.hpp>
#include <farside/containers/detail/map/far_access.hpp>
#include <farside/containers/detail/map/growth.hpp>
#include <farside/containers/detail/map/update.hpp>
#include <farside/containers/detail/place_cache.hpp>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

template <class T>
class map_core : public shared_state {
 public:
  using traits = T;
  using K = typename T::key_type;
  using V = typename T::mapped_type;
  using entry = typename T::entry;
  using outcome_type = outcome<V>;
  static constexpr std::size_t bucket_words = T::bucket_words;

  map_core(const container_options& with, word capacity, const char* kind = "hash_map",
           typename T::placing chosen = {})
      : shared_state(kind, with),
        placing(std::move(chosen)),
        c(*where),
        tables(*this, bucket_words, std::max(capacity, least_capacity)),
        overlaps(*this) {
    constexpr double keys = T::key_store::in_place ? 0 : 1,
                     values = T::value_store::in_place ? 0 : 1;
    choice.open(*this, with,
                {{container_operation::find, {1 + keys + values, 0, 0}},
                 {container_operation::insert, {T::in_place ? 0 : 1 + keys, 1, 1}},
                 {container_operation::modify, {1 + keys + values, T::cells ? 0.0 : 1.0, 1}},
                 {container_operation::erase, {1 + keys, 0, 1}}});
    // The variable lets tests see that both paths are right.
    if (choice.any() || !switch_setting("FARSIDE_MAP_FAST_PATH", true)) tables.without_fast_path();
  }

  void counting_changed() override { tables.look_at_fast_path(); }
  void runtime_ended() override { tables.look_at_fast_path(); }
  void before_end() override { choice.settle(c); }
  void before_barrier() override {
    tables.before_barrier(own_size());
    if (c.threads == thread_level::single)
      dropped_.before_barrier(
          [&](const dropped& key) { return !tables.in_use(key.member, key.table_offset); });
  }
  void after_barrier() override {
    tables.after_barrier();
    overlaps.next_epoch();
    dropped_.after_barrier(free_key);
  }
  void release() override {
    tables.forget();  // what others have retired they are about to free
    if constexpr (!T::in_place) release_bytes(tables.of(members.rank()));
    dropped_.end(free_key);
    overlaps.release();
    tables.release();
  }

  static word hash_of(const K& key) { return T::hash_of(key); }
  key_location place_of(const K& key) const {
    return placing.of(hash_of(key), key, tables.members());
  }

  /// How many entries this rank has added, less those it has erased.
  word own_size() {
    word sum = 0;
    for (rank_t m = 0; m < members.size(); ++m) sum += load_relaxed(tables.counts(m).taken);
    return sum - erased_;
  }
  word total_size() { return tables.total_size(own_size()); }

  /// Whether an operation of this kind is to be sent to the member that holds its key.
  bool sends_to_owner(container_operation kind, rank_t member, concurrency with) const {
    return sends_to_owners(kind, with) && member != members.rank();
  }
  /// The same for many, of which some may be this rank's own.
  bool sends_to_owners(container_operation kind, concurrency with) const {
    return choice.asks(kind) && !includes(with, concurrency::owner_only);
  }

  /// Calls `work(access)` with the access that fits. `have`: buckets that have been read already.
  template <class Work>
  auto with_access(table& t, Work work, concurrency with = concurrency::nothing,
                   verify what = verify::seal, bucket_window<T>* have = nullptr) {
    if (includes(with, concurrency::owner_only) && t.own != nullptr) {
      local_access<T, false> in(t.own, t.capacity, c.link.coherent() ? nullptr : &t);
      return work(in);
    }
    if constexpr (!never_coherent<transport>) {
      if (t.direct != nullptr) {
        direct_access<T, false> in(c, t);
        return work(in);
      }
    }
    far_access<T> in(c, t, what);
    if (have != nullptr) in.have(have->first, have->count, have->buckets.data());
    return work(in);
  }

  /// Calls `work(index, copy)` for each bucket of a table that a key has or had, unless it is just
  /// being changed.
  template <class Work>
  void each_taken(table& t, Work work, concurrency with = concurrency::nothing) {
    auto look_at_all = [&](auto& in) {
      for (word i = 0; i < t.capacity; ++i) {
        entry e;
        const head h = in.top(i);
        if (h.what() != state::empty &&
            in.template read<if_blocked::wait>(i, h, e) == read_result::whole)
          work(i, e);
      }
    };
    with_access(t, look_at_all, with);
  }

  template <if_blocked B>
  outcome_type find(pass_type<K> key, concurrency with, bucket_window<T>* have = nullptr) {
    return update<B, look>(key, look(), with, have);
  }

  /// One-sided, in full: a change, or a find, which helps nobody who moves a table. `have` is a
  /// window of buckets of this key, read by the caller. Who gives up gets `blocked`. Handlers do,
  /// and leave counting and growing to the caller.
  template <if_blocked B, class Update>
  [[gnu::noinline]] outcome_type update(pass_type<K> key, pass_type<Update> by, concurrency with,
                                        bucket_window<T>* have = nullptr) {
    constexpr bool finds = only_finds<Update>, waits = B == if_blocked::wait;
    constexpr bool remembers = waits && T::cells && T::key_store::in_place && adds<Update>;
    if constexpr (remembers)
      if (auto done = add_to_known(key, by.value)) return *std::move(done);
    const verify what = !finds ? verify::seal
                        : includes(concurrency::find | concurrency::owner_only, with)
                            ? verify::nothing
                            : verify::key;
    const key_location where = place_of(key);
    table* t = have != nullptr ? have->in : &tables.of(where.member);
    new_bucket<T> made;
    made.unseen = have == nullptr;
    while (true) {
      outcome_type done = with_access(
          *t,
          [&](auto& in) {
            if constexpr (finds)
              return find_in<B, T>(in, where, key);
            else
              return map::update<B, T>(in, where, key, by, made);
          },
          with, what, std::exchange(have, nullptr));
      switch (done.what) {
        case result::done:
          if constexpr (remembers)
            if (done.in_cell && !done.strained) remember(made.index, *t, key);
          if (waits || FARSIDE_MUTANT(engine_owner_counts)) account_for(where.member, done);
          return done;
        case result::again:
          continue;
        case result::full:
          if (!Update::creates && !tables.has_next(*t)) return {};
          if constexpr (waits) {
            if (Update::creates) grow(*this, where.member, *t);
          } else if (!tables.has_next(*t)) {
            return {result::blocked};
          }
          [[fallthrough]];
        case result::moved:
          t = waits && !finds ? &settled_next(*this, where.member, *t)
                              : &tables.next_of(where.member, *t);
          made.settled = waits || t == &tables.of(where.member);
          continue;
        default:
          break;
      }
      if constexpr (!waits) return {result::blocked};
      if (done.what == result::frozen) t = &settled_next(*this, where.member, *t);
      if (done.what == result::widen) move_table(*this, where.member, *t, t->capacity);
      if (done.what == result::strained &&
          !try_to_move(*this, where.member, *t, t->capacity).empty())
        made.no_room = true;
    }
  }

  /// What has been done is counted, and a table grows if it is time. Of a change by a handler the
  /// caller does this. A home that was taken tells that a table fills up: with few of them it is far
  /// from full.
  FARSIDE_HOT void account_for(rank_t member, const outcome_type& done) {
    table_counts& mine = tables.counts(member);
    if (done.count == counted::at_home || done.count == counted::displaced) {
      add(mine.taken, 1);
      if (done.count == counted::displaced && load_relaxed(mine.taken) >= mine.tell_at) [[unlikely]]
        count_displaced(member);
    } else if (done.count != counted::nothing) {
      const word one = done.count == counted::erased ? 1 : ~word{0};
      add(erased_, one);
      add(mine.dead, one);
    }
    // What has strained a cell has taken effect, so this does not throw. Where there is no room the
    // next addition tries again, and throws if the cell cannot bear it.
    if (done.strained) [[unlikely]]
      try_to_move(*this, member, tables.of(member), tables.of(member).capacity);
  }

  [[gnu::noinline]] void count_displaced(rank_t member) {
    constexpr word largest_batch = 256;
    table& t = tables.of(member);
    table_counts& mine = tables.counts(member);
    const word fresh = load_relaxed(mine.taken) - load_relaxed(mine.told);
    const word batch = std::clamp<word>(t.capacity / (32 * members.size()), 1, largest_batch);
    if (fresh >= batch) add(mine.told, fresh);
    if (c.threads == thread_level::single) mine.tell_at = mine.told + batch;
    if (fresh < batch) return;
    const word used = fetch_add(t.field(header::at_used), fresh) + fresh;
    if (word dead = atomic(mine.dead).exchange(0); dead != 0)
      fetch_add(t.field(header::at_dead), dead);
    // Where there is no room for a larger table this one is filled to the last.
    if (used * 10 > t.capacity * 7 && used >= mine.no_room_until &&
        !try_to_move(*this, member, t, wanted_capacity(*this, t)).empty())
      mine.no_room_until = used + (t.capacity - std::min(used, t.capacity)) / 2 + 1;
  }

  /// Empties this rank's own table; nobody else is there.
  void clear_own() {
    table& t = settled(*this, members.rank());
    if constexpr (!T::in_place) release_bytes(t);
    directory::put_zeros(t.bucket_at(0, bucket_words), t.capacity * bucket_words);
    swap(t.field(header::at_used), 0);
    swap(t.field(header::at_dead), 0);
    flush(t.rank());
    for (rank_t m = 0; m < members.size(); ++m) tables.counts(m) = {};
    erased_ = 0;
    known_.clear();
  }

  /// The bytes of a key that did not go along are freed when its table has been left for good: who
  /// still reads that compares with them.
  void drop_key(rank_t member, const table& t, const entry& e) {
    if constexpr (!T::key_store::in_place) {
      dropped key{member, t.at.offset(), {}};
      std::copy_n(e.key(), entry::key_words, key.stored);
      std::lock_guard lock(c.mutex);
      dropped_.add(key);
    }
  }

  /// Buckets a member, so that `entries` altogether make no table grow: two thirds full, and more
  /// where so few entries will be spread unevenly (four standard deviations).
  static word capacity_for(word entries, rank_t over) {
    word each = (entries + over - 1) / over;
    return each + each / 2 + static_cast<word>(6 * std::sqrt(static_cast<double>(each))) + 8;
  }

  [[no_unique_address]] typename T::placing placing;
  context& c;
  directory tables;
  concurrency_check overlaps;
  engine_choice choice;

 private:
  /// Adds to a cell whose place this rank knows, by one atomic; nothing if it knows none, or it did
  /// not count, as the cell was erased or moves.
  FARSIDE_HOT std::optional<outcome_type> add_to_known(pass_type<K> key, V step) {
    const auto* known = known_.find(tables.epoch, key);
    if (known == nullptr || !cell::small_step(step)) return std::nullopt;
    const ptr<word> at = known->at;  // the atomic may serve others, who may put another one there
    const auto amount = static_cast<word>(static_cast<std::int64_t>(step));
    const word old = fetch_add(at, amount);
    far_access<T>::settle(c, at.rank());
    outcome_type done = what_adding_did<T>(
        old, amount, [at](word now) { compare_swap(at, now, now | cell::widen); });
    if (done.what == result::done && !done.strained) [[likely]]
      return done;
    if (auto* still = known_.find(tables.epoch, key); still != nullptr) still->forget();
    if (done.what != result::done) return std::nullopt;
    account_for(place_of(key).member, done);
    return done;
  }
  void remember(word index, const table& t, const K& key) {
    if (t.direct == nullptr && c.threads == thread_level::single)
      known_.remember(tables.epoch, key,
                      t.bucket_at(index, bucket_words) + static_cast<std::ptrdiff_t>(at_value));
  }

  /// Counts of this rank, which several threads may share.
  FARSIDE_HOT void add(word& count, word n) {
    if (c.threads == thread_level::single) [[likely]]
      count += n;
    else
      atomic(count).fetch_add(n, std::memory_order_relaxed);
  }

  /// A key whose bytes wait to be freed.
  struct dropped {
    rank_t member;
    word table_offset;
    word stored[T::key_store::words];
  };
  static void free_key(const dropped& key) { T::key_store::release(key.stored); }

  /// Frees the bytes of all entries in this rank's own tables; nobody else is there.
  void release_bytes(table& first) {
    for (table* t = &first;; t = &tables.next_of(members.rank(), *t)) {
      each_taken(
          *t,
          [](word, const entry& e) {
            if (e.top().moved()) return;
            T::key_store::release(e.key());
            if (e.top().what() == state::plain) T::value_store::release(e.value());
          },
          concurrency::owner_only);
      if (!tables.has_next(*t)) return;
    }
  }

  retirement<dropped> dropped_;
  place_cache<K, typename T::hasher> known_;  ///< of cells
  word erased_ = 0;                           ///< by this rank, less those it has revived
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map

// A store's state, and what it does with one key: docs/protocols/store.md.
#pragma once

#include <farside/containers/detail/store/objects.hpp>
#include <farside/containers/detail/store/posts.hpp>
#include <farside/containers/detail/store/remote_objects.hpp>
#include <farside/containers/detail/store/waiters.hpp>

#include <optional>
#include <unordered_map>

namespace far::inline FARSIDE_BACKEND::detail::stores {

template <class Key, class Value, class Placement>
class store_core : public object_index<Key, Value, Placement> {
 public:
  using objects = object_index<Key, Value, Placement>;
  using base = typename objects::base;
  using objects::everything;
  using objects::in_bucket;
  using typename objects::K;
  using typename objects::layout;
  using typename objects::outcome;
  using typename objects::T;
  using typename objects::V;

  store_core(const store_options& with, word capacity, Placement choose)
      : objects(with, capacity, std::move(choose)),
        options(with),
        posts(this->members.size(), with) {
    shared->of = this;
  }

  void before_end() override {
    until_quiet();  // what is sent by name must find its store
    base::before_end();
  }
  void before_barrier() override {
    base::before_barrier();
    if (this->memory.before_barrier() && !FARSIDE_MUTANT(store_others_not_told))
      this->tables.tell_all();
  }
  void after_barrier() override {
    base::after_barrier();
    if (this->c.threads == thread_level::single) this->memory.after_barrier();
  }
  void release() override {
    shared->of = nullptr;
    waiting.end(this->full_name());
    if constexpr (!in_bucket && !layout::fixed) drop_objects();
    this->memory.clear(true);
    base::release();
  }

  /// Collective: until nothing is under way that any member has posted, asked or answered, also what
  /// continuations have sent meanwhile.
  void until_quiet() {
    shared->counts.until_all_handled(
        [this] {
          this->c.progress();
          waiting.wake_uncalled(*this);
          posts.settle(*this);
          this->choice.settle(this->c);
          complete_begun(this->c);
          this->c.link.flush();
        },
        this->members);
  }

  // --- values, wherever they lie ---

  /// A change of the slot of a key: one that may wait by the fast path, or at the owner, if so asked.
  template <if_blocked B, class Op, class Update>
  outcome change_slot(Op op, const K& key, const Update& by) {
    if constexpr (B == if_blocked::give_up) return this->template change_index<B>(key, by);
    outcome done;
    if (map::try_update(this->tables.fast(), this, this->place_of(key), key, by, everything,
                        [&](outcome&& now) { done = std::move(now); }))
      return done;
    return map::update_otherwise<store_core, Op, Update>(*this, op, key, by, everything);
  }
  template <if_blocked B>
  changed find_value(const K& key, std::optional<versioned<Value>>& to) {
    if constexpr (in_bucket) {
      outcome found;
      if constexpr (B == if_blocked::wait)
        found.value = map::find_otherwise(*this, key, everything);
      else
        found = base::template find<B>(key, everything);
      if (found.what == result::blocked) return changed::blocked;
      if (!found.value || found.value->is_parked()) return changed::absent;
      to.emplace(value_in(*found.value));
      return changed::no;
    } else {
      if constexpr (B == if_blocked::wait)
        if (auto answer = ask_owner(*this, find_object(), key, nothing())) {
          to = std::move(answer->value);
          return answer->what;
        }
      return this->template read<B>(key, to);
    }
  }
  static versioned<Value> value_in(const V& slot) {
    return {stored<Value>::read(slot.words.data()), slot.version()};
  }

  /// Puts a value, if the key has none. `counts` are the caller's to account for, if B gives up.
  template <if_blocked B>
  changed put_value(const K& key, const Value& value, outcome& counts) {
    bool found_parked = false;
    if constexpr (in_bucket) {
      const V slot = slot_with(value);
      counts = this->template change_slot<B>(put_there(), key, put_slot<V>{slot});
      if (counts.what != result::done) return changed::blocked;
      if (!counts.changed) return changed::no;
      found_parked = counts.value.has_value();
      this->changes.fetch_add(1, std::memory_order_relaxed);
    } else {
      if constexpr (B == if_blocked::wait)
        if (auto answer = ask_owner(*this, put_object(), key, value)) return answer->what;
      if (const changed done = this->template put<B>(key, value, counts, found_parked);
          done != changed::yes)
        return done;
    }
    if (found_parked && !FARSIDE_MUTANT(store_waiters_not_woken)) waiting.wake(*this, key, value);
    return changed::yes;
  }

  /// Replaces the value of a key, of the version `only` if that is not negative.
  template <if_blocked B>
  changed replace_value(const K& key, const Value& value, std::int64_t only = -1) {
    if constexpr (in_bucket) {
      const V slot = slot_with(value);
      const outcome done =
          this->template change_slot<B>(replace_there{only}, key, replace_slot<V>{slot, only});
      if (done.what != result::done) return changed::blocked;
      return done.changed ? changed::yes : changed::no;
    } else {
      if constexpr (B == if_blocked::wait)
        if (auto answer = ask_owner(*this, replace_object{only}, key, value)) return answer->what;
      return this->template change<B>(key, false, [&](const object_image& now) {
        std::optional<std::vector<word>> next;
        if (only < 0 || now.top.version() == only || FARSIDE_MUTANT(store_version_not_compared))
          next = layout::image_of(value);
        return next;
      });
    }
  }

  /// Replaces it by a function of what is there: `f(value)` changes it.
  template <if_blocked B, class F>
  changed modify_value(const K& key, F& f) {
    if constexpr (in_bucket) {
      const outcome done = this->template change_slot<B>(transform_there<Value, V, F>{f}, key,
                                                         transform_slot<Value, V, F>{f});
      if (done.what != result::done) return changed::blocked;
      return done.changed ? changed::yes : changed::no;
    } else {
      if constexpr (B == if_blocked::wait && is_stateless<F>)
        if (auto answer = ask_owner(*this, modify_object<F>{f}, key, nothing()))
          return answer->what;
      return this->template change<B>(key, true, [&](const object_image& now) {
        Value value = layout::value_in(now.words.get());
        {
          no_communication quiet("modify");
          f(value);
        }
        return std::optional(layout::image_of(value));
      });
    }
  }

  template <if_blocked B>
  changed erase_value(const K& key, outcome& counts, place& unlink) {
    if constexpr (in_bucket) {
      counts = this->template change_slot<B>(remove_there<V>(), key, remove_slot<V>());
      if (counts.what != result::done) return changed::blocked;
      this->changes.fetch_add(counts.changed, std::memory_order_relaxed);
      return counts.changed ? changed::yes : changed::no;
    } else {
      if constexpr (B == if_blocked::wait)
        if (auto answer = ask_owner(*this, erase_there(), key, nothing())) return answer->what;
      return this->template erase_object<B>(key, counts, unlink);
    }
  }
  /// Nobody else is there.
  void clear_all() {
    if constexpr (!in_bucket && !layout::fixed) drop_objects();
    this->memory.clear(false);
    forget_all();
    base::clear_own();
    this->changes.fetch_add(1, std::memory_order_relaxed);
    for (const K& key : waiting.keys()) {  // their buckets are parked again
      std::optional<Value> none;
      waiters<store_core>::template park<if_blocked::wait>(*this, key, none);
    }
  }

  /// The value of an entry that a walk over the index has found.
  std::optional<Value> value_of(const K& key, const V& slot) {
    if constexpr (in_bucket) {
      return stored<Value>::read(slot.words.data());
    } else {
      object_image image;
      const seen what =
          read_object<if_blocked::wait, Value>(this->c, objects::place_in(slot), image);
      if (what == seen::whole && !image.erasing) return layout::value_in(image.words.get());
      std::optional<versioned<Value>> elsewhere;
      if (what == seen::moved) this->template read<if_blocked::wait>(key, elsewhere);
      if (!elsewhere) return std::nullopt;
      return std::move(elsewhere->value);
    }
  }
  void forget_all() {
    this->forget_places();
    copies_.clear();
  }

  // --- mutability::once: readers keep copies ---

  void require_mutable(const char* what) const {
    if (options.mutability == mutability::once) [[unlikely]]
      raise(
          this->full_name(), ": ", what,
          ", but it was made with mutability::once: values stay as they were put, and readers keep "
          "copies. Make it with mutability::any.");
  }
  const Value* kept(const K& key) const {
    if (options.mutability == mutability::any || this->c.threads != thread_level::single)
      return nullptr;
    const auto found = copies_.find(base::hash_of(key));
    return found != copies_.end() && found->second.first == key ? &found->second.second : nullptr;
  }
  void keep(const K& key, const Value& value) {
    if (options.mutability == mutability::any || this->c.threads != thread_level::single) return;
    if (copies_.size() >= most_copies) copies_.clear();
    copies_.insert_or_assign(base::hash_of(key), std::pair(key, value));
  }
  void erase_quietly(const K& key) {
    outcome counts;
    place unlink;
    erase_value<if_blocked::wait>(key, counts, unlink);
  }

  V slot_with(const Value& value) {
    V slot;
    if constexpr (in_bucket) stored<Value>::pack(value, slot.words.data());
    slot.set_version(this->first_version());
    return slot;
  }

  store_options options;
  std::shared_ptr<traffic<store_core>> shared = std::make_shared<traffic<store_core>>();
  posting<store_core> posts;
  waiters<store_core> waiting;

 private:
  /// Frees the objects of variable length in this rank's own part; nobody else is there.
  void drop_objects() {
    this->each_taken(map::settled(*this, this->members.rank()),
                     [](word, const typename base::entry& e) {
                       if (e.top().what() != map::state::plain) return;
                       const V slot = *T::value_store::unpack(e.value());
                       if (!slot.is_parked()) dealloc(objects::place_in(slot).at);
                     });
  }

  static constexpr std::size_t most_copies = 4096;
  std::unordered_map<word, std::pair<K, Value>> copies_;  ///< by the hashes of their keys
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

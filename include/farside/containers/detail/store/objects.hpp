// The objects of a store, and the index that names them: what happens to one key whose value lies at
// its owner. docs/protocols/store.md has the states and the invariants.
#pragma once

#include <farside/containers/detail/place_cache.hpp>
#include <farside/containers/detail/store/object.hpp>
#include <farside/containers/detail/store/slots.hpp>

#include <atomic>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

using map::counted;

template <class Key, class Value, class Placement>
class object_index : public map::map_core<index_traits<Key, Value, Placement>> {
 public:
  using T = index_traits<Key, Value, Placement>;
  using base = map::map_core<T>;
  using K = Key;
  using V = typename base::V;  ///< of the index: a slot
  using value_type = Value;
  using outcome = typename base::outcome_type;
  using layout = object<Value>;
  static constexpr bool in_bucket = stays_in_bucket<Value>;
  static constexpr auto everything = concurrency::everything;

  object_index(const container_options& with, word capacity, Placement choose)
      : base(with, capacity, "store", typename T::placing(std::move(choose))),
        memory(this->members.size(), each_object()) {}

  /// A change of the slot of a key, by this rank.
  template <if_blocked B, class Update>
  outcome change_index(const K& key, const Update& by) {
    return base::template update<B, Update>(key, by, everything);
  }

  // --- objects ---

  struct located {
    result what = result::absent;  ///< mine, absent or blocked
    place at{};
    bool remembered = false;
  };

  template <if_blocked B>
  located locate(const K& key) {
    if (auto known = known_place(key)) return {result::mine, *known, true};
    const outcome found = base::template find<B>(key, everything);
    if (found.what == result::blocked) return {result::blocked};
    if (!found.value || found.value->is_parked()) return {};
    return {result::mine, place_in(*found.value)};
  }
  /// Where this rank has found the object of a key if nothing has been freed since.
  std::optional<place> known_place(const K& key) {
    const auto* known = known_.find(this->tables.epoch, key);
    if (known == nullptr) return std::nullopt;
    return place{known->at, known->words};
  }
  void remember(const K& key, const place& at) {
    if (this->c.threads != thread_level::single) return;
    known_.remember(this->tables.epoch, key, at.at, at.words);
  }
  void forget(const K& key) {
    if (auto* known = known_.find(this->tables.epoch, key)) known->forget();
  }

  /// Finds the object of a key, and calls `use(place, image)`, which says whether that was all. What
  /// is dead, moved or being erased does not come to it. `all`: of the object is read.
  template <if_blocked B, class Use>
  changed with_object(const K& key, bool all, Use use) {
    while (true) {
      const located found = locate<B>(key);
      if (found.what == result::blocked) return changed::blocked;
      if (found.what == result::absent) return changed::absent;
      object_image image;
      seen what = read_object<B, Value>(this->c, found.at, image, all);
      if (what == seen::blocked) return changed::blocked;
      if (what == seen::whole && image.erasing) {
        finish_erasing(found.at);
        what = seen::dead;
      }
      if (what == seen::whole) {
        if (!found.remembered) remember(key, found.at);
        if (std::optional<changed> done = use(found.at, image)) return *done;
        continue;
      }
      if (found.remembered && !FARSIDE_MUTANT(store_known_dead_is_absent)) {
        forget(key);  // the key may have another object by now
        continue;
      }
      // The index still named it, so nobody has put the key anew when it was dead.
      if (what == seen::dead) return changed::absent;
      if constexpr (B == if_blocked::give_up) return changed::blocked;
      this->c.wait_round();  // for the index to name the one that took its place
    }
  }

  template <if_blocked B>
  changed read(const K& key, std::optional<versioned<Value>>& to) {
    return with_object<B>(key, true, [&](const place&, object_image& image) {
      to.emplace(versioned<Value>{layout::value_in(image.words.get()), image.top.version()});
      return std::optional(changed::no);
    });
  }

  /// Changes the value of a key: `make(image)` gives the new one, or nothing, and then it stays. If
  /// `reads`, the image is all of the object.
  template <if_blocked B, class Make>
  changed change(const K& key, bool reads, Make make) {
    return with_object<B>(key, reads, [&](const place& at, object_image& image) {
      std::optional<std::vector<word>> next = make(image);
      if (!next) return std::optional(changed::no);
      if (next->size() > at.words) return relocate<B>(key, at, image.top, *next);
      next->resize(at.words);
      const head desired = image.top.next_version(live);
      if (!change_head(at, image.top, desired)) return std::optional<changed>();
      write_value<Value>(this->c, at, *next, desired);
      return std::optional(changed::yes);
    });
  }

  /// The new value has no room where the old one is. It is put elsewhere; then the head of the old
  /// one settles it, and the index follows.
  template <if_blocked B>
  std::optional<changed> relocate(const K& key, const place& old, head was,
                                  std::vector<word>& image) {
    if constexpr (B == if_blocked::give_up) return changed::blocked;  // what follows may wait
    const rank_t member = this->place_of(key).member;
    const place fresh = memory.take(member, old.at.rank(), image.size());
    write_object<Value>(this->c, fresh, image, was.next_version(live));
    if (!change_head(old, was, was.as(moved))) {
      memory.give_back(member, fresh);
      return std::nullopt;
    }
    const V slot = slot_of(fresh);
    change_index<if_blocked::wait>(key, replace_place<V>{old.at.raw(), &slot});
    memory.retire(member, old);
    remember(key, fresh);
    return changed::yes;
  }

  /// Puts an object if the key has none. `found_parked`: somebody waits for it.
  template <if_blocked B>
  changed put(const K& key, const Value& value, outcome& counts, bool& found_parked) {
    const map::key_location where = this->place_of(key);
    const rank_t owner = this->members.world_rank(where.member);
    std::vector<word> image = layout::image_of(value);
    const place at = memory.take(where.member, owner, image.size());
    // Its first version is one that an earlier object of this key has hardly had.
    const head first(live, where.fingerprint(), first_version());
    write_object<Value>(this->c, at, image, first);
    const V slot = slot_of(at);
    auto give_back = [&](changed as) {
      memory.give_back(where.member, at);
      return as;
    };
    try {
      counts = change_index<B>(key, put_slot<V>{slot});
      while (counts.what == result::done && !counts.changed) {
        const place other = place_in(*counts.value);
        object_image image_there;
        const seen what = read_object<B, Value>(this->c, other, image_there, false);
        if (what == seen::blocked) return give_back(changed::blocked);
        if (what == seen::whole && !image_there.erasing) return give_back(changed::no);
        if (what == seen::moved) {
          if constexpr (B == if_blocked::give_up) return give_back(changed::blocked);
          this->c.wait_round();
        } else {
          if (what == seen::whole) finish_erasing(other);
          // Whoever has erased it has not come to the index yet.
          counts = change_index<B>(key, replace_place<V>{other.at.raw(), &slot});
          if (counts.what == result::done && counts.changed) {
            counts.value.reset();
            break;
          }
          if (counts.what != result::done) break;
        }
        counts = change_index<B>(key, put_slot<V>{slot});
      }
    } catch (...) {
      memory.give_back(where.member, at);
      throw;
    }
    if (counts.what != result::done) return give_back(changed::blocked);
    found_parked = counts.value.has_value();
    remember(key, at);
    changes.fetch_add(1, std::memory_order_relaxed);
    return changed::yes;
  }

  /// Erases the object of a key: its cells, if it has any, then its head, then the index. `unlink`:
  /// the index could not be changed at once, and the caller has to.
  template <if_blocked B>
  changed erase_object(const K& key, outcome& counts, place& unlink) {
    return with_object<B>(key, false, [&](const place& at, object_image& image) {
      if constexpr (layout::cells != 0) {
        // Who marks the first cell has erased it. Whoever meets a mark helps with the others.
        if (fetch_or(at.at + 1, cell::absent) & cell::absent) return std::optional<changed>();
        finish_erasing(at);
      } else {
        if (!change_head(at, image.top, image.top.as(dead))) return std::optional<changed>();
        settle(this->c, at);
      }
      forget(key);
      changes.fetch_add(1, std::memory_order_relaxed);
      counts = change_index<B>(key, replace_place<V>{at.at.raw(), nullptr});
      unlink = at;
      if (counts.what != result::done) return std::optional(changed::yes);
      unlink = {};
      memory.retire(this->place_of(key).member, at);
      return std::optional(changed::yes);
    });
  }

  /// Marks all cells of an object that is being erased, and then its head.
  void finish_erasing(const place& at) {
    for (std::size_t i = 0; i < layout::cells; ++i)
      if (!FARSIDE_MUTANT(store_erasing_not_helped))
        fetch_or(at.at + static_cast<std::ptrdiff_t>(1 + i), cell::absent);
    head now(atomic_load(at.at));
    while (now.what() == live) {
      const head was(compare_swap(at.at, now.raw(), now.as(dead).raw()));
      if (was == now) break;
      now = was;
    }
    settle(this->c, at);
  }

  /// What an owner has erased but not unlinked.
  void unlink(const K& key, const place& at) {
    change_index<if_blocked::wait>(key, replace_place<V>{at.at.raw(), nullptr});
    memory.retire(this->place_of(key).member, at);
  }

  // --- cells ---

  /// Does `work(the word of a cell)` and gives what it was before, unless the object is being erased.
  template <class Work>
  std::optional<word> with_cell(const K& key, std::size_t which, Work work) {
    while (true) {
      const located found = locate<if_blocked::wait>(key);
      if (found.what == result::absent) return std::nullopt;
      const ptr<word> at = found.at.at + static_cast<std::ptrdiff_t>(1 + which);
      const word old = work(at);
      settle(this->c, found.at);
      if (!(old & cell::absent) || FARSIDE_MUTANT(store_absent_cell_counts)) {
        if (!found.remembered) remember(key, found.at);
        return old;
      }
      finish_erasing(found.at);
      if (!found.remembered) return std::nullopt;
      forget(key);
    }
  }

  void forget_places() { known_.clear(); }

  // --- places ---

  static place place_in(const V& slot) {
    return {ptr<word>::from_raw(slot.words[0]), slot.words[1]};
  }
  static place no_place() { return {}; }
  static V slot_of(const place& at) {
    V slot;
    slot.words[0] = at.at.raw();
    slot.words[1] = at.words;
    return slot;
  }
  std::uint32_t first_version() {
    const word n = std::atomic_ref(puts_).fetch_add(1, std::memory_order_relaxed);
    return static_cast<std::uint32_t>(mix(word{this->c.link.rank()} << 40 | n) >> 33) | 1;
  }

  slots memory;
  /// What this rank has put and erased, also for others: iterators of local() end with it.
  std::atomic<word> changes{0};

 private:
  static constexpr std::size_t each_object() {
    if constexpr (layout::fixed)
      return layout::words_for(sizeof(typename fixed_form<Value>::type));
    else
      return 0;
  }

  place_cache<K, hash<K>> known_;
  word puts_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

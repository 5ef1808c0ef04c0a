// engine: short ways for entries in place, taken when nothing is being moved or erased or waited
// for. Whatever is unclear goes the long way, which starts anew.
#pragma once

#include <farside/containers/detail/map/engine.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// The buckets in which a key may be, for short ways. They go no further than the end of the
/// table, where a sentinel says that nothing is clear.
template <class K, class V, class Hash, class Probing>
class engine<K, V, Hash, Probing>::trail {
 public:
  FARSIDE_HOT trail(view t, place p)
      : home_(p.home(t.capacity)), at_(t.buckets + home_ * bucket_words) {}
  FARSIDE_HOT word* operator*() const { return at_; }
  /// Without a branch that nobody can predict.
  FARSIDE_HOT void next_if(bool taken) {
    at_ += taken ? bucket_words : 0;
    asm("" : "+r"(at_));
  }
  FARSIDE_HOT void next(view t) {
    if constexpr (linear) {
      at_ += bucket_words;
    } else {
      ++step_;
      word index = step_ < 16 ? Probing::at(home_, step_, t.capacity) : t.capacity;
      at_ = t.buckets + index * bucket_words;
    }
  }

  static constexpr bool linear = std::is_same_v<Probing, linear_probing>;

 private:
  word home_, step_ = 0;
  word* at_;
};

/// The short way for entries in place where memory is coherent, when nothing is being moved or
/// erased or waited for on the way: unclear if something is. Results go out as words, which stay
/// in registers: an optional would be put together in memory.
///
/// Order. Heads need none: a bucket that another key has taken is that key's for good, and one
/// that is the key's own does not go away. What settles the result is one load that is
/// sequentially consistent, so that it comes after all this rank has done before, and before all
/// it will do: of a cell its value, of a plain bucket its seal, of an empty bucket once more its
/// head. The rest is as direct_access has it.
template <class K, class V, class Hash, class Probing>
template <bool Quiet>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::find_at_once(view t, place p, const K& key,
                                                                  word* raw) -> glance {
  constexpr auto relaxed = std::memory_order_relaxed;
  constexpr bool ordered = !Quiet && !FARSIDE_MUTANT(map_find_unordered);
  constexpr auto settles = ordered ? std::memory_order_seq_cst : relaxed;
  trail on(t, p);
  if constexpr (trail::linear) {
    on.next_if(head(atomic((*on)[0]).load(relaxed)).is_another(p.fingerprint()));
  }
  while (true) {
    word* at = *on;
    word h = atomic(at[0]).load(relaxed);
    if (head(h).fingerprint() == p.fingerprint()) [[likely]] {
      word what = h & head::state_and_flags;
      if (cells && what == static_cast<word>(state::cell)) {
        word v = atomic(at[2]).load(settles);
        std::uint64_t held[key_store::words];
        for (std::size_t k = 0; k < key_store::words; ++k)
          held[k] = atomic(at[2 + entry::value_words + k]).load(relaxed);
        if (v == 0 || v & (cell::frozen | cell::absent)) return glance::unclear;
        raw[0] = v;
        if (*key_store::equals(held, key)) return glance::in_cell;
      } else if (what == static_cast<word>(state::plain)) {
        if (atomic(at[1]).load(settles) != h >> 32) return glance::unclear;
        std::uint64_t body[bucket_words - 2];
        for (std::size_t k = 0; k + 2 < bucket_words; ++k)
          body[k] = atomic(at[2 + k]).load(relaxed);
        if constexpr (!Quiet) {
          acquire_fence();
          if (atomic(at[0]).load(relaxed) != h) return glance::unclear;
        }
        for (std::size_t k = 0; k < entry::value_words; ++k) raw[k] = body[k];
        if (*key_store::equals(body + entry::value_words, key)) return glance::found;
      } else if (h != 0) {
        return glance::unclear;
      }
    }
    if (head(h).never_taken())
      return atomic(at[0]).load(settles) == 0 ? glance::absent : glance::unclear;
    on.next(t);
  }
}

/// A first window of a key's buckets, that has come or is on its way.
template <class Engine>
struct prefetched {
  using entry = typename Engine::entry;

  prefetched() = default;
  FARSIDE_HOT prefetched(word from, word capacity)
      : first(from), count(std::min<word>(window<entry>, capacity - from)) {}

  table* in = nullptr;
  word first = 0;
  word count = 0;
  std::array<entry, window<entry>> buckets;
};

/// The short way where buckets come by gets: in one window of them, from the home on, the key's
/// bucket, or an empty one before it. Unclear: something is under way, or the window ends before,
/// or another key has the same fingerprint.
template <class K, class V, class Hash, class Probing>
template <bool ToChange>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::look_in(const entry* buckets, word count,
                                                             const ptr<word>& home,
                                                             std::uint32_t fingerprint,
                                                             handed<K> key, bool quiet, word& index)
    -> glance {
  if constexpr (!std::is_same_v<Probing, linear_probing>) return glance::unclear;
  constexpr auto usual = static_cast<std::uint32_t>(cells ? state::cell : state::plain);
  const std::uint32_t wanted = fingerprint << 4 | usual;
  auto lower = [](word h) { return static_cast<std::uint32_t>(h); };
  auto is_the_keys = [&]() __attribute__((always_inline)) {
    const entry& e = buckets[index];
    const bool same = *key_store::equals(e.key(), key) && (!cells || cell::simple(e.value()[0]));
    if (!same) return glance::unclear;
    const auto where = [&] { return bucket_after(home, index).raw(); };
    if constexpr (!ToChange && cells) {
      if (!e.key_shows_all() && !quiet && !e.is_sealed_after_all(where())) return glance::unclear;
    } else {
      if (!quiet && !e.is_sealed(where())) return glance::unclear;
    }
    return cells ? glance::in_cell : glance::found;
  };
  // Most keys have their home, or the bucket after it. Which of the two nobody can predict, so that
  // no branch asks.
  word h = buckets[0].head_word;
  index = (lower(h) ^ wanted) > head::state_and_flags ? 1 : 0;
  asm("" : "+r"(index));
  if ((count > 1 || index < count) && lower(buckets[index].head_word) == wanted) [[likely]]
    return is_the_keys();
  if (index == 0) return glance::unclear;
  // Of most that are not there one of three buckets is empty, and those before it are other keys':
  // no branch asks which, either. (A compiler that could load a head only if it is needed would.)
  word second = count > 1 ? buckets[1].head_word : ~word{0}, third = second;
  bool passes = false;
  if (count > 2) [[likely]] {
    third = buckets[2].head_word;
    passes = FARSIDE_MUTANT(map_own_bucket_passed) ? second > 8 : head(second).is_not(wanted);
  }
  asm("" : "+r"(second), "+r"(third));
  second = passes ? third : second;
  h = head(h).never_taken() ? h : second;
  index += passes;
  asm("" : "+r"(h), "+r"(index));
  for (; h != 0; h = buckets[index].head_word) {
    if (lower(h) == wanted) return is_the_keys();
    const bool another = (lower(h) ^ wanted) > head::state_and_flags && !head(h).moved_empty();
    if (!another || ++index >= count) return glance::unclear;
  }
  return glance::absent;
}

/// In a window that has come. What is not clear is found out the long way, from the same window.
template <class K, class V, class Hash, class Probing>
template <class Slowly>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::find_in(const entry* buckets, word count,
                                                             const ptr<word>& home,
                                                             std::uint32_t fingerprint,
                                                             handed<K> key, const concurrency& with,
                                                             Slowly slowly) -> returned<V> {
  word index;
  switch (look_in<false>(buckets, count, home, fingerprint, key, includes(concurrency::find, with),
                         index)) {
    case glance::absent:
      return std::nullopt;
    case glance::in_cell:
      if constexpr (cells) return cell::decode<V>(buckets[index].value()[0]);
      __builtin_unreachable();
    case glance::found: {
      entry whole = buckets[index];
      whole.mask(whole.top(), bucket_after(home, index).raw());
      return value_store::unpack(whole.value());
    }
    case glance::unclear:
      break;
  }
  return slowly();
}

/// Of any table.
template <class K, class V, class Hash, class Probing>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::find_by_get(handed<K> key, place p,
                                                                concurrency with)
    -> std::optional<V> {
  table& t = tables.of(p.member);
  if (t.direct != nullptr) return find_slowly(key, with, static_cast<prefetched<engine>*>(nullptr));
  prefetched<engine> seen(p.home(t.capacity), t.capacity);
  seen.in = &t;
  get(t.bucket_at(seen.first, bucket_words), reinterpret_cast<word*>(seen.buckets.data()),
      seen.count * bucket_words);
  return find_in_window(seen, p, key, with);
}
template <class K, class V, class Hash, class Probing>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::find_in_window(prefetched<engine>& seen,
                                                                    place p, handed<K> key,
                                                                    concurrency with)
    -> std::optional<V> {
  return find_in(seen.buckets.data(), seen.count, seen.in->bucket_at(seen.first, bucket_words),
                 p.fingerprint(), key, with, [&] { return find_slowly(key, with, &seen); });
}

/// A window of a key's buckets by quick_tables. Nothing runs ahead of the fence that a get ends
/// with, at least on x86-64, so that each load on the way from a key to its bucket is waited for,
/// and each store before it: this way has the fewest. What the long way needs is found once more.
/// The window is always a whole one, so that its length need not wait for the hash.
template <class K, class V, class Hash, class Probing>
struct engine<K, V, Hash, Probing>::quick_window {
  FARSIDE_HOT quick_window(far_place from, concurrency promised)
      : home(from.pointer()), with(promised) {
    get_afar(from.rank, from.offset, reinterpret_cast<word*>(buckets), count * bucket_words);
  }

  /// The same for the long way, which `go(window)` goes: none if the table is another one by now.
  template <class Go>
  FARSIDE_HOT auto further(engine& e, handed<K> key, Go go) const {
    const place p = e.place_of(key);
    table& t = e.tables.of(p.member);
    prefetched<engine> seen(p.home(t.capacity), t.capacity);
    const bool same = t.bucket_at(seen.first, bucket_words) == home && seen.count == count;
    seen.in = &t;
    if (same) std::copy_n(buckets, count, seen.buckets.begin());
    return go(same ? &seen : nullptr);
  }

  static constexpr word count = window<entry>;
  entry buckets[count];
  ptr<word> home;  ///< seldom needed, as what follows: in memory, and no register is kept for it
  concurrency with;
};

template <class K, class V, class Hash, class Probing>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::find_by_one_get(const quick_tables& in,
                                                                     handed<K> key,
                                                                     concurrency with)
    -> returned<V> {
  handed<K> kept = key;  // a copy that may go to the stack: the hash need not wait for it
  if constexpr (countable<K>) asm("" : "+r"(kept));
  const place p(hash_of(key), static_cast<std::uint32_t>(in.members));
  const word first = p.narrow_home(in.by_gets);
  if (first + quick_window::count > in.by_gets) [[unlikely]]
    return find_slowly(key, with, static_cast<prefetched<engine>*>(nullptr));
  const quick_window seen(in.far_bucket(p.member, first * sizeof(entry)), with);
  return find_in(seen.buckets, seen.count, seen.home, p.fingerprint(), kept, seen.with,
                 [&] { return find_further(seen, kept, seen.with); });
}
template <class K, class V, class Hash, class Probing>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::find_further(const quick_window& seen,
                                                                 handed<K> key, concurrency with)
    -> returned<V> {
  return seen.further(*this, key, [&](auto* have) { return find_slowly(key, with, have); });
}

/// The same for a change of a cell that is there: one get and one atomic.
template <class K, class V, class Hash, class Probing>
template <class Update>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::update_by_one_get(
    const quick_tables& in, handed<K> key, handed<Update> with, concurrency promised) -> outcome {
  const place p(hash_of(key), static_cast<std::uint32_t>(in.members));
  const word first = p.narrow_home(in.by_gets);
  if (first + quick_window::count > in.by_gets) [[unlikely]]
    return update_slowly<Update>(key, with, promised, static_cast<prefetched<engine>*>(nullptr));
  const quick_window seen(in.far_bucket(p.member, first * sizeof(entry)), promised);
  word index;
  if (look_in<true>(seen.buckets, seen.count, seen.home, p.fingerprint(), key, false, index) ==
      glance::in_cell) {
    word value = seen.buckets[index].value()[0];
    V old = cell::decode<V>(value);
    V wanted = with.next(old);
    if (cell::fits(wanted)) {
      ptr<word> at = bucket_after(seen.home, index) + 2;
      if (compare_swap(at, value, cell::encode(wanted)) != value &&
          !FARSIDE_MUTANT(map_lost_swap_taken_for_won))
        return update_slowly<Update>(key, with, seen.with,
                                     static_cast<prefetched<engine>*>(nullptr));
      far_access<entry>::settle(c, at.rank());
      return outcome{false, old};
    }
  }
  return update_further<Update>(seen, key, with, seen.with);
}
template <class K, class V, class Hash, class Probing>
template <class Update>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::update_further(
    const quick_window& seen, handed<K> key, handed<Update> with, concurrency promised) -> outcome {
  return seen.further(*this, key,
                      [&](auto* have) { return update_slowly<Update>(key, with, promised, have); });
}

/// A new entry in an empty home: one atomic, and one put.
template <class K, class V, class Hash, class Probing>
template <class Update>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::create_by_one_swap(
    const quick_tables& in, handed<K> key, handed<Update> with, concurrency promised) -> outcome {
  const place p(hash_of(key), static_cast<std::uint32_t>(in.members));
  const ptr<word> home =
      in.far_bucket(p.member, p.narrow_home(in.by_gets) * sizeof(entry)).pointer();
  image made;
  made.set_key(key);
  const head taken(fill(made, with.initial()), p.fingerprint(), 1);
  if (compare_swap(home, word{0}, taken.raw()) != 0 && !FARSIDE_MUTANT(map_home_taken_by_force))
    return update_slowly<Update>(key, with, promised, static_cast<prefetched<engine>*>(nullptr),
                                 true);
  far_access<entry>::write_through(home, taken, made.content, true);
  count_taken(p.member, tables.of(p.member), 0);
  return outcome{true};
}

/// To a cell whose place is known: one atomic. Returns what was there.
template <class K, class V, class Hash, class Probing>
template <class Update>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::add_by_one_atomic(handed<K> key,
                                                                      handed<Update> with,
                                                                      concurrency promised)
    -> returned<V> {
  if (auto done = add_to_known<Update>(key, with)) [[likely]]
    return done->old;
  return update_slowly<Update>(key, with, promised, static_cast<prefetched<engine>*>(nullptr)).old;
}

/// find_at_once() for a change: of a cell that is there, or of the first empty bucket, which it
/// takes. False: nothing has been changed.
///
/// Order. As in find_at_once() heads need none, and what takes effect is one atomic: on the value
/// of a cell, or on the head of an empty bucket (claim_order says how that is in order).
template <class K, class V, class Hash, class Probing>
template <class Update>
FARSIDE_HOT inline bool engine<K, V, Hash, Probing>::update_at_once(view t, place p, const K& key,
                                                                    const Update& with,
                                                                    outcome& done) {
  constexpr auto relaxed = std::memory_order_relaxed;
  trail on(t, p);
  for (bool home = true;; home = false) {
    word* at = *on;
    word h = atomic(at[0]).load(relaxed);
    if (h == 0) {
      if (!create_at_once(at, p, key, with.initial())) return false;
      done.created = true;
      count_at_home(p.member);
      if (!home) count_away(p.member);
      return true;
    }
    if (head(h).fingerprint() == p.fingerprint()) {
      if (!cells || (h & head::state_and_flags) != static_cast<word>(state::cell)) return false;
      if constexpr (cells) {
        word seen = atomic(at[2]).load(Update::changes ? std::memory_order_acquire
                                                       : std::memory_order_seq_cst);
        std::uint64_t held[key_store::words];
        for (std::size_t k = 0; k < key_store::words; ++k)
          held[k] = atomic(at[2 + entry::value_words + k]).load(relaxed);
        if (!cell::simple(seen)) return false;
        if (*key_store::equals(held, key)) return change_at_once<false>(at[2], seen, with, done);
      }
    } else if (head(h).never_taken()) {
      return false;
    }
    on.next(t);
  }
}

/// In an empty bucket. False: somebody else was faster.
template <class K, class V, class Hash, class Probing>
FARSIDE_HOT inline bool engine<K, V, Hash, Probing>::create_at_once(word* at, place p, const K& key,
                                                                    handed<V> value) {
  constexpr auto relaxed = std::memory_order_relaxed;
  std::uint64_t held[key_store::words];
  key_store::pack(key, held);
  auto store_key = [&] {
    for (std::size_t k = 0; k < key_store::words; ++k)
      atomic(at[2 + entry::value_words + k]).store(held[k], relaxed);
  };
  if constexpr (cells) {
    if (cell::fits(value)) [[likely]] {
      if (!direct_access<entry>::take(at, head(state::cell, p.fingerprint(), 1))) return false;
      store_key();
      atomic(at[2]).store(cell::encode(value), publish_order);
      return true;
    }
  }
  std::uint64_t packed[entry::value_words];
  value_store::pack(value, packed);
  if (!direct_access<entry>::take(at, head(state::plain, p.fingerprint(), 1))) return false;
  store_key();
  for (std::size_t k = 0; k < entry::value_words; ++k) atomic(at[2 + k]).store(packed[k], relaxed);
  atomic(at[1]).store(1, publish_order);
  return true;
}

/// Of a cell that is there, and was seen to be `seen`. `Owned`: see create_quickly().
template <class K, class V, class Hash, class Probing>
template <bool Owned, class Update>
FARSIDE_HOT inline bool engine<K, V, Hash, Probing>::change_at_once(word& value, word seen,
                                                                    const Update& with,
                                                                    outcome& done) {
  if constexpr (!Update::changes) {
    return true;
  } else if constexpr (adds<Update>) {
    if (!cell::small_step(with.value)) return false;
    auto amount = static_cast<word>(static_cast<std::int64_t>(with.value));
    if (!cell::simple(seen + amount)) return false;
    if constexpr (Owned) {
      poke(value, seen + amount);
      done.old = cell::decode<V>(seen);
      return true;
    }
    word old = cpu_fetch<atomic_op::add>(value, amount);
    // An addition to a cell that moves, or was erased, does not count.
    if (old & (cell::frozen | cell::absent)) return false;
    done.old = cell::decode<V>(old);
    return true;
  } else {
    V old = cell::decode<V>(seen);
    V wanted = with.next(old);
    if (!cell::fits(wanted)) return false;
    if constexpr (Owned)
      poke(value, cell::encode(wanted));
    else if (!cpu_compare_swap(value, seen, cell::encode(wanted)))
      return false;
    if constexpr (Update::uses_old) done.old = old;
    return true;
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

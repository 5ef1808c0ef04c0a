// engine: the shortest ways, through quick_tables. They take what is most common: linear probing,
// and of a bucket that is the key's the one state it most often has. Whatever else there is goes
// another way, which starts anew.
//
// They are short because that is what makes them fast. A CPU overlaps the misses of as many of them
// as fit its window of instructions: half as many instructions, and twice as many finds are under
// way.
#pragma once

#include <farside/containers/detail/map/short_ways.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Where a key's buckets begin, and how to know them. It ends at the end of the table, which is
/// nobody's bucket.
template <class K, class V, class Hash, class Probing>
struct engine<K, V, Hash, Probing>::spot {
  FARSIDE_HOT spot(const quick_tables& in, word capacity, const K& key)
      : spot(in, capacity, place(hash_of(key), static_cast<std::uint32_t>(in.members))) {}
  FARSIDE_HOT spot(const quick_tables& in, word capacity, place p)
      : part(&in[p.member]), wanted(wanted_of(p)) {
    if (capacity >= place::narrow) __builtin_unreachable();
    home = part->buckets + p.home(capacity) * bucket_words;
  }

  FARSIDE_HOT spot(word* at, word wants) : wanted(wants), home(at) {}
  spot() = default;

  /// Who only looks for a key needs the lower half of the head, and two instructions less for it.
  FARSIDE_HOT static spot to_find(const quick_tables& in, const K& key) {
    const place p(hash_of(key), static_cast<std::uint32_t>(in.members));
    spot result(in, in.capacity, p);
    result.wanted = p.fingerprint() << 4 | static_cast<std::uint32_t>(fresh.raw());
    return result;
  }

  /// The head of a bucket that is taken for the key. Of one that is the key's already the lower
  /// half is most likely the same.
  FARSIDE_HOT static word wanted_of(place p) { return p.fingerprint() << 4 | fresh.raw(); }
  static constexpr head fresh{cells ? state::cell : state::plain, 0, 1};

  /// The home, or the bucket after it if that is another key's. The step is taken, or not, without
  /// a branch: nobody can tell beforehand.
  FARSIDE_HOT word* first() const {
    word* at = home;
    at += head(peek(at[0])).is_not(static_cast<std::uint32_t>(wanted)) ? bucket_words : 0;
    asm("" : "+r"(at));
    return at;
  }
  /// The same, with less to do, as it also goes past an empty home: who does not find the key there
  /// has to begin at the home again.
  FARSIDE_HOT word* likely(word home_head) const { return home_or(home + bucket_words, home_head); }
  /// The same of three: for many keys one after another, which need not wait for each other's.
  FARSIDE_HOT word* likely() const {
    const spot next(home + bucket_words, wanted);
    word first = peek(home[0]), second = peek(next.home[0]);
    return home_or(next.likely(second), first);
  }
  /// Whether one of the first buckets is empty, and those before it are other keys'. No branch asks
  /// which; with more of them that costs more than a branch does.
  FARSIDE_HOT bool ends_soon() const {
    unsigned others = 1, ends = 0;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      const word h = peek(home[i * bucket_words]);
      ends |= others & unsigned{h == 0};
      others &= unsigned{is_another(h) || FARSIDE_MUTANT(map_own_bucket_skipped)};
    }
    asm("" : "+r"(ends));
    return ends != 0;
  }
  FARSIDE_HOT bool is_another(word h) const {
    return head(h).is_not(static_cast<std::uint32_t>(wanted));
  }
  FARSIDE_HOT bool fits(word h) const {
    return static_cast<std::uint32_t>(h) == static_cast<std::uint32_t>(wanted);
  }

  /// Asks for the home's line, to change it. `near`: most likely another core's cache has it.
  ///
  /// From there a prefetch of a Neoverse V1 brings it in a state in which an atomic is still done
  /// far away, 36 ns each; a store brings it to stay. So zero is stored where zero is: a seal is a
  /// version here, of 32 bits, and stored as a word, so that the upper half of it is zero for good,
  /// whoever stores it, and when.
  FARSIDE_HOT void fetch_to_change([[maybe_unused]] bool near) const {
#if defined(__aarch64__)
    if (near) {
      asm volatile("str wzr, [%0, #12]" : : "r"(home) : "memory");
      return;
    }
#endif
    prefetch_to_write(home);
  }

  quick_tables::part* part = nullptr;
  word wanted = 0;
  word* home = nullptr;

 private:
  FARSIDE_HOT word* home_or(word* other, word home_head) const {
    word* at =
        static_cast<std::uint32_t>(home_head ^ wanted) > head::state_and_flags ? other : home;
    asm("" : "+r"(at));
    return at;
  }
};

/// The loads of find_at_once(), in the same order and for the same reasons. Not clear: nothing is
/// known.
template <class K, class V, class Hash, class Probing>
template <bool Quiet>
FARSIDE_HOT inline auto engine<K, V, Hash, Probing>::find_quickly(const quick_tables& in,
                                                                  handed<K> key, bool& clear)
    -> std::optional<V> {
  constexpr auto relaxed = std::memory_order_relaxed;
  constexpr bool ordered = !Quiet && !FARSIDE_MUTANT(map_find_unordered);
  constexpr auto settles = ordered ? std::memory_order_seq_cst : relaxed;
  const spot where = spot::to_find(in, key);
  const word first = peek(where.home[0]);
  word* at = where.likely(first);
  word h = peek(at[0]);
  clear = true;
  if (!where.fits(h)) [[unlikely]] {
    // An empty home says it all, or, if its table moves, nothing, whatever lies behind it. Without
    // a branch: who looks for what is not there cannot tell beforehand.
    const bool says_it = head(first).never_taken() && !FARSIDE_MUTANT(map_empty_home_passed);
    at = says_it ? where.home : at;
    h = says_it ? first : h;
    asm("" : "+r"(at), "+r"(h));
    for (; !where.fits(h); h = peek((at += bucket_words)[0])) {
      if (where.is_another(h)) continue;
      clear = h == 0 && atomic(at[0]).load(settles) == 0;
      return std::nullopt;
    }
  }
  if constexpr (cells) {
    word value = atomic(at[2]).load(settles), held[key_store::words];
    for (std::size_t k = 0; k < key_store::words; ++k)
      held[k] = peek(at[2 + entry::value_words + k]);
    value = cell::number<V>(value);
    const bool like = cell::unlike_value<V>(value) == 0, same = *key_store::equals(held, key);
    if (like & same) [[likely]]
      return static_cast<V>(value);
  } else {
    word seal = atomic(at[1]).load(settles), body[bucket_words - 2];
    for (std::size_t k = 0; k + 2 < bucket_words; ++k) body[k] = peek(at[2 + k]);
    if constexpr (!Quiet) acquire_fence();
    if (seal == h >> 32 && (Quiet || peek(at[0]) == h) &&
        *key_store::equals(body + entry::value_words, key)) [[likely]]
      return value_store::unpack(body);
  }
  clear = false;
  return std::nullopt;
}

/// In an empty bucket, if the value fits what most have. False: it does not, or somebody else was
/// faster. `Owned`: by the owner while nobody else is there (concurrency::owner_only), so that stores do.
template <class K, class V, class Hash, class Probing>
template <bool Owned>
FARSIDE_HOT inline bool engine<K, V, Hash, Probing>::create_quickly(word* at, word wanted,
                                                                    handed<K> key,
                                                                    handed<V> value) {
  constexpr auto publishes = Owned ? std::memory_order_relaxed : publish_order;
  std::uint64_t held[key_store::words];
  key_store::pack(key, held);
  const head taken(wanted);
  auto take = [&]() __attribute__((always_inline)) {
    if constexpr (Owned || FARSIDE_MUTANT(map_taken_by_a_store))
      return poke(at[0], taken.raw()), true;
    else
      return direct_access<entry>::template take<true>(at, taken);
  };
  if constexpr (cells) {
    if (!cell::fits(value) || !take()) return false;
    for (std::size_t k = 0; k < key_store::words; ++k)
      poke(at[2 + entry::value_words + k], held[k]);
    atomic(at[2]).store(cell::encode(value), publishes);
  } else {
    std::uint64_t packed[entry::value_words];
    value_store::pack(value, packed);
    if (!take()) return false;
    for (std::size_t k = 0; k < key_store::words; ++k)
      poke(at[2 + entry::value_words + k], held[k]);
    for (std::size_t k = 0; k < entry::value_words; ++k) poke(at[2 + k], packed[k]);
    atomic(at[1]).store(1, publishes);
  }
  return true;
}

/// The same as update_at_once(). `tell(member)` adds up how full a table is. False: nothing has
/// been changed.
template <class K, class V, class Hash, class Probing>
template <bool Owned, class Update, class Tell>
FARSIDE_HOT inline bool engine<K, V, Hash, Probing>::update_quickly(const quick_tables& in,
                                                                    const spot& where,
                                                                    handed<K> key,
                                                                    const Update& with,
                                                                    outcome& done, Tell tell) {
  quick_tables::part& mine = *where.part;
  auto create = [&](word* at) __attribute__((always_inline)) {
    if (!create_quickly<Owned>(at, where.wanted, key, with.initial())) return false;
    done.created = true;
    --mine.left;
    return true;
  };
  word *at = where.home, h;
  // Where keys are new, a guess that the home is empty is as good as any: if it is wrong, the next
  // operation has begun all the same.
  if constexpr (!Update::changes) {
    if ((h = peek(at[0])) == 0) [[likely]]
      return create(at);
    if (in.changeable <= in_caches) {
      h = peek((at = where.likely(h))[0]);
      if (!where.fits(h)) h = peek((at = where.first())[0]);
    }
  } else {
    h = peek((at = where.first())[0]);
  }
  for (; h != 0 && !where.fits(h); h = peek((at += bucket_words)[0]))
    if (!where.is_another(h)) return false;
  if (h == 0) {
    if (!create(at)) return false;
    if (static_cast<std::int64_t>(mine.left) <= 0 && at != where.home) [[unlikely]]
      tell(static_cast<rank_t>(&mine - &in[0]));
    return true;
  }
  if constexpr (cells) {
    word seen =
        atomic(at[2]).load(Update::changes ? std::memory_order_acquire : std::memory_order_seq_cst);
    std::uint64_t held[key_store::words];
    for (std::size_t k = 0; k < key_store::words; ++k)
      held[k] = peek(at[2 + entry::value_words + k]);
    if (cell::simple(seen) && *key_store::equals(held, key))
      return change_at_once<Owned>(at[2], seen, with, done);
  }
  return false;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

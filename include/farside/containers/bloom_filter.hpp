// far::bloom_filter<K>: a set that takes a few bits for each key. It never denies a key that is in
// it. It claims a key that is not in it with a small probability.
//
//   far::bloom_filter<std::uint64_t> seen(1'000'000);   // collective
//   if (seen.insert(key)) ...                           // true of one of all that insert it
//   if (!seen.find(key)) ...                            // nobody has inserted it
//
// It is blocked: all bits of a key lie in one 64-bit word, so that
//
//   insert   is one atomic, and tells exactly one of all that insert a new key that it is new
//   find     is one read
//
//   hash of the key:  | high bits: rank and word | mixed again: k different bits of the word |
//
//   word:   0 ... 0 --fetch_or(pattern)--> bits only ever added --clear (collective)--> 0 ... 0
//
// Invariant: a key is in exactly if all bits of its pattern are set. fetch_or has one order among
// all ranks on each word: of the inserts of one key the first one sees a bit missing and no later
// one does. A word is 8 aligned bytes, so that a get sees it as it was before or after an atomic
// (`racy_get`). The filter is linearizable as a set in which some keys are in before they were
// inserted. (That holds for observers that hear of an insert by the library. Gets of others see a
// rank's atomics at the latest before what the rank does next, other than get; see
// docs/memory_model.md.)
#pragma once

#include <farside/containers/detail/bloom/words.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/future.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

template <class K, class Hash = hash<K>>
class bloom_filter {
  using state = detail::hashed_bloom_words<Hash>;

 public:
  /// Collective. Sized so that after `expected_keys` different keys at most `rate` of the questions
  /// for others are answered by yes: 12 bits a key for 0.01, 23 for 0.001.
  explicit bloom_filter(std::uint64_t expected_keys, double rate = 0.01,
                        const container_options& with = {}, Hash hash_function = {})
      : state_(new state(std::move(hash_function), "bloom_filter", with,
                         detail::blocked_bloom_shape(expected_keys, rate))) {}

  /// True if the key is new: then no other insert of it is told so. False if it was there, or seems
  /// to be. One-sided; complete on return; anything but clear may run at the same time. 1 atomic.
  bool insert(const K& key, concurrency with = concurrency::everything) {
    state& s = *state_;
    check(s, container_operation::insert, "insert", key, with);
    where at = locate(s, key);
    if (FARSIDE_MUTANT(bloom_read_then_written)) {
      auto old = get(at.word);
      put(at.word, old | at.pattern);
      flush(at.word.rank());
      return !holds(old, at.pattern);
    }
    return !holds(fetch_or(at.word, at.pattern), at.pattern);
  }

  /// False: no insert of the key has returned yet. True: it is there, or seems to be. One-sided;
  /// anything but clear may run at the same time. 1 get.
  bool find(const K& key, concurrency with = concurrency::everything) const {
    state& s = *state_;
    check(s, container_operation::find, "find", key, with);
    where at = locate(s, key);
    return holds(get(at.word), at.pattern);
  }
  bool contains(const K& key, concurrency with = concurrency::everything) const {
    return find(key, with);
  }

  /// Begins to insert. 1 atomic, not waited for.
  future<bool> async_insert(const K& key, concurrency with = concurrency::everything) {
    state& s = *state_;
    check(s, container_operation::insert, "async_insert", key, with);
    where at = locate(s, key);
    return async_fetch_or(at.word, at.pattern).then([pattern = at.pattern](std::uint64_t old) {
      return !holds(old, pattern);
    });
  }

  /// Begins to look. 1 get, not waited for.
  future<bool> async_find(const K& key, concurrency with = concurrency::everything) const {
    state& s = *state_;
    check(s, container_operation::find, "async_find", key, with);
    where at = locate(s, key);
    return async_get(at.word).then(
        [pattern = at.pattern](std::uint64_t word) { return holds(word, pattern); });
  }

  /// Inserts all of them, and tells which were new, in their order. If a key is among them twice,
  /// one of the two is told that it is new. One-sided. n atomics in flight together, 1 wait for
  /// each 1,024; on shared memory the words are fetched ahead instead.
  std::vector<bool> insert(std::span<const K> keys, concurrency with = concurrency::everything) {
    state& s = *state_;
    if (!keys.empty()) check(s, container_operation::insert, "insert", keys[0], with);
    return bulk<false>(
        s, keys, [](where at) { return fetch_or(at.word, at.pattern); },
        [](where at) { return async_fetch_or(at.word, at.pattern); });
  }

  /// Looks for all of them. n gets in flight together, 1 wait for each 1,024.
  std::vector<bool> find(std::span<const K> keys,
                         concurrency with = concurrency::everything) const {
    state& s = *state_;
    if (!keys.empty()) check(s, container_operation::find, "find", keys[0], with);
    return bulk<true>(
        s, keys, [](where at) { return get(at.word); },
        [](where at) { return async_get(at.word); });
  }

  /// Collective: empties the filter. 2 barriers.
  void clear() { state_->clear(); }

  /// Collective: counts bits on all members, while nobody inserts. The estimated rate is exact for
  /// keys that hash evenly: the mean over all words of the chance that a pattern is covered.
  bloom_statistics statistics() const {
    unsigned k = state_->shape.bits_per_key;
    double all = detail::choose(64, k);
    return state_->look([&](std::uint64_t word) {
      return detail::choose(static_cast<unsigned>(std::popcount(word)), k) / all;
    });
  }

  /// How many bits it has, of all members; how many of them a key sets; its name in errors. Local;
  /// no communication.
  std::uint64_t bits() const { return state_->shape.bits; }
  unsigned bits_per_key() const { return state_->shape.bits_per_key; }
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  explicit bloom_filter(detail::container_handle<state> of) : state_(std::move(of)) {}

  struct where {
    ptr<std::uint64_t> word;
    std::uint64_t pattern;
  };

  static bool holds(std::uint64_t word, std::uint64_t pattern) {
    return (word & pattern) == pattern;
  }

  static void check(state& s, container_operation kind, const char* name, const K& key,
                    concurrency with) {
    s.overlaps.check(kind, name, with, [&] { return detail::describe(key); });
  }

  where locate(const state& s, const K& key) const {
    std::uint64_t hash = detail::mixed_hash(s.hash_function, key);
    return {s.word_of(hash), pattern_of(hash, s.shape.bits_per_key)};
  }

  /// `k` different bits, six bits of a hash each.
  static std::uint64_t pattern_of(std::uint64_t hash, unsigned k) {
    std::uint64_t pattern = 0, random = 0;
    for (unsigned set = 0, left = 0; set < k; random >>= 6, --left) {
      if (left == 0) random = hash = mix(hash), left = 10;
      std::uint64_t bit = std::uint64_t{1} << (random & 63);
      set += (pattern & bit) == 0;
      pattern |= bit;
    }
    return pattern;
  }

  /// Is each key there (`Found`), or is it not? As each key's word was before.
  template <bool Found, class Now, class Begin>
  std::vector<bool> bulk(state& s, std::span<const K> keys, Now now, Begin begin) const {
    std::vector<bool> result(keys.size());
    std::vector<where> places;
    for (std::size_t first = 0; first < keys.size(); first += places.size()) {
      auto part = keys.subspan(first, std::min(detail::bulk_window, keys.size() - first));
      places.clear();
      bool near = detail::here().link.coherent();
      for (const K& key : part) {
        places.push_back(locate(s, key));
        if (near) __builtin_prefetch(places.back().word.local(), !Found);
      }
      if (near) {
        for (std::size_t i = 0; i < part.size(); ++i)
          result[first + i] = holds(now(places[i]), places[i].pattern) == Found;
      } else {
        std::vector<future<std::uint64_t>> words;
        for (const where& at : places) words.push_back(begin(at));
        auto old = when_all(std::move(words)).get();
        for (std::size_t i = 0; i < part.size(); ++i)
          result[first + i] = holds(old[i], places[i].pattern) == Found;
      }
    }
    return result;
  }

  detail::container_handle<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND

// far::plain_bloom_filter<K>: a Bloom filter whose bits of one key lie anywhere. It needs fewer
// bits than bloom_filter (10 instead of 12 a key for 1 %, 14 instead of 23 for 0.1 %, 19 instead of
// 43 for 0.01 %), but k operations a key instead of one, and an insert is not atomic.
//
//   far::plain_bloom_filter<std::uint64_t> seen(1'000'000, 0.001);   // collective
//   seen.insert(key);
//   if (!seen.find(key)) ...                                         // nobody has inserted it
//
// What can be relied on, with any operations at the same time:
//
//   find is false     no insert of that key had returned when it began
//   find is true      all bits of the key are set, and will be: every later find is true
//   insert is true    it set a bit itself, so no insert of that key had returned when it began
//   insert is false   all bits had been set by others: the key is in, or seems to be
//
// So keys are never lost, and each new key makes at least one insert true unless others have set
// all of its bits. But when ranks insert one new key at the same time, each may set one bit of it
// before the others do, and several are told that it is new. Where exactly one must be told, use
// bloom_filter.
//
// Bits are only ever added (until clear): a set of bits that was seen stays so, and it does not
// matter that a find reads its k words one after another.
//
// Inserts and finds are one-sided.
#pragma once

#include <farside/containers/detail/bloom/words.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/future.hpp>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

template <class K, class Hash = hash<K>>
class plain_bloom_filter {
  using state = detail::hashed_bloom_words<Hash>;

 public:
  /// Collective. Sized for `rate` false positives after `expected_keys` different keys. Costs an
  /// allocation on each member, and a few collectives.
  explicit plain_bloom_filter(std::uint64_t expected_keys, double rate = 0.01,
                              const container_options& with = {}, Hash hash_function = {})
      : state_(new state(std::move(hash_function), "plain_bloom_filter", with,
                         detail::plain_bloom_shape(expected_keys, rate))) {}

  /// True if it set a bit (see above). One-sided; complete on return; anything but clear may run at
  /// the same time. k atomics in flight together, 1 wait (on shared memory one after another).
  bool insert(const K& key, concurrency with = concurrency::everything) {
    return async_insert(key, with).get();
  }

  /// Are all bits of the key set? One-sided. k gets in flight together, 1 wait.
  bool find(const K& key, concurrency with = concurrency::everything) const {
    return async_find(key, with).get();
  }
  bool contains(const K& key, concurrency with = concurrency::everything) const {
    return find(key, with);
  }

  /// Begins to insert. k atomics, not waited for.
  future<bool> async_insert(const K& key, concurrency with = concurrency::everything) {
    state& s = *state_;
    check(s, container_operation::insert, "insert", key, with);
    return gather(
               s, key, [](where at) { return fetch_or(at.word, at.bit); },
               [](where at) { return async_fetch_or(at.word, at.bit); })
        .then([](bool all) { return !all; });
  }

  /// Begins to look. k gets, not waited for.
  future<bool> async_find(const K& key, concurrency with = concurrency::everything) const {
    state& s = *state_;
    check(s, container_operation::find, "find", key, with);
    return gather(
        s, key, [](where at) { return get(at.word); }, [](where at) { return async_get(at.word); });
  }

  /// Inserts all of them; which set a bit, in their order. A key that is there twice counts as
  /// inserted twice at the same time. k n atomics in flight, 1 wait for each 1,024.
  std::vector<bool> insert(std::span<const K> keys, concurrency with = concurrency::everything) {
    return bulk(keys, [&](const K& key) { return async_insert(key, with); });
  }

  /// Looks for all of them. k n gets in flight, 1 wait for each 1,024.
  std::vector<bool> find(std::span<const K> keys,
                         concurrency with = concurrency::everything) const {
    return bulk(keys, [&](const K& key) { return async_find(key, with); });
  }

  /// Collective: empties the filter. 2 barriers.
  void clear() { state_->clear(); }

  /// Collective: counts bits on all members, while nobody inserts. Each member reads its own part;
  /// 1 all_gather.
  bloom_statistics statistics() const {
    bloom_statistics all = state_->look([](std::uint64_t) { return 0.0; });
    all.estimated_rate = std::pow(all.load, all.bits_per_key);
    return all;
  }

  /// How many bits it has, of all members; how many of them a key sets; its name in errors. Local;
  /// no communication.
  std::uint64_t bits() const { return state_->shape.bits; }
  unsigned bits_per_key() const { return state_->shape.bits_per_key; }
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  explicit plain_bloom_filter(detail::container_handle<state> of) : state_(std::move(of)) {}

  struct where {
    ptr<std::uint64_t> word;
    std::uint64_t bit;
  };

  static void check(state& s, container_operation kind, const char* name, const K& key,
                    concurrency with) {
    s.overlaps.check(kind, name, with, [&] { return detail::describe(key); });
  }

  /// One operation for each bit of the key: a future of whether all bits had been set. `now` does
  /// one where nothing is gained by having many in flight, `begin` begins it elsewhere.
  template <class Now, class Begin>
  future<bool> gather(const state& s, const K& key, Now now, Begin begin) const {
    std::uint64_t hash = detail::mixed_hash(s.hash_function, key);
    // The word takes the high bits of the hash, the bit in it the low ones.
    auto next = [&] {
      where at{s.word_of(hash), std::uint64_t{1} << (hash & 63)};
      hash = mix(hash);
      return at;
    };
    bool all = true;
    if (detail::here().link.coherent()) {
      for (unsigned i = 0; i < s.shape.bits_per_key; ++i) {
        where at = next();
        all &= (now(at) & at.bit) != 0;
      }
      return future<bool>::ready(all);
    }
    std::vector<future<std::uint64_t>> words;
    std::vector<std::uint64_t> bits;
    for (unsigned i = 0; i < s.shape.bits_per_key; ++i) {
      where at = next();
      words.push_back(begin(at));
      bits.push_back(at.bit);
    }
    return when_all(std::move(words))
        .then([bits = std::move(bits)](const std::vector<std::uint64_t>& old) {
          bool set = true;
          for (std::size_t i = 0; i < bits.size(); ++i) set = set && (old[i] & bits[i]) != 0;
          return set;
        });
  }

  template <class Begin>
  std::vector<bool> bulk(std::span<const K> keys, Begin begin) const {
    std::size_t together = detail::bulk_window / state_->shape.bits_per_key;
    std::vector<bool> result;
    result.reserve(keys.size());
    while (result.size() < keys.size()) {
      std::vector<future<char>> answers;  // a std::vector<bool> gives no references
      for (std::size_t i = result.size(); i < keys.size() && answers.size() < together; ++i)
        answers.push_back(begin(keys[i]).then([](bool yes) { return static_cast<char>(yes); }));
      auto arrived = when_all(std::move(answers)).get();
      result.insert(result.end(), arrived.begin(), arrived.end());
    }
    return result;
  }

  detail::container_handle<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND

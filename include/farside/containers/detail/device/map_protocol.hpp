// The protocol of far::device_hash_map: open addressing with linear probing, in slots of two words that are
// reached by 64-bit atomics alone, or by those of 128 bits where the processor has them.
//
//            claim                    publish                  accumulate
//   (E, A) ---------> (K, A) ----------------------> (K, V) ---------------> (K, V') ...
//      \                                               /
//       `------------------ claim with value ---------'        where pairs are swapped at once
//
//   E   the empty key, which no key may be        A   the absent value, which no value may be or become
//
// Invariants: a slot's key changes once, from E to a key, and stays. Of a key there is one slot: a thread
// passes over a slot only when it has seen another key in it, so that all threads which look for a key walk
// the same slots, and the first that is empty is claimed by one of them. A value leaves A once.
//
// Memory order: relaxed. The key's word and the value's word each say of themselves whether they are there.
// Who sees the key, and the value absent, has come between claim and publication: the key counts as not there
// yet for find; insert and accumulate publish in its stead, by compare-and-swap, and the claimer then finds
// that its value has come second. A load of both words may see an older value than key: that is the same
// case.
//
// No thread waits for another one: a thread that stops between claim and publication hinders
// nobody.
#pragma once

#include <farside/base/kernel_atomics.hpp>
#include <farside/base/kernel_code.hpp>
#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// What became of an insert or an accumulate of far::device_hash_map.
enum class device_insert : int {
  inserted,  ///< the key was not there
  present,   ///< it was: insert has changed nothing, accumulate has added
  full       ///< the key was not there, and its rank has no slot left
};

namespace detail {

struct device_map_words {
  std::uint64_t empty_key = ~std::uint64_t{0};
  std::uint64_t absent_value = ~std::uint64_t{0};
};

/// The slots of one rank. `Atomics` is kernel_atomics, or what a test has in its place.
template <class Atomics>
class device_map_protocol {
 public:
  FARSIDE_KERNEL_CODE device_map_protocol(word_pair* slots, std::uint64_t count,
                                          const device_map_words& words)
      : slots_(slots), count_(count), words_(words) {}

  /// 1 load for each slot that is passed, 1 compare-and-swap for the one that is taken (2 where there are
  /// none of pairs).
  FARSIDE_KERNEL_CODE device_insert insert(std::uint64_t start, std::uint64_t key,
                                           std::uint64_t value) const {
    return change(start, key, value, [](std::uint64_t*, std::uint64_t) {});
  }

  /// Whether the key is there; then `value` is its value. 1 load for each slot that is looked at.
  FARSIDE_KERNEL_CODE bool find(std::uint64_t start, std::uint64_t key,
                                std::uint64_t& value) const {
    for (std::uint64_t passed = 0, i = start; passed < count_; ++passed) {
      word_pair slot = Atomics::load(&slots_[i]);
      if (slot.first == key) {
        value = slot.second;
        return slot.second != words_.absent_value || FARSIDE_MUTANT(device_map_absent_value_found);
      }
      if (slot.first == words_.empty_key) return false;
      if (++i == count_) i = 0;
    }
    return false;
  }

  /// Inserts the key with the value, or calls `add(word, seen)`, which changes the word of its value by
  /// atomics, and not to the absent value.
  template <class Add>
  FARSIDE_KERNEL_CODE device_insert change(std::uint64_t start, std::uint64_t key,
                                           std::uint64_t value, const Add& add) const {
    for (std::uint64_t passed = 0, i = start; passed < count_; ++passed) {
      word_pair* at = &slots_[i];
      word_pair seen = Atomics::load(at);
      if (seen.first == words_.empty_key) {
        if constexpr (Atomics::swaps_pairs) {
          seen = Atomics::compare_swap(at, word_pair{words_.empty_key, words_.absent_value},
                                       word_pair{key, value});
          if (seen.first == words_.empty_key) return device_insert::inserted;
        } else {
          if (FARSIDE_MUTANT(device_map_claims_by_store))
            Atomics::store(&at->first, key);
          else
            seen.first = Atomics::compare_swap(&at->first, words_.empty_key, key);
          seen.second = words_.absent_value;
          if (seen.first == words_.empty_key) seen.first = key;
        }
      }
      if (seen.first == key) {
        if (seen.second == words_.absent_value) {
          if (FARSIDE_MUTANT(device_map_publishes_by_store)) {
            Atomics::store(&at->second, value);
            return device_insert::inserted;
          }
          seen.second = Atomics::compare_swap(&at->second, words_.absent_value, value);
          if (seen.second == words_.absent_value) return device_insert::inserted;
        }
        add(&at->second, seen.second);
        return device_insert::present;
      }
      if (++i == count_) i = 0;
    }
    return device_insert::full;
  }

 private:
  word_pair* slots_;
  std::uint64_t count_;
  device_map_words words_;
};

/// Adds to a value by the instruction that the processor has for it.
template <class Atomics>
struct device_add_words {
  std::uint64_t value;
  FARSIDE_KERNEL_CODE void operator()(std::uint64_t* word, std::uint64_t) const {
    if (FARSIDE_MUTANT(device_map_adds_by_store))
      Atomics::store(word, Atomics::load(word) + value);
    else
      Atomics::template fetch_op<atomic_op::add>(word, value);
  }
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

// A bucket of a hash map: what its words mean. docs/protocols/hash_map.md draws its states.
//
//   | head | seal | value ... | key ... |      64-bit words
//
// The head is changed by compare-and-swap only, unless nobody else is there:
//
//   63 ......... 32  31 ........... 4    3       2        1 0
//   version          fingerprint         moved   frozen   state: empty, plain, cell, erased
//
// Value and key are written by puts, together with the seal, by whoever has won the head. The words
// of a value that is replaced are masked with the version: were one the same in two versions,
// nobody could tell whether the later put of it has landed, and it might land on a third.
//
//   plain, erased   the seal is over version, place, value and key
//   cell            the value is one word, changed by atomics after it has come; the seal is over
//                   place and key, and the key is there for good
//
// Where memory is coherent the seal is the version, stored last (release), which is as good.
//
// A key that fits an empty bucket takes it for good: no other key ever gets it in this table, and
// the key has no second one. So the first bucket of its probe sequence that is empty or its own
// settles where a key is, whatever runs at the same time.
#pragma once

#include <farside/base/hot.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/hash.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail::map {

using word = std::uint64_t;

enum class state : unsigned { empty, plain, cell, erased };

/// What a bucket is to a key, as far as its head tells. `mine`: its fingerprint is the key's, so
/// that the key itself has to be compared. `blocked`: no key ever had it, and its table moves, so
/// that only the next table knows.
enum class role { empty, other, mine, blocked };

/// The head of a bucket, as a value.
class head {
 public:
  constexpr head() = default;
  constexpr explicit head(word raw) : raw_(raw) {}
  constexpr head(state what, std::uint32_t fingerprint, std::uint32_t version)
      : raw_(word{version} << 32 | word{fingerprint & fingerprint_mask} << 4 |
             static_cast<word>(what)) {}

  constexpr word raw() const { return raw_; }
  constexpr state what() const { return static_cast<state>(raw_ & 3); }
  constexpr bool frozen() const { return raw_ & 4; }
  constexpr bool moved() const { return raw_ & 8; }
  constexpr bool is_empty() const { return raw_ == 0; }
  /// `wanted`: the lower half of the head that a bucket of the key most often has.
  constexpr map::role role(std::uint32_t wanted) const {
    if (is_usual(wanted)) [[likely]]
      return role::mine;
    if (never_taken()) return is_empty() ? role::empty : role::blocked;
    return differs(wanted) ? role::other : role::mine;
  }
  /// Whether it is one of a bucket of the key that is in the state of `wanted`, and that nobody moves.
  constexpr bool is_usual(std::uint32_t wanted) const {
    return static_cast<std::uint32_t>(raw_) == wanted;
  }
  /// Whether it is nobody's, or that of a key with another fingerprint.
  constexpr bool differs(std::uint32_t wanted) const {
    return (static_cast<std::uint32_t>(raw_) ^ wanted) > state_and_flags;
  }
  /// Whether it is empty, or moved as it was empty. A head that was ever taken has a version.
  constexpr bool never_taken() const { return raw_ <= 8; }
  constexpr std::uint32_t fingerprint() const { return static_cast<std::uint32_t>(raw_) >> 4; }
  constexpr std::uint32_t version() const { return static_cast<std::uint32_t>(raw_ >> 32); }

  constexpr head as(state what) const { return head((raw_ & ~word{3}) | static_cast<word>(what)); }
  /// Without flags.
  constexpr head in_state(state what) const {
    return head((raw_ & ~state_and_flags) | static_cast<word>(what));
  }
  constexpr head freeze() const { return head(raw_ | 4); }
  constexpr head move() const { return head(raw_ | 8); }
  constexpr head next_version(state what) const { return {what, fingerprint(), version() + 1}; }

  friend constexpr bool operator==(head, head) = default;

  static constexpr std::uint32_t fingerprint_mask = (std::uint32_t{1} << 28) - 1;
  static constexpr word state_and_flags = 15;

 private:
  word raw_ = 0;
};

/// The word of a cell, in which integers that are not too large live, so that they can be counted
/// up by one atomic:
///
///   63       62       61      60 ......... 0
///   frozen   absent   widen   value + bias
///
/// frozen: moves to the next table, adding to it does not count. absent: erased, or not there any
/// more; adding does not count either. widen: the next table shall hold it plain, as its value no
/// longer fits. Zero: has not come yet. The bias lets additions to words that are frozen or absent,
/// which do not count but are made, stay away from the flags on both sides.
struct cell {
  static constexpr word frozen = word{1} << 63;
  static constexpr word absent = word{1} << 62;
  static constexpr word widen = word{1} << 61;
  static constexpr word bias = word{1} << 60;
  static constexpr word low = widen - 1;
  static constexpr unsigned limit_bits = 59;
  static constexpr std::int64_t limit = std::int64_t{1} << limit_bits;  ///< of values
  static constexpr std::int64_t largest_step = std::int64_t{1} << 36;   ///< added without a look

  template <class V>
  static constexpr bool fits(V value) {
    if constexpr (sizeof(V) < 8)
      return true;
    else if constexpr (std::is_signed_v<V>)
      return value >= -limit && value < limit;
    else
      return value >> limit_bits == 0;
  }
  template <class V>
  static constexpr bool small_step(V value) {
    if constexpr (sizeof(V) <= 4)
      return true;
    else if constexpr (std::is_signed_v<V>)
      return value >= -largest_step && value < largest_step;
    else
      return value < static_cast<V>(largest_step);
  }
  /// Of a value that fits.
  template <class V>
  static constexpr word encode(V value) {
    if constexpr (std::is_unsigned_v<V>) return value | bias;
    return static_cast<word>(static_cast<std::int64_t>(value)) + bias;
  }
  template <class V>
  static constexpr V decode(word w) {
    return static_cast<V>((w & low) - bias);
  }
  /// It has come, no flag is set, and its value fits.
  static constexpr bool simple(word w) { return (w - static_cast<word>(limit)) >> 60 == 0; }
  /// Whether as many ranks as there can be may add to it at once. A strained cell bears that for a
  /// while, where there is no room for the next table.
  static constexpr bool bears_more(word w) {
    const auto value = decode<std::int64_t>(w);
    return value >= -limit - limit / 2 && value < limit + limit / 2;
  }
  /// Whether the value has left what a cell holds: the next table shall hold it plain.
  static constexpr bool strained(word w) {
    const auto value = decode<std::int64_t>(w);
    return value < -limit || value >= limit;
  }
};

/// Where a key belongs: the member comes from the highest bits of its hash, the fingerprint from the
/// lowest ones, the home bucket from those between. A rank number has 19 bits.
struct key_location {
  word hash;
  std::uint32_t member;

  key_location() = default;
  FARSIDE_HOT key_location(word key_hash, std::uint32_t members)
      : hash(key_hash), member(static_cast<std::uint32_t>(reduce_hash(key_hash, members))) {}
  FARSIDE_HOT std::uint32_t fingerprint() const {
    return static_cast<std::uint32_t>(hash) & head::fingerprint_mask;
  }
  /// The lower half of a head in that state.
  FARSIDE_HOT std::uint32_t wanted(state what) const {
    return fingerprint() << 4 | static_cast<std::uint32_t>(what);
  }
  FARSIDE_HOT word home(word capacity) const { return reduce_hash(hash << 20, capacity); }
};

/// A bucket with values and keys of that many words.
template <std::size_t ValueWords, std::size_t KeyWords>
struct bucket {
  static constexpr std::size_t value_words = ValueWords, key_words = KeyWords;

  word head_word;
  word seal;
  word body[ValueWords + KeyWords];

  word* value() { return body; }
  word* key() { return body + ValueWords; }
  const word* value() const { return body; }
  const word* key() const { return body + ValueWords; }

  head top() const { return head(head_word); }

  /// The value as it is stored where puts write it, and back.
  FARSIDE_HOT void mask(head h, word where) {
    if (h.what() != state::cell && !FARSIDE_MUTANT(map_words_not_masked)) mask_value(h, where);
  }
  void mask_value(head h, word where) {
    word by = mix(where ^ mix(h.version()));
    for (std::size_t k = 0; k < ValueWords; ++k) body[k] ^= mix(by + k);
  }

  /// The seal that belongs to this bucket if its head is `h` and it lies at `where`.
  FARSIDE_HOT word right_seal(head h, word where) const {
    if (h.what() == state::cell) return seal_of(key(), KeyWords, mix(where));
    return seal_of(body, ValueWords + KeyWords, mix(where ^ mix(h.version())));
  }
  /// Whether value and key are those of the head. A cell's value must have come: it is not zero
  /// then.
  FARSIDE_HOT bool is_sealed(word where) const {
    if (FARSIDE_MUTANT(map_seal_not_checked)) return true;
    if (top().what() == state::cell && body[0] == 0) return false;
    return seal == right_seal(top(), where);
  }
  /// Whether a cell shows without its seal that all of it has come, if its key is the one looked
  /// for and the caller only reads. A cell's seal is over its key, and no other key ever has this
  /// bucket, so words of the key that are not zero have arrived. Writers must verify the seal: a
  /// put of three words may store the second one twice (docs/memory_model.md).
  FARSIDE_HOT bool key_shows_all() const {
    bool has_zero = body[0] == 0;
    for (std::size_t k = 0; k < KeyWords && !FARSIDE_MUTANT(map_zero_taken_for_come); ++k)
      has_zero |= key()[k] == 0;
    return !has_zero;
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map

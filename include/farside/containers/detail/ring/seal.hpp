// How an element lies in a slot where memory is not coherent: so that its reader can tell whether
// it is all there.
//
//   | word 0 ^ key 0 | word 1 ^ key 1 | ... | seal |        keys and seal depend on the ticket
//
// The put that writes a slot lands word by word, in any order, while its reader looks. The seal is
// a hash of ticket and words, so that words of different rounds together do not pass for an
// element.
//
// The keys are there for the slot's next user. A reader that has seen the seal knows that all
// words are those of this round, but not that all have landed: one that has the same value as in
// the round before could still be in flight, and would then land on the next round's. With
// keys that differ from round to round no word keeps its value, so what is verified has landed.
//
// Both are right but for chances of 2^-64 a word, and against accidents, not against attacks.
#pragma once

#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail {

/// Words that `bytes` take.
constexpr std::size_t ring_words(std::size_t bytes) { return (bytes + 7) / 8; }

/// What depends on the ticket alone; that of a seal and of the key of each word derive from it.
constexpr std::uint64_t ring_round_key(std::uint64_t ticket) { return mix(ticket * mix_offset); }

/// Never 0: that is what fresh slots hold.
constexpr std::uint64_t ring_finish(std::uint64_t seal) { return seal == 0 ? 1 : seal; }

/// Writes words and seal of one element of `bytes`, which its caller knows beforehand, to `to`.
[[gnu::always_inline]] inline void ring_encode(std::uint64_t ticket, const std::byte* from,
                                               std::size_t bytes, std::uint64_t* to) {
  std::uint64_t key = ring_round_key(ticket), seal = key;
  std::size_t words = ring_words(bytes);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i * 8, bytes - i * 8 < 8 ? bytes - i * 8 : 8);
    seal = scramble(seal + word);
    key += mix_offset;
    to[i] = FARSIDE_MUTANT(ring_words_keep_their_value) ? word : word ^ scramble(key);
  }
  to[words] = ring_finish(seal);
}

/// Takes one element out of `from`; false if it is not, or not all, that of the ticket.
[[gnu::always_inline]] inline bool ring_decode(std::uint64_t ticket, const std::uint64_t* from,
                                               std::byte* to, std::size_t bytes) {
  std::uint64_t key = ring_round_key(ticket), seal = key;
  std::size_t words = ring_words(bytes);
  for (std::size_t i = 0; i < words; ++i) {
    key += mix_offset;
    std::uint64_t word =
        FARSIDE_MUTANT(ring_words_keep_their_value) ? from[i] : from[i] ^ scramble(key);
    seal = scramble(seal + word);
    std::memcpy(to + i * 8, &word, bytes - i * 8 < 8 ? bytes - i * 8 : 8);
  }
  if (FARSIDE_MUTANT(ring_seal_not_checked)) return from[words] != 0;
  return from[words] == ring_finish(seal);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

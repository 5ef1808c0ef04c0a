// A table of buckets in the segment of one member. access.hpp and far_access.hpp have the three ways
// to its buckets.
//
//   | capacity | next | claimed | done | used | dead | block | - |  bucket 0 | bucket 1 | ... |
//
// `next` is zero, or where the table lies that this one moves to: set once, and then for good.
// `claimed` and `done` count chunks of buckets that are being moved or have been. `used` and `dead`
// (buckets taken; of those, erased) are added to now and then, and only guide growth.
#pragma once

#include <farside/base/cpu_atomics.hpp>
#include <farside/base/word_copy.hpp>
#include <farside/containers/detail/map/bucket.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <atomic>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct header {
  word capacity = 0, next = 0, claimed = 0, done = 0, used = 0, dead = 0, block = 0, spare = 0;

  static constexpr std::size_t words = 8;
  enum index : std::size_t {
    at_capacity,
    at_next,
    at_claimed,
    at_done,
    at_used,
    at_dead,
    at_block
  };
};

inline constexpr word least_capacity = 8;  ///< of a table, in buckets
inline constexpr word chunk = 256;         ///< buckets that are moved in one go

/// A table as one rank knows it, which does not change. It stays where it is until no rank can be
/// reading it any more.
struct table {
  word* direct = nullptr;  ///< the first bucket, where memory is coherent
  word capacity = 0;
  ptr<word> at;         ///< its header
  word* own = nullptr;  ///< the first bucket, if it is this rank's own

  rank_t rank() const { return at.rank(); }
  word chunks() const { return (capacity + chunk - 1) / chunk; }
  ptr<word> field(header::index which) const { return at + static_cast<std::ptrdiff_t>(which); }
  ptr<word> bucket_at(word index, std::size_t bucket_words) const {
    return at + static_cast<std::ptrdiff_t>(header::words + index * bucket_words);
  }
};

inline std::atomic_ref<word> atomic(word& w) { return std::atomic_ref<word>(w); }

/// Taking a bucket, and storing the word that makes it whole. An operation must come before the
/// next one of its rank (store buffering), so one of the two is sequentially consistent, like the
/// load of a head: the one that is so anyway. On arm64 a relaxed compare-and-swap lets the next
/// operation begin while its line is still on its way; on x86-64 it is a fence in any case, and the
/// store need not be.
#if defined(__aarch64__)
inline constexpr auto claim_order = std::memory_order_relaxed;
inline constexpr auto publish_order = std::memory_order_seq_cst;
#else
inline constexpr auto claim_order = std::memory_order_seq_cst;
inline constexpr auto publish_order = std::memory_order_release;
#endif

/// How many buckets a get fetches at first: 256 bytes cost hardly more than 8.
template <class Bucket>
inline constexpr word window = std::clamp<word>(256 / sizeof(Bucket), 1, 8);
template <class Bucket>
inline constexpr word largest_window = std::max<word>(4096 / sizeof(Bucket), 1);
/// How many the get fetches that follows one of `count` buckets; zero: there was none.
template <class Bucket>
constexpr word next_window(word count) {
  return count == 0 ? window<Bucket> : std::min(2 * count, largest_window<Bucket>);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map

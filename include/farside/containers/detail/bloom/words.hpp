// The 64-bit words of a Bloom filter, spread evenly over a team. They are changed by atomics only,
// and only from 0 to 1, but for clear(), which stands between two barriers.
#pragma once

#include <farside/containers/bloom_statistics.hpp>
#include <farside/containers/detail/bloom/shape.hpp>
#include <farside/containers/detail/concurrency_check.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/hash.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

struct bloom_words : shared_state {
  /// Collective. At least `shape.bits`, rounded up so that all members have the same number.
  bloom_words(const char* kind, const container_options& with, bloom_shape shape_wanted)
      : shared_state(kind, with), shape(shape_wanted), overlaps(*this) {
    std::uint64_t n = members.size();
    require_possible(text(kind, " '", label, "', ", shape.bits, " bits in words"), shape.bits / 64,
                     sizeof(std::uint64_t), n);
    each = std::max<std::uint64_t>(1, (shape.bits / 64 + n - 1) / n);
    shape.bits = each * n * 64;
    parts = alloc_together<std::uint64_t>(members, full_name(), each);
    zero();
    detail::barrier(members.members());
  }
  void release() override {
    overlaps.release();
    dealloc(own());
  }
  void after_barrier() override { overlaps.next_epoch(); }

  ptr<std::uint64_t> own() const { return parts[members.rank()]; }

  /// The word of a hash: its high bits say whose, what they leave says which.
  ptr<std::uint64_t> word_of(std::uint64_t hash) const {
    __extension__ using wide = unsigned __int128;
    wide product = static_cast<wide>(hash) * parts.size();
    auto rest = static_cast<std::uint64_t>(product);
    return parts[static_cast<std::size_t>(product >> 64)] +
           static_cast<std::ptrdiff_t>(reduce_hash(rest, each));
  }

  void zero() {
    std::vector<std::uint64_t> zeros(std::min<std::uint64_t>(each, 8192));
    for (std::uint64_t done = 0; done < each; done += zeros.size())
      put(own() + static_cast<std::ptrdiff_t>(done), zeros.data(),
          std::min<std::uint64_t>(zeros.size(), each - done));
  }
  void clear() {
    auto note = calling<"clear of a bloom filter">(*this);
    detail::barrier(members.members());
    zero();
    detail::barrier(members.members());
  }

  /// Collective. `rate_of(word)`: how many questions that meet this word it answers wrongly.
  template <class RateOf>
  bloom_statistics look(RateOf rate_of) const {
    auto note = calling<"statistics of a bloom filter">(*this);
    struct sums {
      std::uint64_t set;
      double rate;
    } mine{};
    for (std::uint64_t done = 0, piece; done < each; done += piece) {
      piece = std::min<std::uint64_t>(8192, each - done);
      for (std::uint64_t word : get(own() + static_cast<std::ptrdiff_t>(done), piece)) {
        mine.set += static_cast<std::uint64_t>(std::popcount(word));
        mine.rate += rate_of(word);
      }
    }
    bloom_statistics all{.bits = shape.bits, .bits_per_key = shape.bits_per_key};
    std::uint64_t most = 0;
    for (const sums& s : all_gather(mine, members)) {
      all.bits_set += s.set;
      all.estimated_rate += s.rate;
      most = std::max(most, s.set);
    }
    all.load = static_cast<double>(all.bits_set) / static_cast<double>(all.bits);
    const std::uint64_t words = all.bits / 64;
    all.estimated_rate /= static_cast<double>(words);
    if (all.bits_set != 0)
      all.skew = static_cast<double>(most * parts.size()) / static_cast<double>(all.bits_set);
    return all;
  }

  bloom_shape shape;
  std::uint64_t each = 0;  ///< words on each member
  std::vector<ptr<std::uint64_t>> parts;
  concurrency_check overlaps;
};

/// With the hash function of its keys, the same on all members.
template <class Hash>
struct hashed_bloom_words : bloom_words {
  hashed_bloom_words(Hash hash, const char* kind, const container_options& with, bloom_shape wanted)
      : bloom_words(kind, with, wanted), hash_function(std::move(hash)) {}
  [[no_unique_address]] Hash hash_function;
};

/// Operations in flight at once in bulk forms.
inline constexpr std::size_t bulk_window = 1024;

}  // namespace far::inline FARSIDE_BACKEND::detail

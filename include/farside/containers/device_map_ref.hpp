// What far::device_hash_map is told when it is made, and far::device_map_ref, by which kernels use one
// (containers/device_hash_map.hpp).
#pragma once

#include <farside/containers/detail/device/map_protocol.hpp>
#include <farside/core/device/device.hpp>

#include <bit>
#include <concepts>
#include <cstring>
#include <limits>

namespace far::inline FARSIDE_BACKEND {

namespace detail {
/// Small negative numbers are common sums: the least number is not.
template <class V>
constexpr V usual_absent_value() {
  if constexpr (std::is_integral_v<V> && std::is_signed_v<V>)
    return std::numeric_limits<V>::min();
  else
    return std::bit_cast<V>(
        static_cast<std::conditional_t<sizeof(V) == 8, std::uint64_t, std::uint32_t>>(
            ~std::uint64_t{0}));
}
}  // namespace detail

template <class K, class V>
struct device_map_options {
  double load =
      0.5;  ///< entries a slot when the map has as many as its capacity says: above 0, at most 0.95
  /// No key of the map may be this. Local; no communication.
  K empty_key = std::bit_cast<K>(
      static_cast<std::conditional_t<sizeof(K) == 8, std::uint64_t, std::uint32_t>>(
          ~std::uint64_t{0}));
  /// No value of the map may be this, or become it by accumulate. The least one of signed integers, else all
  /// bits are set. Local; no communication.
  V absent_value = detail::usual_absent_value<V>();
};

namespace detail {

/// What fits into a word, and comes out of it as it went in.
template <class T>
concept device_word = std::is_trivially_copyable_v<T> && (sizeof(T) == 8 || sizeof(T) == 4) &&
                      std::default_initializable<T>;

template <device_word T>
FARSIDE_KERNEL_CODE std::uint64_t to_word(T value) {
  std::uint64_t word = 0;
  memcpy(&word, &value, sizeof value);
  return word;
}
template <device_word T>
FARSIDE_KERNEL_CODE T from_word(std::uint64_t word) {
  T value;
  memcpy(&value, &word, sizeof value);
  return value;
}

struct device_add_values {
  template <class V>
  FARSIDE_KERNEL_CODE V operator()(V a, V b) const {
    return a + b;
  }
};

/// Changes a value by `op`, where the processor has no instruction for that.
template <class V, class Op>
struct device_change_words {
  V value;
  Op op;
  FARSIDE_KERNEL_CODE void operator()(std::uint64_t* word, std::uint64_t seen) const {
    for (;;) {
      std::uint64_t old = kernel_atomics::compare_swap(
          word, seen, to_word(static_cast<V>(op(from_word<V>(seen), value))));
      if (old == seen) return;
      seen = old;
    }
  }
};

}  // namespace detail

/// What kernels use of a device_hash_map: trivially copyable, good as long as the map lives. All of it is for
/// kernels, any number of threads of any ranks at the same time; costs are in loads and atomics of device
/// memory, of which those on other ranks' memory go over the link between devices. No communication by other
/// means. Checked builds end a kernel that gives insert or accumulate the empty key or the absent value, which
/// spoil entries of others, and say so where its stream is waited for.
template <class K, class V>
class device_map_ref {
 public:
  /// Of no map. Local; no communication.
  device_map_ref() = default;

  /// Inserts the key unless it is there. 1 load for each slot that is passed and 1 compare-and-swap (2 on
  /// devices without those of 128 bits).
  FARSIDE_KERNEL_CODE device_insert insert(const device_view& d, K key, V value) const {
    check(d, key, value);
    location at = locate(key);
    return on(d, at.rank).insert(at.slot, detail::to_word(key), detail::to_word(value));
  }
  /// Whether the key is there; then `value` is its value. 1 load for each slot that is looked at: at half
  /// load, one and a half for a key that is there.
  FARSIDE_KERNEL_CODE bool find(const device_view& d, K key, V& value) const {
    location at = locate(key);
    std::uint64_t word = 0;
    bool found = on(d, at.rank).find(at.slot, detail::to_word(key), word);
    if (found) value = detail::from_word<V>(word);
    return found;
  }
  /// Inserts the key with this value, or adds it to the value that is there. As insert, and 1
  /// atomic.
  FARSIDE_KERNEL_CODE device_insert accumulate(const device_view& d, K key, V value) const {
    if constexpr (std::is_integral_v<V> && sizeof(V) == 8) {
      check(d, key, value);
      location at = locate(key);
      detail::device_add_words<detail::kernel_atomics> add{detail::to_word(value)};
      return on(d, at.rank).change(at.slot, detail::to_word(key), add.value, add);
    } else {
      return accumulate(d, key, value, detail::device_add_values{});
    }
  }
  /// The same by another operation: `op(there, value)`, associative and commutative, may be called several
  /// times. As insert, and 1 compare-and-swap or, under contention, more.
  template <class Op>
  FARSIDE_KERNEL_CODE device_insert accumulate(const device_view& d, K key, V value, Op op) const {
    check(d, key, value);
    location at = locate(key);
    return on(d, at.rank)
        .change(at.slot, detail::to_word(key), detail::to_word(value),
                detail::device_change_words<V, Op>{value, op});
  }

  /// The rank in whose device memory the key lies, or would. Local; no communication.
  FARSIDE_KERNEL_CODE rank_t owner(K key) const { return locate(key).rank; }

 private:
  template <class, class>
  friend class device_hash_map;

  FARSIDE_KERNEL_CODE void check([[maybe_unused]] const device_view& d, [[maybe_unused]] K key,
                                 [[maybe_unused]] V value) const {
    if constexpr (FARSIDE_CHECKED) {
      if (detail::to_word(key) == words_.empty_key)
        d.refuse(detail::fault_kind::empty_key, words_.empty_key);
      if (detail::to_word(value) == words_.absent_value)
        d.refuse(detail::fault_kind::absent_value, words_.absent_value);
    }
  }

  struct location {
    rank_t rank;
    std::uint64_t slot;
  };
  /// The rank by the high bits of the hash, the slot by those below: with the same bits for both each rank
  /// would use a part of its slots.
  FARSIDE_KERNEL_CODE location locate(K key) const {
    std::uint64_t hash = mix(detail::to_word(key));
    rank_t rank = nprocs_ == 1 ? 0 : static_cast<rank_t>(reduce_hash(hash, nprocs_));
    return {rank, reduce_hash(hash << 20 | hash >> 44, slots_)};
  }
  FARSIDE_KERNEL_CODE detail::device_map_protocol<detail::kernel_atomics> on(const device_view& d,
                                                                             rank_t rank) const {
    std::uint64_t first = rank == d.rank() ? own_ : d.get(table_ + rank);
    return {d.address(device_ptr<detail::word_pair>::from_raw(first), slots_), slots_, words_};
  }

  std::uint64_t own_ = 0;              ///< the raw pointer of this rank's slots
  device_ptr<std::uint64_t> table_{};  ///< those of all ranks, in own memory
  std::uint64_t slots_ = 0;            ///< of each rank
  rank_t nprocs_ = 1;
  detail::device_map_words words_;
};

}  // namespace far::inline FARSIDE_BACKEND

// The kernels of far::device_hash_map.
#pragma once

#include <farside/containers/device_map_ref.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// Sums of what kernels count: spread over many words, as threads that add to one wait for each
/// other.
struct device_tally {
  static constexpr std::size_t spread = 512, stride = 4;
  device_ptr<std::uint64_t> words{};
  FARSIDE_KERNEL_CODE void add(const device_view& d, std::size_t i) const {
    d.fetch_add(words + static_cast<std::ptrdiff_t>(i / 32 % spread * stride), std::uint64_t{1});
  }
  static constexpr std::size_t size = spread * stride;
};

/// Values need no operator+ where nothing is added.
template <class K, class V, bool Adds>
struct device_map_insert_all {
  device_map_ref<K, V> map;
  device_ptr<const K> keys;
  device_ptr<const V> values;
  device_tally present, refused;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    auto at = static_cast<std::ptrdiff_t>(i);
    K key = d.get(keys + at);
    V value = d.get(values + at);
    device_insert result;
    if constexpr (Adds)
      result = map.accumulate(d, key, value);
    else
      result = map.insert(d, key, value);
    if (result == device_insert::present) present.add(d, i);
    if (result == device_insert::full) refused.add(d, i);
  }
};

template <class K, class V>
struct device_map_find_all {
  device_map_ref<K, V> map;
  device_ptr<const K> keys;
  device_ptr<V> values;
  device_ptr<unsigned char> found;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    auto at = static_cast<std::ptrdiff_t>(i);
    V value{};
    bool there = map.find(d, d.get(keys + at), value);
    d.put(values + at, value);
    if (found) d.put(found + at, static_cast<unsigned char>(there));
  }
};

/// Packs the entries among some slots to the beginning of a buffer.
struct device_map_pack {
  device_ptr<word_pair> slots, packed;
  device_ptr<std::uint64_t> count;
  device_map_words words;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    word_pair slot = kernel_atomics::load(d.address(slots + static_cast<std::ptrdiff_t>(i)));
    if (slot.first == words.empty_key || slot.second == words.absent_value) return;
    d.put(packed + static_cast<std::ptrdiff_t>(d.fetch_add(count, std::uint64_t{1})), slot);
  }
};

struct device_map_count {
  device_ptr<word_pair> slots;
  device_map_words words;
  device_tally entries;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    word_pair slot = kernel_atomics::load(d.address(slots + static_cast<std::ptrdiff_t>(i)));
    if (slot.first != words.empty_key && slot.second != words.absent_value) entries.add(d, i);
  }
};

struct device_map_clear {
  device_ptr<word_pair> slots;
  device_map_words words;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    d.put(slots + static_cast<std::ptrdiff_t>(i), word_pair{words.empty_key, words.absent_value});
  }
};

/// Calls something for each entry among some slots.
template <class K, class V, class Visit>
struct device_map_visit {
  device_ptr<word_pair> slots;
  device_map_words words;
  Visit visit;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    word_pair slot = kernel_atomics::load(d.address(slots + static_cast<std::ptrdiff_t>(i)));
    if (slot.first == words.empty_key || slot.second == words.absent_value) return;
    visit(d, from_word<K>(slot.first), from_word<V>(slot.second));
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail

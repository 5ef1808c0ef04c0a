// far::device_hash_map<K, V>: a hash map in the device memory of all ranks, of fixed capacity. Kernels of all
// ranks insert, find and accumulate at the same time; hosts do so in bulk.
//
//   far::device gpu;
//   far::device_hash_map<std::uint64_t, std::uint64_t> counts(gpu, 1'000'000);      // collective
//   counts.accumulate(keys, ones);                                                  // in bulk, from the host
//
//   struct count_all {                                                              // in a kernel
//     far::device_map_ref<std::uint64_t, std::uint64_t> counts;
//     far::device_ptr<const std::uint64_t> keys;
//     FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
//       counts.accumulate(d, d.get(keys + i), 1);
//     }
//   };
//   stream.launch(n, count_all{counts.ref(), keys});
//
// A key's rank is chosen by its hash. Keys and values are words of at most 64 bits; one value of each type is
// kept for the map (see device_map_options). The protocol is in containers/detail/device/map_protocol.hpp.
#pragma once

#include <farside/containers/detail/device/map_kernels.hpp>
#include <farside/core/device/device.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// The map itself, on the host: made and ended by all ranks together, not copied or moved. Entries are never
/// removed one by one.
template <class K, class V>
class device_hash_map {
  static_assert(
      detail::device_word<K> && std::has_unique_object_representations_v<K>,
      "keys of far::device_hash_map have 4 or 8 bytes, which are all of their value: integers, "
      "enumerations, pointers of far::");
  static_assert(detail::device_word<V>,
                "values of far::device_hash_map have 4 or 8 bytes, trivially copyable");

 public:
  using key_type = K;
  using mapped_type = V;
  using options = device_map_options<K, V>;
  using ref_type = device_map_ref<K, V>;

  /// Room for `capacity` entries on all ranks together. Collective; costs 1 kernel on each rank, 1 all_gather
  /// and 1 barrier. Each rank takes 16 bytes * capacity / load / ranks of its device memory. Throws
  /// far::allocation_error if that is not there, and far::usage_error if some rank's memory cannot be reached
  /// from here.
  explicit device_hash_map(const device& on, std::size_t capacity, options with = {})
      : gpu_(on), stream_(on), with_(with) {
    if (!(with.load > 0 && with.load <= 0.95))
      detail::raise(
          "device_hash_map: a load of ", with.load,
          " entries a slot makes no sense. Give one above 0 and at most 0.95, such as 0.5.");
    rank_t n = far::nprocs();
    for (rank_t r = 0; r < n; ++r)
      if (!gpu_.reaches(r))
        detail::raise(
            "device_hash_map: the device of rank ", far::rank(), " cannot reach that of rank ", r,
            ", and kernels use the memory of all. Use GPUs that reach each other, those of "
            "one node.");
    double slots = static_cast<double>(capacity) / with.load / n;
    // Hashes do not spread evenly: what one rank has more than its part.
    if (n > 1) slots += 6 * __builtin_sqrt(slots);
    ref_.slots_ = static_cast<std::uint64_t>(slots) + 16;
    ref_.nprocs_ = n;
    ref_.words_ = {detail::to_word(with.empty_key), detail::to_word(with.absent_value)};
    capacity_ = capacity;
    slots_ = gpu_.alloc<detail::word_pair>(ref_.slots_);
    table_ = gpu_.alloc<std::uint64_t>(n);
    tallies_ = gpu_.alloc<std::uint64_t>(2 * detail::device_tally::size);
    auto all = all_gather(slots_.raw());
    gpu_.put(table_, all.data(), n);
    ref_.own_ = slots_.raw();
    ref_.table_ = table_;
    stream_.fill(tallies_, 0, 2 * detail::device_tally::size);
    empty();
    barrier();
  }
  device_hash_map(const device_hash_map&) = delete;
  /// Collective: 1 barrier, unless an exception is on its way. Kernels that use the map have ended
  /// before.
  ~device_hash_map() {
    if (std::uncaught_exceptions() > unwinding_)
      return;  // nobody would answer; memory goes with the job
    barrier();
    gpu_.dealloc(slots_);
    gpu_.dealloc(table_);
    gpu_.dealloc(tallies_);
    gpu_.dealloc(staging_);
  }

  /// What kernels use. Local; no communication.
  ref_type ref() const { return ref_; }
  /// What was asked for. Local; no communication.
  std::size_t capacity() const { return capacity_; }

  /// Issues inserts of `n` keys and values that lie in device memory, this rank's own or others'. One-sided;
  /// costs 1 kernel on the stream. outcome() tells what became of them.
  void insert(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
              std::size_t n) {
    change(on, keys, values, n, false);
  }
  /// The same by accumulate.
  void accumulate(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
                  std::size_t n) {
    change(on, keys, values, n, true);
  }
  /// Issues finds: values go to `values`, V() for keys that are not there; `found`, if not null, gets 1 or 0
  /// for each key. One-sided; costs 1 kernel on the stream.
  void find(device_stream& on, device_ptr<const K> keys, device_ptr<V> values,
            device_ptr<unsigned char> found, std::size_t n) const {
    on.launch(n, detail::device_map_find_all<K, V>{ref_, keys, values, found});
  }
  /// Issues `visit(view, key, value)`, marked FARSIDE_KERNEL_CODE, for each entry that lies with this rank,
  /// all at once or in any order. One-sided; costs 1 kernel on the stream, over all slots of this rank.
  template <class Visit>
  void for_each_local(device_stream& on, const Visit& visit) const {
    on.launch(ref_.slots_, detail::device_map_visit<K, V, Visit>{slots_, ref_.words_, visit});
  }
  /// What became of the inserts and accumulates that this rank has issued since it last asked, all of which
  /// are done (the stream was waited for).
  struct tally {
    std::uint64_t present = 0;  ///< keys that were there already
    std::uint64_t refused = 0;  ///< keys for which there was no room
  };
  /// Local; no communication but 1 copy of 32 KiB from the device.
  tally outcome() {
    std::vector<std::uint64_t> words(2 * detail::device_tally::size);
    stream_.get(tallies_, words.data(), words.size());
    stream_.fill(tallies_, 0, words.size());
    stream_.synchronize();
    tally result;
    for (std::size_t i = 0; i < words.size(); ++i)
      (i < detail::device_tally::size ? result.present : result.refused) += words[i];
    return result;
  }

  /// Inserts from host memory; how many keys were new. One-sided: the others take no part, and may do the
  /// same. Complete on return. Costs a copy to the device and a kernel for each 2^20 keys, the copy of one
  /// part beside the kernel of the one before. Throws far::allocation_error if a rank has no slot left; keys
  /// that found one are in the map then.
  std::size_t insert(std::span<const K> keys, std::span<const V> values) {
    return from_host(keys, values, false);
  }
  /// The same by accumulate: new keys get the value, others have it added.
  std::size_t accumulate(std::span<const K> keys, std::span<const V> values) {
    return from_host(keys, values, true);
  }
  /// Finds for host memory: one optional for each key. One-sided; complete on return. Costs a copy to the
  /// device, a kernel and a copy back for each 2^20 keys.
  std::vector<std::optional<V>> find(std::span<const K> keys);

  /// The entries that lie with this rank, in any order. Local; no communication but a kernel and a copy for
  /// each 2^20 slots. Nobody inserts or accumulates meanwhile.
  std::vector<std::pair<K, V>> local_entries();
  /// How many entries all ranks have. Collective; costs what local_entries does, without its copies, and 1
  /// all_reduce. Nobody inserts meanwhile.
  std::size_t size() {
    return all_reduce(pack([](const auto&) {}));
  }
  /// Removes all entries. Collective: 1 kernel and 2 barriers.
  void clear() {
    barrier();
    empty();
    barrier();
  }

 private:
  static constexpr std::size_t part = std::size_t{1} << 20;

  void empty() {
    stream_.launch(ref_.slots_, detail::device_map_clear{slots_, ref_.words_});
    stream_.synchronize();
  }
  void change(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
              std::size_t n, bool adds) {
    on.launch(n,
              detail::device_map_insert_all<K, V>{
                  ref_, keys, values, {tallies_}, {tallies_ + detail::device_tally::size}, adds});
  }
  /// Two buffers, each of keys, values and marks for one part; made when first used.
  device_ptr<std::byte> staging(std::size_t which) {
    constexpr std::size_t bytes = part * (sizeof(detail::word_pair) + 8);
    if (!staging_) staging_ = gpu_.alloc<std::byte>(2 * bytes);
    return staging_ + static_cast<std::ptrdiff_t>(which * bytes);
  }
  std::size_t from_host(std::span<const K> keys, std::span<const V> values, bool adds);
  template <class Use>
  std::size_t pack(Use use);
  void check_key(K key) const {
    if (detail::to_word(key) == ref_.words_.empty_key)
      detail::raise(
          "device_hash_map: one of the keys is ", ref_.words_.empty_key,
          ", the key that stands for an empty slot. Give another one that is no key of yours: "
          "device_map_options::empty_key.");
  }

  device gpu_;
  device_stream stream_;
  options with_;
  ref_type ref_;
  std::size_t capacity_ = 0;
  device_ptr<detail::word_pair> slots_{};
  device_ptr<std::uint64_t> table_{}, tallies_{};
  device_ptr<std::byte> staging_{};
  int unwinding_ = std::uncaught_exceptions();
};

template <class K, class V>
std::size_t device_hash_map<K, V>::from_host(std::span<const K> keys, std::span<const V> values,
                                             bool adds) {
  if (keys.size() != values.size())
    detail::raise("device_hash_map: ", keys.size(), " keys but ", values.size(),
                  " values. Give as many of both.");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check_key(keys[i]);
    if (detail::to_word(values[i]) == ref_.words_.absent_value)
      detail::raise(
          "device_hash_map: one of the values is ", ref_.words_.absent_value,
          ", which stands for a value that is not there yet. Give another one that is no value "
          "of yours: device_map_options::absent_value.");
  }
  device_stream copies(gpu_), kernels(gpu_);
  for (std::size_t begin = 0, which = 0; begin < keys.size(); begin += part, which ^= 1) {
    std::size_t n = std::min(part, keys.size() - begin);
    auto at = staging(which);
    auto to_keys = pointer_cast<K>(at);
    auto to_values = pointer_cast<V>(at + static_cast<std::ptrdiff_t>(8 * part));
    // The buffer's last kernel is the one before the last of all: a wait for all would stop the
    // overlap.
    if (begin >= 2 * part) kernels.synchronize();
    copies.put(to_keys, keys.data() + begin, n);
    copies.put(to_values, values.data() + begin, n);
    kernels.wait(copies);
    change(kernels, to_keys, to_values, n, adds);
  }
  kernels.synchronize();
  tally seen = outcome();
  if (seen.refused != 0)
    detail::raise<allocation_error>("rank ", far::rank(), ": a far::device_hash_map with room for ",
                                    capacity_, " entries has no slot left for ", seen.refused,
                                    " of ", keys.size(),
                                    " keys. Its capacity is fixed: make it with a larger one.");
  return keys.size() - seen.present;
}

template <class K, class V>
std::vector<std::optional<V>> device_hash_map<K, V>::find(std::span<const K> keys) {
  std::vector<std::optional<V>> result(keys.size());
  std::vector<V> values(std::min(part, keys.size()));
  std::vector<unsigned char> found(values.size());
  for (std::size_t begin = 0; begin < keys.size(); begin += part) {
    std::size_t n = std::min(part, keys.size() - begin);
    auto at = staging(0);
    auto on_keys = pointer_cast<K>(at);
    auto on_values = pointer_cast<V>(at + static_cast<std::ptrdiff_t>(8 * part));
    auto on_found = pointer_cast<unsigned char>(at + static_cast<std::ptrdiff_t>(16 * part));
    stream_.put(on_keys, keys.data() + begin, n);
    find(stream_, on_keys, on_values, on_found, n);
    stream_.get(on_values, values.data(), n);
    stream_.get(on_found, found.data(), n);
    stream_.synchronize();
    for (std::size_t i = 0; i < n; ++i)
      if (found[i]) result[begin + i] = values[i];
  }
  return result;
}

/// Packs the entries a part of the slots at a time, and gives each part to `use`; how many there
/// are.
template <class K, class V>
template <class Use>
std::size_t device_hash_map<K, V>::pack(Use use) {
  auto at = staging(0);
  auto packed = pointer_cast<detail::word_pair>(at);
  auto count = pointer_cast<std::uint64_t>(at + static_cast<std::ptrdiff_t>(16 * part));
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < ref_.slots_; begin += part) {
    std::size_t n = std::min<std::size_t>(part, ref_.slots_ - begin);
    std::uint64_t there = 0;
    stream_.fill(count, 0);
    stream_.launch(n, detail::device_map_pack{slots_ + static_cast<std::ptrdiff_t>(begin), packed,
                                              count, ref_.words_});
    stream_.get(count, &there);
    stream_.synchronize();
    total += there;
    use(std::pair{packed, there});
  }
  return total;
}

template <class K, class V>
std::vector<std::pair<K, V>> device_hash_map<K, V>::local_entries() {
  std::vector<std::pair<K, V>> result;
  std::vector<detail::word_pair> words;
  pack([&](const auto& found) {
    words.resize(found.second);
    stream_.get(found.first, words.data(), words.size());
    stream_.synchronize();
    for (const auto& w : words)
      result.emplace_back(detail::from_word<K>(w.first), detail::from_word<V>(w.second));
  });
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND

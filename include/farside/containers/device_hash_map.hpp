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
#include <farside/core/detail/together.hpp>
#include <farside/core/device/device_block.hpp>

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

  /// Room for `capacity` entries on all ranks together. Collective; costs 1 kernel on each rank, 1 all_reduce, 1
  /// all_gather and 1 barrier. Each rank takes 16 bytes * capacity / load / ranks of its device memory, and 64
  /// KiB. Throws on all ranks far::allocation_error if one has no room, and far::usage_error if one cannot reach
  /// the memory of another.
  explicit device_hash_map(const device& on, std::size_t capacity, options with = {})
      : gpu_(on), capacity_(capacity), stream_(on) {
    const rank_t n = far::nprocs();
    ref_.slots_ = slots_for(capacity, with.load, n);
    ref_.nprocs_ = n;
    ref_.words_ = {detail::to_word(with.empty_key), detail::to_word(with.absent_value)};
    detail::do_together(
        world(), "device_hash_map",
        [&, this] {
          require_reach();
          slots_ = device_block(gpu_, ref_.slots_ * sizeof(detail::word_pair));
          table_ = device_block(gpu_, n * sizeof(std::uint64_t));
          tallies_ = device_block(gpu_, 4 * detail::device_tally::size * sizeof(std::uint64_t));
        },
        [] {});
    auto all = all_gather(slots_.get().raw());
    ref_.own_ = slots_.get().raw();
    ref_.table_ = pointer_cast<std::uint64_t>(table_.get());
    gpu_.put(ref_.table_, all.data(), n);
    stream_.fill(tallies_.get(), 0, tallies_.bytes());
    empty();
    barrier();
  }
  device_hash_map(const device_hash_map&) = delete;
  /// Collective: 1 barrier. When an exception is on its way it waits for nobody, as nobody might answer, and
  /// memory that other ranks may use is given back at the next barrier of all ranks. Kernels that use the map
  /// have ended before. Does nothing when the runtime has ended.
  ~device_hash_map() {
    if (!gpu_.is_open()) return;
    if (std::uncaught_exceptions() > unwinding_) {
      slots_.leave();
    } else {
      barrier();
    }
  }

  /// What kernels use. Local; no communication.
  ref_type ref() const { return ref_; }
  /// What was asked for. Local; no communication.
  std::size_t capacity() const { return capacity_; }

  /// Issues inserts of `n` keys and values that lie in device memory, this rank's own or others'. One-sided;
  /// costs 1 kernel on the stream. outcome() tells what became of them.
  void insert(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
              std::size_t n) {
    change<false>(on, keys, values, n, tallies(of_streams));
  }
  /// The same by accumulate.
  void accumulate(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
                  std::size_t n) {
    change<true>(on, keys, values, n, tallies(of_streams));
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
    on.launch(ref_.slots_, detail::device_map_visit<K, V, Visit>{slots(), ref_.words_, visit});
  }
  /// What became of the inserts and accumulates that this rank has issued since it last asked, all of which
  /// are done (the stream was waited for).
  struct tally {
    std::uint64_t present = 0;  ///< keys that were there already
    std::uint64_t refused = 0;  ///< keys for which there was no room
  };
  /// Inserts from host memory do not count here. Local; no communication but 1 copy of 32 KiB from the device.
  tally outcome() { return taken(tallies(of_streams)); }

  /// Inserts from host memory; how many keys were new. One-sided: the others take no part, and may do the
  /// same. Complete on return. Costs a copy to the device and a kernel for each 2^20 keys, the copy of one
  /// part beside the kernel of the one before. The map keeps buffers on this rank's device for bulk calls: 24
  /// bytes for each key of the longest call so far, at most 2^20 of them, or 48 MiB for longer calls. Throws
  /// far::allocation_error if there is no room for them, or if a rank has no slot left; keys that found one are
  /// in the map then.
  std::size_t insert(std::span<const K> keys, std::span<const V> values) {
    return from_host<false>(keys, values);
  }
  /// The same by accumulate: new keys get the value, others have it added.
  std::size_t accumulate(std::span<const K> keys, std::span<const V> values) {
    return from_host<true>(keys, values);
  }
  /// Finds for host memory: one optional for each key. One-sided; complete on return. Costs a copy to the
  /// device, a kernel and a copy back for each 2^20 keys. Keeps buffers as insert does.
  std::vector<std::optional<V>> find(std::span<const K> keys);

  /// The entries that lie with this rank, in any order. Local; no communication but a kernel and a copy for
  /// each 2^20 slots. Keeps buffers as insert does, for slots in place of keys. Nobody inserts or accumulates
  /// meanwhile.
  std::vector<std::pair<K, V>> local_entries();
  /// How many entries all ranks have. Collective; costs 1 kernel over all slots of this rank, 1 copy of 32 KiB
  /// and 1 all_reduce. Nobody inserts meanwhile.
  std::size_t size() {
    auto counts = tallies(of_bulk);
    stream_.launch(ref_.slots_, detail::device_map_count{slots(), ref_.words_, {counts}});
    return all_reduce(static_cast<std::size_t>(taken(counts).present));
  }
  /// Removes all entries. Collective: 1 kernel and 2 barriers.
  void clear() {
    barrier();
    empty();
    barrier();
  }

 private:
  static constexpr std::size_t part = std::size_t{1} << 20;

  static std::uint64_t slots_for(std::size_t capacity, double load, rank_t ranks) {
    if (!(load > 0 && load <= 0.95))
      detail::raise(
          "device_hash_map: a load of ", load,
          " entries a slot makes no sense. Give one above 0 and at most 0.95, such as 0.5.");
    double slots = static_cast<double>(capacity) / load / ranks;
    // Hashes do not spread evenly: what one rank has more than its part.
    if (ranks > 1) slots += 6 * __builtin_sqrt(slots);
    constexpr std::size_t most = max_segment / sizeof(detail::word_pair);
    if (slots >= static_cast<double>(most))
      detail::raise<allocation_error>("device_hash_map: no room for ", capacity,
                                      " entries at a load of ", load,
                                      ": each rank would need more slots than a device segment can "
                                      "have. Ask for fewer entries, or for a "
                                      "higher load.");
    return static_cast<std::uint64_t>(slots) + 16;
  }
  void require_reach() const {
    for (rank_t r = 0; r < far::nprocs(); ++r)
      if (!gpu_.reaches(r))
        detail::raise(
            "device_hash_map: the device of rank ", far::rank(), " cannot reach that of rank ", r,
            ", and kernels use the memory of all. Use GPUs that reach each other, those of "
            "one node.");
  }
  void empty() {
    stream_.launch(ref_.slots_, detail::device_map_clear{slots(), ref_.words_});
    stream_.synchronize();
  }
  device_ptr<detail::word_pair> slots() const {
    return pointer_cast<detail::word_pair>(slots_.get());
  }

  /// Whose inserts are counted apart from each other. Of each: keys that were present, and then those refused.
  enum tallies_of : std::ptrdiff_t { of_streams, of_bulk };
  device_ptr<std::uint64_t> tallies(tallies_of whose) const {
    return pointer_cast<std::uint64_t>(tallies_.get()) +
           whose * 2 * static_cast<std::ptrdiff_t>(detail::device_tally::size);
  }
  /// What was counted; the counts are 0 then.
  tally taken(device_ptr<std::uint64_t> from) {
    std::vector<std::uint64_t> words(2 * detail::device_tally::size);
    stream_.get(from, words.data(), words.size());
    stream_.fill(from, 0, words.size());
    stream_.synchronize();
    tally result;
    for (std::size_t i = 0; i < words.size(); ++i)
      (i < detail::device_tally::size ? result.present : result.refused) += words[i];
    return result;
  }
  template <bool Adds>
  void change(device_stream& on, device_ptr<const K> keys, device_ptr<const V> values,
              std::size_t n, device_ptr<std::uint64_t> counts) {
    constexpr auto size = static_cast<std::ptrdiff_t>(detail::device_tally::size);
    on.launch(n, detail::device_map_insert_all<K, V, Adds>{
                     ref_, keys, values, {counts}, {counts + size}});
  }

  /// A buffer for one part of what a bulk call is given.
  ///
  ///   | keys: 8 bytes each | values: 8 each | marks: 8 each |      or pairs: 16 each, and a count
  struct buffer {
    device_ptr<std::byte> at;
    std::size_t room;
    template <class T>
    device_ptr<T> array(std::size_t words_before) const {
      return pointer_cast<T>(at + static_cast<std::ptrdiff_t>(8 * words_before * room));
    }
  };
  /// Makes buffers for `n` in all, of at most a part each: one, or two where there are several parts. No kernel
  /// or copy uses those that were there.
  void make_buffers(std::size_t n) {
    const std::size_t room = (std::min(part, n) + 31) / 32 * 32;  // whole granules of 256 bytes
    const std::size_t bytes = room * 24 * (n > part ? 2 : 1);
    if (bytes <= staging_.bytes()) return;
    staging_ = {};
    staging_ = device_block(gpu_, bytes);
    staging_room_ = room;
  }
  buffer staging(std::size_t which) const {
    return {staging_.get() + static_cast<std::ptrdiff_t>(which * 24 * staging_room_),
            staging_room_};
  }
  template <bool Adds>
  std::size_t from_host(std::span<const K> keys, std::span<const V> values);
  template <class Use>
  void pack(Use use);
  void check_key(K key) const {
    if (detail::to_word(key) == ref_.words_.empty_key)
      detail::raise(
          "device_hash_map: one of the keys is ", ref_.words_.empty_key,
          ", the key that stands for an empty slot. Give another one that is no key of yours: "
          "device_map_options::empty_key.");
  }

  device gpu_;
  ref_type ref_;
  std::size_t capacity_ = 0;
  device_block slots_, table_, tallies_;
  device_block staging_;
  std::size_t staging_room_ = 0;
  device_stream stream_;  ///< ends before the memory that it uses
  int unwinding_ = std::uncaught_exceptions();
};

template <class K, class V>
template <bool Adds>
std::size_t device_hash_map<K, V>::from_host(std::span<const K> keys, std::span<const V> values) {
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
  if (keys.empty()) return 0;
  make_buffers(keys.size());
  device_stream copies(gpu_), kernels(gpu_);
  future<void> last_kernel[2];  // of each buffer
  for (std::size_t begin = 0, which = 0; begin < keys.size(); begin += part, which ^= 1) {
    const std::size_t n = std::min(part, keys.size() - begin);
    const buffer to = staging(which);
    if (last_kernel[which].valid()) last_kernel[which].get();
    copies.put(to.template array<K>(0), keys.data() + begin, n);
    copies.put(to.template array<V>(1), values.data() + begin, n);
    kernels.wait(copies);
    change<Adds>(kernels, to.template array<K>(0), to.template array<V>(1), n, tallies(of_bulk));
    last_kernel[which] = kernels.done();
  }
  kernels.synchronize();
  const tally seen = taken(tallies(of_bulk));
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
  if (keys.empty()) return result;
  make_buffers(std::min(part, keys.size()));
  const buffer on = staging(0);
  std::vector<V> values(std::min(part, keys.size()));
  std::vector<unsigned char> found(values.size());
  for (std::size_t begin = 0; begin < keys.size(); begin += part) {
    const std::size_t n = std::min(part, keys.size() - begin);
    auto on_keys = on.template array<K>(0);
    auto on_values = on.template array<V>(1);
    auto on_found = on.template array<unsigned char>(2);
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

/// Packs the entries a part of the slots at a time, and gives each part to `use`.
template <class K, class V>
template <class Use>
void device_hash_map<K, V>::pack(Use use) {
  make_buffers(std::min<std::size_t>(part, ref_.slots_));
  const auto packed = staging(0).template array<detail::word_pair>(0);
  const auto count = staging(0).template array<std::uint64_t>(2);
  for (std::size_t begin = 0; begin < ref_.slots_; begin += part) {
    std::size_t n = std::min<std::size_t>(part, ref_.slots_ - begin);
    std::uint64_t there = 0;
    stream_.fill(count, 0);
    stream_.launch(n, detail::device_map_pack{slots() + static_cast<std::ptrdiff_t>(begin), packed,
                                              count, ref_.words_});
    stream_.get(count, &there);
    stream_.synchronize();
    use(std::pair{packed, there});
  }
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

// far::device_view: device memory as kernels see it. A kernel gets one as its first argument.
//
//   struct scale {
//     far::device_ptr<double> values;
//     double by;
//     FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
//       *d.address(values + i) *= by;
//     }
//   };
//   stream.launch(n, scale{values, 2.0});
//
// put, get and atomics below reach the device memory of all ranks whose devices this one can reach: those of
// one node, mostly, and all that share a GPU. Puts and atomics of a kernel are complete, for all to see, when
// its stream has come to its end (far::device_stream::synchronize, done) and not before. Of kernels that run
// at the same time atomics alone may meet at one word.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/kernel_atomics.hpp>
#include <farside/core/device/device_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace far::inline FARSIDE_BACKEND {

namespace detail {
/// What checked kernels know of the allocations of a segment: a word for each 256 bytes of it, at its end.
/// Between two allocations there are 256 bytes that nobody has.
///
///   word    | number of the allocation: 24 bits | how many of these bytes it has, less one: 8 bits |    0: nobody's
struct allocation_words {
  static constexpr std::size_t granule = 256;
  /// Where they begin: the heap ends there.
  FARSIDE_KERNEL_CODE static constexpr std::size_t begin(std::size_t segment) {
    return FARSIDE_CHECKED ? segment - segment / granule * sizeof(std::uint32_t) : segment;
  }
  FARSIDE_KERNEL_CODE static constexpr std::size_t place(std::size_t offset, std::size_t segment) {
    return begin(segment) + offset / granule * sizeof(std::uint32_t);
  }
  static constexpr std::uint32_t word(std::uint32_t number, std::size_t bytes) {
    return number << 8 | static_cast<std::uint32_t>(bytes - 1);
  }
  /// Whether one allocation has these bytes. `first` and `last` are the words of the first one and of the
  /// last one.
  FARSIDE_KERNEL_CODE static bool has(std::uint32_t first, std::uint32_t last, std::size_t end) {
    return first != 0 && first >> 8 == last >> 8 && (end - 1) % granule <= (last & 0xff);
  }
};

/// What a checked kernel did wrong.
enum class fault_kind : std::uint64_t {
  none,
  beyond,        ///< an access of memory that no allocation has
  misaligned,    ///< an access at an address that is no multiple of the type's alignment
  empty_key,     ///< a device_hash_map was given the key that stands for an empty slot
  absent_value,  ///< or the value that stands for one that is not there
  incomplete     ///< a thread is about to write the rest of it
};

/// Where a checked kernel leaves what it did wrong: the first words of each device segment.
struct device_fault {
  std::uint64_t kind = 0;   ///< a fault_kind
  std::uint64_t word = 0;   ///< the raw pointer, or the key or the value
  std::uint64_t bytes = 0;  ///< of the access
  std::uint64_t work = 0;   ///< the number of the launch
};
}  // namespace detail

/// Trivially copyable. For kernels alone; no communication, but for what its operations do: 1 load, store or
/// atomic each, over the link between devices where the memory is another device's.
class device_view {
 public:
  /// Of no memory. Local; no communication.
  device_view() = default;
  /// For the library. `bases` lies in device memory: the address of each rank's segment, or null.
  FARSIDE_KERNEL_CODE device_view(std::byte* const* bases, std::byte* own, rank_t rank,
                                  rank_t nprocs, std::size_t bytes, std::uint64_t work = 0)
      : bases_(bases), own_(own), bytes_(bytes), work_(work), rank_(rank), nprocs_(nprocs) {}

  /// The rank whose kernel this is, and how many there are. Local; no communication.
  FARSIDE_KERNEL_CODE rank_t rank() const { return rank_; }
  /// How many ranks there are. Local; no communication.
  FARSIDE_KERNEL_CODE rank_t nprocs() const { return nprocs_; }

  /// Where `n` objects lie for this kernel. 1 load for other ranks' memory. Checked builds end a kernel that
  /// asks for memory which no allocation has, which is not all of one, or which is not aligned for T, and say
  /// so where its stream is waited for.
  template <class T>
  FARSIDE_KERNEL_CODE T* address(device_ptr<T> p, [[maybe_unused]] std::size_t n = 1) const {
    if constexpr (FARSIDE_CHECKED) {
      if (!allocated(p.raw(), n * sizeof(T)))
        refuse(detail::fault_kind::beyond, p.raw(), n * sizeof(T));
      else if (p.offset() % alignof(T) != 0)
        refuse(detail::fault_kind::misaligned, p.raw(), alignof(T));
    }
    std::byte* base = p.rank() == rank_ ? own_ : bases_[p.rank()];
    return reinterpret_cast<T*>(base + p.offset());
  }

  /// A copy of the object. Not atomic.
  template <class T>
  FARSIDE_KERNEL_CODE std::remove_cv_t<T> get(device_ptr<T> p) const {
    return *address(p);
  }
  /// Stores the object. Not atomic.
  template <class T>
  FARSIDE_KERNEL_CODE void put(device_ptr<T> p, const T& value) const {
    *address(p) = value;
  }

  /// Whole words, also while others change them. 1 load.
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T atomic_load(device_ptr<T> p) const {
    return detail::kernel_atomics::load(address(p));
  }
  /// Likewise. Costs 1 store.
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE void atomic_store(device_ptr<T> p, T value) const {
    detail::kernel_atomics::store(address(p), value);
  }
  /// These return the old value. Relaxed: they order nothing else.
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_add(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::add>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_and(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::bit_and>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_or(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::bit_or>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_xor(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::bit_xor>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_min(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::min>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T fetch_max(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::max>(address(p), value);
  }
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T exchange(device_ptr<T> p, T value) const {
    return detail::kernel_atomics::fetch_op<detail::atomic_op::swap>(address(p), value);
  }
  /// The old value; `desired` is stored if that was `expected`.
  template <detail::atomic_word T>
  FARSIDE_KERNEL_CODE T compare_swap(device_ptr<T> p, T expected, T desired) const {
    return detail::kernel_atomics::compare_swap(address(p), expected, desired);
  }

  /// For the library: notes the first fault of this rank's kernels, and ends the kernel.
  FARSIDE_KERNEL_CODE void refuse(detail::fault_kind kind, std::uint64_t word,
                                  std::uint64_t bytes = 0) const;

  /// Bytes at the beginning of a segment that are the library's.
  static constexpr std::size_t reserved = 4096;

 private:
  /// Whether one allocation has these bytes, which a pointer to device memory names.
  FARSIDE_KERNEL_CODE bool allocated(std::uint64_t pointer, std::size_t bytes) const {
    const auto p = device_ptr<std::byte>::from_raw(pointer);
    using words = detail::allocation_words;
    const std::size_t end = p.offset() + bytes;
    if (pointer >> 63 == 0 || p.rank() >= nprocs_ || p.offset() < reserved ||
        end > words::begin(bytes_))
      return false;
    if (bytes == 0) return true;
    const std::byte* base = p.rank() == rank_ ? own_ : bases_[p.rank()];
    auto word = [&](std::size_t offset) {
      return detail::kernel_atomics::load(
          reinterpret_cast<const std::uint32_t*>(base + words::place(offset, bytes_)));
    };
    return words::has(word(p.offset()), word(end - 1), end);
  }

  std::byte* const* bases_ = nullptr;
  std::byte* own_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t work_ = 0;  ///< the number of the launch, for faults
  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
};

namespace detail {
/// What an error says of a fault.
[[gnu::cold]] inline std::string text_of(const device_fault& of) {
  const auto at = device_ptr<std::byte>::from_raw(of.word);
  switch (static_cast<fault_kind>(of.kind)) {
    case fault_kind::misaligned:
      return text("a kernel accesses an object at ", at, ", which is misaligned: its type lies at ",
                  "multiples of ", of.bytes,
                  " bytes only. Allocate it as this type by far::device::alloc, or begin at such a "
                  "multiple.");
    case fault_kind::empty_key:
      return text(
          "a kernel gives a device_hash_map the key ", of.word,
          ", which stands for an empty slot there. Make the map with another one that is no "
          "key of yours: device_map_options::empty_key.");
    case fault_kind::absent_value:
      return text(
          "a kernel gives a device_hash_map the value ", of.word,
          ", which stands there for a value that is not there yet. Make the map with another "
          "one that is no value of yours: device_map_options::absent_value.");
    default:
      return text("a kernel accesses ", of.bytes, " bytes at ", at,
                  of.word >> 63 == 0 ? " (which is no pointer to device memory)" : "",
                  ": that is outside of the device memory which far::device has given out. Let it "
                  "access what far::device::alloc has returned and dealloc has not taken back.");
  }
}
/// What ends a stand-in kernel.
[[noreturn, gnu::cold]] inline void refuse_in_stand_in(const device_fault& fault) {
  raise(text_of(fault));
}
}  // namespace detail

FARSIDE_KERNEL_CODE inline void device_view::refuse(detail::fault_kind kind, std::uint64_t word,
                                                    std::uint64_t bytes) const {
#if defined(__CUDA_ARCH__)
  auto* fault = reinterpret_cast<detail::device_fault*>(own_);
  const auto incomplete = static_cast<std::uint64_t>(detail::fault_kind::incomplete);
  if (detail::kernel_atomics::compare_swap(&fault->kind, std::uint64_t{0}, incomplete) == 0) {
    detail::kernel_atomics::store(&fault->word, word);
    detail::kernel_atomics::store(&fault->bytes, bytes);
    detail::kernel_atomics::store(&fault->work, work_);
    detail::kernel_atomics::store_release(&fault->kind, static_cast<std::uint64_t>(kind));
    __threadfence_system();
  }
  detail::end_kernel();
#else
  detail::refuse_in_stand_in({static_cast<std::uint64_t>(kind), word, bytes, work_});
#endif
}

}  // namespace far::inline FARSIDE_BACKEND

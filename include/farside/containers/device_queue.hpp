// far::device_queue<T>: a queue in the device memory of one rank, of fixed capacity, which kernels of all
// ranks push to and pop from at the same time; hosts do so in bulk.
//
//   far::device_queue<edge> work(gpu, 0, 1'000'000);      // collective; it lies with rank 0
//   struct expand {
//     far::device_queue_ref<edge> work;
//     FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
//       edge e;
//       if (work.pop(d, e)) work.push(d, next_of(e));
//     }
//   };
//
// The protocol is in containers/detail/device/queue_protocol.hpp.
#pragma once

#include <farside/containers/detail/device/queue_protocol.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/device/device_block.hpp>

#include <algorithm>
#include <exception>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What kernels use of a device_queue: trivially copyable, good as long as the queue lives. For any number of
/// threads of any ranks at the same time. No communication but the loads and atomics that are told.
template <class T>
class device_queue_ref {
 public:
  /// Of no queue. Local; no communication.
  device_queue_ref() = default;

  /// False: it is full, or was while others gave up; 2 atomics then. Else 3 atomics, 1 load and 2 stores, and
  /// more loads while it waits: for pops that have begun, never for one that has not.
  FARSIDE_KERNEL_CODE bool push(const device_view& d, const T& element) const {
    return on(d).push(element);
  }
  /// False: it is empty, or was while others gave up; 2 atomics then. Else 3 atomics, 2 loads and 1 store, and
  /// more loads while it waits: for pushes that have begun, never for one that has not.
  FARSIDE_KERNEL_CODE bool pop(const device_view& d, T& element) const {
    return on(d).pop(element);
  }

 private:
  template <class>
  friend class device_queue;
  FARSIDE_KERNEL_CODE detail::device_queue_protocol<T, detail::kernel_atomics> on(
      const device_view& d) const {
    return {d.address(counters_), d.address(slots_, count_), count_};
  }
  device_ptr<detail::device_queue_counters> counters_{};
  device_ptr<detail::device_queue_slot<T>> slots_{};
  std::uint64_t count_ = 0;
};

namespace detail {

template <class T>
struct device_queue_first_turns {
  device_ptr<device_queue_slot<T>> slots;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    d.address(slots + static_cast<std::ptrdiff_t>(i))->turn = 0;
  }
};

template <class T>
struct device_queue_push_all {
  device_queue_ref<T> queue;
  device_ptr<const T> from;
  device_ptr<T> refused;
  device_ptr<std::uint64_t> count;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    T element = d.get(from + static_cast<std::ptrdiff_t>(i));
    if (queue.push(d, element)) return;
    d.put(refused + static_cast<std::ptrdiff_t>(d.fetch_add(count, std::uint64_t{1})), element);
  }
};

template <class T>
struct device_queue_pop_all {
  device_queue_ref<T> queue;
  device_ptr<T> to;
  device_ptr<std::uint64_t> count;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t) const {
    T element;
    if (!queue.pop(d, element)) return;
    d.put(to + static_cast<std::ptrdiff_t>(d.fetch_add(count, std::uint64_t{1})), element);
  }
};

}  // namespace detail

/// The queue itself, on the host: made and ended by all ranks together, not copied or moved.
template <class T>
class device_queue {
  static_assert(
      std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
      "elements of far::device_queue are trivially copyable, as kernels copy their bytes");
  static_assert(
      !std::is_same_v<T, bool>,
      "far::device_queue<bool> would return std::vector<bool>, which has no elements to copy to: "
      "push and pop unsigned char");

 public:
  using value_type = T;
  using ref_type = device_queue_ref<T>;

  /// Room for `capacity` elements in the device memory of `owner`. Collective; costs 1 kernel at the owner, 1
  /// all_reduce, 2 broadcasts and 1 barrier. Throws on all ranks far::allocation_error if one has no room, and
  /// far::usage_error if one does not reach the owner's device.
  device_queue(const device& on, rank_t owner, std::size_t capacity)
      : gpu_(on), owner_(owner), stream_(on) {
    if (owner >= far::nprocs())
      detail::raise("device_queue: there is no rank ", owner, " to own it, only 0 to ",
                    far::nprocs() - 1, ".");
    if (capacity == 0)
      detail::raise("device_queue: a capacity of 0 has room for nothing. Give at least 1.");
    ref_.count_ = capacity;
    detail::do_together(
        world(), "device_queue",
        [&, this] {
          if (!gpu_.reaches(owner))
            detail::raise(
                "device_queue: the device of rank ", far::rank(), " cannot reach that of rank ",
                owner,
                ", where the queue lies. Use GPUs that reach each other, those of one node.");
          if (far::rank() == owner) {
            counters_ = device_block(gpu_, sizeof(detail::device_queue_counters));
            slots_ = device_block(
                gpu_, detail::bytes_for<detail::device_queue_slot<T>>("device_queue", capacity));
          }
          count_ = device_block(gpu_, sizeof(std::uint64_t));
        },
        [] {});
    ref_.counters_ = decltype(ref_.counters_)::from_raw(broadcast(counters_.get().raw(), owner));
    ref_.slots_ = decltype(ref_.slots_)::from_raw(broadcast(slots_.get().raw(), owner));
    if (far::rank() == owner) {
      stream_.fill(ref_.counters_, 0);
      stream_.launch(capacity, detail::device_queue_first_turns<T>{ref_.slots_});
      stream_.synchronize();
    }
    barrier();
  }
  device_queue(const device_queue&) = delete;
  /// Collective: 1 barrier. When an exception is on its way it waits for nobody, as nobody might answer, and
  /// memory that other ranks may use is given back at the next barrier of all ranks. Kernels that use the queue
  /// have ended before. Does nothing when the runtime has ended.
  ~device_queue() {
    if (!gpu_.is_open()) return;
    if (std::uncaught_exceptions() > unwinding_) {
      counters_.leave();
      slots_.leave();
    } else {
      barrier();
    }
  }

  /// What kernels use. Local; no communication.
  ref_type ref() const { return ref_; }
  /// Local; no communication.
  std::size_t capacity() const { return ref_.count_; }
  /// Local; no communication.
  rank_t owner() const { return owner_; }

  /// Pushes from host memory, in any order; the elements for which there was no room. One-sided; complete on
  /// return. Costs 1 kernel and 3 copies, and takes room for twice the elements on this rank's device meanwhile.
  /// Throws far::allocation_error if that is not there; nothing is pushed then.
  std::vector<T> push(std::span<const T> elements) {
    std::size_t n = elements.size();
    if (n == 0) return {};
    const device_block from(gpu_, n * sizeof(T)), refused(gpu_, n * sizeof(T));
    stream_.put(pointer_cast<T>(from.get()), elements.data(), n);
    stream_.fill(count(), 0);
    stream_.launch(n, detail::device_queue_push_all<T>{ref_, pointer_cast<T>(from.get()),
                                                       pointer_cast<T>(refused.get()), count()});
    return counted(pointer_cast<T>(refused.get()));
  }
  /// Pops at most `most` elements to host memory. One-sided; complete on return. Costs 1 kernel and
  /// 2 copies, and takes room for `most` elements on this rank's device meanwhile.
  std::vector<T> pop(std::size_t most) {
    std::size_t n = std::min<std::size_t>(most, ref_.count_);
    if (n == 0) return {};
    const device_block to(gpu_, n * sizeof(T));
    stream_.fill(count(), 0);
    stream_.launch(n, detail::device_queue_pop_all<T>{ref_, pointer_cast<T>(to.get()), count()});
    return counted(pointer_cast<T>(to.get()));
  }
  /// How many elements it has. One-sided; 1 copy. With others at work it was so at some moment.
  std::size_t size() {
    detail::device_queue_counters now;
    gpu_.get(ref_.counters_, &now);
    auto ready = static_cast<std::int64_t>(now.ready);
    return ready > 0 ? static_cast<std::size_t>(ready) : 0;
  }

 private:
  device_ptr<std::uint64_t> count() const { return pointer_cast<std::uint64_t>(count_.get()); }
  std::vector<T> counted(device_ptr<T> at) {
    std::uint64_t n = 0;
    stream_.get(count(), &n);
    stream_.synchronize();
    std::vector<T> result(n);
    stream_.get(at, result.data(), n);
    stream_.synchronize();
    return result;
  }

  device gpu_;
  rank_t owner_;
  ref_type ref_;
  device_block counters_, slots_;  ///< the owner's
  device_block count_;             ///< of what a bulk call has moved
  device_stream stream_;           ///< ends before the memory that it uses
  int unwinding_ = std::uncaught_exceptions();
};

}  // namespace far::inline FARSIDE_BACKEND

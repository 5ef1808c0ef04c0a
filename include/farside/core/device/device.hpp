// far::device: memory of GPUs, beside the memory of hosts. Each rank has one device segment, taken once, out
// of which it allocates; far::device_ptr names memory in the device segment of any rank.
//
//   far::device gpu;                                         // collective
//   auto numbers = gpu.alloc<double>(n);                     // this rank's own device memory
//   far::device_stream work(gpu);
//   work.put(numbers, from_host.data(), n);                  // in order, on the stream
//   work.launch(n, twice{numbers});                          // twice{}(view, i) for each i below n
//   work.get(numbers, to_host.data(), n);
//   work.done().then([] { ... });                            // a far::future
//
// A program that is built for CUDA (farside::gpu) uses the GPU; one that is not runs the same source on the
// CPU, if FARSIDE_DEVICE=stand-in asks for it. docs/gpu.md tells more.
#pragma once

#include <farside/core/detail/device/stand_in_runtime.hpp>
#include <farside/core/detail/heap/local_heap.hpp>
#include <farside/core/rank_local.hpp>
#if defined(FARSIDE_USE_CUDA)
#include <farside/core/detail/device/cuda_runtime.hpp>
#endif
#include <farside/core/future.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

struct device_options {
  /// Bytes of device memory a rank. 0: FARSIDE_DEVICE_SEGMENT, or four fifths of what is free, in equal parts
  /// for the ranks that share a GPU; 64 MiB where there is the stand-in.
  std::size_t segment = 0;
};

namespace detail {

#if defined(FARSIDE_USE_CUDA)
using chosen_device_runtime = cuda_runtime;
#else
using chosen_device_runtime = stand_in_runtime;
#endif

/// What a rank knows of device memory: made by its first far::device, gone with its runtime.
struct device_state {
  device_state(context& c, std::size_t bytes) : runtime(c, bytes), rank(c.link.rank()) {
    heap = local_heap(runtime.first_offset(), allocation_words::begin(runtime.segment_size()));
    own = runtime.make_stream();
  }

  /// Offset of new memory; none if there is no room. Checked builds tell kernels what it is part of.
  std::optional<std::size_t> allocate(std::size_t bytes) {
    std::lock_guard lock(mutex);
    if constexpr (!FARSIDE_CHECKED) return heap.allocate(bytes, allocation_words::granule);
    auto offset = heap.allocate(bytes + allocation_words::granule, allocation_words::granule);
    if (!offset || bytes == 0) return offset;
    number_of_last = std::max(1u, (number_of_last + 1) & 0xff'ffff);
    mark(*offset, bytes, number_of_last);
    sizes[*offset] = bytes;
    return offset;
  }
  std::size_t largest_free() {
    std::lock_guard lock(mutex);
    return heap.largest_free();
  }
  /// Whether it was allocated.
  bool deallocate(std::size_t offset) {
    std::lock_guard lock(mutex);
    if constexpr (FARSIDE_CHECKED)
      if (auto known = sizes.find(offset); known != sizes.end()) {
        mark(offset, known->second, 0);
        sizes.erase(known);
      }
    return heap.deallocate(offset);
  }

  chosen_device_runtime runtime;
  local_heap heap;
  std::mutex mutex;                          ///< of the heap, and of the next two
  std::map<std::size_t, std::size_t> sizes;  ///< of allocations, by offset; checked builds
  std::uint32_t number_of_last = 0;
  rank_t rank;
  bool copies_tiles = setting("FARSIDE_DEVICE_TILES").value_or("view") == "copy";
  std::optional<chosen_device_runtime::stream> own;  ///< of operations that wait
  std::shared_ptr<void> libraries;                   ///< what algorithms make once for a rank

 private:
  /// 0: nobody has it any more.
  void mark(std::size_t offset, std::size_t bytes, std::uint32_t number) {
    constexpr std::size_t granule = allocation_words::granule;
    std::vector<std::uint32_t> words((bytes + granule - 1) / granule,
                                     number == 0 ? 0 : allocation_words::word(number, granule));
    if (number != 0) words.back() = allocation_words::word(number, (bytes - 1) % granule + 1);
    runtime.write_now(allocation_words::place(offset, runtime.segment_size()), words.data(),
                      words.size() * sizeof words[0]);
  }
};

struct device_slot {
  std::unique_ptr<device_state> state;
};
inline rank_local<device_slot> device_of_rank;

inline device_state& opened_device() {
  device_state* state = (*device_of_rank).state.get();
  if (state == nullptr)
    raise("rank ", here().link.rank(),
          ": device memory is used before there is any. Make a far::device first, on all ranks.");
  return *state;
}

template <class T>
T* device_address_of(device_ptr<T> p) {
  return static_cast<T*>(opened_device().runtime.address(p.rank(), p.offset()));
}

/// Whether this program may use device memory in the way it was built.
inline void check_device_kind() {
  auto asked = setting("FARSIDE_DEVICE");
#if defined(FARSIDE_USE_CUDA)
  if (asked && *asked != "cuda")
    raise("environment variable FARSIDE_DEVICE='", *asked,
          "', but this program was built for CUDA and its kernels run on GPUs. Unset it, or build "
          "the "
          "program without farside::gpu to run it by the stand-in.");
#else
  if (asked && *asked == "stand-in") return;
  if (asked && *asked != "cuda")
    raise("environment variable FARSIDE_DEVICE='", *asked, "' is neither cuda nor stand-in.");
  raise(
      "this program asks for device memory but was not built with CUDA. Build it by nvcc with "
      "farside::gpu, or set FARSIDE_DEVICE=stand-in to run its kernels on the CPU.");
#endif
}

/// The state of a future that an event of a stream makes ready.
struct event_state : future_state<void> {
  explicit event_state(device_state& of, chosen_device_runtime::event on)
      : device(of), event(std::move(on)) {
    value.emplace();
  }
  bool poll() override {
    if (ready.load(std::memory_order_acquire)) return true;
    if (busy.test_and_set(std::memory_order_acquire)) return false;
    std::exception_ptr why;
    bool complete = false;
    if (!ready.load(std::memory_order_acquire)) {
      try {
        complete = FARSIDE_MUTANT(device_future_ready_at_once) || device.runtime.is_done(event);
      } catch (...) {
        complete = true;
        why = std::current_exception();
      }
    }
    if (complete) why ? fail(why) : finish();
    busy.clear(std::memory_order_release);
    return ready.load(std::memory_order_acquire);
  }
  device_state& device;
  chosen_device_runtime::event event;
};

}  // namespace detail

/// A handle of this rank's device memory; all handles are of the same. Its operations may be called by one
/// thread of a rank at a time, and by none that handles a message.
class device {
 public:
  /// Collective, whenever the first one is made; later ones are local, and have what the first has taken.
  /// Costs a few collectives, and what NVSHMEM takes to start. Throws far::error where there is no GPU, no
  /// NVSHMEM or not that much memory, on all ranks alike.
  explicit device(device_options with = {}) {
    auto& slot = *detail::device_of_rank;
    if (slot.state == nullptr) {
      detail::check_device_kind();
      slot.state = std::make_unique<detail::device_state>(detail::here(), with.segment);
      barrier();
    } else if (with.segment > slot.state->runtime.segment_size()) {
      detail::raise("a far::device asks for a segment of ", with.segment,
                    " bytes, but the first one of this job has taken ",
                    slot.state->runtime.segment_size(),
                    ". Ask for all that is needed when the first is made, or by "
                    "FARSIDE_DEVICE_SEGMENT=SIZE.");
    }
    state_ = slot.state.get();
  }

  /// "cuda" or "stand-in". Local; no communication.
  static const char* kind() { return detail::chosen_device_runtime::name; }
  /// Bytes of each rank's device segment. Local; no communication.
  std::size_t segment_size() const { return state_->runtime.segment_size(); }
  /// Whether kernels of this rank can reach the device memory of `rank`. Local; no communication.
  bool reaches(rank_t rank) const { return state_->runtime.address(rank, 0) != nullptr; }

  /// Whether products of matrices copy tiles of other ranks that kernels could read where they lie, as they
  /// do between devices that do not reach each other. FARSIDE_DEVICE_TILES=copy, or this. Local; no
  /// communication.
  bool copies_tiles() const { return state_->copies_tiles; }
  void copy_tiles(bool always) { state_->copies_tiles = always; }

  /// Memory for `n` objects in this rank's own device segment, uninitialised, aligned to 256 bytes. Not
  /// collective; local, and no call of CUDA: nothing waits. Throws far::allocation_error if there is no room.
  template <class T>
  device_ptr<T> alloc(std::size_t n = 1) {
    detail::require_transferable<T>();
    std::size_t bytes = detail::bytes_for<T>("far::device::alloc", n);
    auto offset = state_->allocate(bytes);
    if (!offset)
      detail::raise<allocation_error>(
          "rank ", state_->rank, ": no room for ", bytes, " bytes (",
          human_size(static_cast<double>(bytes)), ") in its device memory: at most ",
          state_->largest_free(), " bytes are free in one piece, of ", segment_size(),
          ". Raise it by FARSIDE_DEVICE_SEGMENT=SIZE, free what is not needed any more, or use "
          "more "
          "GPUs.");
    return device_ptr<T>(state_->rank, *offset);
  }

  /// Gives memory of this rank's own device segment back; null is allowed. Local; no communication. No kernel
  /// or copy may use it any more: wait for their streams before.
  template <class T>
  void dealloc(device_ptr<T> p) {
    if (!p) return;
    if (p.rank() != state_->rank || !state_->deallocate(p.offset()))
      detail::raise(
          "rank ", state_->rank, ": dealloc(", p,
          "): no allocation of this rank begins there. It was freed already, is another "
          "rank's (which frees it itself), or is none that far::device::alloc has returned.");
  }

  /// Bytes that are allocated in this rank's device segment. Local; no communication.
  std::size_t in_use() const {
    std::lock_guard lock(state_->mutex);
    return state_->heap.in_use();
  }

  /// Copies from the host to the device memory of any rank; complete, for all to see, on return.
  /// One-sided. Costs 1 copy on a stream of its own, which is waited for.
  template <class T>
  void put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n = 1);
  /// Copies from the device memory of any rank to the host; complete on return. It does not wait for other
  /// streams. One-sided. Costs 1 copy on a stream of its own, which is waited for.
  template <class T>
  void get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n = 1);

  /// For the library's own containers.
  detail::device_state& state() const { return *state_; }

 private:
  detail::device_state* state_;
};

/// Work for this rank's device, done in the order in which it was issued; other streams run beside it.
/// Nothing here waits, unless it says so. Movable. Its end waits for what was issued. One-sided: other ranks
/// take no part.
class device_stream {
 public:
  /// Local; no communication.
  explicit device_stream(const device& of)
      : state_(&of.state()), stream_(state_->runtime.make_stream()) {}

  /// Copies from the host. `from` must stay until this is done. Costs 1 copy.
  template <class T>
  void put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n = 1) {
    check("put", to, n);
    if (n != 0) state_->runtime.copy_in(stream_, to.rank(), to.offset(), from, n * sizeof(T));
  }
  /// Copies to the host. `to` has it when this is done. Costs 1 copy.
  template <class T>
  void get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n = 1) {
    check("get", from, n);
    if (n != 0) state_->runtime.copy_out(stream_, to, from.rank(), from.offset(), n * sizeof(T));
  }
  /// Copies from device memory to device memory, of any ranks; one of the two is this rank's own, or both are
  /// reached from here. They do not overlap. Costs 1 copy, over the link between the devices.
  template <class T>
  void copy(device_ptr<T> to, device_ptr<const std::type_identity_t<T>> from, std::size_t n = 1) {
    check("copy", to, n);
    check("copy", from, n);
    if (n != 0)
      state_->runtime.copy(stream_, to.rank(), to.offset(), from.rank(), from.offset(),
                           n * sizeof(T));
  }
  /// Each byte of `n` objects becomes `byte`. Costs 1 fill.
  template <class T>
  void fill(device_ptr<T> at, int byte, std::size_t n = 1) {
    check("fill", at, n);
    if (n != 0) state_->runtime.fill(stream_, at.rank(), at.offset(), byte, n * sizeof(T));
  }
  /// Calls `kernel(view, i)` for each i below `n`, all at once or in any order. `kernel` is trivially
  /// copyable, its operator() const and marked FARSIDE_KERNEL_CODE. Costs 1 launch.
  template <class F>
  void launch(std::size_t n, const F& kernel) {
    static_assert(
        std::is_trivially_copyable_v<F>,
        "a kernel is copied to the device byte by byte: let it have device_ptr, numbers, and "
        "what is made of them.");
    static_assert(std::is_invocable_v<const F&, const device_view&, std::size_t>,
                  "a kernel is called as kernel(const far::device_view&, std::size_t) const.");
    state_->runtime.launch(stream_, n, kernel);
  }

  /// What is issued from now on waits for what was issued to `other` so far. Local; no
  /// communication.
  void wait(device_stream& other) {
    state_->runtime.wait(stream_, state_->runtime.record(other.stream_));
  }
  /// A future of all that was issued so far; it fails with what a kernel did wrong. Local; no
  /// communication.
  future<void> done() {
    detail::context& c = detail::here();
    auto state = std::make_shared<detail::event_state>(*state_, state_->runtime.record(stream_));
    if (!state->poll()) {
      std::lock_guard lock(c.mutex);
      c.in_flight.push_back(state);
    }
    return future<void>(std::static_pointer_cast<detail::future_state<void>>(state));
  }
  /// Waits until all that was issued is done; throws what a kernel did wrong. Makes progress for
  /// everything in flight meanwhile. Local; no communication.
  void synchronize() { done().get(); }

#if defined(FARSIDE_USE_CUDA)
  /// The stream, for libraries of CUDA. Local; no communication.
  cudaStream_t native() const { return stream_.handle.get(); }
#else
  /// For the library: what libraries do to the stand-in's memory. Local; no communication.
  void perform(std::function<void()> work) { state_->runtime.perform(stream_, std::move(work)); }
#endif

 private:
  friend class device;
  device_stream(detail::device_state& of, detail::chosen_device_runtime::stream on)
      : state_(&of), stream_(std::move(on)) {}

  template <class T>
  void check(const char* what, device_ptr<T> p, std::size_t n) const {
    std::size_t size = state_->runtime.segment_size();
    const char* why = nullptr;
    if (n == 0) return;
    if (!p)
      why = "the pointer is null";
    else if (p.raw() >> 63 == 0 || p.offset() < device_view::reserved)
      why = "it is no pointer that far::device::alloc has returned";
    else if (p.rank() >= detail::here().link.nprocs())
      why = "there is no such rank";
    else if (p.offset() > size || n > (size - p.offset()) / sizeof(T))
      why = "it reaches beyond the end of that rank's device segment";
    if (why != nullptr)
      detail::raise("rank ", state_->rank, ": ", what, " of ", n, " x ", sizeof(T), " bytes at ", p,
                    " of segments of ", size, " bytes: ", why,
                    ". Use pointers from far::device::alloc, within what was allocated.");
  }

  detail::device_state* state_;
  detail::chosen_device_runtime::stream stream_;
};

template <class T>
void device::put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n) {
  device_stream own(*state_, *state_->own);
  own.put(to, from, n);
  own.synchronize();
}
template <class T>
void device::get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n) {
  device_stream own(*state_, *state_->own);
  own.get(from, to, n);
  own.synchronize();
}

}  // namespace far::inline FARSIDE_BACKEND

// What a rank knows of device memory: its runtime, its heap, and the futures of its streams.
#pragma once

#include <farside/core/detail/container_state.hpp>
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
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(FARSIDE_USE_CUDA)
using chosen_device_runtime = cuda_runtime;
#else
using chosen_device_runtime = stand_in_runtime;
#endif

/// What a rank knows of device memory: made by its first far::device, gone with its runtime.
struct device_state : container_state {
  device_state(context& c, std::size_t bytes) : runtime(c, bytes), rank(c.link.rank()) {
    heap = local_heap(runtime.first_offset(), allocation_words::begin(runtime.segment_size()));
    own = runtime.make_stream();
  }
  device_state(const device_state&) = delete;
  ~device_state() override {
    if (where == nullptr) return;
    std::lock_guard lock(where->mutex);
    std::erase(where->containers, this);
  }
  /// From now on it hears of barriers.
  void enlist(context& c) {
    where = &c;
    barriers_of = &world().members();
    std::lock_guard lock(c.mutex);
    c.containers.push_back(this);
  }

  /// Offset of new memory; none if there is no room. Checked builds tell kernels what it is part of.
  std::optional<std::size_t> allocate(std::size_t bytes) {
    if (bytes > runtime.segment_size()) return std::nullopt;
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
        try {
          mark(offset, known->second, 0);
        } catch (const error&) {
          // Destructors give memory back. What the device fails with shows where a stream is waited for.
        }
        sizes.erase(known);
      }
    return heap.deallocate(offset);
  }

  /// Memory of a container that an exception has ended: kernels of other ranks may still use it. It is given
  /// back at the next barrier of all ranks, which they enter when they have left the container, too.
  void leave(std::size_t offset) {
    std::lock_guard lock(mutex);
    left.push_back(offset);
  }
  void after_barrier() override {
    std::vector<std::size_t> all;
    {
      std::lock_guard lock(mutex);
      all.swap(left);
    }
    for (std::size_t offset : all) deallocate(offset);
  }

  chosen_device_runtime runtime;
  local_heap heap;
  std::mutex mutex;                          ///< of the heap, and of the next three
  std::map<std::size_t, std::size_t> sizes;  ///< of allocations, by offset; checked builds
  std::vector<std::size_t> left;             ///< by exceptions
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
  std::shared_ptr<device_state> state;
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

/// Collective: how many bytes a rank wants at most; 0: nobody says how many.
inline std::size_t asked_segment(std::size_t bytes) {
  if (bytes == 0) bytes = size_setting("FARSIDE_DEVICE_SEGMENT").value_or(0);
  bytes = all_reduce(bytes, maximum{});
  if (bytes > max_segment)
    raise("device segments of ", bytes, " bytes are too large: far::device_ptr addresses at most ",
          max_segment, " (", human_size(static_cast<double>(max_segment)),
          ") a rank. Ask for less, by device_options::segment or FARSIDE_DEVICE_SEGMENT=SIZE.");
  return bytes;
}

/// A handle's state, which goes with its runtime: handles do not keep it. A handle that was moved from has none.
inline device_state& living(const std::weak_ptr<device_state>& state, device_state* at) {
  if (!state.expired()) [[likely]]
    return *at;
  const std::weak_ptr<device_state> none;
  if (!state.owner_before(none) && !none.owner_before(state))
    raise("a far::device_stream is used that was moved from. Use the one that it was moved to.");
  raise(
      "device memory is used after its far::runtime has ended. Declare what uses it after the "
      "runtime, "
      "in the same or an inner scope.");
}

/// Whether this program may use device memory in the way it was built.
inline void check_device_kind() {
  if (auto tiles = setting("FARSIDE_DEVICE_TILES"); tiles && *tiles != "copy" && *tiles != "view")
    raise("environment variable FARSIDE_DEVICE_TILES='", *tiles,
          "' is neither copy nor view. Set it to copy, or unset it.");
  auto asked = setting("FARSIDE_DEVICE");
#if defined(FARSIDE_USE_CUDA)
  if (asked && *asked != "cuda")
    raise("environment variable FARSIDE_DEVICE='", *asked,
          "', but this program was built for CUDA and its kernels run on GPUs. Unset it, or build "
          "the program without farside::gpu to run it by the stand-in.");
#else
  if (asked && *asked == "stand-in") return;
  if (asked && *asked != "cuda")
    raise("environment variable FARSIDE_DEVICE='", *asked,
          "' is neither cuda nor stand-in. Set it to stand-in to run kernels on the CPU.");
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
        if (complete) why = event.fault();
      } catch (...) {
        complete = true;
        why = std::current_exception();
      }
    }
    if (complete) why ? fail(why) : finish();
    busy.clear(std::memory_order_release);
    return ready.load(std::memory_order_acquire);
  }
  void told() override { event.told(); }
  device_state& device;
  chosen_device_runtime::event event;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

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

#include <farside/core/detail/device/device_state.hpp>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

struct device_options {
  /// Bytes of device memory a rank. 0: FARSIDE_DEVICE_SEGMENT, or four fifths of what is free, in equal parts
  /// for the ranks that share a GPU; 64 MiB where there is the stand-in.
  std::size_t segment = 0;
};

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
      slot.state = std::make_shared<detail::device_state>(detail::here(),
                                                          detail::asked_segment(with.segment));
      slot.state->enlist(detail::here());
      barrier();
    } else if (with.segment > slot.state->runtime.segment_size()) {
      detail::raise("a far::device asks for a segment of ", with.segment,
                    " bytes, but the first one of this job has taken ",
                    slot.state->runtime.segment_size(),
                    ". Ask for all that is needed when the first is made, or by "
                    "FARSIDE_DEVICE_SEGMENT=SIZE.");
    }
    state_ = slot.state;
    at_ = slot.state.get();
  }
  /// Another handle of the same memory. Local; no communication.
  device(const device&) = default;
  device& operator=(const device&) = default;

  /// "cuda" or "stand-in". Local; no communication.
  static const char* kind() { return detail::chosen_device_runtime::name; }
  /// Bytes of each rank's device segment. Local; no communication.
  std::size_t segment_size() const { return state().runtime.segment_size(); }
  /// Whether kernels of this rank can reach the device memory of `rank`. Local; no communication.
  bool reaches(rank_t rank) const { return state().runtime.address(rank, 0) != nullptr; }

  /// Whether products of matrices copy tiles of other ranks that kernels could read where they lie, as they
  /// do between devices that do not reach each other. FARSIDE_DEVICE_TILES=copy, or this. Local; no
  /// communication.
  bool copies_tiles() const { return state().copies_tiles; }
  void copy_tiles(bool always) { state().copies_tiles = always; }

  /// Memory for `n` objects in this rank's own device segment, uninitialised, aligned to 256 bytes. Not
  /// collective; local, and no call of CUDA: nothing waits. Throws far::allocation_error if there is no room.
  template <class T>
  device_ptr<T> alloc(std::size_t n = 1) {
    detail::require_transferable<T>();
    std::size_t bytes = detail::bytes_for<T>("far::device::alloc", n);
    auto offset = state().allocate(bytes);
    if (!offset)
      detail::raise<allocation_error>(
          "rank ", at_->rank, ": no room for ", bytes, " bytes (",
          human_size(static_cast<double>(bytes)), ") in its device memory: at most ",
          at_->largest_free(), " bytes are free in one piece, of ", segment_size(),
          ". Raise it by FARSIDE_DEVICE_SEGMENT=SIZE, free what is not needed any more, or use "
          "more GPUs.");
    return device_ptr<T>(at_->rank, *offset);
  }

  /// Gives memory of this rank's own device segment back; null is allowed. Local; no communication. No kernel
  /// or copy may use it any more: wait for their streams before. Does nothing when the runtime has ended: the
  /// memory has gone with it.
  template <class T>
  void dealloc(device_ptr<T> p) {
    if (!p || !is_open()) return;
    if (p.rank() != at_->rank || !at_->deallocate(p.offset()))
      detail::raise(
          "rank ", at_->rank, ": dealloc(", p,
          "): no allocation of this rank begins there. It was freed already, is another "
          "rank's (which frees it itself), or is none that far::device::alloc has returned.");
  }

  /// Bytes that are allocated in this rank's device segment. Local; no communication.
  std::size_t in_use() const {
    std::lock_guard lock(state().mutex);
    return at_->heap.in_use();
  }
  /// Whether its runtime still lives. Local; no communication.
  bool is_open() const { return !state_.expired(); }

  /// Copies from the host to the device memory of any rank that reaches() names; complete, for all to see, on
  /// return. Throws for the others: device_stream::copy copies between devices. One-sided. Costs 1 copy on a
  /// stream of its own, which is waited for.
  template <class T>
  void put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n = 1);
  /// Copies from the device memory of any rank that reaches() names to the host; complete on return. Throws for
  /// the others. It does not wait for other streams. One-sided. Costs 1 copy on a stream of its own, which is
  /// waited for.
  template <class T>
  void get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n = 1);

  /// For the library's own containers.
  detail::device_state& state() const { return detail::living(state_, at_); }

 private:
  friend class device_stream;
  std::weak_ptr<detail::device_state> state_;
  detail::device_state* at_ = nullptr;  ///< as long as state_ lives
};

/// Work for this rank's device, done in the order in which it was issued; other streams run beside it.
/// Nothing here waits, unless it says so. Movable. Its end waits for what was issued. One-sided: other ranks
/// take no part.
class device_stream {
 public:
  /// Local; no communication.
  explicit device_stream(const device& of) : device_stream(of, of.state().runtime.make_stream()) {}

  /// Copies from the host to memory that this rank's device reaches. `from` must stay until this is done.
  /// Costs 1 copy.
  template <class T>
  void put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n = 1) {
    check("put", to, n);
    if (n != 0) state().runtime.copy_in(stream_, to.rank(), to.offset(), from, n * sizeof(T));
  }
  /// Copies to the host, likewise. `to` has it when this is done. Costs 1 copy.
  template <class T>
  void get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n = 1) {
    check("get", from, n);
    if (n != 0) state().runtime.copy_out(stream_, to, from.rank(), from.offset(), n * sizeof(T));
  }
  /// Copies from device memory to device memory, of any ranks; one of the two is this rank's own, or both are
  /// reached from here. They do not overlap. Costs 1 copy, over the link between the devices.
  template <class T>
  void copy(device_ptr<T> to, device_ptr<const std::type_identity_t<T>> from, std::size_t n = 1) {
    check("copy", to, n);
    check("copy", from, n);
    if (n != 0)
      state().runtime.copy(stream_, to.rank(), to.offset(), from.rank(), from.offset(),
                           n * sizeof(T));
  }
  /// Each byte of `n` objects becomes `byte`. Costs 1 fill.
  template <class T>
  void fill(device_ptr<T> at, int byte, std::size_t n = 1) {
    check("fill", at, n);
    if (n != 0) state().runtime.fill(stream_, at.rank(), at.offset(), byte, n * sizeof(T));
  }
  /// Calls `kernel(view, i)` for each i below `n`, all at once or in any order. `kernel` is a
  /// struct, trivially copyable, its operator() const and marked FARSIDE_KERNEL_CODE: nvcc takes no lambda. Costs
  /// 1 launch.
  template <class F>
  void launch(std::size_t n, const F& kernel) {
    static_assert(
        std::is_trivially_copyable_v<F>,
        "a kernel is copied to the device byte by byte: let it have device_ptr, numbers, and "
        "what is made of them. nvcc's lambdas are not: use a struct whose operator() is const and "
        "marked FARSIDE_KERNEL_CODE.");
    static_assert(std::is_invocable_v<const F&, const device_view&, std::size_t>,
                  "a kernel is called as kernel(const far::device_view&, std::size_t) const.");
    state().runtime.launch(stream_, n, kernel);
  }

  /// What is issued from now on waits for what was issued to `other` so far. Local; no
  /// communication.
  void wait(device_stream& other) {
    state().runtime.wait(stream_, other.state().runtime.record(other.stream_));
  }
  /// A future of all that was issued so far; it fails with what a kernel did wrong. A fault is thrown by each
  /// future of the work, and of later work, that was made before the first of them threw it. Futures that are
  /// dropped do not count. On a GPU a fault is the rank's: futures of its other streams throw it too. Local; no
  /// communication.
  future<void> done() {
    detail::device_state& of = state();
    detail::context& c = detail::here();
    auto made = std::make_shared<detail::event_state>(of, of.runtime.record(stream_));
    if (!made->poll()) {
      std::lock_guard lock(c.mutex);
      c.in_flight.push_back(made);
    }
    return future<void>(std::static_pointer_cast<detail::future_state<void>>(made));
  }
  /// Waits until all that was issued is done; throws what a kernel did wrong. Makes progress for
  /// everything in flight meanwhile. Local; no communication.
  void synchronize() { done().get(); }

#if defined(FARSIDE_USE_CUDA)
  /// The stream, for libraries of CUDA. Local; no communication.
  cudaStream_t native() const { return stream_.handle.get(); }
#else
  /// For the library: what libraries do to the stand-in's memory. Local; no communication.
  void perform(std::function<void()> work) { state().runtime.perform(stream_, std::move(work)); }
#endif

 private:
  friend class device;
  device_stream(const device& of, detail::chosen_device_runtime::stream on)
      : state_(of.state_), at_(of.at_), stream_(std::move(on)) {}
  /// A stream that was moved from has none.
  detail::device_state& state() const { return detail::living(state_, at_); }

  template <class T>
  void check(const char* what, device_ptr<T> p, std::size_t n) const {
    std::size_t size = state().runtime.segment_size();
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
      detail::raise("rank ", state().rank, ": ", what, " of ", n, " x ", sizeof(T), " bytes at ", p,
                    " of segments of ", size, " bytes: ", why,
                    ". Use pointers from far::device::alloc, within what was allocated.");
  }

  std::weak_ptr<detail::device_state> state_;
  detail::device_state* at_;
  detail::chosen_device_runtime::stream stream_;
};

template <class T>
void device::put(device_ptr<T> to, const std::type_identity_t<T>* from, std::size_t n) {
  device_stream own(*this, *state().own);
  own.put(to, from, n);
  own.synchronize();
}
template <class T>
void device::get(device_ptr<T> from, std::remove_const_t<T>* to, std::size_t n) {
  device_stream own(*this, *state().own);
  own.get(from, to, n);
  own.synchronize();
}

}  // namespace far::inline FARSIDE_BACKEND

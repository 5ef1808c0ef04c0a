// Device memory by NVSHMEM, streams and kernels by CUDA. All ranks are processes; several may share a GPU
// (with CUDA's MPS their kernels run at the same time).
//
//   segment   | fault | addresses of all segments | memory of far::device's heap ... |
//
// Memory of another rank has an address here where nvshmem_ptr gives one: on the same GPU, and on GPUs of
// the same node that reach each other. Copies from and to other devices are NVSHMEM's, on the stream.
#pragma once

#include <farside/core/detail/device/faults.hpp>
#include <farside/core/detail/device/nvshmem.hpp>
#include <farside/core/detail/device/runtime_concept.hpp>
#include <farside/core/draft.hpp>
#include <farside/core/runtime.hpp>

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(__CUDACC__)
template <class F>
__global__ void __launch_bounds__(256) run_kernel(device_view view, std::size_t n, F f) {
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) f(view, i);
}
#endif

class cuda_runtime {
 public:
  static constexpr const char* name = "cuda";

  /// Collective: all ranks give the same; 0: what it finds best.
  cuda_runtime(context& c, std::size_t bytes) : rank_(c.link.rank()), nprocs_(c.link.nprocs()) {
    std::string problem = choose_gpu();
    if (problem.empty()) problem = nvshmem_.open();
    std::size_t wanted = agree(bytes, problem.empty());
    if (problem.empty()) problem = size_problem(wanted);
    fail_together(problem);
    bytes_ = wanted;
    setenv("NVSHMEM_SYMMETRIC_SIZE", std::to_string(bytes_ + (std::size_t{64} << 20)).c_str(), 0);

    nvshmem_abi::unique_id id;
    if (rank_ == 0 && nvshmem_.get_unique_id(&id) != 0) problem = "NVSHMEM gives no unique id";
    id = broadcast(id, 0);
    nvshmem_abi::init_attributes with;
    with.version = (1 << 16) + sizeof with;
    with.arguments.version = (1 << 16) + sizeof with.arguments;
    with.arguments.by_id.version = (1 << 16) + sizeof with.arguments.by_id;
    nvshmem_.set_arguments(static_cast<int>(rank_), static_cast<int>(nprocs_), &id, &with);
    if (nvshmem_.init(nvshmem_abi::init_with_unique_id, &with) != 0)
      problem = "NVSHMEM does not start. Its own words are with NVSHMEM_DEBUG=INFO";
    fail_together(problem);
    own_ = static_cast<std::byte*>(nvshmem_.allocate(bytes_));
    if (own_ == nullptr)
      problem = text("NVSHMEM has no ", bytes_, " bytes of device memory (",
                     human_size(static_cast<double>(bytes_)),
                     "). Ask for less: FARSIDE_DEVICE_SEGMENT=SIZE");
    fail_together(problem);
    for (rank_t r = 0; r < nprocs_; ++r)
      bases_.push_back(
          r == rank_ ? own_ : static_cast<std::byte*>(nvshmem_.pointer(own_, static_cast<int>(r))));
    check(cudaMemset(own_, 0, device_view::reserved + table_bytes()), "clearing device memory");
    if constexpr (FARSIDE_CHECKED) {
      const std::size_t words = allocation_words::begin(bytes_);
      check(cudaMemset(own_ + words, 0, bytes_ - words), "clearing device memory");
    }
    check(cudaMemcpy(own_ + device_view::reserved, bases_.data(), nprocs_ * sizeof bases_[0],
                     cudaMemcpyHostToDevice),
          "copying to device memory");
    check(cudaDeviceSynchronize(), "starting");
    writes_ = make_stream();
  }
  cuda_runtime(const cuda_runtime&) = delete;
  ~cuda_runtime() {
    if (own_ == nullptr) return;
    writes_ = {};
    cudaDeviceSynchronize();
    nvshmem_.free(own_);
    nvshmem_.finalize();
  }

  std::size_t segment_size() const { return bytes_; }
  std::size_t first_offset() const { return device_view::reserved + table_bytes(); }
  void* address(rank_t rank, std::size_t offset) const {
    return bases_[rank] == nullptr ? nullptr : bases_[rank] + offset;
  }
  device_view view() const {
    return device_view(reinterpret_cast<std::byte* const*>(own_ + device_view::reserved), own_,
                       rank_, nprocs_, bytes_, launches_);
  }

  struct stream {
    std::shared_ptr<CUstream_st> handle;
  };
  /// A fault is one of this rank's kernels, on whichever stream.
  struct event {
    std::exception_ptr fault() const { return faults->before(at); }
    void told() const { faults->told(at); }
    std::shared_ptr<CUevent_st> handle;
    std::shared_ptr<fault_log> faults;
    fault_log::mark at;  ///< work: launches of this rank, on any stream
  };

  stream make_stream() {
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    return {std::shared_ptr<CUstream_st>(made, [](cudaStream_t s) {
      cudaStreamSynchronize(s);
      cudaStreamDestroy(s);
    })};
  }
  void copy_in(stream& s, rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(reachable(rank, offset), from, bytes, cudaMemcpyHostToDevice,
                          s.handle.get()),
          "copying to device memory");
  }
  void copy_out(stream& s, void* to, rank_t rank, std::size_t offset, std::size_t bytes) {
    check(
        cudaMemcpyAsync(to, reachable(rank, offset), bytes, cudaMemcpyDeviceToHost, s.handle.get()),
        "copying from device memory");
  }
  void copy(stream& s, rank_t to_rank, std::size_t to, rank_t from_rank, std::size_t from,
            std::size_t bytes) {
    void* target = address(to_rank, to);
    void* source = address(from_rank, from);
    if (target != nullptr && source != nullptr)
      check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, s.handle.get()),
            "copying in device memory");
    else if (to_rank == rank_)
      nvshmem_.get_on_stream(target, own_ + from, bytes, static_cast<int>(from_rank),
                             s.handle.get());
    else if (from_rank == rank_) {
      // A put is complete at the other device when quiet is: the event behind it must not be earlier.
      nvshmem_.put_on_stream(own_ + to, source, bytes, static_cast<int>(to_rank), s.handle.get());
      nvshmem_.quiet_on_stream(s.handle.get());
    } else
      raise("rank ", rank_, ": a copy from the device memory of rank ", from_rank,
            " to that of rank ", to_rank,
            ", neither of which this rank's GPU reaches. Let one of them copy.");
  }
  void fill(stream& s, rank_t rank, std::size_t offset, int value, std::size_t bytes) {
    check(cudaMemsetAsync(reachable(rank, offset), value, bytes, s.handle.get()),
          "filling device memory");
  }
  /// On a stream of its own, which is waited for: cudaMemcpy from memory that is not pinned may return before
  /// the bytes are there, and the other streams do not wait for the one that it uses.
  void write_now(std::size_t offset, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(own_ + offset, from, bytes, cudaMemcpyHostToDevice, writes_.handle.get()),
          "copying to device memory");
    check(cudaStreamSynchronize(writes_.handle.get()), "copying to device memory");
  }
  event record(stream& s) {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
    event result{std::shared_ptr<CUevent_st>(made, [](cudaEvent_t e) { cudaEventDestroy(e); }),
                 faults_, faults_->record(launches_)};
    check(cudaEventRecord(made, s.handle.get()), "recording an event");
    return result;
  }
  bool is_done(const event& e) {
    cudaError_t status = cudaEventQuery(e.handle.get());
    if (status == cudaErrorNotReady) return false;
    check(status, "a kernel or copy");
    if constexpr (FARSIDE_CHECKED) look_for_fault();
    return true;
  }
  void wait(stream& s, const event& e) {
    check(cudaStreamWaitEvent(s.handle.get(), e.handle.get(), 0), "waiting for another stream");
  }

  template <class F>
  void launch([[maybe_unused]] stream& s, [[maybe_unused]] std::size_t n,
              [[maybe_unused]] const F& f) {
#if defined(__CUDACC__)
    if (n == 0) return;
    std::size_t blocks = (n + 255) / 256;
    if (blocks > 0x7fff'ffff)
      raise("rank ", rank_, ": a kernel of ", n,
            " calls was launched, and one has at most 2^39. Launch several.");
    ++launches_;
    run_kernel<<<static_cast<unsigned>(blocks), 256, 0, s.handle.get()>>>(view(), n, f);
    check(cudaGetLastError(), "launching a kernel");
#else
    static_assert(sizeof(F) == 0,
                  "this source launches a kernel but was not compiled by nvcc: name it *.cu, or "
                  "set_source_files_properties(... LANGUAGE CUDA)");
#endif
  }

  void check(cudaError_t status, const char* what) const {
    if (status == cudaSuccess) [[likely]]
      return;
    cudaGetLastError();
    if (status == cudaErrorMemoryAllocation)
      raise<allocation_error>("rank ", rank_, ": ", what,
                              ": the GPU has no memory left: ", cudaGetErrorString(status),
                              ". What far::device takes is set by FARSIDE_DEVICE_SEGMENT=SIZE.");
    raise<error>("rank ", rank_, ": ", what, ": ", cudaGetErrorString(status),
                 ". Kernels run later than they are launched: the fault may be an earlier one's. "
                 "Build with FARSIDE_CHECKED=1, or run under compute-sanitizer, to see which.");
  }

 private:
  static void fail_together(const std::string& problem) {
    std::string first = first_problem(problem, world());
    if (!first.empty()) raise<error>("no device memory: ", first, ".");
  }

  /// Ranks of one host take its GPUs in turn. What is wrong, if there is none.
  std::string choose_gpu() {
    if (ranks_are_simulated() || c_threads())
      return "ranks are threads of one process here, and NVSHMEM needs a process for each rank. "
             "Start "
             "without --threads, or not in a simulation; the stand-in (FARSIDE_DEVICE=stand-in, in "
             "a "
             "program that is not built for CUDA) runs there";
    struct host_name {
      char text[64] = {};
    } mine;
    gethostname(mine.text, sizeof mine.text - 1);
    auto hosts = all_gather(mine);
    rank_t before = 0;
    for (rank_t r = 0; r < nprocs_; ++r) {
      bool same = std::string(hosts[r].text) == mine.text;
      before += same && r < rank_;
      ranks_here_ += same;
    }
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
      return text("rank ", rank_, ": there is no GPU that CUDA can use on ", mine.text, ": ",
                  status != cudaSuccess ? cudaGetErrorString(status) : "no device",
                  ". Run where nvidia-smi shows one, or build without CUDA and set "
                  "FARSIDE_DEVICE=stand-in");
    auto chosen = integer_setting("FARSIDE_GPU", 0, count - 1);
    int gpu = chosen ? static_cast<int>(*chosen) : static_cast<int>(before) % count;
    sharing_ = std::max<rank_t>(
        1, (ranks_here_ + static_cast<rank_t>(count) - 1) / static_cast<rank_t>(count));
    if (chosen) sharing_ = ranks_here_;
    status = cudaSetDevice(gpu);
    if (status == cudaSuccess) status = cudaFree(nullptr);
    if (status != cudaSuccess)
      return text("rank ", rank_, ": GPU ", gpu, " does not start: ", cudaGetErrorString(status),
                  status == cudaErrorDevicesUnavailable
                      ? ". CUDA's MPS takes no new client for a few seconds after one was killed: "
                        "start again"
                      : "");
    return {};
  }
  static bool c_threads() { return setting(job::threads_variable).has_value(); }

  /// The segment of all ranks: what is asked for, or four fifths of what is free, shared.
  std::size_t agree(std::size_t bytes, bool works) {
    std::size_t free = 0, total = 0;
    if (works) cudaMemGetInfo(&free, &total);
    std::size_t most = free / sharing_ / 10 * 8;
    std::size_t wanted = bytes != 0 ? bytes : all_reduce(most, minimum{});
    constexpr std::size_t unit = std::size_t{2} << 20;
    return (wanted + unit - 1) / unit * unit;
  }
  std::string size_problem(std::size_t wanted) const {
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    if (wanted <= free / sharing_) return {};
    return text("rank ", rank_, ": the GPU has ", human_size(static_cast<double>(free)), " of ",
                human_size(static_cast<double>(total)), " free, and ", sharing_,
                sharing_ == 1 ? " rank wants " : " ranks want ",
                human_size(static_cast<double>(wanted)), sharing_ == 1 ? "" : " each",
                ". Ask for less (FARSIDE_DEVICE_SEGMENT=SIZE), or end what else runs there");
  }

  /// Keeps what the first faulty kernel of this rank has left, and makes room for the next one.
  void look_for_fault() {
    device_fault fault;
    check(cudaMemcpy(&fault, own_, sizeof fault, cudaMemcpyDeviceToHost), "a kernel");
    if (fault.kind == 0 || fault.kind == static_cast<std::uint64_t>(fault_kind::incomplete)) return;
    const device_fault none;
    write_now(0, &none, sizeof none);
    faults_->add(fault.work, std::make_exception_ptr(
                                 usage_error(text("farside: rank ", rank_, ": ", text_of(fault)))));
  }

  void* reachable(rank_t rank, std::size_t offset) const {
    void* at = address(rank, offset);
    if (at == nullptr)
      raise("rank ", rank_, ": the GPU of rank ", rank,
            " cannot be reached from this one, so that the host cannot copy from or to it. Copy "
            "between the devices (far::device_stream::copy) and from there to the host.");
    return at;
  }

  std::size_t table_bytes() const { return (nprocs_ * sizeof(void*) + 255) / 256 * 256; }

  nvshmem_library nvshmem_;
  rank_t rank_, nprocs_;
  rank_t ranks_here_ = 0, sharing_ = 1;
  std::size_t bytes_ = 0;
  std::byte* own_ = nullptr;
  std::vector<std::byte*> bases_;
  stream writes_;  ///< of write_now
  std::uint64_t launches_ = 0;
  std::shared_ptr<fault_log> faults_ = std::make_shared<fault_log>();
};

static_assert(device_runtime<cuda_runtime>);

}  // namespace far::inline FARSIDE_BACKEND::detail

// Device memory, streams and kernels without a GPU, on the CPU: for tests, and for programs that run
// where there is none. See stand_in_memory.hpp for the memory and stand_in_streams.hpp for the streams.
//
// A kernel's calls are made one after another, in an order that no kernel may rely on: it begins
// somewhere, and goes on by a stride. Kernels of different ranks and streams run at the same time; in a
// simulation one after another.
#pragma once

#include <farside/base/environment.hpp>
#include <farside/core/detail/device/runtime_concept.hpp>
#include <farside/core/detail/device/stand_in_memory.hpp>
#include <farside/core/detail/device/stand_in_streams.hpp>
#include <farside/core/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class stand_in_runtime {
 public:
  static constexpr const char* name = "stand-in";

  /// Collective: all ranks give the same; 0: what it finds best.
  stand_in_runtime(context& c, std::size_t bytes)
      : memory_(c.link.rank(), c.link.nprocs(), rounded(bytes)),
        rank_(c.link.rank()),
        nprocs_(c.link.nprocs()),
        threaded_(!ranks_are_simulated()) {
    const char* seed = std::getenv("FARSIDE_SIM_SEED");
    seed_ = mix((seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1) * nprocs_ + rank_);
  }

  stand_in_runtime(const stand_in_runtime&) = delete;
  /// What was issued is done first: it uses the memory.
  ~stand_in_runtime() {
    for (const auto& s : streams_)
      if (auto alive = s.lock()) alive->finish();
  }

  std::size_t segment_size() const { return memory_.bytes(); }
  std::size_t first_offset() const { return device_view::reserved; }
  void* address(rank_t rank, std::size_t offset) const {
    return memory_.public_address(rank, offset);
  }
  device_view view() const {
    return device_view(memory_.bases(), memory_.kernel_address(rank_, 0), rank_, nprocs_,
                       memory_.bytes());
  }

  /// Events, and waits of other streams, may keep a stream when its last handle has gone.
  struct stream {
    std::shared_ptr<stand_in_stream> state;
    std::shared_ptr<void> end;  ///< the last handle waits for what was issued
  };
  struct event {
    std::exception_ptr fault() const { return of->faults.before(at); }
    void told() const { of->faults.told(at); }
    std::shared_ptr<stand_in_stream> of;
    fault_log::mark at;
  };

  stream make_stream() {
    auto made = std::make_shared<stand_in_stream>(threaded_);
    std::erase_if(streams_, [](const auto& s) { return s.expired(); });
    streams_.push_back(made);
    return {made, std::shared_ptr<void>(nullptr, [made](void*) { made->finish(); })};
  }
  /// Where kernels, and what is performed, find memory.
  std::byte* kernel_address(rank_t rank, std::size_t offset) const { return kernel(rank, offset); }
  void perform(stream& s, std::function<void()> work) { issue(s, std::move(work)); }
  void copy_in(stream& s, rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    issue(s, [to = kernel(rank, offset), from, bytes] { std::memcpy(to, from, bytes); });
  }
  void copy_out(stream& s, void* to, rank_t rank, std::size_t offset, std::size_t bytes) {
    issue(s, [to, from = kernel(rank, offset), bytes] { std::memcpy(to, from, bytes); });
  }
  void copy(stream& s, rank_t to_rank, std::size_t to, rank_t from_rank, std::size_t from,
            std::size_t bytes) {
    issue(s, [to = kernel(to_rank, to), from = kernel(from_rank, from), bytes] {
      std::memmove(to, from, bytes);
    });
  }
  void fill(stream& s, rank_t rank, std::size_t offset, int value, std::size_t bytes) {
    issue(s, [to = kernel(rank, offset), value, bytes] { std::memset(to, value, bytes); });
  }
  void write_now(std::size_t offset, const void* from, std::size_t bytes) {
    std::memcpy(kernel(rank_, offset), from, bytes);
  }
  event record(stream& s) { return {s.state, s.state->faults.record(s.state->issued())}; }
  bool is_done(const event& e) {
    if (!threaded_) step();
    return e.of->is_done(e.at.work);
  }
  void wait(stream& s, const event& e) {
    if (e.of != s.state) s.state->wait_for(e.of, e.at.work);
  }

  template <class F>
  void launch(stream& s, std::size_t n, const F& f) {
    if (n == 0) return;
    std::uint64_t drawn = draw();
    issue(s, [view = view(), n, f, drawn] {
      std::size_t stride = drawn % 64 * 2 + 1;
      while (std::gcd(stride, n) != 1) ++stride;
      std::size_t i = reduce_hash(drawn, n);
      for (std::size_t done = 0; done < n; ++done) {
        f(view, i);
        i = (i + stride) % n;
      }
    });
  }

 private:
  static std::size_t rounded(std::size_t bytes) {
    if (bytes == 0) bytes = std::size_t{64} << 20;
    constexpr std::size_t page = 65536;
    return (bytes + page - 1) / page * page;
  }
  std::byte* kernel(rank_t rank, std::size_t offset) const {
    return memory_.kernel_address(rank, offset);
  }
  void issue(stream& s, std::function<void()> work) { s.state->issue(std::move(work)); }
  std::uint64_t draw() { return seed_ = mix(seed_); }

  /// Simulated: one stream of this rank goes on, which one is drawn, or none does.
  void step() {
    std::erase_if(streams_, [](const auto& s) { return s.expired(); });
    if (streams_.empty()) return;
    std::size_t first = draw() % (streams_.size() + 1);
    if (first == streams_.size()) return;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      auto s = streams_[(first + i) % streams_.size()].lock();
      if (s != nullptr && s->step()) return;
    }
  }

  stand_in_memory memory_;
  rank_t rank_, nprocs_;
  bool threaded_;
  std::atomic<std::uint64_t> seed_ = 1;
  std::vector<std::weak_ptr<stand_in_stream>> streams_;
};

static_assert(device_runtime<stand_in_runtime>);

}  // namespace far::inline FARSIDE_BACKEND::detail

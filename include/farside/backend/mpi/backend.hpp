// mpi: ranks of an MPI job. One of three paths is taken, by all ranks alike, when the job starts:
//
//   shared  all ranks are on one node: one memfd, loads, stores and CPU atomics, as on smp.
//   rma     anything else, or FARSIDE_MPI_SHARED=0: an MPI-3 window (window.hpp). With
//           FARSIDE_MPI_STRICT=1 it relies on nothing but the MPI standard (window_strict.hpp).
//   served  the same, with FARSIDE_MPI set to anything but rma (strategy.hpp): messages to whoever
//           serves a segment (served/memory.hpp).
//
// Far atomics take one path per job, never a mixture of CPU and network atomics: served ones are
// the CPU atomics of the segment's node.
#pragma once

#include <farside/backend/mpi/far_memory.hpp>
#include <farside/backend/mpi/node_memory.hpp>
#include <farside/backend/mpi/request.hpp>
#include <farside/backend/mpi/server_process.hpp>
#include <farside/backend/mpi/session.hpp>
#include <farside/base/give_way.hpp>

#include <cstring>
#include <span>
#include <tuple>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

class backend {
 public:
  using request = mpi_backend::request;
  static constexpr const char* name = "mpi";

  explicit backend(const start_options& options) : backend(options, MPI_COMM_WORLD) {}

  /// For a program that uses MPI itself: the ranks are those of `parent`, which is duplicated. MPI
  /// is initialised only if it is not yet, and finalised by finish() only if it was here.
  backend(const start_options& options, MPI_Comm parent) : session_(options, parent) {
    if (!session_.serves()) {
      if (auto memory = share_memory(session_, options)) {
        memory_ = std::move(*memory);
        shared_ = true;
      }
    }
    // Servers learn whether the ranks share their memory. Spawned ones are there only if not.
    if (session_.settings().how == strategy::progress_rank)
      shared_ = session_.all_of_whole(shared_ || session_.serves());
    if (!shared_) far_.open(session_, options);
    if (session_.serves()) serve_and_leave(session_, far_.messages());
  }

  bool coherent() const { return shared_; }
  bool async_progress() const { return shared_ || far_.async_progress(); }
  static constexpr bool racy_get() { return true; }

  std::tuple<fixed_segments, window_link> fast_links() const {
    if (shared_) return {memory_.fixed(), window_link()};
    return {fixed_segments(), far_.fast_link()};
  }
  mapped_segments segments() const {
    return shared_ ? mapped_segments(memory_) : mapped_segments();
  }

  rank_t rank() const { return session_.rank(); }
  rank_t nprocs() const { return session_.nprocs(); }
  std::size_t segment_size() const {
    return shared_ ? memory_.segment_size() : far_.segment_size();
  }

  void* address(rank_t rank, std::size_t offset) const {
    if (shared_) [[likely]]
      return memory_.address(rank, offset);
    return far_.address(rank, offset);
  }

  /// The ranks of the program, in their order. For benchmarks.
  MPI_Comm communicator() const { return session_.comm(); }
  /// The window of the rma path, nullptr on others. For benchmarks.
  const window* raw_window() const {
    return shared_ || far_.is_served() ? nullptr : &far_.window();
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (shared_) [[likely]]
      return memory_.put(rank, offset, from, bytes);
    far_.put(rank, offset, from, bytes);
  }

  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (shared_) [[likely]]
      return memory_.get(rank, offset, to, bytes);
    far_.get(rank, offset, to, bytes);
  }

  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (!shared_) [[unlikely]]
      return far_.async_put(rank, offset, from, bytes);
    memory_.put(rank, offset, from, bytes);
    return {};
  }

  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (!shared_) [[unlikely]]
      return far_.async_get(rank, offset, to, bytes);
    memory_.get(rank, offset, to, bytes);
    return {};
  }

  template <component C>
  bool accumulates() const {
    return shared_ || far_.accumulates<C>();
  }
  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t me) {
    if (shared_) [[likely]]
      return memory_.accumulate(rank, offset, from, n, me);
    return far_.accumulate(rank, offset, from, n, me);
  }
  /// Of ranks that do not share memory.
  template <component C>
  request async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    return far_.async_accumulate(rank, offset, from, n);
  }

  // Of ranks that do not share memory.
  run_limits limits_of_runs() const { return shared_ ? run_limits() : far_.limits_of_runs(); }
  request async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                         std::size_t bytes) {
    return far_.async_put_runs(rank, where, from, bytes);
  }
  request async_get_runs(rank_t rank, std::span<const run> where, void* to, std::size_t bytes) {
    return far_.async_get_runs(rank, where, to, bytes);
  }
  template <component C>
  request async_accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                                std::size_t n) {
    return far_.async_accumulate_runs(rank, where, from, n);
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    if (shared_) [[likely]]
      return memory_.fetch_op<Op>(rank, offset, value);
    return far_.fetch_op<Op>(rank, offset, value);
  }

  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    if (shared_) [[likely]]
      return memory_.compare_swap(rank, offset, expected, desired);
    return far_.compare_swap(rank, offset, expected, desired);
  }

  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    if (shared_) [[likely]]
      return memory_.atomic_load<T>(rank, offset);
    return far_.atomic_load<T>(rank, offset);
  }

  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    if (!shared_) [[unlikely]]
      return far_.async_fetch_op<Op>(rank, offset, value, old);
    old = memory_.fetch_op<Op>(rank, offset, value);
    return {};
  }

  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    if (!shared_) [[unlikely]]
      return far_.async_compare_swap(rank, offset, expected, desired, old);
    old = memory_.compare_swap(rank, offset, expected, desired);
    return {};
  }

  void flush(rank_t rank) {
    if (shared_) [[likely]]
      return memory_.flush();
    far_.flush(rank);
  }

  void flush() {
    if (shared_) [[likely]]
      return memory_.flush();
    far_.flush();
  }
  void settle(rank_t rank) { shared_ ? memory_.flush() : far_.settle(rank); }

  void signal(rank_t rank, std::size_t offset) {
    if (shared_) [[likely]]
      return memory_.signal(rank, offset);
    far_.signal(rank, offset);
  }

  bool await(std::size_t offset, std::uint64_t count) {
    if (shared_) [[likely]]
      return memory_.await(offset, count);
    return far_.await(offset, count);
  }

  /// A barrier of all ranks that the transport has itself, after a flush; false: it has none.
  bool start_barrier() { return !shared_ && far_.start_barrier(); }
  bool await_barrier() { return far_.await_barrier(); }

  void progress() {
    if (!shared_) far_.progress();
  }

  void pause() { shared_ ? give_way() : far_.pause(); }
  std::int64_t lost_rank() { return session_.lost_rank(); }

  /// Collective. The destructor alone leaves the window and MPI as they are.
  void finish() {
    if (!shared_) far_.flush();
    session_.gather_to_finish([&] {
      if (far_.is_served()) far_.progress();
    });
    if (session_.settings().has_servers()) session_.release_servers();
    if (!shared_) far_.close();
    session_.finish();
  }

  [[noreturn]] void abort(const char*) { session_.abort(); }

 private:
  bool shared_ = false;
  shared_memory memory_;
  session session_;
  far_memory far_;
};

/// A process that strategy::spawned has made never comes to main: whatever that does before its
/// far::runtime is for the ranks alone, and a program that uses MPI itself would take the servers'
/// MPI_COMM_WORLD for its own.
inline bool serve_if_spawned() {
  if (!is_spawned_server()) return false;
  try {
    backend(start_options{}).finish();  // a server does not return from the constructor
  } catch (const std::exception& e) {
    std::fprintf(stderr, "a server of FARSIDE_MPI=spawned: %s\n", e.what());
    std::fflush(nullptr);
    if (mpi_is_initialized()) MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }
  return true;
}
inline const bool was_spawned = serve_if_spawned();

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

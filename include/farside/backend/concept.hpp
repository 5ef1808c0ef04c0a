// The contract between the core and a transport: what every back end has. What it may offer beyond
// that is in optional.hpp. docs/backends.md explains both in prose; this is what the compiler
// checks.
//
// A back end owns one segment of memory per rank, all of the same size, zero when it starts. An
// address is (rank, offset). Offsets and sizes of atomics are naturally aligned. Nothing uses the
// first null_guard bytes of a segment, so that a null far pointer leads to nobody's memory.
#pragma once

#include <farside/base/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// How many threads of one rank may call the library.
enum class thread_level {
  single,   ///< only the thread that made the runtime
  multiple  ///< any thread, at any time
};

/// What serves the messages that are sent to a rank (core/rpc.hpp).
enum class attention {
  poll,    ///< the rank itself, in calls of the library that wait, and in far::progress()
  thread,  ///< also a thread of the rank, so that a rank that computes answers too
  rank     ///< other processes of the node
};

namespace detail {

/// A far pointer that is null, or nearly, points into these first bytes of a segment. Where
/// segments are mapped they are inaccessible; elsewhere operations compare (check_access in
/// core/access.hpp). A page of any kernel.
inline constexpr std::size_t null_guard = 65536;

/// What the runtime asks of the back end it makes.
struct start_options {
  int* argc = nullptr;
  char*** argv = nullptr;
  thread_level threads = thread_level::single;
  std::optional<far::attention> attention{};  ///< what serves messages, if the program says it
  std::size_t segment = 0;          ///< bytes a rank; 0: FARSIDE_SEGMENT, or the back end's default
  rank_t thread_rank = 0;           ///< smp: which of the ranks of this process this is
  void* shared_job = nullptr;       ///< smp: what the threads of one process share
  bool may_keep_processes = false;  ///< mpi: see far::runtime::options
};

/// A handle of something begun. A request that was default-constructed is complete.
template <class R>
concept backend_request = std::default_initializable<R> && std::movable<R> && requires(R r) {
  { r.test() } -> std::same_as<bool>;  ///< complete? makes progress; may be called again after
  r.wait();                            ///< until complete
};

template <class B>
concept backend =
    backend_request<typename B::request> &&
    requires(B b, const B& cb, rank_t rank, std::size_t offset, std::size_t bytes, void* to,
             const void* from, std::uint64_t word, std::uint64_t& result, const char* why) {
      // What containers may ask.
      { B::name } -> std::convertible_to<const char*>;
      { cb.coherent() } -> std::same_as<bool>;        ///< CPU and far atomics agree
      { cb.async_progress() } -> std::same_as<bool>;  ///< the target need not call in
      { cb.racy_get() } -> std::same_as<bool>;  ///< a torn get is old or new in each aligned word

      // Ranks and segments.
      { cb.rank() } -> std::same_as<rank_t>;
      { cb.nprocs() } -> std::same_as<rank_t>;
      { cb.segment_size() } -> std::same_as<std::size_t>;
      { cb.address(rank, offset) } -> std::same_as<void*>;  ///< nullptr if this CPU cannot reach it

      // put: the source may be reused on return. get: complete on return, after this rank's own
      // earlier puts to that rank.
      b.put(rank, offset, from, bytes);
      b.get(rank, offset, to, bytes);
      { b.async_put(rank, offset, from, bytes) } -> std::same_as<typename B::request>;
      { b.async_get(rank, offset, to, bytes) } -> std::same_as<typename B::request>;

      // Atomics return the old value and are complete on return.
      { b.template fetch_op<atomic_op::add>(rank, offset, word) } -> std::same_as<std::uint64_t>;
      { b.compare_swap(rank, offset, word, word) } -> std::same_as<std::uint64_t>;
      { b.template atomic_load<std::uint64_t>(rank, offset) } -> std::same_as<std::uint64_t>;
      {
        b.template async_fetch_op<atomic_op::add>(rank, offset, word, result)
      } -> std::same_as<typename B::request>;
      {
        b.async_compare_swap(rank, offset, word, word, result)
      } -> std::same_as<typename B::request>;

      // After flush, this rank's earlier puts are complete at their targets, for all to see.
      b.flush(rank);
      b.flush();

      // Counting signals, for barriers: signal adds one to a word of another rank; await returns
      // when this rank's own word has counted that far. Signals have release, awaits acquire order.
      b.signal(rank, offset);
      { b.await(offset, word) } -> std::same_as<bool>;  ///< false: not yet, and time to look around

      b.progress();  ///< whatever the transport needs to be given now and then
      b.pause();     ///< called once a round by every wait loop: give_way()
      { b.lost_rank() } -> std::same_as<std::int64_t>;  ///< a dead rank, ever after, or -1
      b.finish();    ///< collective end; the destructor alone must not communicate
      b.abort(why);  ///< ends the whole job, as well as the transport can
    };

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

// What a back end may offer beyond the contract of concept.hpp. Each offer is a named concept here,
// and no other header looks for members of a back end: the core asks these concepts, and has a way
// of its own where a back end offers nothing.
//
//   concept               offers                                           who offers it
//   ------------------------------------------------------------------------------------------
//   has_fast_links        put, get, atomics, flush without the back end      smp, mpi, shmem, any
//   puts_through          (a fast link) a put and its flush in one call      mpi
//   knows_its_fences      (a fast link) whether a flush is a CPU fence       mpi
//   maps_segments         where the segments lie, if ranks share memory      smp, mpi, any
//   guarded_by_pages      the CPU refuses addresses that are in no segment   smp
//   always_coherent       the trait coherent() holds in all jobs             smp
//   never_coherent        ... in no job                                      shmem, sim
//   never_waits           the trait async_progress() holds in all jobs       smp, sim
//   accumulates           puts that add                                      all; shmem: integers
//   starts_accumulates    puts that add and give a request                   mpi, sim, any
//   moves_runs            many pieces of one segment in one request          mpi, any
//   settles_atomics       less than a flush, where atomics alone are due     mpi
//   has_barrier           a barrier of all ranks that beats signals          mpi, any
//   watches_memory        a look at each use of the heaps                    sim, any
//   simulates_machine     a machine that the runtime tells of its ranks      sim, any
//   names_its_carrier     the name of the transport below it                 any
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/runs.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

// --- fast links --------------------------------------------------------------------------------

/// A small value that does put, get, atomics and flush for one kind of job, without the back end.
/// Each thread keeps a copy (core/access.hpp), and this is most of the speed of smp. It converts to
/// false where the job is of another kind, and when default-constructed.
template <class L>
concept fast_link = std::default_initializable<L> && std::copyable<L> &&
                    requires(L link, const L& constant, rank_t rank, std::size_t offset,
                             std::size_t bytes, void* to, const void* from, std::uint64_t word) {
                      static_cast<bool>(constant);
                      /// Whether its operations wait for no other rank: then the launcher is not
                      /// told of them.
                      { L::waits_for_nobody } -> std::convertible_to<bool>;
                      link.put(rank, offset, from, bytes);
                      link.get(rank, offset, to, bytes);
                      {
                        link.template fetch_op<atomic_op::add>(rank, offset, word)
                      } -> std::same_as<std::uint64_t>;
                      {
                        link.compare_swap(rank, offset, word, word)
                      } -> std::same_as<std::uint64_t>;
                      {
                        link.template atomic_load<std::uint64_t>(rank, offset)
                      } -> std::same_as<std::uint64_t>;
                      link.flush(rank);
                      link.flush();
                    };

template <class T>
inline constexpr bool is_tuple_of_fast_links = false;
template <fast_link... L>
inline constexpr bool is_tuple_of_fast_links<std::tuple<L...>> = true;

/// A back end with fast links gives them in the order in which operations try them. At most one of
/// them is true in a job; where none is, operations go to the back end itself.
template <class B>
concept has_fast_links =
    requires(B& link) { requires is_tuple_of_fast_links<decltype(link.fast_links())>; };

/// The fast links of a back end: a tuple, which may be empty.
template <class B>
struct fast_links_of {
  using type = std::tuple<>;
};
template <has_fast_links B>
struct fast_links_of<B> {
  using type = decltype(std::declval<B&>().fast_links());
};

/// Optional, of a fast link: a put that completes, on return, everything that this rank has put to
/// that target. It waits once, where put and flush may wait twice.
template <class L>
concept puts_through = requires(L& link, rank_t rank, std::size_t offset, const void* from,
                                std::size_t bytes) { link.put_through(rank, offset, from, bytes); };

/// Optional, of a fast link: whether a flush is a fence of the CPU and no more. An atomic, which
/// ends with a flush, is one then too.
template <class L>
concept knows_its_fences = requires(const L& link) {
  { link.flush_is_a_fence() } -> std::same_as<bool>;
};

// --- shared memory -----------------------------------------------------------------------------

/// segments() tells where the segments of all ranks lie (mapped_segments of
/// backend/shared/segments.hpp); it converts to false in jobs whose ranks share no memory.
template <class B>
concept maps_segments = requires(const B& link) {
  static_cast<bool>(link.segments());
  { link.segments().is_fixed() } -> std::same_as<bool>;
};

/// Accesses outside of segments, and to their first bytes, end in a fault of the CPU, in all jobs.
/// Elsewhere the core compares addresses before it uses them.
template <class L>
concept guarded_by_pages = requires { requires L::guarded_by_pages; };

// --- traits that are known at compile time -----------------------------------------------------

template <class B>
concept always_coherent = requires { requires B::coherent(); };
template <class B>
concept never_coherent = requires { requires !B::coherent(); };
/// No call of it waits for another rank: the trait async_progress() holds in all jobs.
template <class B>
concept never_waits = requires { requires B::async_progress(); };

// --- operations --------------------------------------------------------------------------------

/// accumulate() is a put that adds, for rank `me`. It may stop before the end, rather than wait for
/// another rank, and says where. A back end that has it also has accumulates<C>(), which tells
/// whether it adds components of type C in this job. Fast links of such a job have accumulate(),
/// too. Elsewhere accumulates are compare-and-swaps (core/accumulate.hpp).
template <class L, class C>
concept accumulates =
    requires(L& link, rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t me) {
      { link.accumulate(rank, offset, from, n, me) } -> std::same_as<accumulated>;
    };

/// An accumulate with a request, in jobs whose memory is not coherent. Elsewhere it is complete
/// when it was begun.
template <class B, class C>
concept starts_accumulates =
    requires(B& link, rank_t rank, std::size_t offset, const C* from, std::size_t n) {
      { link.async_accumulate(rank, offset, from, n) } -> std::same_as<typename B::request>;
    };

/// Puts, gets and accumulates of many pieces of one segment, in one request, in jobs whose memory is
/// not coherent. What travels lies densely here, in the order of the pieces, and must stay until the
/// request is complete. In other ways they are as the operations on one piece.
template <class B>
concept moves_runs = requires(B& link, rank_t rank, std::span<const run> where, const void* from,
                              void* to, std::size_t bytes, const double* addends) {
  { link.limits_of_runs() } -> std::same_as<run_limits>;  ///< piece is 0: not in this job
  { link.async_put_runs(rank, where, from, bytes) } -> std::same_as<typename B::request>;
  { link.async_get_runs(rank, where, to, bytes) } -> std::same_as<typename B::request>;
  { link.async_accumulate_runs(rank, where, addends, bytes) } -> std::same_as<typename B::request>;
};

/// After settle(rank), gets that other ranks begin see this rank's earlier atomics on that rank,
/// and this rank's own later gets come after them. A flush does that, too, and more.
template <class B>
concept settles_atomics = requires(B& link, rank_t rank) { link.settle(rank); };

/// A barrier of all ranks, after a flush, that is faster than one made of signals.
template <class B>
concept has_barrier = requires(B& link) {
  { link.start_barrier() } -> std::same_as<bool>;  ///< false: not in this job
  { link.await_barrier() } -> std::same_as<bool>;  ///< false: not yet, and time to look around
};

// --- simulation and reports --------------------------------------------------------------------

/// A simulated machine runs all ranks. The runtime tells it whose context is current, which rank
/// has ended, and asks which allocation is to fail.
template <class B>
concept simulates_machine = requires(B& link) {
  { link.machine().allocation_fails() } -> std::same_as<bool>;
  link.machine().terminated(link.rank(), true);
};

/// The name of the transport that carries this job, where the back end chooses it at the start.
template <class B>
concept names_its_carrier = requires(const B& link) {
  { link.carried_by() } -> std::convertible_to<const char*>;
};

/// A back end that watches how memory is used. The heaps tell it what they give out and take back,
/// so that it can refuse accesses to anything else.
template <class B>
concept watches_memory = requires(B b, rank_t rank, std::size_t offset, std::size_t bytes) {
  /// The heaps are in [begin, end) of every segment; nothing is allocated there yet.
  b.note_heap(offset, offset);
  /// These bytes are given to the caller, from now on.
  b.note_allocated(rank, offset, bytes);
  /// The block that begins there is the heap's again, from now on. This rank's puts to it are
  /// complete. Empty, or why there is no such block: "rank 1 freed it at step 512 (...)".
  { b.note_freed(rank, offset) } -> std::same_as<std::string>;
  /// From true to false, what this rank does is done by the heaps, to words of theirs that lie in
  /// blocks. Nothing that is begun then stays in flight.
  b.heap_access(true);
};

template <class Link>
void note_heap([[maybe_unused]] Link& link, [[maybe_unused]] std::size_t begin,
               [[maybe_unused]] std::size_t end) {
  if constexpr (watches_memory<Link>) link.note_heap(begin, end);
}
template <class Link>
void note_allocated([[maybe_unused]] Link& link, [[maybe_unused]] rank_t rank,
                    [[maybe_unused]] std::size_t offset, [[maybe_unused]] std::size_t bytes) {
  if constexpr (watches_memory<Link>) link.note_allocated(rank, offset, bytes);
}
template <class Link>
std::string note_freed([[maybe_unused]] Link& link, [[maybe_unused]] rank_t rank,
                       [[maybe_unused]] std::size_t offset) {
  if constexpr (watches_memory<Link>)
    return link.note_freed(rank, offset);
  else
    return {};
}

/// As long as it lives, this rank's operations are those of the heaps on words of their own inside
/// of blocks (links of free lists, marks), also of free ones. Nothing where nobody watches.
template <class Link>
class heap_access {
 public:
  explicit heap_access(Link& link) : link_(link) {
    if constexpr (watches_memory<Link>) link_.heap_access(true);
  }
  ~heap_access() {
    if constexpr (watches_memory<Link>) link_.heap_access(false);
  }
  heap_access(const heap_access&) = delete;

 private:
  [[maybe_unused]] Link& link_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

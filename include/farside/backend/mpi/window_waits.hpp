// How a rank waits on a window: for a barrier, for a signal, and for room in the store of its puts.
#pragma once

#include <farside/backend/mpi/window.hpp>
#include <farside/base/give_way.hpp>

#include <atomic>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// MPI's own. Open MPI's takes longer than our signals (1000 and 750 ns between two ranks), MPICH's
/// less (980 and 2460).
inline bool window::start_barrier() {
  if constexpr (use_request_forms) MPI_Ibarrier(comm_, &barrier_);
  return use_request_forms;
}

inline bool window::await_barrier() {
  constexpr int polls = 200;
  const int spins = oversubscribed_ ? 0 : 50;
  for (int i = 0; i < polls; ++i) {
    if (is_done(barrier_)) {
      MPI_Win_sync(win_);
      return true;
    }
    if (i >= spins) give_way();
  }
  return false;
}

/// Loads its own word, as the unified memory model allows. Polling it by an atomic of MPI, as in
/// strict mode, does too, but on Open MPI's `osc ucx` the atomics of other ranks on the one that
/// polls never came through (100 bit-ors: none in 15 s), unless it also calls progress().
inline bool window::await(std::size_t offset, std::uint64_t count) {
  constexpr int polls = 200;
  const int spins = oversubscribed_ ? 0 : 50;
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(base_ + offset));
  for (int i = 0; i < polls; ++i) {
    MPI_Win_sync(win_);
    std::uint64_t seen =
        strict_ ? atomic_load<std::uint64_t>(rank_, offset) : word.load(std::memory_order_acquire);
    if (seen >> 1 >= count) {
      MPI_Win_sync(win_);
      return true;
    }
    if (flush_is_a_fence_ && i < spins) continue;  // nobody needs to be served
    progress();
    if (i >= spins) give_way();
  }
  return false;
}

[[gnu::cold]] inline void window::empty_store() {
  if (oversubscribed_) nudge_dirty_targets();
  wait_in_mpi waiting;
#ifdef OPEN_MPI
  if (!FARSIDE_MUTANT(mpi_store_emptied_early))
    MPI_Win_flush_all(win_);  // not local, see complete_local()
#else
  MPI_Win_flush_local_all(win_);
#endif
  room_ = store_.get();
}

inline void window::nudge_dirty_targets() {
  std::vector<MPI_Request> requests;
  std::vector<char> answers(nprocs_);
  for (rank_t rank = 0; rank < nprocs_; ++rank)
    if (dirty(rank)) requests.push_back(start_nudge(rank, answers[rank]));
  for (MPI_Request& request : requests) wait_politely(request);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

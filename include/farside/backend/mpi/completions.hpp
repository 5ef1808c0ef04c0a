// What a rank knows of its own operations on a window: which of them may not be complete at their
// targets, and which may not be complete here.
//
// At their targets. Each put gets a stamp, 2, 3, ... A target is dirty if its last stamp is above
// what flush() has covered, and flush(rank) sets its stamp to 0 (see clean()). One thread could
// take a flush that another has only begun for done. So with several threads nothing is ever taken
// for clean again once it was dirty: every stamp is 1, and flushed_ stays 0.
//
// Here. Operations that have a request are numbered, so that one flush completes all before it.
#pragma once

#include <farside/base/types.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

class completions {
 protected:
  /// Of another rank.
  struct target {
    std::uint64_t settled = 0;    ///< operations up to this number are complete here
    std::uint64_t under_way = 0;  ///< operations that have one, begun since the last flush
  };

  [[gnu::always_inline]] void mark(rank_t rank) {
    std::uint64_t stamp = single_ ? started_.load(std::memory_order_relaxed) + 1 : 1;
    started_.store(stamp, std::memory_order_relaxed);
    last(rank).store(stamp, std::memory_order_relaxed);
  }

  std::atomic_ref<std::uint64_t> last(rank_t rank) const {
    return std::atomic_ref<std::uint64_t>(lasts_[rank]);
  }
  /// A get that finds a 0 goes the shortest way, by MPI. It never does of this rank's own memory,
  /// of which the last stamp is at least the first one, which no operation has; except where MPI
  /// does little more than a load. That takes 33 ns there instead of 24, but whose memory it is
  /// nobody can predict where ranks are drawn at random, and a wrong guess takes longer.
  static constexpr std::uint64_t clean_own = 1;
  void clean(rank_t rank) {
    bool shortest = rank != rank_ || flush_is_a_fence_;
    last(rank).store(shortest ? 0 : clean_own, std::memory_order_relaxed);
  }

  [[gnu::always_inline]] bool dirty(rank_t rank) const {
    return last(rank).load(std::memory_order_relaxed) > flushed_;
  }

  /// The number of an operation that has a request; 0 with several threads.
  std::uint64_t number(rank_t rank) {
    if (!single_) return 0;
    ++targets_[rank].under_way;
    ++under_way_;
    return ++numbered_;
  }
  /// None is under way, to any rank. Only then is a local flush of Open MPI's `osc pt2pt` sure to
  /// return, see complete_local().
  bool all_settled() const { return under_way_ == 0; }
  void settle(target& to) {
    to.settled = numbered_;
    under_way_ -= std::exchange(to.under_way, 0);
  }
  void settle_all() {
    for (rank_t rank = 0; rank < nprocs_; ++rank) {
      targets_[rank].under_way = 0;
      targets_[rank].settled = numbered_;
    }
    under_way_ = 0;
  }

  bool settled(rank_t rank, std::uint64_t number) const { return targets_[rank].settled >= number; }

  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
  bool single_ = true;                      ///< one thread
  bool flush_is_a_fence_ = false;           ///< of the CPU, and no more: Open MPI's `osc sm`
  std::unique_ptr<std::uint64_t[]> lasts_;  ///< of each rank the last stamp
  std::unique_ptr<target[]> targets_;
  std::atomic<std::uint64_t> started_ = 0;  ///< the last stamp
  std::uint64_t flushed_ = 0;               ///< stamps up to this one are complete
  std::uint64_t numbered_ = 0;
  std::uint64_t under_way_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

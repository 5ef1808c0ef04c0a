// Memory for the objects of a store, in the segments of their owners: as one rank takes it, gives it
// back, and keeps what has been erased until nobody can be using it (detail/retirement.hpp).
//
// Objects of fixed length are all of one size, and are taken 16 at a time; the rank that erases one
// keeps its memory for the next that it puts at that owner. Others are taken one by one.
#pragma once

#include <farside/containers/detail/retirement.hpp>
#include <farside/containers/detail/store/object.hpp>
#include <farside/core/memory.hpp>

#include <mutex>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

class slots {
 public:
  /// `each`: words of an object, zero if their sizes differ.
  slots(rank_t members, std::size_t each) : each_(each), free_(members) {}

  /// Memory for an object at a member. A/16, or A. Throws far::allocation_error.
  place take(rank_t member, rank_t rank, std::size_t words) {
    if (each_ == 0) return {alloc_on<word>(rank, words), words};
    while (true) {
      if (const ptr<word> one = free_one(member)) return {one, each_};
      refill(member, rank);
    }
  }
  /// Of an object that nobody has known.
  void give_back(rank_t member, const place& one) {
    if (each_ == 0) return dealloc(one.at);
    std::lock_guard lock(mutex_);
    free_[member].push_back(one.at);
  }
  /// Of one that was erased, and that no index names any more.
  void retire(rank_t member, const place& one) {
    if (FARSIDE_MUTANT(store_slot_reused_at_once)) return give_back(member, one);
    std::lock_guard lock(mutex_);
    retired_.add({member, one});
    fresh_ = true;
  }

  /// Whether something was retired since the last barrier: others must forget it.
  bool before_barrier() {
    std::lock_guard lock(mutex_);
    retired_.before_barrier();
    return std::exchange(fresh_, false);
  }
  void after_barrier() {
    retired_.after_barrier([&](const gone& g) { give_back(g.member, g.where); });
  }

  /// Nobody is there: all is free that this rank has taken. `drop`: and given back to the segments.
  void clear(bool drop) {
    retired_.end([&](const gone& g) {
      if (each_ == 0) dealloc(g.where.at);
    });
    for (auto& some : free_) some.clear();
    for (const block& one : blocks_) {
      if (drop) dealloc(one.at);
      for (std::size_t i = 0; !drop && i < one.n; ++i)
        free_[one.member].push_back(one.at + static_cast<std::ptrdiff_t>(i * each_));
    }
    if (drop) blocks_.clear();
  }

 private:
  static constexpr std::size_t at_a_time = 16;
  struct gone {
    rank_t member;
    place where;
  };
  struct block {
    rank_t member;
    ptr<word> at;
    std::size_t n;
  };

  ptr<word> free_one(rank_t member) {
    std::lock_guard lock(mutex_);
    auto& some = free_[member];
    if (some.empty()) return {};
    const ptr<word> one = some.back();
    some.pop_back();
    return one;
  }

  /// Fewer where there is no room for so many. Others may run while memory is taken.
  void refill(rank_t member, rank_t rank) {
    for (std::size_t n = at_a_time;; n /= 4) {
      try {
        const ptr<word> at = alloc_on<word>(rank, n * each_);
        std::lock_guard lock(mutex_);
        blocks_.push_back({member, at, n});
        for (std::size_t i = n; i-- > 0;)
          free_[member].push_back(at + static_cast<std::ptrdiff_t>(i * each_));
        return;
      } catch (const allocation_error&) {
        if (n == 1) throw;
      }
    }
  }

  std::mutex mutex_;  ///< not held while anything else may run
  std::size_t each_;
  std::vector<std::vector<ptr<word>>> free_;  ///< of each member
  std::vector<block> blocks_;
  retirement<gone> retired_;
  bool fresh_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores

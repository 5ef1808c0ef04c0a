// An object of each rank that handlers on that rank find: ranks may be threads of one process, so
// that a static would be shared by them.
#pragma once

#include "harness.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace messages {

template <class T>
class on_each_rank {
 public:
  on_each_rank() : mine_(std::make_unique<T>()), all_(far_test::objects_on_each_rank<T*>(1)) {
    far::put(all_[far::rank()], mine_.get());
    far::barrier();
  }
  ~on_each_rank() { far_test::release(all_); }

  T& operator*() { return *mine_; }
  T* operator->() { return mine_.get(); }
  /// What is sent to a rank, for `of` to be called with there.
  far::ptr<T*> at(far::rank_t rank) const { return all_[rank]; }

 private:
  std::unique_ptr<T> mine_;
  std::vector<far::ptr<T*>> all_;
};

/// In a handler: the object of this rank.
template <class T>
T& of(far::ptr<T*> here) {
  return *far::get(here);
}

inline far::rank_t next_rank(far::rank_t by = 1) { return (far::rank() + by) % far::nprocs(); }

/// Less work where each operation is simulated.
inline int scaled(int n) { return far::detail::ranks_are_simulated() ? std::max(n / 8, 1) : n; }

}  // namespace messages

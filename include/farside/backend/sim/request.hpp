// A handle of something that is in flight on the simulated machine.
#pragma once

#include <farside/backend/sim/operations.hpp>

#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// One that is dropped waits first.
class request {
 public:
  request() = default;
  request(world& where, rank_t me, world::events parts)
      : where_(&where), me_(me), parts_(std::move(parts)) {}
  request(request&& other) noexcept
      : where_(other.where_), me_(other.me_), parts_(std::exchange(other.parts_, {})) {}
  request& operator=(request&& other) noexcept {
    if (this == &other) return *this;
    wait();
    where_ = other.where_;
    me_ = other.me_;
    parts_ = std::exchange(other.parts_, {});
    return *this;
  }
  ~request() { wait(); }

  bool test() { return parts_.empty() || where_->ask(me_, parts_); }
  void wait() {
    if (!parts_.empty()) where_->complete(parts_);
  }

 private:
  world* where_ = nullptr;
  rank_t me_ = 0;
  world::events parts_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

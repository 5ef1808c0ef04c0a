// The containers whose operations come as messages, by number
// (containers/detail/dispatch/choice.hpp).
#pragma once

#include <farside/core/context.hpp>

#include <cstdint>
#include <map>
#include <mutex>

namespace far::inline FARSIDE_BACKEND::detail {

class served_containers {
 public:
  explicit served_containers(const context& c)
      : mutex_(c.threads == thread_level::multiple), rank_(c.link.rank()) {}

  /// A number that no other container of the job has.
  std::uint64_t new_number() {
    std::lock_guard lock(mutex_);
    return std::uint64_t{rank_} << 32 | ++numbers_;
  }
  void add(std::uint64_t number, void* state) {
    std::lock_guard lock(mutex_);
    states_[number] = state;
  }
  void remove(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    states_.erase(number);
  }
  /// Null: the container is no more.
  void* find(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    auto found = states_.find(number);
    return found != states_.end() ? found->second : nullptr;
  }

 private:
  optional_mutex mutex_;
  rank_t rank_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, void*> states_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

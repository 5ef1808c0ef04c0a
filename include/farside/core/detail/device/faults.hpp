// What has gone wrong in work that was issued to a device, and which events throw it.
//
//   work      1    2 !   3    4           work 2 has failed
//   events       a     b    c   | d       | the fault was thrown, by b or c
//
// b and c throw it, whichever comes first: both were recorded after that work, and before anybody was told. a was
// recorded before that work. d was recorded when it was known. A future that is dropped throws nothing, so that
// nobody is told by it.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Any thread: futures are also looked at by a thread that serves messages.
class fault_log {
 public:
  /// An event: the number of the last work before it, and its own number.
  struct mark {
    std::uint64_t work = 0, event = 0;
  };
  mark record(std::uint64_t work) {
    std::lock_guard lock(mutex_);
    return {work, ++events_};
  }
  void add(std::uint64_t work, std::exception_ptr why) {
    std::lock_guard lock(mutex_);
    faults_.push_back({work, std::move(why)});
  }
  /// What an event throws; null if nothing.
  std::exception_ptr before(const mark& of) const {
    std::lock_guard lock(mutex_);
    for (const fault& f : faults_)
      if (f.work <= of.work && of.event <= f.last_event) return f.why;
    return nullptr;
  }
  /// What an event throws was thrown.
  void told(const mark& of) {
    std::lock_guard lock(mutex_);
    for (fault& f : faults_)
      if (f.work <= of.work && f.last_event == nobody_was_told) f.last_event = events_;
  }

 private:
  static constexpr std::uint64_t nobody_was_told = ~std::uint64_t{0};
  struct fault {
    std::uint64_t work;
    std::exception_ptr why;
    std::uint64_t last_event = nobody_was_told;  ///< the last one that throws it
  };
  mutable std::mutex mutex_;
  std::vector<fault> faults_;
  std::uint64_t events_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

// The streams of the stand-in: what is issued to one is done in order, by a thread of its own. In a
// simulation there are no threads: the rank itself does it, in calls that look whether something is done,
// and which stream goes on then depends on the seed.
//
//   issued     1 2 3 4 5            one number for each piece of work
//   completed  ----^                it and all before it are done
//
// Only the thread (or the rank, in a simulation) raises `completed`, after the work, with release; who has
// read it with acquire sees all that the work has stored.
#pragma once

#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/detail/device/faults.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class stand_in_stream {
 public:
  explicit stand_in_stream(bool threaded) : threaded_(threaded) {
    if (threaded_) thread_ = std::thread([this] { run(); });
  }
  stand_in_stream(const stand_in_stream&) = delete;
  /// What was issued is done first.
  ~stand_in_stream() {
    if (!threaded_) {
      finish();
      return;
    }
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  fault_log faults;

  /// The number of the work.
  std::uint64_t issue(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
    return ++issued_;
  }
  /// All that is issued from now on waits for this.
  void wait_for(std::shared_ptr<stand_in_stream> other, std::uint64_t number) {
    if (FARSIDE_MUTANT(stand_in_stream_does_not_wait)) return;
    if (threaded_) {
      issue([other = std::move(other), number] { other->await(number); });
    } else {
      std::lock_guard lock(mutex_);
      // Work that is not ready stays at the front: see step().
      waits_.emplace_back(++issued_, std::move(other), number);
      queue_.push_back([] {});
    }
  }

  std::uint64_t issued() const {
    std::lock_guard lock(mutex_);
    return issued_;
  }
  bool is_done(std::uint64_t number) const {
    std::lock_guard lock(mutex_);
    return completed_ >= number;
  }
  /// Waits on the calling thread; only where streams are threads.
  void await(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return completed_ >= number; });
  }
  /// Waits until all that was issued is done. Simulated: does it, and first what that waits for.
  void finish() {
    if (threaded_) return await(issued());
    while (!is_done(issued()))
      if (!step()) waits_.front().other->finish();
  }

  /// Simulated: does the first piece of work that waits, if it can be done. Whether it did.
  bool step() {
    std::function<void()> work;
    {
      std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      if (!waits_.empty() && waits_.front().at == completed_ + 1) {
        if (!waits_.front().other->is_done(waits_.front().number)) return false;
        waits_.pop_front();
      }
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    perform(std::move(work));
    return true;
  }

 private:
  struct waiting {
    waiting(std::uint64_t where, std::shared_ptr<stand_in_stream> whom, std::uint64_t what)
        : at(where), other(std::move(whom)), number(what) {}
    std::uint64_t at;
    std::shared_ptr<stand_in_stream> other;
    std::uint64_t number;
  };

  /// What the work has captured, other streams too, is gone when it counts as complete.
  void perform(std::function<void()> work) {
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    work = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (failure) faults.add(completed_ + 1, failure);
      ++completed_;
    }
    changed_.notify_all();
  }

  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
        if (queue_.empty()) return;
        work = std::move(queue_.front());
        queue_.pop_front();
      }
      perform(std::move(work));
    }
  }

  const bool threaded_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::deque<waiting> waits_;
  std::uint64_t issued_ = 0, completed_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

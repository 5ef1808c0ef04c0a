// OpenSHMEM gives no handles: shmem_quiet completes all that this rank began before it. So what
// was begun is numbered, a request is a number, and one quiet serves all earlier requests.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <shmem.h>

#include <atomic>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

/// How many puts, or gets, this rank began, and how many of them are known to be complete.
///
/// `begin` comes after the call that it counts. A thread that sees the new number therefore
/// quiets that call too; one that does not was not told of it. `finish` never takes back what
/// another thread's later quiet has already found complete.
class tally {
 public:
  std::uint64_t begin(bool threads) {
    if (threads) return begun_.fetch_add(1, std::memory_order_acq_rel) + 1;
    std::uint64_t number = begun_.load(std::memory_order_relaxed) + 1;
    begun_.store(number, std::memory_order_relaxed);
    return number;
  }

  // Where there is one thread no order is needed, and on arm64 what follows would wait for it.
  std::uint64_t begun(bool threads) const {
    return threads ? begun_.load(std::memory_order_acquire)
                   : begun_.load(std::memory_order_relaxed);
  }
  bool finished(std::uint64_t number, bool threads) const {
    std::uint64_t done =
        threads ? done_.load(std::memory_order_acquire) : done_.load(std::memory_order_relaxed);
    return done >= number;
  }
  bool all_finished(bool threads) const { return finished(begun(threads), threads); }

  void finish(std::uint64_t number, bool threads) {
    if (!threads) return done_.store(number, std::memory_order_relaxed);
    std::uint64_t done = done_.load(std::memory_order_relaxed);
    while (done < number && !done_.compare_exchange_weak(done, number, std::memory_order_acq_rel)) {
    }
  }

 private:
  std::atomic<std::uint64_t> begun_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
};

/// What is under way on this rank. Gets are told apart from puts, so that a flush or a get does
/// not wait for an asynchronous get.
struct traffic {
  tally puts, gets;
  bool threads = false;  ///< several threads of this rank may be here at once

  void quiet() {
    std::uint64_t put = puts.begun(threads), get = gets.begun(threads);
    shmem_quiet();
    // Gets may have been plain loads.
    if (!gets.finished(get, threads)) std::atomic_thread_fence(std::memory_order_acquire);
    puts.finish(put, threads);
    gets.finish(get, threads);
  }
};

class request {
 public:
  request() = default;
  request(traffic& all, tally& mine, std::uint64_t number)
      : all_(&all), mine_(&mine), number_(number) {}

  /// OpenSHMEM 1.4 cannot look without waiting: a test completes the request.
  bool test() {
    wait();
    return true;
  }

  void wait() {
    if (all_ == nullptr) return;
    if (!mine_->finished(number_, all_->threads)) all_->quiet();
    all_ = nullptr;
  }

 private:
  traffic* all_ = nullptr;
  tally* mine_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::shmem_backend

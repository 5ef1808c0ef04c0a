// A handle of an operation that has begun, on a window or by messages. On shared memory everything
// is complete when the call returns, and the request holds nothing.
#pragma once

#include <farside/backend/mpi/session.hpp>

#include <cstdint>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

class window;
namespace served {
class memory;
}

/// What an atomic reads while it is under way.
struct operands {
  std::uint64_t value, expected;
};

/// An operation under way, on a window or by messages.
///
/// On a window there are two kinds. MPICH's has an MPI_Request, and can be asked whether it is
/// complete. On Open MPI, for compare_swap, and where one call of MPI does not do, there is none: a
/// flush completes it, which has no asking form, so test() waits. Open MPI has MPI_Rput and its
/// like too, but on `osc ucx` they took 4 (atomics) to 380 times (puts) as long as a plain call and
/// a flush.
///
/// By messages, `number` and `rank` are the ticket's generation and slot (served/client.hpp).
struct pending {
  window* owner = nullptr;
  MPI_Request handle = MPI_REQUEST_NULL;
  operands* own = nullptr;  ///< to be deleted when it is complete
  std::uint64_t number = 0;
  rank_t rank = 0;
  served::memory* messages = nullptr;

  bool nothing() const { return owner == nullptr && messages == nullptr; }
};

bool complete_now(pending operation);  // both in window.hpp
void complete(pending operation);
bool complete_message_now(pending operation);  // both in served/open.hpp
void complete_message(pending operation);

/// Complete means complete at the origin: the source may be reused, the result is there. A
/// request that is dropped waits first, as MPI may still read its operands.
///
/// Only copies of its members leave it, never its address: on shared memory the compiler can then
/// remove it altogether.
class request {
 public:
  request() = default;
  explicit request(const pending& operation) : operation_(operation) {}
  request(request&& other) noexcept : operation_(std::exchange(other.operation_, {})) {}
  request& operator=(request&& other) noexcept {
    if (this != &other) {
      drop();
      operation_ = std::exchange(other.operation_, {});
    }
    return *this;
  }
  ~request() { drop(); }

  bool test() {
    if (operation_.nothing()) [[likely]]
      return true;
    if (!(operation_.messages ? complete_message_now(operation_) : complete_now(operation_)))
      return false;
    operation_ = {};
    return true;
  }

  void wait() {
    if (operation_.nothing()) [[likely]]
      return;
    operation_.messages ? complete_message(operation_) : complete(operation_);
    operation_ = {};
  }

 private:
  /// If a rank has died this one is about to end, too, and its next wait says so.
  void drop() noexcept {
    if (operation_.nothing()) [[likely]]
      return;
    try {
      wait();
    } catch (const rank_failure&) {
    }
  }

  pending operation_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

// MPICH's MPI_Win_flush asks its network library UCX for progress without end, and never gives up
// the core. Where ranks share cores it so keeps the rank that it waits for from running, for a
// slice of 3 ms: across hosts that have their cores in common tests took 7 times as long.
//
// So a function of ours is found before UCX's own, by the linker's order, and naps as our own waits
// do (patience.hpp) while its thread is in a flush of ours that waits for long. All other calls it
// passes on. An MPICH on another network library does not call it; Open MPI yields by itself.
#pragma once

#include <farside/backend/mpi/served/patience.hpp>
#include <farside/base/backend_choice.hpp>

#include <dlfcn.h>
#include <mpi.h>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

#ifdef MPICH_VERSION

/// While it lives this thread waits in MPI.
class wait_in_mpi {
 public:
  wait_in_mpi() { current = this; }
  ~wait_in_mpi() { current = nullptr; }
  wait_in_mpi(const wait_in_mpi&) = delete;
  wait_in_mpi& operator=(const wait_in_mpi&) = delete;

  static unsigned progress_of_ucx(void* worker) {
    static const auto real = [] {
      void* ucx = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
      return reinterpret_cast<unsigned (*)(void*)>(
          dlsym(ucx != nullptr ? ucx : RTLD_NEXT, "ucp_worker_progress"));
    }();
    unsigned events = real(worker);
    if (current != nullptr) current->look_at(events);
    return events;
  }

 private:
  /// Most flushes end after a few rounds, and shall not pay for a look at the clock in each.
  void look_at(unsigned events) {
    constexpr unsigned before_clock = 64;
    if (events != 0) {
      rounds_ = 0;
      patience_.worked();
    } else if (++rounds_ > before_clock) {
      patience_.rest();
    }
  }

  inline static thread_local wait_in_mpi* current = nullptr;

  unsigned rounds_ = 0;
  served::patience patience_{false};
};

#else

struct wait_in_mpi {
  wait_in_mpi() {}  // a variable of this type is used
};

#endif

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

#ifdef MPICH_VERSION
extern "C" [[gnu::weak, gnu::used, gnu::visibility("default")]] unsigned ucp_worker_progress(
    void* worker) {
  return far::detail::mpi_backend::wait_in_mpi::progress_of_ucx(worker);
}
#endif

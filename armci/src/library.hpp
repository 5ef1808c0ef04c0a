// What the parts of libfarside_armci share: the runtime, addresses, and how mistakes end.
//
// ARMCI names memory of another process by an address in that process. Each process has one segment,
// so an address minus where that segment begins is a place in it: all addresses are known by one
// exchange at the start.
#pragma once

#include <farside/backend/mpi/startup.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/in_order.hpp>
#include <farside/core/make_team.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/mutex.hpp>
#include <farside/core/runtime.hpp>

#include <armci.h>
#include <mpi.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// ARMCI_name is PARMCI_name, unless a profiler defines it.
#define FARSIDE_ARMCI_NAME(name) \
  extern "C" decltype(PARMCI_##name) ARMCI_##name __attribute__((weak, alias("PARMCI_" #name)));

namespace armci {

using far::detail::raise;

/// A group as its members have it. ARMCI_Group::record points to it; copies share it.
struct group_record {
  far::team team;
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> members;  ///< ranks in the world
  int rank = 0;
};

/// From the first ARMCI_Init to the last ARMCI_Finalize.
class library {
 public:
  explicit library(far::thread_level threads, MPI_Comm over);
  ~library();

  int rank() const { return world_.rank; }
  int size() const { return static_cast<int>(world_.members.size()); }
  MPI_Comm comm() const { return world_.comm; }
  bool coherent() const { return coherent_; }
  group_record& world() { return world_; }
  far::runtime& runtime() { return *runtime_; }

  /// What orders this thread's operations.
  far::in_order& order();

  /// The place that `address` has in the memory of `process`, for `bytes` bytes.
  template <class T = std::byte>
  far::ptr<T> place(const void* address, int process, std::ptrdiff_t bytes) const {
    auto offset = reinterpret_cast<std::uintptr_t>(address) - start_of(process);
    if (bytes < 0 || offset < first_ || offset > segment_ ||
        static_cast<std::size_t>(bytes) > segment_ - offset) [[unlikely]]
      refuse(address, process, bytes);
    return far::ptr<T>(static_cast<far::rank_t>(process), offset);
  }
  /// Whether it is memory of this process that others do not reach.
  bool is_private(const void* address, int process) const {
    auto offset = reinterpret_cast<std::uintptr_t>(address) - start_of(process);
    return process == rank() && (offset < first_ || offset >= segment_) && address != nullptr;
  }
  void* address(far::ptr<std::byte> at) const {
    return reinterpret_cast<void*>(starts_[at.rank()] + at.offset());
  }
  void check_process(int process) const {
    if (process < 0 || process >= size()) [[unlikely]]
      raise("there is no process ", process, ": this job has ", size(), ", 0 to ", size() - 1, ".");
  }

  std::unordered_set<group_record*> groups;  ///< those that were made and not freed
  group_record* default_group;
  int starts = 1;  ///< calls of ARMCI_Init that no ARMCI_Finalize has ended

 private:
  std::uintptr_t start_of(int process) const {
    check_process(process);
    return starts_[static_cast<std::size_t>(process)];
  }
  [[noreturn, gnu::cold]] void refuse(const void* address, int process, std::ptrdiff_t bytes) const;

  std::unique_ptr<far::runtime> runtime_;
  group_record world_;
  std::vector<std::uintptr_t> starts_;  ///< of each process, where its segment begins
  std::size_t first_ = 0, segment_ = 0;
  bool coherent_ = false;
};

extern std::unique_ptr<library> the_library;

/// The library, which must have been started.
inline library& here() {
  if (!the_library) [[unlikely]]
    raise("ARMCI has not been started, or has ended. Call ARMCI_Init (or GA_Initialize) first.");
  return *the_library;
}

/// Says why, and ends the job.
[[noreturn]] void end_job(const char* call, const char* why, int code = 1);

/// Does `work`, and ends the job with one line if that throws.
template <class Work>
[[gnu::always_inline]] inline auto call(const char* name, Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& e) {
    end_job(name, e.what());
  }
}

/// The group, of which this process must be a member.
group_record& member_of(ARMCI_Group* group);

/// Ends the library at last, if the program has not.
void end_library();

/// Collectives of MPI are waited for without keeping a core from others.
inline void wait(MPI_Request& request) {
  far::detail::mpi_backend::wait_politely(request, [] { far::progress(); });
}
inline void pause() {
  far::progress();
  sched_yield();
}

}  // namespace armci

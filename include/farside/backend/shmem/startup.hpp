// What is settled before shmem_init, by environment variables, so that a plain `oshrun program`
// works: how large the symmetric heap is, and that Open MPI's memory hooks stay off (with them
// shmem_finalize of 4.1 crashes). What the user has set is kept where it will do.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/environment.hpp>

#include <sys/shm.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

inline constexpr const char* heap_variable = "SHMEM_SYMMETRIC_HEAP_SIZE";
inline constexpr const char* old_heap_variable = "SMA_SYMMETRIC_SIZE";  // an error if they differ

/// What the symmetric heap needs besides the segment: its own books, and the ranks' introductions.
inline constexpr std::size_t heap_slack = std::size_t{4} << 20;

/// What each rank tells the others when it starts.
struct introduction {
  std::uint64_t segment;  ///< bytes it can give
  std::uint64_t pid;
  std::uint64_t pid_namespace;  ///< pids mean the same only where this is equal
};

/// OpenSHMEM's life in this process: it can begin once.
enum class life { unborn, running, finished };
inline life& process_life() {
  static life value = life::unborn;
  return value;
}

/// A heap of `FARSIDE_SEGMENT` or what the program asks; else what the user gave the heap; else
/// this rank's share of the memory, at most 1 GiB. Nothing of it is committed before it is touched.
/// Returns the size of a segment that fits.
inline std::size_t prepare_heap(const start_options& options) {
  std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto whole_pages = [page](std::size_t bytes) { return (bytes + page - 1) / page * page; };
  auto asked =
      options.segment != 0 ? std::optional(options.segment) : size_setting("FARSIDE_SEGMENT");
  auto heap = size_setting(heap_variable);
  if (!heap) heap = size_setting(old_heap_variable);
  if (heap && !asked) {
    if (*heap < 2 * heap_slack)
      raise(heap_variable, " gives a symmetric heap of ", *heap,
            " bytes, of which OpenSHMEM itself may use ", heap_slack, ". Give at least ",
            2 * heap_slack, ", or set FARSIDE_SEGMENT instead.");
    return (*heap - heap_slack) / page * page;
  }
  auto neighbours = integer_setting("OMPI_COMM_WORLD_LOCAL_SIZE", 1, 1 << 19).value_or(1);
  std::size_t most = memory_limit();
  std::size_t share = most / static_cast<std::size_t>(neighbours) / 2;
  std::size_t segment = whole_pages(asked.value_or(std::min(share, std::size_t{1} << 30)));
  if (segment + heap_slack > most)
    raise<allocation_error>(
        "a segment of ", segment, " bytes (", human_size(static_cast<double>(segment)),
        ") was asked for each rank, but this machine has ", human_size(static_cast<double>(most)),
        " in all. Ask for less: FARSIDE_SEGMENT=1G, or far::runtime::options::segment.");
  if (!heap || *heap < segment + heap_slack) {
    unsetenv(old_heap_variable);
    setenv(heap_variable, std::to_string(segment + heap_slack).c_str(), 1);
  }
  return segment;
}

/// OpenSHMEM makes its heap as shared memory of System V that all users of the group may write.
/// From here on only this user may. (`farside run` sees to it earlier, by its guard; this is for
/// plain `oshrun`.)
inline void make_heap_private() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // address permissions offset device shmid /SYSVkey
    int id = 0;
    if (line.find(" /SYSV") == std::string::npos ||
        std::sscanf(line.c_str(), "%*s %*s %*s %*s %d", &id) != 1)
      continue;
    shmid_ds info{};
    if (shmctl(id, IPC_STAT, &info) != 0 || (info.shm_perm.mode & 077) == 0) continue;
    info.shm_perm.mode &= 0700;
    shmctl(id, IPC_SET,
           &info);  // fails for what another user has made, which is not ours to change
  }
}

/// Open MPI finalizes at exit, and that waits for all ranks. A rank that exits early, by
/// std::exit or an exception that main caught, must not hang there but end, for the launcher to
/// see.
inline void leave_at_once(int status, void*) {
  if (process_life() != life::running) return;
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::shmem_backend

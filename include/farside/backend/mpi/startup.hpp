// What the MPI library of this process is told before it starts, what it can be asked while it
// runs, and how the process leaves without it.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/give_way.hpp>

#include <mpi.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Whether a request is done; does not yield inside of the library if it is not.
inline bool is_done(MPI_Request& request) {
  job_board::looks_without_yields quietly;
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

/// Completes a request without keeping the core from a rank it waits for: MPICH's own waits do not
/// yield, and with 7 ranks on 2 cores cost a time slice each. `look` is called once a round.
template <class Look>
void wait_politely(MPI_Request& request, Look&& look) {
  constexpr int spins = 100;
  for (int round = 0; !is_done(request); ++round) {
    if (round < spins) continue;
    look();
    give_way();
  }
}

inline void wait_politely(MPI_Request& request) {
  wait_politely(request, [] {});
}

inline std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

inline bool mpi_is_initialized() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag != 0;
}

inline bool mpi_is_finalized() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

#if defined(OPEN_MPI)
inline constexpr const char* mpi_library = "Open MPI";
inline constexpr const char* other_launchers =
    ", with Open MPI's mpirun, or with 'srun --mpi=pmix' where Slurm has it";
#elif defined(MPICH_VERSION)
inline constexpr const char* mpi_library = "MPICH";
inline constexpr const char* other_launchers =
    ", with MPICH's mpiexec, or with 'srun --mpi=pmi2' where both know it";
#else
inline constexpr const char* mpi_library = "this MPI";
inline constexpr const char* other_launchers = ", or with the mpiexec of the MPI it is built with";
#endif

inline void refuse_to_be_alone(const std::optional<job::foreign_start>& start) {
  refuse_separate_jobs(mpi_library, start,
                       "MPI is told of none of them, so that launcher and " +
                           std::string(mpi_library) + " do not know each other",
                       other_launchers);
}

inline const char* thread_level_name(int level) {
  if (level == MPI_THREAD_MULTIPLE) return "MPI_THREAD_MULTIPLE";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  return level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE";
}

// Open MPI 4 prefers its window component `osc rdma`, whose compare-and-swap crashes the program
// (a segmentation fault on one node with 4.1.4). Version 5 has no `osc pt2pt` to fall back on and
// is left alone.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#define FARSIDE_MPI_AVOIDS_OSC_RDMA 1
#else
#define FARSIDE_MPI_AVOIDS_OSC_RDMA 0
#endif

/// Whether a value of Open MPI's parameter `osc` ("sm,ucx", "^rdma", "") lets `component` be used.
inline bool allows_osc(std::string_view value, const std::string& component) {
  bool excludes = value.starts_with('^');
  std::string list = "," + std::string(value.substr(excludes ? 1 : 0)) + ",";
  bool named = list.find("," + component + ",") != std::string::npos;
  return excludes ? !named : named || value.empty();
}

/// Before MPI_Init: keeps Open MPI from choosing `osc rdma`, so that a plain `mpirun ./program`
/// works. A choice of the user that names rdma stays, and is refused when a window is needed.
inline void avoid_osc_rdma() {
  if constexpr (!FARSIDE_MPI_AVOIDS_OSC_RDMA) return;
  auto value = setting("OMPI_MCA_osc").value_or("");
  if (value.empty()) setenv("OMPI_MCA_osc", "^rdma", 1);
  if (value.starts_with('^') && allows_osc(value, "rdma"))
    setenv("OMPI_MCA_osc", (value + ",rdma").c_str(), 1);
}

/// Whether this node has a network that reads and writes memory by itself: Linux lists InfiniBand,
/// RoCE, Omni-Path and EFA in one folder.
inline bool has_rdma() {
  std::error_code ignored;
  return std::filesystem::directory_iterator("/sys/class/infiniband", ignored) !=
         std::filesystem::directory_iterator();
}

/// Before MPI_Init, for windows on nodes without RDMA: `osc pt2pt` of Open MPI 4 before `osc ucx`.
/// For an atomic ucx locks its target by a compare-and-swap through the network, again and again
/// until it succeeds, and unlocks it by another one; pt2pt sends one message, which the target
/// answers. pt2pt refuses several threads, so ucx stays for these, and where it is named.
inline void prefer_osc_pt2pt() {
  if constexpr (FARSIDE_MPI_AVOIDS_OSC_RDMA)
    if (!has_rdma()) setenv("OMPI_MCA_osc_ucx_priority", "1", 0);
}

/// Before MPI_Init, for strategies by messages: with more ranks than cores Open MPI yields in every
/// MPI_Test that finds nothing. On Linux 6.18 a yield gives away a time slice, so that with 3 ranks
/// on 2 cores an answer took 3 ms instead of some microseconds. Our waits nap by themselves, later,
/// so there is no use for a choice of the user.
inline void avoid_yields() {
#ifdef OPEN_MPI
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
#endif
}

/// The bytes of a parameter of the MPI library (Open MPI: an MCA parameter), wherever it was set:
/// environment, command line or file. All zero if there is none.
inline std::vector<char> library_parameter(const char* name) {
  std::vector<char> value(4096, '\0');
  int provided = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return value;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    value.resize(value.size() + static_cast<std::size_t>(std::max(count, 0)), '\0');
    if (MPI_T_cvar_read(handle, value.data()) != MPI_SUCCESS) value.assign(value.size(), '\0');
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value;
}
inline std::string library_setting(const char* name) { return library_parameter(name).data(); }
inline unsigned library_number(const char* name) {
  unsigned number;
  std::memcpy(&number, library_parameter(name).data(), sizeof number);
  return number;
}

/// For processes that end without MPI_Finalize. The daemon of MPICH's mpiexec takes a connection
/// that closes for a crash, kills the other processes of its host, and mpiexec prints BAD
/// TERMINATION. This is what MPI_Finalize would tell it (a line of PMI version 1, which MPICH
/// before 4.1 speaks), after which it expects nothing more. Without such a daemon there is no
/// PMI_FD, and nothing to do.
inline void take_leave_of_mpiexec() {
  auto fd = integer_setting("PMI_FD", 0, 1 << 20);
  if (!fd) return;
  constexpr std::string_view leave = "cmd=finalize\n";
  if (send(static_cast<int>(*fd), leave.data(), leave.size(), MSG_NOSIGNAL) <= 0) return;
  // The answer says that the daemon has read it, before it can see the connection close.
  pollfd answer{static_cast<int>(*fd), POLLIN, 0};
  constexpr int patience_ms = 2000;
  poll(&answer, 1, patience_ms);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

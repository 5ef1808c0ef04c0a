// How ARMCI begins and ends, and how MPI does in a program that has it.
#include "handles.hpp"
#include "library.hpp"
#include "mutexes.hpp"

#include <cstdio>
#include <cstdlib>

namespace armci {

std::unique_ptr<library> the_library;

namespace {

using far::detail::mpi_backend::strategy;

std::uint64_t libraries = 0;  ///< so far: an order belongs to one of them
bool took_processes = false;  ///< progress_rank has had its processes

void check_strategy() {
  strategy how = far::detail::mpi_backend::chosen_strategy();
  if (how == strategy::two_sided)
    raise(
        "FARSIDE_MPI=two_sided serves others only in calls of the library, and a program of ARMCI "
        "also waits in calls of MPI. Use rma, progress_thread, progress_rank or spawned.");
  if (how == strategy::progress_rank && std::exchange(took_processes, true))
    raise(
        "FARSIDE_MPI=progress_rank has lent its processes to the first ARMCI_Init, and they have "
        "gone with its ARMCI_Finalize. Start ARMCI once, or use progress_thread.");
}

/// What the mpi back end tells MPI before it starts (backend/mpi/startup.hpp), and the level of
/// threads that the strategy needs.
int prepare_mpi(int level) {
  using namespace far::detail::mpi_backend;
  if (is_spawned_server()) return level;
  strategy how = chosen_strategy();
  avoid_osc_rdma();
  if (how == strategy::rma && level < MPI_THREAD_MULTIPLE) prefer_osc_pt2pt();
  if (how != strategy::rma) avoid_yields();
  return how == strategy::progress_thread ? MPI_THREAD_MULTIPLE : level;
}

bool finalize_may_hang = false;  ///< MPICH before 4.1, on several hosts (backend/mpi/session.hpp)

/// Collective over all processes.
void look_at_hosts() {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
  MPI_Comm node;
  int here = 0, all = 0, one_node = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &here);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  MPI_Comm_free(&node);
  int mine = here == all ? 1 : 0;
  MPI_Allreduce(&mine, &one_node, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  finalize_may_hang = one_node == 0;
#endif
}

int start(const char* name, int level, MPI_Comm over) {
  return call(name, [&] {
    if (the_library) return ++the_library->starts, 0;
    int started = 0;
    MPI_Initialized(&started);
    if (!started) MPI_Init(nullptr, nullptr);
    check_strategy();
    auto threads =
        level == MPI_THREAD_MULTIPLE ? far::thread_level::multiple : far::thread_level::single;
    ++libraries;
    the_library = std::make_unique<library>(threads, over);
    return 0;
  });
}

}  // namespace

library::library(far::thread_level threads, MPI_Comm over)
    : runtime_(std::make_unique<far::runtime>(
          over, far::runtime::options{.threads = threads, .may_keep_processes = true})) {
  auto& link = far::detail::here().link;
  world_.team = far::world();
  MPI_Comm_dup(link.communicator(), &world_.comm);
  world_.rank = static_cast<int>(far::rank());
  for (far::rank_t i = 0; i < far::nprocs(); ++i) world_.members.push_back(static_cast<int>(i));
  groups.insert(&world_);
  default_group = &world_;
  auto mine = reinterpret_cast<std::uintptr_t>(link.address(far::rank(), 0));
  starts_ = far::all_gather(mine);
  segment_ = link.segment_size();
  first_ = far::detail::null_guard;
  coherent_ = link.coherent();
}

library::~library() {
  MPI_Comm_free(&world_.comm);
  world_.team = {};
}

far::in_order& library::order() {
  thread_local std::unique_ptr<far::in_order> mine;
  thread_local std::uint64_t of = 0;
  if (of != libraries) [[unlikely]] {
    mine = std::make_unique<far::in_order>();
    of = libraries;
  }
  return *mine;
}

void library::refuse(const void* address, int process, std::ptrdiff_t bytes) const {
  char where[32];
  std::snprintf(where, sizeof where, "%p", address);
  raise(bytes, " bytes at ", where, " are no memory of process ", process,
        " that others reach. Use addresses that ARMCI_Malloc has given for that process, and stay "
        "within what was asked for.");
}

void end_job(const char* name, const char* why, int code) {
  std::string line = far::text(name, ": ", why);
  bool told = false;
  int rank = 0, started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  bool mpi = started && !ended;
  if (mpi) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (the_library) {
    rank = the_library->rank();
    told = the_library->runtime().fail(line.c_str());
  }
  if (!told) std::fprintf(stderr, "farside_armci: process %d: %s\n", rank, line.c_str());
  std::fflush(nullptr);
  if (mpi) MPI_Abort(MPI_COMM_WORLD, code == 0 ? 1 : code);
  std::_Exit(code == 0 ? 1 : code);
}

void end_library() {
  if (!the_library) return;
  finish_handles();
  forget_mutexes();
  the_library->order().flush();
  the_library.reset();
}

}  // namespace armci

extern "C" {

int PARMCI_Init() { return armci::start("ARMCI_Init", MPI_THREAD_SINGLE, MPI_COMM_WORLD); }
int PARMCI_Init_args(int*, char***) {
  return armci::start("ARMCI_Init_args", MPI_THREAD_SINGLE, MPI_COMM_WORLD);
}
int PARMCI_Init_thread(int level) {
  return armci::start("ARMCI_Init_thread", level, MPI_COMM_WORLD);
}
int PARMCI_Init_thread_comm(int level, MPI_Comm comm) {
  return armci::start("ARMCI_Init_thread_comm", level, comm);
}
int PARMCI_Initialized() { return armci::the_library ? 1 : 0; }

/// GA_Terminate ends ARMCI, and programs do so after it: nothing to end is no mistake.
int PARMCI_Finalize() {
  return armci::call("ARMCI_Finalize", [] {
    if (armci::the_library && --armci::the_library->starts == 0) armci::end_library();
    return 0;
  });
}

void ARMCI_Cleanup() { PARMCI_Finalize(); }

void ARMCI_Error(const char* message, int code) {
  std::string why = far::text(message == nullptr ? "" : message, " (code ", code, ")");
  armci::end_job("ARMCI_Error", why.c_str(), code);
}

// Programs start MPI themselves. These see to it that it starts as the strategy needs it; the
// Fortran names come here, too, as MPI's own would pass these by.

int MPI_Init(int* argc, char*** argv) {
  int provided = 0;
  return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  int level = armci::call("MPI_Init", [&] { return armci::prepare_mpi(required); });
  int code = PMPI_Init_thread(argc, argv, level, provided);
  if (code == MPI_SUCCESS) armci::look_at_hosts();
  return code;
}

/// A program that forgets ARMCI_Finalize ends nevertheless. Where MPI would hang, this process only
/// tells the launcher that it ends.
int MPI_Finalize() {
  armci::call("MPI_Finalize", [] { armci::end_library(); });
  if (armci::finalize_may_hang) {
    far::detail::mpi_backend::take_leave_of_mpiexec();
    return MPI_SUCCESS;
  }
  return PMPI_Finalize();
}

void mpi_init_(MPI_Fint* error) { *error = MPI_Init(nullptr, nullptr); }
void mpi_init_thread_(MPI_Fint* required, MPI_Fint* provided, MPI_Fint* error) {
  int level = 0;
  *error = MPI_Init_thread(nullptr, nullptr, *required, &level);
  *provided = level;
}
void mpi_finalize_(MPI_Fint* error) { *error = MPI_Finalize(); }

}  // extern "C"

FARSIDE_ARMCI_NAME(Init)
FARSIDE_ARMCI_NAME(Init_args)
FARSIDE_ARMCI_NAME(Init_thread)
FARSIDE_ARMCI_NAME(Init_thread_comm)
FARSIDE_ARMCI_NAME(Initialized)
FARSIDE_ARMCI_NAME(Finalize)

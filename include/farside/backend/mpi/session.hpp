// The MPI library of this process: starting and ending it, the communicator of the job, and which
// of its ranks are on this node and alive.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/core/environment.hpp>
#include <farside/core/error.hpp>
#include <farside/detail/board.hpp>
#include <farside/detail/shared_memory.hpp>

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Completes a request without keeping the core from a rank it waits for: MPICH's own waits do not
/// yield, and with 7 ranks on 2 cores cost a time slice each. `look` is called once a round.
template <class Look>
void wait_politely(MPI_Request& request, Look&& look) {
  constexpr int spins = 100;
  for (int done = 0, round = 0;; ++round) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    if (round < spins) continue;
    look();
    sched_yield();
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

/// Whether a value of Open MPI's parameter `osc` ("sm,ucx", "^rdma", "") lets rdma be used.
inline bool allows_osc_rdma(std::string_view value) {
  bool excludes = value.starts_with('^');
  std::string list = "," + std::string(value.substr(excludes ? 1 : 0)) + ",";
  bool named = list.find(",rdma,") != std::string::npos;
  return excludes ? !named : named || value.empty();
}

/// Before MPI_Init: keeps Open MPI from choosing `osc rdma`, so that a plain `mpirun ./program`
/// works. A choice of the user that names rdma stays, and is refused when a window is needed.
inline void avoid_osc_rdma() {
  if constexpr (!FARSIDE_MPI_AVOIDS_OSC_RDMA) return;
  auto value = setting("OMPI_MCA_osc").value_or("");
  if (value.empty()) setenv("OMPI_MCA_osc", "^rdma", 1);
  if (value.starts_with('^') && allows_osc_rdma(value))
    setenv("OMPI_MCA_osc", (value + ",rdma").c_str(), 1);
}

/// Value of a text parameter of the MPI library (Open MPI: an MCA parameter), wherever it was set:
/// environment, command line or file. Empty if there is none.
inline std::string library_setting(const char* name) {
  std::string value;
  int provided = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return value;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    std::vector<char> text(static_cast<std::size_t>(std::max(count, 0)) + 4096, '\0');
    if (MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS) value = text.data();
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value;
}

/// A process of this node. The start time tells it from a later one with the same number.
struct process {
  std::uint64_t rank, pid, started;

  /// State and start time of a process as /proc tells; 'X' if there is none.
  static std::pair<char, std::uint64_t> look_up(std::uint64_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(in, line);
    auto name_end = line.rfind(')');  // the name may hold blanks and brackets
    if (name_end == std::string::npos) return {'X', 0};
    std::istringstream rest(line.substr(name_end + 1));
    char state = 'X';
    rest >> state;
    std::uint64_t started = 0;
    std::string skipped;
    for (int field = 4; field < 22; ++field) rest >> skipped;
    rest >> started;
    return {state, started};
  }

  static process self(rank_t rank) {
    auto pid = static_cast<std::uint64_t>(getpid());
    return {rank, pid, look_up(pid).second};
  }

  /// A zombie counts as gone: not every launcher reaps at once.
  bool alive() const {
    auto [state, since] = look_up(pid);
    return state != 'X' && state != 'Z' && since == started;
  }
};

class session {
 public:
  /// Collective over `parent`.
  session(const start_options& options, MPI_Comm parent);
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  MPI_Comm comm() const { return comm_; }
  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  rank_t node_ranks() const { return node_ranks_; }
  bool one_node() const { return one_node_; }  ///< all ranks are here
  bool multiple_threads() const { return multiple_threads_; }
  /// FARSIDE_MPI_STRICT, of any rank: nothing beyond the MPI standard, see window.hpp.
  bool strict() const { return strict_; }
  /// More ranks on this node than cores: whoever waits must let others run.
  bool crowded() const { return node_ranks_ > usable_cores(); }

  /// The least of what all ranks give; below 2^63, as MPICH 4.0 compares as if signed. Collective.
  std::uint64_t least(std::uint64_t mine) const {
    std::uint64_t result = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &result, 1, MPI_UINT64_T, MPI_MIN, comm_, &request);
    wait_politely(request);
    return result;
  }

  /// Whether `mine` holds on every rank. Collective.
  bool all(bool mine) const { return least(mine ? 1 : 0) == 1; }

  void barrier() const {
    MPI_Request request;
    MPI_Ibarrier(comm_, &request);
    wait_politely(request);
  }

  std::int64_t lost_rank();

  /// Waits for all ranks to come to the end, or for one to have died. Collective.
  void gather_to_finish();
  /// Frees the communicator, and ends MPI if this session began it. Collective.
  void finish();
  [[noreturn]] void abort() {
    if (mpi_is_initialized() && !mpi_is_finalized())
      MPI_Abort(comm_ != MPI_COMM_NULL ? comm_ : MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }

 private:
  void start_mpi(const start_options& options);
  void meet_node();

  MPI_Comm comm_ = MPI_COMM_NULL;
  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
  rank_t node_ranks_ = 1;
  bool multiple_threads_ = false;
  bool strict_ = false;
  bool owns_mpi_ = false;
  bool one_node_ = true;
  std::vector<process> neighbours_;  ///< the other ranks of this node; empty if they are hidden
  std::atomic<std::uint64_t> next_look_ = 0;
  std::atomic<std::int64_t> lost_ = -1;
};

inline session::session(const start_options& options, MPI_Comm parent)
    : multiple_threads_(options.threads == thread_level::multiple) {
  start_mpi(options);
  MPI_Comm_dup(parent, &comm_);
  int value = 0;
  MPI_Comm_rank(comm_, &value);
  rank_ = static_cast<rank_t>(value);
  MPI_Comm_size(comm_, &value);
  nprocs_ = static_cast<rank_t>(value);
  strict_ = !all(!switch_setting("FARSIDE_MPI_STRICT", false));
  meet_node();
}

inline void session::start_mpi(const start_options& options) {
  if (mpi_is_finalized())
    raise(
        "a far::runtime was started after MPI_Finalize, and MPI cannot be started twice. Keep one "
        "far::runtime for the whole program, or call MPI_Init and MPI_Finalize yourself around "
        "all of them.");
  int provided = MPI_THREAD_SINGLE;
  if (!mpi_is_initialized()) {
    avoid_osc_rdma();
    // Other threads of the program may exist, so MPI_THREAD_SINGLE would promise too much.
    int wanted = multiple_threads_ ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
    MPI_Init_thread(options.argc, options.argv, wanted, &provided);
    owns_mpi_ = true;
    if (multiple_threads_ && provided < MPI_THREAD_MULTIPLE)
      raise(
          "the far::runtime was asked for thread_level::multiple, but this MPI library provides "
          "only ",
          thread_level_name(provided),
          ". Use an MPI library built with thread support, or thread_level::single.");
    return;
  }
  MPI_Query_thread(&provided);
  if (multiple_threads_ && provided < MPI_THREAD_MULTIPLE)
    raise(
        "the far::runtime was asked for thread_level::multiple, but the program has initialised "
        "MPI with ",
        thread_level_name(provided),
        ". Call MPI_Init_thread with MPI_THREAD_MULTIPLE, or ask for thread_level::single.");
}

inline void session::meet_node() {
  MPI_Comm node;
  MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, static_cast<int>(rank_), MPI_INFO_NULL, &node);
  int size = 0;
  MPI_Comm_size(node, &size);
  node_ranks_ = static_cast<rank_t>(size);
  one_node_ = all(node_ranks_ == nprocs_);
  process self = process::self(rank_);
  neighbours_.resize(node_ranks_);
  constexpr int words = sizeof(process) / sizeof(std::uint64_t);
  MPI_Request request;
  MPI_Iallgather(&self, words, MPI_UINT64_T, neighbours_.data(), words, MPI_UINT64_T, node,
                 &request);
  wait_politely(request);
  MPI_Comm_free(&node);
  std::erase_if(neighbours_, [&](const process& p) { return p.rank == rank_; });
  // In another process namespace, or with a /proc that hides them, nothing can be watched.
  if (!std::ranges::all_of(neighbours_, [](const process& p) { return p.alive(); }))
    neighbours_.clear();
}

/// A rank of this node that has died, or -1; looks every 500 ms. MPICH's mpiexec needs this: it
/// does not end a job in which a rank left with _exit(0).
///
/// No rank is taken for lost that merely finished first: gather_to_finish() holds every rank until
/// all are beyond asking, so whoever is gone while another rank still asks has died.
inline std::int64_t session::lost_rank() {
  constexpr std::uint64_t interval_ns = 500'000'000;
  std::uint64_t now = job::monotonic_ns();
  if (now >= next_look_.load(std::memory_order_relaxed)) {
    next_look_.store(now + interval_ns, std::memory_order_relaxed);
    for (const process& p : neighbours_)
      if (!p.alive()) lost_.store(static_cast<std::int64_t>(p.rank), std::memory_order_relaxed);
  }
  return lost_.load(std::memory_order_relaxed);
}

// Two barriers: a rank can only leave the second after every rank has left the first, and only
// the first looks for the dead.
inline void session::gather_to_finish() {
  if (mpi_is_finalized())
    raise(
        "MPI_Finalize was called before the far::runtime ended. End the runtime first: let it go "
        "out of scope before MPI_Finalize.");
  MPI_Request request;
  MPI_Ibarrier(comm_, &request);
  wait_politely(request, [&] {
    if (auto lost = lost_rank(); lost >= 0)
      raise<rank_failure>("rank ", rank_, " waits for all ranks to end, but rank ", lost,
                          " is gone: it exited without ending its far::runtime. Let every rank "
                          "return from main, and look for a call of exit or _exit on that rank.");
  });
  barrier();
}

// MPICH before 4.1 hangs in MPI_Finalize in about every third run over TCP. All is over by then:
// the processes can go without it. A program that has initialised MPI itself has to look after
// that.
inline void session::finish() {
  MPI_Comm_free(&comm_);
  bool may_hang = false;
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
  may_hang = !one_node_;
#endif
  if (owns_mpi_ && !may_hang) MPI_Finalize();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

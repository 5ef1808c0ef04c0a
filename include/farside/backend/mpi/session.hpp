// The MPI library of this process: starting and ending it, the communicators of the job, who of it
// serves others (strategy.hpp), and which of its ranks are on this node and alive.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/mpi/strategy.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/error.hpp>
#include <farside/base/job_board.hpp>

#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
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
/// answers. pt2pt refuses several threads, so ucx stays for these, and for who names it.
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

/// For who ends without MPI_Finalize. The daemon of MPICH's mpiexec takes a connection that closes
/// for a crash, kills the other processes of its host, and mpiexec prints BAD TERMINATION. This is
/// what MPI_Finalize would tell it (a line of PMI version 1, which MPICH before 4.1 speaks), after
/// which it expects nothing more. Without such a daemon there is no PMI_FD, and nothing to do.
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

/// What every process knows of every other one. All are words, so that MPI can move them.
struct seat {
  std::uint64_t node;    ///< counted from 0
  std::uint64_t group;   ///< of its node: those whom one server serves
  std::uint64_t serves;  ///< 1: a server; 0: a rank of the program
  std::uint64_t rank;    ///< as far::rank() says; servers have the numbers after the last rank
  std::uint64_t pid, started;
};

class session {
 public:
  /// Collective over `parent`.
  session(const start_options& options, MPI_Comm parent);
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  const strategy_settings& settings() const { return settings_; }
  MPI_Comm comm() const { return comm_; }    ///< the ranks of the program
  MPI_Comm whole() const { return whole_; }  ///< those, and who serves them
  bool serves() const { return serves_; }    ///< this process is not a rank of the program
  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  rank_t node_ranks() const { return node_ranks_; }  ///< ranks of the program on this node
  bool one_node() const { return one_node_; }  ///< all processes are, whatever is taken for a node
  bool multiple_threads() const { return multiple_threads_; }
  /// FARSIDE_MPI_STRICT, of any rank: nothing beyond the MPI standard, see window.hpp.
  bool strict() const { return strict_; }
  /// More ranks on this node than cores: whoever waits must let others run.
  bool oversubscribed(rank_t threads = 1) const {
    return node_processes_ * threads > usable_cores();
  }

  /// The least of what all ranks give; below 2^63, as MPICH 4.0 compares as if signed. Collective.
  std::uint64_t least(std::uint64_t mine) const { return least(mine, comm_); }
  static std::uint64_t least(std::uint64_t mine, MPI_Comm of) {
    std::uint64_t result = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &result, 1, MPI_UINT64_T, MPI_MIN, of, &request);
    wait_politely(request);
    return result;
  }

  /// Whether `mine` holds on every rank. Collective.
  bool all(bool mine) const { return least(mine ? 1 : 0) == 1; }
  bool all_of_whole(bool mine) const { return least(mine ? 1 : 0, whole_) == 1; }

  /// Who is where, by the ranks of whole(). Collective over whole().
  std::vector<seat> seats();
  /// Makes the servers of strategy::spawned, which join whole() (spawn.hpp). Collective.
  void spawn();

  void barrier() const {
    MPI_Request request;
    MPI_Ibarrier(comm_, &request);
    wait_politely(request);
  }

  std::int64_t lost_rank();

  /// Waits for all ranks to come to the end, or for one to have died; calls `look` meanwhile.
  /// Collective.
  template <class Look>
  void gather_to_finish(Look&& look);
  /// Lets those leave who only serve: nobody has anything to ask any more (server_process.hpp).
  void release_servers() const {
    if (comm_ == whole_) return;
    MPI_Request request;
    MPI_Ibarrier(whole_, &request);
    wait_politely(request);
  }
  /// Frees the communicators, and ends MPI if this session began it. Collective.
  void finish();
  /// MPICH 4.0 over TCP: then MPI is left as it is, and the process just ends.
  bool finalize_may_hang() const {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    return !one_node_;
#else
    return false;
#endif
  }
  [[noreturn]] void abort() {
    if (mpi_is_initialized() && !mpi_is_finalized())
      MPI_Abort(whole_ != MPI_COMM_NULL ? whole_ : MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }

 private:
  void start_mpi(const start_options& options);
  int wanted_level() const {
    if (multiple_threads_ || settings_.how == strategy::progress_thread) return MPI_THREAD_MULTIPLE;
    return MPI_THREAD_FUNNELED;  // other threads of the program may exist
  }
  void check_level(int provided) const;
  void agree() const;
  MPI_Comm split_nodes();
  void split_off_servers(MPI_Comm node);
  void meet_node(MPI_Comm node);
  void join_spawned();  // spawn.hpp
  /// In another process namespace, or with a /proc that hides them, nothing can be watched.
  void forget_hidden_neighbours() {
    if (!std::ranges::all_of(neighbours_, [](const process& p) { return p.alive(); }))
      neighbours_.clear();
  }

  strategy_settings settings_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm whole_ = MPI_COMM_NULL;
  MPI_Comm spawners_ = MPI_COMM_NULL;  ///< spawned: between the ranks and their servers
  bool serves_ = false;
  std::uint64_t node_ = 0;  ///< the least rank in whole() of this node, before any were spawned
  std::uint64_t group_ = 0;
  rank_t node_processes_ = 1;  ///< that share this machine's cores
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

/// The last argument of a process that strategy::spawned has made.
inline constexpr const char* server_mark = "farside-server";

/// May be asked before main: the arguments are the kernel's.
inline bool is_spawned_server() {
  static const bool answer = [] {
    std::ifstream in("/proc/self/cmdline");
    std::string word, last;
    while (std::getline(in, word, '\0')) last = word;
    return last == server_mark;
  }();
  return answer;
}

inline strategy_settings settings_of_process() {
  if (!is_spawned_server()) return strategy_settings::read();
  strategy_settings result;
  result.how = strategy::spawned;
  return result;
}

inline session::session(const start_options& options, MPI_Comm parent)
    : settings_(settings_of_process()),
      multiple_threads_(options.threads == thread_level::multiple) {
  start_mpi(options);
  if (is_spawned_server()) {
    join_spawned();
    return;
  }
  MPI_Comm_dup(parent, &whole_);
  agree();
  MPI_Comm node = split_nodes();
  if (settings_.how == strategy::progress_rank)
    split_off_servers(node);
  else
    comm_ = whole_;
  int value = 0;
  MPI_Comm_rank(comm_, &value);
  rank_ = static_cast<rank_t>(value);
  MPI_Comm_size(comm_, &value);
  nprocs_ = static_cast<rank_t>(value);
  strict_ = least(!switch_setting("FARSIDE_MPI_STRICT", false), whole_) == 0;
  meet_node(node);
  MPI_Comm_free(&node);
  if (!owns_mpi_ && rank_ == 0 && !serves_ && finalize_may_hang())
    std::fprintf(
        stderr,
        "farside: MPI_Finalize of this MPICH (4.0) hangs now and then on several hosts, and "
        "this program calls it itself. Let far::runtime start MPI, which then ends without "
        "it; or use Open MPI.\n");
}

inline void session::check_level(int provided) const {
  if (provided >= wanted_level() || wanted_level() == MPI_THREAD_FUNNELED) return;
  const char* asks = multiple_threads_ ? "the far::runtime was asked for thread_level::multiple"
                                       : "FARSIDE_MPI=progress_thread needs MPI_THREAD_MULTIPLE";
  const char* instead = multiple_threads_ ? "thread_level::single" : "FARSIDE_MPI=two_sided";
  if (owns_mpi_)
    raise(asks, ", but this MPI library provides only ", thread_level_name(provided),
          ". Use an MPI library built with thread support, or ", instead, ".");
  raise(asks, ", but the program has initialised MPI with ", thread_level_name(provided),
        ". Call MPI_Init_thread with MPI_THREAD_MULTIPLE, or ask for ", instead, ".");
}

inline void session::start_mpi(const start_options& options) {
  if (mpi_is_finalized())
    raise(
        "a far::runtime was started after MPI_Finalize, and MPI cannot be started twice. Keep one "
        "far::runtime for the whole program, or call MPI_Init and MPI_Finalize yourself around "
        "all of them.");
  int provided = MPI_THREAD_SINGLE, world = 0;
  auto start = job::find_foreign_start();
  if (!mpi_is_initialized()) {
    job::look_for_no_displays();
    avoid_osc_rdma();
    if (!settings_.served() && !multiple_threads_) prefer_osc_pt2pt();
    if (settings_.served()) avoid_yields();
#if defined(OPEN_MPI)
    job::step_without_pmix hidden;
    if (hidden && start) refuse_to_be_alone(start);
#endif
    MPI_Init_thread(options.argc, options.argv, wanted_level(), &provided);
    owns_mpi_ = true;
  } else {
    MPI_Query_thread(&provided);
  }
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  if (world == 1 && !is_spawned_server()) refuse_to_be_alone(start);
  check_level(provided);
  if (settings_.how == strategy::progress_rank && !owns_mpi_)
    raise(
        "FARSIDE_MPI=progress_rank takes some ranks out of the job for good, but this program has "
        "initialised MPI itself and counts on all of them. Use FARSIDE_MPI=spawned, "
        "progress_thread or two_sided, or let far::runtime initialise MPI.");
}

/// All ranks must want the same.
inline void session::agree() const {
  std::uint64_t mine = settings_.packed();
  constexpr std::uint64_t most = ~std::uint64_t{0} >> 1;
  if (least(mine, whole_) != mine || most - least(most - mine, whole_) != mine)
    raise("the ranks of this job have different settings: this one has FARSIDE_MPI=",
          name_of(settings_.how),
          ", another one differs in that or in another FARSIDE_MPI_ variable. Give all of them the "
          "same environment ('farside run' does; mpirun of Open MPI: -x FARSIDE_MPI).");
}

inline MPI_Comm session::split_nodes() {
  int rank = 0, all = 0, here = 0;
  MPI_Comm_rank(whole_, &rank);
  MPI_Comm_size(whole_, &all);
  MPI_Comm node;
  MPI_Comm_split_type(whole_, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &here);
  one_node_ = least(here == all ? 1 : 0, whole_) == 1;
  node_processes_ = static_cast<rank_t>(here);
  if (settings_.node_ranks == 0) return node;
  int index = 0;
  MPI_Comm_rank(node, &index);
  MPI_Comm part;
  MPI_Comm_split(node, index / static_cast<int>(settings_.node_ranks), index, &part);
  MPI_Comm_free(&node);
  return part;
}

/// progress_rank: which processes of this node serve, and communicators of the two kinds.
inline void session::split_off_servers(MPI_Comm node) {
  int index = 0, size = 0, rank = 0;
  MPI_Comm_rank(node, &index);
  MPI_Comm_size(node, &size);
  MPI_Comm_rank(whole_, &rank);
  bool enough = static_cast<rank_t>(size) > settings_.servers;
  if (!enough)
    raise("FARSIDE_MPI=progress_rank with FARSIDE_MPI_PROGRESS_RANKS=", settings_.servers,
          ": this node has ", size, size == 1 ? " process" : " processes",
          ", and none would be left for the program. Start more of them (farside run -n ",
          settings_.servers + 1,
          "), ask for fewer progress ranks, or use FARSIDE_MPI=progress_thread.");
  auto [serves, group] = place_of(static_cast<rank_t>(index), static_cast<rank_t>(size),
                                  settings_.servers, settings_.place);
  serves_ = serves;
  group_ = group;
  MPI_Comm_split(whole_, serves ? 1 : 0, rank, &comm_);
}

inline void session::meet_node(MPI_Comm node) {
  int size = 0, all = 0;
  MPI_Comm_size(node, &size);
  MPI_Comm_size(whole_, &all);
  // Servers have the numbers after the ranks of the program.
  rank_t number = serves_ ? static_cast<rank_t>(all) - nprocs_ + rank_ : rank_;
  process self = process::self(number);
  neighbours_.resize(static_cast<std::size_t>(size));
  constexpr int words = sizeof(process) / sizeof(std::uint64_t);
  MPI_Request request;
  MPI_Iallgather(&self, words, MPI_UINT64_T, neighbours_.data(), words, MPI_UINT64_T, node,
                 &request);
  wait_politely(request);
  int first = 0;
  MPI_Comm_rank(whole_, &first);
  MPI_Ibcast(&first, 1, MPI_INT, 0, node, &request);
  wait_politely(request);
  node_ = static_cast<std::uint64_t>(first);
  rank_t ranks = serves_ ? static_cast<rank_t>(all) - nprocs_ : nprocs_;  // of the program
  node_ranks_ = static_cast<rank_t>(
      std::ranges::count_if(neighbours_, [&](const process& p) { return p.rank < ranks; }));
  std::erase_if(neighbours_, [&](const process& p) { return p.rank == number; });
  forget_hidden_neighbours();
}

inline std::vector<seat> session::seats() {
  int all = 0;
  MPI_Comm_size(whole_, &all);
  rank_t others = static_cast<rank_t>(all) - nprocs_;  // who are not of this process's kind
  process self = process::self(serves_ ? others + rank_ : rank_);
  seat mine{node_, group_, serves_ ? 1u : 0u, self.rank, self.pid, self.started};
  std::vector<seat> result(static_cast<std::size_t>(all));
  constexpr int words = sizeof(seat) / sizeof(std::uint64_t);
  MPI_Request request;
  MPI_Iallgather(&mine, words, MPI_UINT64_T, result.data(), words, MPI_UINT64_T, whole_, &request);
  wait_politely(request);
  std::vector<std::uint64_t> nodes;
  nodes.reserve(result.size());
  for (const seat& s : result) nodes.push_back(s.node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (seat& s : result)
    s.node = static_cast<std::uint64_t>(std::ranges::lower_bound(nodes, s.node) - nodes.begin());
  if (settings_.how == strategy::spawned) {  // they have come after meet_node()
    int me = 0;
    MPI_Comm_rank(whole_, &me);
    neighbours_.clear();
    for (const seat& s : result)
      if (s.node == result[static_cast<std::size_t>(me)].node && s.rank != self.rank)
        neighbours_.push_back({s.rank, s.pid, s.started});
    forget_hidden_neighbours();
  }
  return result;
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
template <class Look>
void session::gather_to_finish(Look&& look) {
  if (mpi_is_finalized())
    raise(
        "MPI_Finalize was called before the far::runtime ended. End the runtime first: let it go "
        "out of scope before MPI_Finalize.");
  MPI_Request request;
  MPI_Ibarrier(comm_, &request);
  wait_politely(request, [&] {
    look();
    if (auto lost = lost_rank(); lost >= 0)
      raise<rank_failure>(
          "rank ", rank_, " waits for all ranks to end, but ",
          lost < nprocs_ ? "rank " : "progress rank ", lost,
          " is gone: it was killed, or exited without ending its far::runtime. Let "
          "every rank return from main, and look for a call of exit or _exit there.");
  });
  MPI_Ibarrier(comm_, &request);
  wait_politely(request, look);
}

/// The merged communicator of spawned servers is freed, and the one it was made of disconnected:
/// with Open MPI 4.1, disconnecting both hangs, and disconnecting none ends in SIGPIPE.
///
/// MPICH before 4.1 hangs in MPI_Finalize in about every third run over TCP. All is over by then:
/// the processes can go without it, and only tell mpiexec so. A program that has initialised MPI
/// itself has to look after that.
inline void session::finish() {
  if (comm_ != whole_) MPI_Comm_free(&comm_);
  MPI_Comm_free(&whole_);
  if (spawners_ != MPI_COMM_NULL) MPI_Comm_disconnect(&spawners_);
  if (!owns_mpi_) return;
  if (finalize_may_hang()) {
    take_leave_of_mpiexec();
  } else {
    job::keep_libraries_loaded();
    MPI_Finalize();
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

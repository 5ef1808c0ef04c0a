// An MPI job as this process sees it: it starts and ends MPI, makes the communicators of the job,
// decides which processes serve others (strategy.hpp), and watches those of its node.
#pragma once

#include <farside/backend/mpi/processes.hpp>
#include <farside/backend/mpi/startup.hpp>
#include <farside/backend/mpi/strategy.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/base/error.hpp>
#include <farside/base/job_board.hpp>

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

class session {
 public:
  /// Collective over `parent`.
  session(const start_options& options, MPI_Comm parent);
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  const strategy_settings& settings() const { return settings_; }
  MPI_Comm comm() const { return comm_; }    ///< the ranks of the program
  MPI_Comm whole() const { return whole_; }  ///< those, and the processes that serve them
  bool serves() const { return serves_; }    ///< this process is not a rank of the program
  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  rank_t node_ranks() const { return node_ranks_; }  ///< ranks of the program on this node
  bool one_node() const { return one_node_; }  ///< all processes are, whatever is taken for a node
  bool multiple_threads() const { return multiple_threads_; }
  /// FARSIDE_MPI_STRICT, of any rank: nothing beyond the MPI standard, see window.hpp.
  bool strict() const { return strict_; }
  /// More ranks on this node than cores: a rank that waits must let others run.
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

  /// Where each process is, by the ranks of whole(). Collective over whole().
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
  /// Lets the servers leave: no rank has anything to ask any more (server_process.hpp).
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
  if (settings_.how == strategy::progress_rank && !owns_mpi_ && !options.may_keep_processes)
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
  if (serves) owns_mpi_ = true;  // it never returns to a program that would end MPI
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
  rank_t others = static_cast<rank_t>(all) - nprocs_;  // of the other kind: servers, or ranks
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
/// all are beyond asking, so a rank that is gone while another one still asks has died.
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

// How far memory by messages is made and ended: the segments of a group of processes in one memfd,
// the communicators, the targets, and the thread of progress_thread.
#pragma once

#include <farside/backend/mpi/node_memory.hpp>
#include <farside/backend/mpi/served/memory.hpp>
#include <farside/backend/mpi/spawn.hpp>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

[[gnu::noinline]] inline bool complete_message_now(pending operation) {
  return operation.messages->test({operation.rank, operation.number});
}
[[gnu::noinline]] inline void complete_message(pending operation) {
  operation.messages->finish({operation.rank, operation.number});
}

namespace served {

/// A group's segments lie in one memfd: which ranks of the program are in it, in order.
inline std::vector<rank_t> members(const std::vector<seat>& seats, const seat& of, bool by_node) {
  std::vector<rank_t> result;
  for (const seat& s : seats)
    if (!s.serves && (by_node ? s.node == of.node : s.rank == of.rank))
      result.push_back(static_cast<rank_t>(s.rank));
  return result;
}

inline void memory::open(session& mpi, const start_options& options) {
  mpi_ = &mpi;
  strict_ = mpi.strict();
  rank_t threads = mpi.settings().how == strategy::progress_thread ? 2 : 1;  // of a process
  limit_.inline_put = mpi.settings().inline_put;
  bool has_servers = mpi.settings().has_servers();
  if (mpi.settings().how == strategy::spawned && !mpi.serves()) mpi.spawn();
  oversubscribed_ =
      mpi.multiple_threads() || mpi.oversubscribed(threads);  // spawned servers count, too
  std::vector<seat> seats = mpi.seats();
  bool may_share = switch_setting("FARSIDE_MPI_SHARED", true) && !strict_;
  may_share = mpi.all_of_whole(may_share || mpi.serves());

  bool by_node = has_servers || may_share;
  if (!map_near(seats, by_node, options)) {
    if (has_servers)
      raise("FARSIDE_MPI=", name_of(mpi.settings().how),
            ": not all processes of a node could open the memory of their ranks in /proc (they "
            "have different users or process namespaces), so nobody can serve it. Use "
            "FARSIDE_MPI=progress_thread or two_sided.");
    by_node = may_share = false;
    if (!map_near(seats, by_node, options)) raise("cannot map the memory of this rank.");
  }
  find_targets(seats, by_node, may_share);
  MPI_Comm_dup(mpi.whole(), &requests_);
  MPI_Comm_dup(mpi.whole(), &answers_);
  client_.open(requests_, answers_, limit_);
  int all = 0;
  MPI_Comm_size(mpi.whole(), &all);
  rank_t number = mpi.serves() ? static_cast<rank_t>(all) - mpi.nprocs() + mpi.rank() : mpi.rank();
  if (!has_servers || mpi.serves()) server_.open(requests_, answers_, near_, limit_, number);
  serves_in_calls_ = mpi.settings().how == strategy::two_sided;
  if (mpi.multiple_threads()) gate_.need();
  if (mpi.settings().how == strategy::progress_thread) begin_thread();
}

/// Maps the segments of this process's group, which its first rank makes; false, for all processes
/// alike, if somebody could not open them.
inline bool memory::map_near(const std::vector<seat>& seats, bool by_node,
                             const start_options& options) {
  int me = 0;
  MPI_Comm_rank(mpi_->whole(), &me);
  const seat& mine = seats[static_cast<std::size_t>(me)];
  std::vector<rank_t> group = members(seats, mine, by_node);
  bool first = !mine.serves && group.front() == mine.rank;
  int fd = first ? memfd_create("farside", MFD_CLOEXEC) : -1;
  memory_offer offer{};
  if (first) offer = offer_memory(fd);
  std::vector<memory_offer> offers(seats.size());
  constexpr int words = sizeof offer / sizeof(std::uint64_t);
  MPI_Request request;
  MPI_Iallgather(&offer, words, MPI_UINT64_T, offers.data(), words, MPI_UINT64_T, mpi_->whole(),
                 &request);
  wait_politely(request);
  if (!first)
    for (std::size_t i = 0; i < seats.size(); ++i)
      if (!seats[i].serves && seats[i].rank == group.front()) fd = accept_memory(offers[i]);
  bool opened = mpi_->all_of_whole(fd >= 0 && (!first || offer.valid));
  if (opened) {
    if (first) {
      std::uint64_t zero = 0;
      if (pwrite(fd, &zero, sizeof zero, 0) != sizeof zero)
        raise("cannot write to this node's memory: ", std::strerror(errno), ".");
    }
    auto size = static_cast<rank_t>(group.size());
    std::size_t wanted = mine.serves ? ~std::size_t{0} >> 1 : choose_segment(options, size);
    std::size_t segment = session::least(wanted, mpi_->whole());
    auto place = std::ranges::find(group, static_cast<rank_t>(mine.rank)) - group.begin();
    near_ = shared_memory(fd, mine.serves ? 0 : static_cast<rank_t>(place), size, segment);
  }
  if (fd >= 0) ::close(fd);
  return opened;
}

inline void memory::find_targets(const std::vector<seat>& seats, bool by_node, bool may_share) {
  rank_t ranks = 0;
  std::uint64_t nodes = 0;
  for (const seat& s : seats) {
    ranks += s.serves ? 0 : 1;
    nodes = std::max(nodes, s.node + 1);
  }
  int me = 0;
  MPI_Comm_rank(mpi_->whole(), &me);
  const seat& mine = seats[static_cast<std::size_t>(me)];
  targets_.resize(ranks);
  reach_.assign(ranks, -1);
  std::vector<std::uint32_t> seen(nodes, 0);  // ranks of each node so far
  for (std::size_t i = 0; i < seats.size(); ++i) {
    const seat& s = seats[i];
    if (s.serves) continue;
    auto process = static_cast<std::uint32_t>(i);
    std::uint32_t local = by_node ? seen[s.node]++ : 0;
    targets_[s.rank] = {process, local};
    if (mine.serves ? false : s.rank == mine.rank || (may_share && s.node == mine.node))
      reach_[s.rank] = static_cast<std::int32_t>(local);
  }
  if (!mpi_->settings().has_servers()) return;
  for (const seat& s : seats) {
    if (s.serves) continue;
    auto serves = [&](const seat& t) { return t.serves && t.node == s.node && t.group == s.group; };
    auto found = std::ranges::find_if(seats, serves);
    targets_[s.rank].server = static_cast<std::uint32_t>(found - seats.begin());
  }
}

inline void memory::close() {
  end_thread();
  while (!client_.idle()) {
    client_.look();
    if (server_.is_open()) serve();
  }
  if (server_.is_open()) server_.close();
  MPI_Comm_free(&requests_);
  MPI_Comm_free(&answers_);
}

/// The thread of a process that leaves by exit() must be gone before MPI's own destructors run.
inline std::atomic<bool>* thread_to_end = nullptr;
inline std::thread* thread_to_join = nullptr;

inline void memory::begin_thread() {
  gate_.need();
  thread_ = std::thread([this] { run_thread(); });
  static const int once = std::atexit([] {
    if (thread_to_end == nullptr) return;
    thread_to_end->store(true);
    if (thread_to_join->joinable()) thread_to_join->join();
  });
  (void)once;
  thread_to_end = &ends_;
  thread_to_join = &thread_;
}

inline void memory::end_thread() {
  if (!thread_.joinable()) return;
  ends_ = true;
  thread_.join();
  thread_to_end = nullptr;
}

/// A rank that waits in the library serves as well: then the lock is taken, and the thread naps.
inline void memory::run_thread() {
  patience rounds(oversubscribed_);
  patience::serve_only();
  while (!ends_.load(std::memory_order_relaxed)) {
    std::unique_lock lock(gate_, std::try_to_lock);
    if (!lock) {
      patience::nap(5 * patience::shortest);
      continue;
    }
    bool worked = server_.serve(requests_a_look) != 0;
    lock.unlock();
    if (worked)
      rounds.worked();
    else
      rounds.rest();
  }
}

}  // namespace served
}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

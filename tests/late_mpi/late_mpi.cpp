// An MPI that does as late as it may what it is asked to do. Preloaded, it stands between a program
// and its MPI, by MPI's own means for that (PMPI):
//
//   put, get, accumulate, atomics   only noted. Sources are not read, and results not written
//   MPI_Win_flush                   all that was noted for that rank is done: gets before puts, the
//                                   last put first, then the atomics in their order
//   MPI_Win_flush_local             results are there, and sources may be changed: puts and
//                                   accumulates are copied, and still not done
//
// All of that is MPI's right, for a program that frees no types and ops meanwhile, whose windows
// have the hint accumulate_ordering=none, and that uses no other synchronisation than passive
// epochs. Within a node the MPIs do nearly all of it at once, so that there a flush that is
// missing, a result that is looked at too early, or a source that is changed too soon goes
// unnoticed; here it does not. Operations with a request, and puts and accumulates of blocks that
// are not contiguous, go to MPI as they are.
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

/// A put, or an accumulate, which has an op.
struct noted_put {
  const void* from;
  int count;
  MPI_Datatype type;
  MPI_Aint to;
  int to_count;
  MPI_Datatype to_type;
  MPI_Op op = MPI_OP_NULL;
  std::vector<char> copy{};  ///< what `from` points to, since a local flush
};

/// For one rank of one window.
struct noted {
  std::vector<std::function<void()>> gets, atomics;
  std::vector<noted_put> puts;
};

std::mutex guard;  // of `all`; no call of MPI is made under it
/// Of flushes: what one thread has taken out, to do it, another one must not miss. Recursive, as
/// some are made of others.
std::recursive_mutex one_at_a_time;
std::map<std::pair<MPI_Win, int>, noted> all;

noted& of(MPI_Win win, int rank) { return all[{win, rank}]; }

/// Bytes, if they are one block.
std::size_t bytes_of(int count, MPI_Datatype type) {
  MPI_Aint begin, extent;
  int size;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &begin, &extent);
  if (begin != 0 || extent != size) return 0;
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

void call(std::vector<std::function<void()>>& operations) {
  for (auto& each : operations) each();
  operations.clear();
}

void put(int rank, MPI_Win win, const noted_put& p) {
  const void* from = p.copy.empty() ? p.from : p.copy.data();
  if (p.op == MPI_OP_NULL)
    PMPI_Put(from, p.count, p.type, rank, p.to, p.to_count, p.to_type, win);
  else
    PMPI_Accumulate(from, p.count, p.type, rank, p.to, p.to_count, p.to_type, p.op, win);
}

/// False: it is not one block.
bool note_put(MPI_Win win, int rank, const noted_put& p) {
  if (p.count != 0 && bytes_of(p.count, p.type) == 0) return false;
  std::lock_guard lock(guard);
  of(win, rank).puts.push_back(p);
  return true;
}

/// Takes what was noted for a rank, to do it without the lock.
noted take(MPI_Win win, int rank) {
  std::lock_guard lock(guard);
  auto found = all.find({win, rank});
  if (found == all.end()) return {};
  noted mine = std::move(found->second);
  all.erase(found);
  return mine;
}

void complete(MPI_Win win, int rank) {
  std::lock_guard alone(one_at_a_time);
  noted mine = take(win, rank);
  call(mine.gets);
  PMPI_Win_flush(rank, win);  // so that none of them sees what is put now
  for (auto p = mine.puts.rbegin(); p != mine.puts.rend(); ++p) put(rank, win, *p);
  call(mine.atomics);
  PMPI_Win_flush(rank, win);
}

void complete_local(MPI_Win win, int rank) {
  std::lock_guard alone(one_at_a_time);
  noted mine = take(win, rank);
  call(mine.gets);
  call(mine.atomics);
  PMPI_Win_flush_local(rank, win);
  for (noted_put& p : mine.puts) {
    if (!p.copy.empty()) continue;
    const char* from = static_cast<const char*>(p.from);
    p.copy.assign(from, from + bytes_of(p.count, p.type));
  }
  if (mine.puts.empty()) return;
  std::lock_guard lock(guard);
  noted& still = of(win, rank);
  still.puts.insert(still.puts.begin(), std::move_iterator(mine.puts.begin()),
                    std::move_iterator(mine.puts.end()));
}

template <class Complete>
void for_each_rank(MPI_Win win, Complete complete_one) {
  std::lock_guard alone(one_at_a_time);
  std::vector<int> ranks;
  {
    std::lock_guard lock(guard);
    for (auto& [key, what] : all)
      if (key.first == win) ranks.push_back(key.second);
  }
  for (int rank : ranks) complete_one(win, rank);
}

template <class Operation>
int note_atomic(MPI_Win win, int rank, Operation operation) {
  std::lock_guard lock(guard);
  of(win, rank).atomics.emplace_back(operation);
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int MPI_Put(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint to, int to_count,
            MPI_Datatype to_type, MPI_Win win) {
  if (note_put(win, rank, {from, count, type, to, to_count, to_type})) return MPI_SUCCESS;
  return PMPI_Put(from, count, type, rank, to, to_count, to_type, win);
}

int MPI_Get(void* to, int count, MPI_Datatype type, int rank, MPI_Aint from, int from_count,
            MPI_Datatype from_type, MPI_Win win) {
  // Whoever looks too early shall see that.
  if (std::size_t bytes = bytes_of(count, type)) std::memset(to, 0xA5, bytes);
  std::lock_guard lock(guard);
  of(win, rank).gets.emplace_back(
      [=] { PMPI_Get(to, count, type, rank, from, from_count, from_type, win); });
  return MPI_SUCCESS;
}

int MPI_Accumulate(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint to,
                   int to_count, MPI_Datatype to_type, MPI_Op op, MPI_Win win) {
  if (note_put(win, rank, {from, count, type, to, to_count, to_type, op})) return MPI_SUCCESS;
  return PMPI_Accumulate(from, count, type, rank, to, to_count, to_type, op, win);
}

int MPI_Get_accumulate(const void* from, int count, MPI_Datatype type, void* old, int old_count,
                       MPI_Datatype old_type, int rank, MPI_Aint to, int to_count,
                       MPI_Datatype to_type, MPI_Op op, MPI_Win win) {
  if (std::size_t bytes = bytes_of(old_count, old_type)) std::memset(old, 0xA5, bytes);
  return note_atomic(win, rank, [=] {
    PMPI_Get_accumulate(from, count, type, old, old_count, old_type, rank, to, to_count, to_type,
                        op, win);
  });
}

int MPI_Fetch_and_op(const void* from, void* old, MPI_Datatype type, int rank, MPI_Aint to,
                     MPI_Op op, MPI_Win win) {
  std::memset(old, 0xA5, bytes_of(1, type));
  return note_atomic(win, rank, [=] { PMPI_Fetch_and_op(from, old, type, rank, to, op, win); });
}

int MPI_Compare_and_swap(const void* from, const void* expected, void* old, MPI_Datatype type,
                         int rank, MPI_Aint to, MPI_Win win) {
  std::memset(old, 0xA5, bytes_of(1, type));
  return note_atomic(win, rank,
                     [=] { PMPI_Compare_and_swap(from, expected, old, type, rank, to, win); });
}

int MPI_Win_flush(int rank, MPI_Win win) {
  complete(win, rank);
  return MPI_SUCCESS;
}
int MPI_Win_flush_all(MPI_Win win) {
  for_each_rank(win, complete);
  return PMPI_Win_flush_all(win);
}
int MPI_Win_flush_local(int rank, MPI_Win win) {
  complete_local(win, rank);
  return MPI_SUCCESS;
}
int MPI_Win_flush_local_all(MPI_Win win) {
  for_each_rank(win, complete_local);
  return PMPI_Win_flush_local_all(win);
}
int MPI_Win_unlock(int rank, MPI_Win win) {
  complete(win, rank);
  return PMPI_Win_unlock(rank, win);
}
int MPI_Win_unlock_all(MPI_Win win) {
  for_each_rank(win, complete);
  return PMPI_Win_unlock_all(win);
}

/// Who leaves something behind must not pass.
int MPI_Finalize() {
  if (!all.empty()) {
    std::fputs("late_mpi: operations were never completed\n", stderr);
    std::abort();
  }
  return PMPI_Finalize();
}
}

// A process that serves and is no rank of the program (progress_rank, spawned): its whole life.
#pragma once

#include <farside/backend/mpi/served/open.hpp>
#include <farside/backend/mpi/served/patience.hpp>
#include <farside/backend/mpi/session.hpp>
#include <farside/base/job_board.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// This process's slot on the launcher's board, or nullptr. Servers are counted from `ranks` on.
inline job::slot* take_server_slot(std::uint64_t ranks, std::uint64_t number) {
  auto path = setting(job::board_variable);
  auto* board = path ? job::board::open(path->c_str()) : nullptr;
  if (board == nullptr) return nullptr;
  auto index = integer_setting(job::slot_variable, 0, board->slots - 1);
  if (!index) return nullptr;
  job::slot& slot = (*board)[static_cast<std::size_t>(*index)];
  slot.rank.store(static_cast<std::uint32_t>(ranks + number));
  slot.world.store(static_cast<std::uint32_t>(ranks));
  slot.waits.store({job::waiting::requests, job::no_rank});
  slot.pid.store(static_cast<std::uint32_t>(getpid()));
  slot.state.store(job::rank_state::running);
  return &slot;
}

/// Serves until all ranks of the program have come to their end, or one has died; then ends this
/// process. The end is a barrier of the whole, which this process has entered at its beginning.
/// `memory` is not open if the ranks share theirs; then there is nothing to serve.
[[noreturn]] inline void serve_and_leave(session& mpi, served::memory& memory) {
  int all = 0;
  MPI_Comm_size(mpi.whole(), &all);
  job::slot* slot = take_server_slot(static_cast<std::uint64_t>(all) - mpi.nprocs(), mpi.rank());
  MPI_Request end;
  MPI_Ibarrier(mpi.whole(), &end);
  served::patience rounds(mpi.oversubscribed());
  served::patience::serve_only();
  std::signal(SIGQUIT, SIG_IGN);  // asks ranks for their stacks
  for (int done = 0; !done;) {
    if (memory.is_open() && memory.serve()) {
      rounds.worked();
      continue;
    }
    MPI_Test(&end, &done, MPI_STATUS_IGNORE);
    if (done || !rounds.rest()) continue;
    if (auto lost = mpi.lost_rank(); lost >= 0) {
      if (slot != nullptr) slot->secondary_failure.store(1);
      std::fprintf(stderr, "a progress rank ends, as rank %lld has died\n",
                   static_cast<long long>(lost));
      std::fflush(nullptr);
      std::_Exit(1);
    }
  }
  if (slot != nullptr) slot->state.store(job::rank_state::finished);
  if (memory.is_open()) memory.close();
  mpi.finish();
  std::exit(0);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

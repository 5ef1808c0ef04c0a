// A rank without a runtime: writes its slot of the board by hand, so that the launcher can be
// tested for what it reads there.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "farside/base/job_board.hpp"

namespace board_rank {

using far::job_board::rank_state;
using far::job_board::waiting;

inline far::job_board::slot* own_slot() {
  const char* path = getenv(far::job_board::board_variable);
  const char* index = getenv(far::job_board::slot_variable);
  if (!path || !index) return nullptr;
  far::job_board::board* board = far::job_board::board::open(path);
  return board ? &(*board)[static_cast<std::size_t>(std::atoi(index))] : nullptr;
}

inline void be_born(far::job_board::slot& own, int rank, int world) {
  own.pid = static_cast<std::uint32_t>(getpid());
  own.rank = static_cast<std::uint32_t>(rank);
  own.world = static_cast<std::uint32_t>(world);
  own.waits = far::job_board::wait{};
  own.state = rank_state::running;
}

inline void wait_for(far::job_board::slot& own, waiting what, std::uint32_t on,
                     std::uint64_t collectives) {
  own.waits = far::job_board::wait{what, on};
  own.waits_since = far::job_board::monotonic_ns();
  own.collectives = collectives;
}

}  // namespace board_rank

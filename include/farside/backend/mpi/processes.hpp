// The processes of an MPI job: which of them are on this node and alive, and what each knows of the
// others.
#pragma once

#include <farside/base/types.hpp>

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

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
  std::uint64_t group;   ///< of its node: the ranks that one server serves
  std::uint64_t serves;  ///< 1: a server; 0: a rank of the program
  std::uint64_t rank;    ///< as far::rank() says; servers have the numbers after the last rank
  std::uint64_t pid, started;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

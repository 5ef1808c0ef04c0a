// Which processes were started together, by somebody else than `farside run`: mpirun, mpiexec,
// srun.
//
// A program that is not told of the others it was started with becomes a job of one rank, and N of
// them become N such jobs, each of which does all of the work. The runtime and the launcher ask
// here and refuse that.
#pragma once

#include <farside/base/job_board.hpp>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace far::job_board {

/// 1: each process that some other launcher starts is meant to be a job of its own.
inline constexpr const char* separate_variable = "FARSIDE_SEPARATE_JOBS";

struct foreign_start {
  std::string launcher;         ///< its name, as far as the environment tells
  std::string evidence;         ///< the variable that says so, with its value
  std::uint64_t processes = 0;  ///< how many it has started together
  bool at_least = false;        ///< there may be more
};

/// A variable that is a whole number; nothing if it is unset or anything else.
inline std::optional<std::uint64_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return {};
  char* end = nullptr;
  std::uint64_t number = std::strtoull(text, &end, 10);
  return *end == '\0' ? std::optional(number) : std::nullopt;
}

/// Whether somebody typed the command in a shell of `srun --pty`. The shell is one of the step's
/// tasks, and what it starts has the variables of a task, but is not one.
inline bool typed_in_a_step() {
  auto task = number_of("SLURM_TASK_PID");
  return std::getenv("SLURM_PTY_PORT") != nullptr && task &&
         *task != static_cast<std::uint64_t>(getpid());
}

/// The others that were started with this process, if there are any and no `farside run` did it.
///
/// Only variables that a launcher gives to each process it starts count. SLURM_NTASKS and the like
/// belong to an allocation: a shell of salloc or a batch script has them, and starts no tasks.
/// mpirun may itself use srun to start its daemons, whose step the ranks inherit: where a variable
/// of an MPI's launcher is set, those of Slurm do not count.
inline std::optional<foreign_start> find_foreign_start() {
  const char* separate = std::getenv(separate_variable);
  if (separate != nullptr && *separate != '\0' && std::string_view(separate) != "0") return {};
  auto found = [](std::string launcher, const char* variable, std::uint64_t processes) {
    return foreign_start{std::move(launcher), std::string(variable) + "=" + std::getenv(variable),
                         processes, false};
  };
  auto step = number_of("SLURM_STEP_NUM_TASKS");
  auto task = number_of("SLURM_PROCID");
  constexpr struct {
    const char *size, *launcher;
  } launchers[] = {{"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                   {"PMI_SIZE", "an mpiexec such as MPICH's"},
                   {"MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"},
                   {"JSM_NAMESPACE_SIZE", "jsrun"}};
  bool told = false;
  for (auto [variable, launcher] : launchers) {
    auto size = number_of(variable);
    if (!size) continue;
    bool from_srun = std::string_view(variable) == "PMI_SIZE" && size == step && task &&
                     number_of("PMI_RANK") == task;  // srun --mpi=pmi2 speaks PMI, too
    if (from_srun) continue;
    told = true;
    if (*size > 1) return found(launcher, variable, *size);
  }
  if (told) return {};
  if (step && task) {
    if (*step < 2 || typed_in_a_step()) return {};
    return found("srun", "SLURM_STEP_NUM_TASKS", *step);
  }
  // PMIx tells a process its rank, and the size only if it asks: the first one cannot know.
  if (auto rank = number_of("PMIX_RANK"); rank && *rank > 0 && *rank < (1u << 31))
    return foreign_start{"a launcher that speaks PMIx", "PMIX_RANK=" + std::to_string(*rank),
                         *rank + 1, true};
  return {};
}

/// How many ranks `farside run` has started this one with; 0 if it has not started it.
inline std::uint32_t ranks_of_launcher() {
  const char* path = std::getenv(board_variable);
  board* shared = path != nullptr && *path != '\0' ? board::open(path) : nullptr;
  if (shared == nullptr) return 0;
  std::uint32_t ranks = shared->slots;
  munmap(shared, board::bytes(ranks));
  return ranks;
}

}  // namespace far::job_board

// Starts that would silently become several jobs of one rank each, or several jobs of N ranks.

#include "wrong_start.hpp"

#include <cstdlib>

#include "farside/base/foreign_start.hpp"
#include "support.hpp"

namespace far::app {

void refuse_wrong_backend(const std::string& program, const std::string& asked, transport how) {
  auto built = noted_transport(program);
  if (!built || *built == how || *built == transport::any) return;
  bool some_mpi = how == transport::openmpi || how == transport::mpich;
  if (*built == transport::other_mpi && some_mpi) return;  // a relative of either: the user knows
  throw error(usage_error,
              "--backend " + asked + ": '" + program + "' is built for " + name_of(*built) +
                  " and can be started as that only: as " + name_of(how) +
                  " each of its ranks would be a job of its own; leave --backend out, or build it "
                  "for farside::any, which runs on every back end");
}

void refuse_several_launchers(const std::string& command, std::uint32_t ranks) {
  if (getenv(far::job_board::board_variable)) return;  // a rank of ours starts a job: it knows why
  auto start = far::job_board::find_foreign_start();
  if (!start) return;
  const std::string name = "farside " + command,
                    once = name + " -n " + std::to_string(ranks) + " ...";
  const bool simulates = command == "sim";
  throw error(
      usage_error,
      "this " + name + " is one of " + std::string(start->at_least ? "at least " : "") +
          std::to_string(start->processes) + " processes that " + start->launcher +
          " has started (" + start->evidence + "), and each of them would " +
          (simulates ? "simulate " : "start a job of ") + counted(ranks, "rank") + "; " + name +
          " is started once, and " + (simulates ? "simulates" : "starts") + " the ranks: " +
          (start->launcher == "srun" ? "srun -n 1 " + once + ", or salloc" : once + " without it") +
          "; where several jobs are meant, set " + far::job_board::separate_variable + "=1");
}

}  // namespace far::app

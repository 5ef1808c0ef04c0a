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

void refuse_several_launchers(std::uint32_t ranks) {
  if (getenv(far::job_board::board_variable)) return;  // a rank of ours starts a job: it knows why
  auto start = far::job_board::find_foreign_start();
  if (!start) return;
  std::string n = std::to_string(ranks);
  throw error(usage_error,
              "this farside run is one of " + std::string(start->at_least ? "at least " : "") +
                  std::to_string(start->processes) + " processes that " + start->launcher +
                  " has started (" + start->evidence + "), and each of them would start a job of " +
                  counted(ranks, "rank") + "; farside run is started once, and starts the ranks: " +
                  (start->launcher == "srun" ? "srun -n 1 farside run -n " + n + " ..., or salloc"
                                             : "farside run -n " + n + " ... without it") +
                  "; where several jobs are meant, set " + far::job_board::separate_variable +
                  "=1");
}

}  // namespace far::app

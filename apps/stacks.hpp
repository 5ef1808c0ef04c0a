// The stacks of ranks, as they have written them to the board, with names and lines.
#pragma once

#include <sys/types.h>

#include <string>

#include "job.hpp"

namespace far::app {

/// The stack in this slot of process `pid`, one line a function, innermost first; empty if the rank
/// has not told it. The process must still live. `all`: with what goes on inside the library.
std::string stack_text(const far::job_board::slot&, pid_t pid, bool all);

/// The stacks of all ranks on this host, each with the ranks that have it.
std::string stacks_report(const job_state&);

}  // namespace far::app

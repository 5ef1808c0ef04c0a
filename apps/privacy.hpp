// Keeps a job to the user who started it, and a job on one host to that host: nothing of it listens
// beyond the loopback interface, and no other user can open the memory that its ranks share.
#pragma once

#include "support.hpp"

namespace far::app {

/// Whether there is a loopback interface to keep a job to. Some containers have none.
bool has_loopback();

/// How much `farside_guard.so` (src/guard) does in the next program that this process executes.
enum class guarded { starter, servers, rank_of_one_host, rank_of_many };

/// Preloads it, for the next program that this process executes. False if it does not lie beside
/// `farside`.
bool preload_guard(guarded);

/// The file, in the job's scratch folder, in which the guard writes down which files ranks have
/// made elsewhere.
std::string guard_list(const std::string& scratch);
/// Removes those that are still there.
void remove_listed_files(const std::string& scratch);

/// UCX has ranks wait for a debugger when they receive SIGHUP, which is how a job ends whose
/// terminal is closed. Not unless the user has chosen a signal for it.
void let_hangups_end_ranks();

/// UCX, by which MPICH and OpenSHMEM communicate, shall use shared memory only, unless the user has
/// chosen. Returns what was set, as NAME=VALUE; empty if nothing.
std::string keep_ucx_off_networks();

}  // namespace far::app

// `farside run`: from options to an exit status.
#pragma once

#include "options.hpp"

namespace far::app {

/// Runs one job to its end; prints why it failed, if it did.
int run_job(run_options options);

int run_command(const arguments& words);
/// `farside __rank`: stands between mpirun and one rank. Not for people.
int supervise_command(const arguments& words);
int doctor_command(const arguments& words);
int bench_command(const arguments& words);
int sim_command(const arguments& words);
/// `farside NAME [-n N] [--backend B] [--timeout T] ARGUMENTS...`: starts the program
/// NAME_<flavour> that comes with farside, on as many ranks as there are cores, or on `ranks` if
/// that is not 0, unless -n says otherwise.
int program_command(const std::string& name, const arguments& words, std::uint32_t ranks = 0);

}  // namespace far::app

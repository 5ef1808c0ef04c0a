// How good is the choice of `automatic`? Small products, each by every algorithm.
#pragma once

#include "options.hpp"

namespace multiply_program {

/// Collective. 40 cases; prints a table, or JSON.
void run_study(const request& asked);

}  // namespace multiply_program

// Limits of this user's processes (ulimit) that a job under mpirun needs room in. An mpirun that
// runs into one hangs more often than it ends.
#pragma once

#include "job.hpp"

namespace far::app {

/// Raises soft limits towards the hard ones as far as the job needs. Throws, and says which limit
/// is too low, if the job cannot start within the hard ones.
void make_room_for(const job_state&);

}  // namespace far::app

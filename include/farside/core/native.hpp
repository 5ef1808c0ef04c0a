// What carries this job, for programs that also call MPI or OpenSHMEM themselves.
//
//   MPI_Comm ranks = far::native().communicator();      // of the mpi back end: the ranks of far::world()
//   bool shared = far::native().coherent();             // whether the CPU's atomics and far atomics agree
#pragma once

#include <farside/core/runtime.hpp>

namespace far::inline FARSIDE_BACKEND {

/// The back end of this job, whose members are those of <farside/backend/NAME/backend.hpp>. `coherent()` is there for
/// every back end; `communicator()` for mpi. What a program does by it, the library does not see: flush before, and
/// use nothing of it once the runtime has ended. Local; no communication.
inline auto& native() { return detail::here().link; }

}  // namespace far::inline FARSIDE_BACKEND

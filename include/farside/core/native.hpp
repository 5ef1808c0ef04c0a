// What lies below: for programs that mix operations of this library with the calls of its
// transport, and for benchmarks that compare them.
#pragma once

#include <farside/core/context.hpp>

namespace far::inline FARSIDE_BACKEND {

/// The back end of this job. It fulfils backend/concept.hpp; what it has beyond that stands in
/// backend/NAME/backend.hpp, as communicator() and raw_window() of mpi. Local; no communication.
inline auto& native() { return detail::here().link; }

/// What serves messages to this rank (far::runtime::options). Local; no communication.
inline attention chosen_attention() { return detail::here().attends; }

}  // namespace far::inline FARSIDE_BACKEND

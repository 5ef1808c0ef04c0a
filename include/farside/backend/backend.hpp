// The back end of this translation unit, under one name.
#pragma once

#include <farside/backend/optional.hpp>

#if defined(FARSIDE_USE_MPI)
#include <farside/backend/mpi/backend.hpp>
#elif defined(FARSIDE_USE_SHMEM)
#include <farside/backend/shmem/backend.hpp>
#elif defined(FARSIDE_USE_SIM)
#include <farside/backend/sim/backend.hpp>
#elif defined(FARSIDE_USE_ANY)
#include <farside/backend/any/backend.hpp>
#else
#include <farside/backend/smp/backend.hpp>
#endif

namespace far::inline FARSIDE_BACKEND::detail {

#if defined(FARSIDE_USE_MPI)
using transport = mpi_backend::backend;
#elif defined(FARSIDE_USE_SHMEM)
using transport = shmem_backend::backend;
#elif defined(FARSIDE_USE_SIM)
using transport = sim_backend::backend;
#elif defined(FARSIDE_USE_ANY)
using transport = any_backend::backend;
#else
using transport = smp_backend::backend;
#endif

static_assert(backend<transport>,
              "the back end does not fulfil far::detail::backend (backend/concept.hpp)");

}  // namespace far::inline FARSIDE_BACKEND::detail

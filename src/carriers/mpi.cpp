// farside_openmpi.so, farside_mpich.so: carry programs that are built for any back end.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <farside/backend/any/carrier.hpp>
#include <farside/backend/any/port_of.hpp>
#include <farside/backend/mpi/backend.hpp>

namespace any = far::detail::any_backend;

extern "C" [[gnu::visibility("default")]] const any::carrier farside_carrier = {
    .name = "mpi", .open = [](const far::detail::start_options& options) -> any::port* {
      return new any::port_of<far::detail::mpi_backend::backend>(options);
    }};

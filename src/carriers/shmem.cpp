// farside_shmem.so: carries programs that are built for any back end.
#include <farside/backend/any/carrier.hpp>
#include <farside/backend/any/port_of.hpp>
#include <farside/backend/shmem/backend.hpp>

namespace any = far::detail::any_backend;

extern "C" [[gnu::visibility("default")]] const any::carrier farside_carrier = {
    .name = "shmem", .open = [](const far::detail::start_options& options) -> any::port* {
      return new any::port_of<far::detail::shmem_backend::backend>(options);
    }};

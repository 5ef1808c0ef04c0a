// expect: two back ends chosen at once
// flags: -DFARSIDE_USE_SHMEM=1
#include <farside/farside.hpp>

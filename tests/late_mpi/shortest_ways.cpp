// What the mpi back end has to find out about its MPI, to go the shortest ways. Where it does not,
// nothing is wrong but slow, so that otherwise only a benchmark would tell.
#include "harness.hpp"

namespace shortest_ways_tests {

FAR_TEST(there_is_a_quick_window) { CHECK(far::detail::quick.far_view); }

#if FARSIDE_MPI_AVOIDS_OSC_RDMA
// Within a node windows are those of `osc sm`, as the tests set nothing that says otherwise.
FAR_TEST(flush_is_known_to_be_a_fence) { CHECK(far::detail::quick.far_view.flush_is_a_fence()); }
#endif

}  // namespace shortest_ways_tests

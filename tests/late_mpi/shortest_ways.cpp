// What the mpi back end has to find out about its MPI, to go the shortest ways. Where it takes too
// little for granted nothing is wrong but slow, so that otherwise only a benchmark would tell.
#include "harness.hpp"

#include <cstdlib>

namespace shortest_ways_tests {

const far::detail::mpi_backend::window_link& link() {
  return std::get<far::detail::mpi_backend::window_link>(far::detail::fast.links);
}

FAR_TEST(there_is_a_fast_link_to_the_window) { CHECK(static_cast<bool>(link())); }

#if FARSIDE_MPI_AVOIDS_OSC_RDMA
// Within a node windows are those of `osc sm`, unless another component is named.
FAR_TEST(flush_is_known_to_be_a_fence) {
  const char* components = std::getenv("OMPI_MCA_osc");  // set at least by the library itself
  CHECK(components != nullptr);
  if (components != nullptr) CHECK_EQ(link().flush_is_a_fence(), *components == '^');
}
#endif

}  // namespace shortest_ways_tests

// farside_sim.so: carries programs that are built for any back end. It is loaded before the C
// library (LD_PRELOAD), so that its clock is the one of the whole program.
#include <farside/backend/any/carrier.hpp>
#include <farside/backend/any/port_of.hpp>
#include <farside/backend/sim/backend.hpp>

namespace any = far::detail::any_backend;
namespace sim = far::detail::sim_backend;
using far::detail::start_options;

namespace {

any::port* open(const start_options& options) { return new any::port_of<sim::backend>(options); }

int run(const start_options& shared,
        far::detail::function_ref<int(const start_options&)> one_rank) {
  far::rank_t nprocs = sim::chosen_nprocs();
  sim::world machine(nprocs, sim::choose_segment(shared, nprocs));
  return machine.run([&](far::rank_t r) {
    start_options mine = shared;
    mine.shared_job = &machine;
    mine.thread_rank = r;
    return one_rank(mine);
  });
}

void excuse(const start_options& of) {
  static_cast<sim::world*>(of.shared_job)->excuse(of.thread_rank);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const any::carrier farside_carrier = {
    .name = "sim", .simulated = true, .open = open, .run = run, .excuse = excuse};

#include "job.hpp"

namespace wavelets_program {

template void run<2>(const request&);

}  // namespace wavelets_program

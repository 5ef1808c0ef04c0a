#include "job.hpp"

namespace wavelets_program {

template void run<3>(const request&);

}  // namespace wavelets_program

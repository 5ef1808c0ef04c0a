#include "job.hpp"

namespace wavelets_program {

template void run<1>(const request&);

}  // namespace wavelets_program

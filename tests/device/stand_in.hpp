// Programs of the device suite that are not built for CUDA run their kernels on the CPU, unless
// told otherwise.
#pragma once

#include <cstdlib>

namespace device_tests {
#if !defined(FARSIDE_USE_CUDA)
inline const int asks_for_stand_in = setenv("FARSIDE_DEVICE", "stand-in", 0);
#endif
}  // namespace device_tests

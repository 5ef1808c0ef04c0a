// What kernels call is marked FARSIDE_KERNEL_CODE: nvcc compiles it for the CPU and for the GPU, other
// compilers for the CPU.
#pragma once

#include <farside/base/backend_choice.hpp>

#if defined(__CUDACC__)
#define FARSIDE_KERNEL_CODE __host__ __device__
#else
#define FARSIDE_KERNEL_CODE
#endif

#if defined(FARSIDE_USE_CUDA) && !__has_include(<cuda_runtime.h>)
#error \
    "farside: FARSIDE_USE_CUDA is set but there is no <cuda_runtime.h>. Link farside::gpu, or compile with nvcc."
#endif

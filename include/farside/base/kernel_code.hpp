// What kernels call is marked FARSIDE_KERNEL_CODE: nvcc compiles it for the CPU and for the GPU, other
// compilers for the CPU.
//
// A program may have units of nvcc and of g++, which share inline functions. nvcc hands g++ a source in which
// `f(x)` of a member function has become `this->f(x)`. So [&] captures `this` before x there and after it
// elsewhere, and closures of one unit are not those of the other. Lambdas that begin with such a call say [&,
// this], which settles the order. tests/device/same_types_test.sh finds those that do not.
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

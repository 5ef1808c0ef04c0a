// far::multiply in device memory: the algorithms of algorithms/multiply.hpp, with tiles in far::device's
// memory and products by cuSPARSE and cuBLAS (in the stand-in by this library's kernels for a core).
//
//   using dense = far::matrix<double, far::device_memory>;
//   using sparse = far::sparse_matrix<double, std::int32_t, far::device_memory>;
//
//   sparse a, b, c      far::multiply(a, b, c);      SpGEMM
//   sparse a, dense b, c                             SpMM
//   dense a, b, c                                    GEMM
//
// Stationary C, A, B and 2.5-D, with and without stealing; tiles fit each other; double or float; sums of
// products alone. There is no SUMMA, no slices, no transposed factor: far::multiply says so. Everything else
// is as in host memory. Products are multiplied where their tiles lie if this rank's device reaches them, as
// on one GPU or one node, else the next tile is copied while one is multiplied.
#pragma once

#include <farside/algorithms/detail/multiply/device_target.hpp>
#include <farside/algorithms/multiply.hpp>

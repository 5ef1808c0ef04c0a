// Libraries beside which the local kernels are measured. Each is a file of its own, compiled as its
// users would compile it, and only where CMake's FARSIDE_BENCH_PEERS asks for it and finds it.
#pragma once

#include <farside/containers/csr.hpp>

#include <memory>

/// A library that has its own form of a matrix A, of a dense B of some columns, and of C = A B.
struct sparse_peer {
  virtual ~sparse_peer() = default;
  /// A A, complete, with sorted rows. Returns how many entries it has.
  virtual std::size_t multiply() = 0;
  /// C = C + A B.
  virtual void multiply_dense() = 0;
};

std::unique_ptr<sparse_peer> make_graphblas(far::csr_view<double> a, const double* b,
                                            std::size_t columns);
std::unique_ptr<sparse_peer> make_eigen(far::csr_view<double> a, const double* b,
                                        std::size_t columns);

/// c = c + a b of n x n elements, by one thread. `name` is the kernel that the BLAS has chosen.
void blas_gemm(std::size_t n, const double* a, const double* b, double* c);
const char* blas_kernel();

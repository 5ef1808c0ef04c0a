// Products of matrices by cuSPARSE and cuBLAS alone, in one process: what bench_device_multiply is compared
// with. Of the library it has nothing but the generator of its matrices, which needs no runtime.
//
//   plain_cuda [--repeat N] [--scale N] [--large-scale N] [--gemm N]
//
// Prints a line for each product: its name, the median of N runs after a warm-up in seconds, the entries of
// C, and the sum of their values, which are whole numbers. Memory that cuSPARSE works in is allocated once.
#include <farside/algorithms/matrix_generators.hpp>
#include <farside/containers/csr.hpp>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using u64 = std::uint64_t;

void require(bool works, const char* what) {
  if (works) return;
  std::fprintf(stderr, "plain_cuda: %s failed\n", what);
  std::exit(1);
}
void check(cudaError_t status, const char* what) { require(status == cudaSuccess, what); }
void check(cusparseStatus_t status, const char* what) {
  require(status == CUSPARSE_STATUS_SUCCESS, what);
}
void check(cublasStatus_t status, const char* what) {
  require(status == CUBLAS_STATUS_SUCCESS, what);
}

template <class T>
T* room(std::size_t n) {
  void* at = nullptr;
  check(cudaMalloc(&at, std::max<std::size_t>(1, n) * sizeof(T)), "cudaMalloc");
  return static_cast<T*>(at);
}
template <class T>
T* on_device(const T* from, std::size_t n) {
  T* at = room<T>(n);
  check(cudaMemcpy(at, from, n * sizeof(T), cudaMemcpyHostToDevice), "a copy");
  return at;
}
u64 sum_of(const double* at, std::size_t n) {
  std::vector<double> values(n);
  check(cudaMemcpy(values.data(), at, n * sizeof(double), cudaMemcpyDeviceToHost), "a copy");
  u64 sum = 0;
  for (double v : values) sum += static_cast<u64>(v);
  return sum;
}

template <class Work>
double median(int repeat, Work work) {
  std::vector<double> times;
  for (int i = 0; i <= repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    check(cudaDeviceSynchronize(), "a product");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(took.count());  // the first one warms up
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}
void print(const char* what, double seconds, u64 entries, u64 sum) {
  std::printf("%s %.6f %llu %llu\n", what, seconds, static_cast<unsigned long long>(entries),
              static_cast<unsigned long long>(sum));
  std::fflush(stdout);
}

/// The matrix that bench_device_multiply makes.
struct graph {
  explicit graph(unsigned scale) {
    const far::rmat of({.scale = scale, .values = far::entry_values::whole(1, 3)});
    n = static_cast<std::int64_t>(of.shape().rows);
    const auto made = far::csr<double>::from_triplets(
        of.shape(),
        far::generate_part<double>(of, {{0, of.shape().rows}, {0, of.shape().columns}}));
    nnz = static_cast<std::int64_t>(made.nnz());
    const std::vector<std::int32_t> begin(made.row_begin().begin(), made.row_begin().end());
    rows = on_device(begin.data(), begin.size());
    columns = on_device(made.columns().data(), made.nnz());
    values = on_device(made.values().data(), made.nnz());
    check(cusparseCreateCsr(&handle, n, n, nnz, rows, columns, values, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "naming a matrix");
  }
  std::int64_t n = 0, nnz = 0;
  std::int32_t *rows = nullptr, *columns = nullptr;
  double* values = nullptr;
  cusparseSpMatDescr_t handle = nullptr;
};

constexpr auto as_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
const double one = 1, zero = 0;

void spgemm(cusparseHandle_t with, int repeat, unsigned scale) {
  const graph a(scale);
  void *estimate = nullptr, *work = nullptr;
  std::size_t estimate_bytes = 0, work_bytes = 0;
  std::int32_t* rows = room<std::int32_t>(static_cast<std::size_t>(a.n) + 1);
  std::int32_t* columns = nullptr;
  double* values = nullptr;
  std::int64_t nnz = 0;
  constexpr auto algorithm = CUSPARSE_SPGEMM_ALG1;
  const double took = median(repeat, [&] {
    cusparseSpMatDescr_t c = nullptr;
    cusparseSpGEMMDescr_t made = nullptr;
    check(cusparseCreateCsr(&c, a.n, a.n, 0, rows, nullptr, nullptr, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F),
          "naming a product");
    check(cusparseSpGEMM_createDescr(&made), "a product");
    auto step = [&](auto call, std::size_t& bytes, void*& memory) {
      std::size_t wanted = 0;
      check(call(with, as_is, as_is, &one, a.handle, a.handle, &zero, c, CUDA_R_64F, algorithm,
                 made, &wanted, nullptr),
            "sizing a product");
      if (wanted > bytes) {
        check(cudaFree(memory), "cudaFree");
        memory = room<char>(bytes = wanted);
      }
      check(call(with, as_is, as_is, &one, a.handle, a.handle, &zero, c, CUDA_R_64F, algorithm,
                 made, &wanted, memory),
            "a product");
    };
    step(cusparseSpGEMM_workEstimation, estimate_bytes, estimate);
    step(cusparseSpGEMM_compute, work_bytes, work);
    std::int64_t m = 0, n = 0;
    check(cusparseSpMatGetSize(c, &m, &n, &nnz), "the size of a product");
    if (columns == nullptr) {
      columns = room<std::int32_t>(static_cast<std::size_t>(nnz));
      values = room<double>(static_cast<std::size_t>(nnz));
    }
    check(cusparseCsrSetPointers(c, rows, columns, values), "naming a product");
    check(cusparseSpGEMM_copy(with, as_is, as_is, &one, a.handle, a.handle, &zero, c, CUDA_R_64F,
                              algorithm, made),
          "copying a product");
    check(cusparseSpGEMM_destroyDescr(made), "a product");
    check(cusparseDestroySpMat(c), "a product");
  });
  print("spgemm", took, static_cast<u64>(nnz), sum_of(values, static_cast<std::size_t>(nnz)));
  for (void* at : {estimate, work, static_cast<void*>(rows), static_cast<void*>(columns),
                   static_cast<void*>(values)})
    check(cudaFree(at), "cudaFree");
}

/// A dense matrix of small whole numbers, another one at each place.
double* numbered(std::size_t n) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<double>(far::mix(i) % 5);
  return on_device(values.data(), n);
}

void spmm(cusparseHandle_t with, int repeat, unsigned scale) {
  const graph a(scale);
  constexpr std::int64_t wide = 128;
  const auto size = static_cast<std::size_t>(a.n * wide);
  double *b = numbered(size), *c = room<double>(size);
  cusparseDnMatDescr_t of_b = nullptr, of_c = nullptr;
  check(cusparseCreateDnMat(&of_b, a.n, wide, wide, b, CUDA_R_64F, CUSPARSE_ORDER_ROW), "a matrix");
  check(cusparseCreateDnMat(&of_c, a.n, wide, wide, c, CUDA_R_64F, CUSPARSE_ORDER_ROW), "a matrix");
  std::size_t bytes = 0;
  constexpr auto algorithm = CUSPARSE_SPMM_CSR_ALG2;
  check(cusparseSpMM_bufferSize(with, as_is, as_is, &one, a.handle, of_b, &zero, of_c, CUDA_R_64F,
                                algorithm, &bytes),
        "sizing a product");
  void* work = room<char>(bytes);
  const double took = median(repeat, [&] {
    check(cusparseSpMM(with, as_is, as_is, &one, a.handle, of_b, &zero, of_c, CUDA_R_64F, algorithm,
                       work),
          "a product");
  });
  print("spmm", took, size, sum_of(c, size));
  for (void* at : {static_cast<void*>(b), static_cast<void*>(c), work})
    check(cudaFree(at), "cudaFree");
}

void gemm(int repeat, std::size_t n) {
  cublasHandle_t with = nullptr;
  check(cublasCreate(&with), "starting cuBLAS");
  double *a = numbered(n * n), *b = numbered(n * n), *c = room<double>(n * n);
  const int edge = static_cast<int>(n);
  // Rows lie one after another: cuBLAS takes that for the transposes, and makes the transpose of C.
  const double took = median(repeat, [&] {
    check(cublasDgemm(with, CUBLAS_OP_N, CUBLAS_OP_N, edge, edge, edge, &one, b, edge, a, edge,
                      &zero, c, edge),
          "a product");
  });
  print("gemm", took, n * n, sum_of(c, n * n));
}

}  // namespace

int main(int argc, char** argv) {
  int repeat = 5;
  unsigned scale = 16, large_scale = 21;
  std::size_t edge = 8192;
  for (int i = 1; i + 1 < argc; i += 2) {
    const auto n = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = static_cast<int>(n);
    if (std::strcmp(argv[i], "--scale") == 0) scale = static_cast<unsigned>(n);
    if (std::strcmp(argv[i], "--large-scale") == 0) large_scale = static_cast<unsigned>(n);
    if (std::strcmp(argv[i], "--gemm") == 0) edge = n;
  }
  cusparseHandle_t with = nullptr;
  check(cusparseCreate(&with), "starting cuSPARSE");
  spgemm(with, repeat, scale);
  spmm(with, repeat, large_scale);
  gemm(repeat, edge);
}

// Products of tiles in device memory by cuSPARSE and cuBLAS. All memory that they work in is far::device's:
// while matrices are multiplied nothing is allocated by CUDA.
//
// Matrices lie row by row, which cuBLAS takes for their transposes: of C^T = B^T A^T it computes
// the right one.
#pragma once

#include <farside/containers/device_tile.hpp>

#include <cublas_v2.h>
#include <cusparse.h>

#include <algorithm>
#include <memory>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

inline void check_cusparse(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) [[likely]]
    return;
  if (status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
    raise<allocation_error>("cuSPARSE has not enough memory for ", what,
                            ". Give far::device more (FARSIDE_DEVICE_SEGMENT=SIZE), or cut "
                            "matrices into smaller tiles.");
  raise("cuSPARSE failed at ", what, ": ", cusparseGetErrorString(status),
        ". Kernels run later than they are launched: an earlier one may be at fault.");
}
inline void check_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    raise("cuBLAS failed at ", what, ": ", cublasGetStatusString(status),
          ". Kernels run later than they are launched: an earlier one may be at fault.");
}

/// What is made once for a rank, as making it takes memory and time.
struct cuda_handles {
  /// Memory first: if there is no room, nothing was made.
  explicit cuda_handles(const device& gpu)
      : work(gpu, std::min(std::size_t{32} << 20, gpu.segment_size() / 16)) {
    check_cublas(cublasCreate(&blas), "starting");
    check_cusparse(cusparseCreate(&sparse), "starting");
    check_cublas(cublasSetWorkspace(blas, work.get().local(), work.bytes()), "taking memory");
  }
  cuda_handles(const cuda_handles&) = delete;
  ~cuda_handles() {
    cublasDestroy(blas);
    cusparseDestroy(sparse);
  }
  static cuda_handles& of(const device& gpu) {
    auto& kept = gpu.state().libraries;
    if (kept == nullptr) kept = std::make_shared<cuda_handles>(gpu);
    return *static_cast<cuda_handles*>(kept.get());
  }

  cublasHandle_t blas = nullptr;
  cusparseHandle_t sparse = nullptr;
  device_block work;
};

/// A matrix as cuSPARSE knows it.
struct cusparse_matrix {
  template <class T, class I>
  explicit cusparse_matrix(const device_csr_view<T, I>& of) {
    static_assert(std::is_same_v<I, std::int32_t>,
                  "cuSPARSE multiplies sparse matrices with column indices of 32 bits: take "
                  "far::sparse_matrix<T, std::int32_t, far::device_memory>");
    check_cusparse(cusparseCreateCsr(&handle, static_cast<std::int64_t>(of.shape.rows),
                                     static_cast<std::int64_t>(of.shape.columns),
                                     static_cast<std::int64_t>(of.nnz), of.row_begin.local(),
                                     of.columns.local(), of.values.local(), CUSPARSE_INDEX_32I,
                                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                     std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F),
                   "naming a matrix");
  }
  cusparse_matrix(const cusparse_matrix&) = delete;
  ~cusparse_matrix() { cusparseDestroySpMat(handle); }
  cusparseSpMatDescr_t handle = nullptr;
};
struct cusparse_dense {
  template <class T>
  explicit cusparse_dense(device_matrix_view<T> of) {
    using value = std::remove_const_t<T>;
    check_cusparse(cusparseCreateDnMat(&handle, static_cast<std::int64_t>(of.shape.rows),
                                       static_cast<std::int64_t>(of.shape.columns),
                                       static_cast<std::int64_t>(of.shape.columns),
                                       const_cast<value*>(of.data.local()),
                                       std::is_same_v<value, double> ? CUDA_R_64F : CUDA_R_32F,
                                       CUSPARSE_ORDER_ROW),
                   "naming a matrix");
  }
  cusparse_dense(const cusparse_dense&) = delete;
  ~cusparse_dense() { cusparseDestroyDnMat(handle); }
  cusparseDnMatDescr_t handle = nullptr;
};

class device_library {
 public:
  /// Takes nothing yet: each member makes one, and one that has no room would leave the others waiting. What
  /// goes wrong in a product is told to all.
  device_library(const device& gpu, device_stream& on) : gpu_(gpu), on_(on) {}

  /// c = c + a b. Issued.
  template <class T>
  void gemm(device_matrix_view<const T> a, device_matrix_view<const T> b, device_matrix_view<T> c) {
    require_type<T>();
    if (c.shape.size() == 0 || a.shape.columns == 0) return;
    const cuda_handles& handles = cuda_handles::of(gpu_);
    check_cublas(cublasSetStream(handles.blas, on_.native()), "taking a stream");
    // Setting a stream takes the workspace away.
    check_cublas(cublasSetWorkspace(handles.blas, handles.work.get().local(), handles.work.bytes()),
                 "taking memory");
    const T one = 1;
    const auto m = static_cast<std::int64_t>(c.shape.rows),
               n = static_cast<std::int64_t>(c.shape.columns),
               k = static_cast<std::int64_t>(a.shape.columns);
    auto run = [&](auto gemm) {
      check_cublas(gemm(handles.blas, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data.local(), n,
                        a.data.local(), k, &one, c.data.local(), n),
                   "a product");
    };
    if constexpr (std::is_same_v<T, double>)
      run(cublasDgemm_64);
    else
      run(cublasSgemm_64);
  }

  /// c = c + a b. Issued; the memory that it works in is kept until the next one.
  template <class T, class I>
  void spmm(const device_csr_view<T, I>& a, device_matrix_view<const T> b,
            device_matrix_view<T> c) {
    require_type<T>();
    if (a.nnz == 0 || c.shape.size() == 0) return;
    check_cusparse(cusparseSetStream(sparse(), on_.native()), "taking a stream");
    const T one = 1;
    const cusparse_matrix of_a(a);
    const cusparse_dense of_b(b), of_c(c);
    constexpr auto type = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;
    constexpr auto as_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
    std::size_t bytes = 0;
    check_cusparse(cusparseSpMM_bufferSize(sparse(), as_is, as_is, &one, of_a.handle, of_b.handle,
                                           &one, of_c.handle, type, CUSPARSE_SPMM_CSR_ALG2, &bytes),
                   "sizing a product");
    if (bytes > spmm_work_.bytes()) {
      on_.synchronize();  // the one before works in what is given back
      spmm_work_ = device_block(gpu_, bytes);
    }
    check_cusparse(
        cusparseSpMM(sparse(), as_is, as_is, &one, of_a.handle, of_b.handle, &one, of_c.handle,
                     type, CUSPARSE_SPMM_CSR_ALG2, bytes == 0 ? nullptr : spmm_work_.get().local()),
        "a product of a sparse matrix and a dense one");
  }

  /// a b in new memory. Waits for the stream. By ALG1, or, where that has not enough memory, ALG2
  /// or ALG3.
  template <class T, class I>
  device_csr<T, I> spgemm(const device_csr_view<T, I>& a, const device_csr_view<T, I>& b) {
    require_type<T>();
    check_cusparse(cusparseSetStream(sparse(), on_.native()), "taking a stream");
    const int first = static_cast<int>(integer_setting("FARSIDE_DEVICE_SPGEMM", 1, 3).value_or(1));
    try {
      if (first == 1) return spgemm_by(CUSPARSE_SPGEMM_ALG1, a, b);
    } catch (const allocation_error&) {
      on_.synchronize();
    }
    try {
      if (first <= 2) return spgemm_by(CUSPARSE_SPGEMM_ALG2, a, b);
    } catch (const allocation_error&) {
      on_.synchronize();
    }
    return spgemm_by(CUSPARSE_SPGEMM_ALG3, a, b);
  }

 private:
  cusparseHandle_t sparse() { return cuda_handles::of(gpu_).sparse; }
  template <class T>
  static void require_type() {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>,
                  "in device memory far::multiply multiplies matrices of double or of float");
  }

  template <class T, class I>
  device_csr<T, I> spgemm_by(cusparseSpGEMMAlg_t algorithm, const device_csr_view<T, I>& a,
                             const device_csr_view<T, I>& b) {
    const matrix_shape shape{a.shape.rows, b.shape.columns};
    const T one = 1, zero = 0;
    const cusparse_matrix of_a(a), of_b(b), of_c(device_csr_view<T, I>{shape});
    struct descriptor {
      descriptor() { check_cusparse(cusparseSpGEMM_createDescr(&handle), "a product"); }
      ~descriptor() { cusparseSpGEMM_destroyDescr(handle); }
      cusparseSpGEMMDescr_t handle = nullptr;
    } made;
    constexpr auto type = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;
    constexpr auto as_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
    auto step = [&](auto call, const char* what, auto... rest) {
      check_cusparse(call(sparse(), as_is, as_is, &one, of_a.handle, of_b.handle, &zero,
                          of_c.handle, type, algorithm, made.handle, rest...),
                     what);
    };
    auto address = [](const device_block& of) -> void* {
      return of.get() ? static_cast<void*>(of.get().local()) : nullptr;
    };
    auto room = [&](std::size_t bytes) {
      return device_block(gpu_, std::max<std::size_t>(bytes, 1));
    };
    std::size_t bytes = 0;
    step(cusparseSpGEMM_workEstimation, "estimating work", &bytes, nullptr);
    const device_block estimate = room(bytes);
    step(cusparseSpGEMM_workEstimation, "estimating work", &bytes, address(estimate));
    bytes = 0;
    if (algorithm == CUSPARSE_SPGEMM_ALG1) {
      step(cusparseSpGEMM_compute, "sizing a product", &bytes, nullptr);
    } else {
      std::size_t least = 0;
      step(cusparseSpGEMM_estimateMemory, "estimating memory", part_of_products, &least, nullptr,
           nullptr);
      const device_block for_estimate = room(least);
      step(cusparseSpGEMM_estimateMemory, "estimating memory", part_of_products, &least,
           address(for_estimate), &bytes);
    }
    const device_block work = room(bytes);
    step(cusparseSpGEMM_compute, "a product of sparse matrices", &bytes, address(work));
    std::int64_t rows = 0, columns = 0, nnz = 0;
    check_cusparse(cusparseSpMatGetSize(of_c.handle, &rows, &columns, &nnz),
                   "the size of a product");
    if (nnz == 0) {
      on_.synchronize();
      return device_csr<T, I>(shape);
    }
    require_offsets<I>(static_cast<std::uint64_t>(nnz));
    device_csr<T, I> result(gpu_, shape, static_cast<std::size_t>(nnz));
    const auto to = result.view();
    check_cusparse(cusparseCsrSetPointers(of_c.handle, to.row_begin.local(), to.columns.local(),
                                          to.values.local()),
                   "naming a product");
    check_cusparse(cusparseSpGEMM_copy(sparse(), as_is, as_is, &one, of_a.handle, of_b.handle,
                                       &zero, of_c.handle, type, algorithm, made.handle),
                   "copying a product");
    on_.synchronize();
    return result;
  }

  /// How much of a product ALG2 and ALG3 have in memory at once.
  static constexpr float part_of_products = 0.2f;

  device gpu_;
  device_stream& on_;
  device_block spmm_work_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

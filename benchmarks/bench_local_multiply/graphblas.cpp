extern "C" {
#include <GraphBLAS.h>
}
#include <cstdlib>
#include <cstring>
#include <vector>

#include "peers.hpp"

namespace {

void require(GrB_Info info) {
  if (info != GrB_SUCCESS)
    throw far::error("GraphBLAS answered " + std::to_string(static_cast<int>(info)));
}

GrB_Matrix make_full(std::size_t rows, std::size_t columns, const double* values) {
  const std::size_t bytes = rows * columns * sizeof(double);
  void* memory = std::calloc(rows * columns, sizeof(double));
  if (values != nullptr) std::memcpy(memory, values, bytes);
  GrB_Matrix result;
  require(GrB_Matrix_new(&result, GrB_FP64, rows, columns));
  require(GxB_Matrix_pack_FullR(result, &memory, bytes, false, nullptr));
  return result;
}

class graphblas : public sparse_peer {
 public:
  graphblas(far::csr_view<double> a, const double* b, std::size_t columns) {
    static const bool started = [] {
      require(GrB_init(GrB_NONBLOCKING));
      require(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, 1));
      return true;
    }();
    static_cast<void>(started);
    std::vector<GrB_Index> i, j;
    for (auto [at, value] : a) i.push_back(at.row), j.push_back(at.column);
    require(GrB_Matrix_new(&a_, GrB_FP64, a.rows(), a.shape().columns));
    require(
        GrB_Matrix_build_FP64(a_, i.data(), j.data(), a.values().data(), a.nnz(), GrB_PLUS_FP64));
    require(GrB_Matrix_wait(a_, GrB_MATERIALIZE));
    if (columns == 0) return;
    b_ = make_full(a.shape().columns, columns, b);
    c_ = make_full(a.rows(), columns, nullptr);
  }
  ~graphblas() override {
    GrB_Matrix_free(&a_);
    GrB_Matrix_free(&b_);
    GrB_Matrix_free(&c_);
  }
  graphblas(const graphblas&) = delete;
  graphblas& operator=(const graphblas&) = delete;

  std::size_t multiply() override {
    GrB_Matrix c;
    GrB_Index rows, entries;
    require(GrB_Matrix_nrows(&rows, a_));
    require(GrB_Matrix_new(&c, GrB_FP64, rows, rows));
    require(GrB_mxm(c, nullptr, nullptr, GrB_PLUS_TIMES_SEMIRING_FP64, a_, a_, nullptr));
    require(GrB_Matrix_wait(c, GrB_MATERIALIZE));  // else rows are left to be sorted later
    require(GrB_Matrix_nvals(&entries, c));
    GrB_Matrix_free(&c);
    return entries;
  }
  void multiply_dense() override {
    require(GrB_mxm(c_, nullptr, GrB_PLUS_FP64, GrB_PLUS_TIMES_SEMIRING_FP64, a_, b_, nullptr));
    require(GrB_Matrix_wait(c_, GrB_MATERIALIZE));
  }

 private:
  GrB_Matrix a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

}  // namespace

std::unique_ptr<sparse_peer> make_graphblas(far::csr_view<double> a, const double* b,
                                            std::size_t columns) {
  return std::make_unique<graphblas>(a, b, columns);
}

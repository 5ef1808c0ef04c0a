#include "job.hpp"

namespace multiply_program {

std::vector<problem> run_gemm(const request& asked) {
  return run_kind<dense, dense, dense>(product_kind::gemm, asked);
}

}  // namespace multiply_program

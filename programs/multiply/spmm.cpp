#include "job.hpp"

namespace multiply_program {

std::vector<problem> run_spmm(const request& asked) {
  return run_kind<sparse, dense, dense>(product_kind::spmm, asked);
}

}  // namespace multiply_program

#include "job.hpp"

namespace multiply_program {

std::vector<problem> run_spgemm(const request& asked) {
  return run_kind<sparse, sparse, sparse>(product_kind::spgemm, asked);
}

}  // namespace multiply_program

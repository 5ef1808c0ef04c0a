#include "library.hpp"

#include <farside/core/rpc.hpp>

namespace sample {

std::string describe(int x) {
  return "the library on rank " + std::to_string(far::rank()) + ": " + std::to_string(x);
}

far::future<std::string> ask(far::rank_t rank, int x) {
  return far::rpc(rank, [](int y) { return describe(y) + "?"; }, x);
}

}  // namespace sample

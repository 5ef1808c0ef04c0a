// All atomics of kernels, for nvcc_test.sh to count their instructions. It need not run.
#include <farside/base/kernel_atomics.hpp>

#include <cstdint>

namespace {
using far::detail::atomic_op;
using far::detail::kernel_atomics;

template <class T>
__device__ void all(T* at, T value) {
  kernel_atomics::fetch_op<atomic_op::add>(at, value);
  kernel_atomics::fetch_op<atomic_op::swap>(at, value);
  kernel_atomics::fetch_op<atomic_op::bit_and>(at, value);
  kernel_atomics::fetch_op<atomic_op::bit_or>(at, value);
  kernel_atomics::fetch_op<atomic_op::bit_xor>(at, value);
  kernel_atomics::fetch_op<atomic_op::min>(at, value);
  kernel_atomics::fetch_op<atomic_op::max>(at, value);
}
}  // namespace

__global__ void on_all_words(std::uint64_t* a, std::int64_t* b, std::uint32_t* c, std::int32_t* d) {
  all(a, *a);
  all(b, *b);
  all(c, *c);
  all(d, *d);
}

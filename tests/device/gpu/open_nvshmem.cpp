// Says why NVSHMEM cannot be used; nothing if it can. For nvcc_test.sh, which has no GPU.
#include <farside/core/detail/device/nvshmem.hpp>

#include <cstdio>

int main() {
  far::detail::nvshmem_library library;
  std::puts(library.open().c_str());
}

// What goes wrong on a GPU, one thing at a time: each ends the job with one line. For `./dev gpu-test`.
//
//   faults            nothing
//   faults beyond     a kernel of rank 0 reads one element more than was allocated; the others wait
//   faults full       a rank allocates until its device memory has no room left
//   faults taken      something else has taken most of the GPU's memory
#include <farside/device.hpp>

#include <string>

struct add_all {
  far::device_ptr<long> from;
  far::device_ptr<long> to;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    d.fetch_add(to, d.get(from + static_cast<std::ptrdiff_t>(i)));
  }
};

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "taken") {
    std::size_t free = 0, total = 0;
    void* taken = nullptr;
    cudaMemGetInfo(&free, &total);
    if (far::rank() == 0 && cudaMalloc(&taken, free / 10 * 9) != cudaSuccess) return 2;
    far::barrier();
  }
  far::device gpu;
  if (what == "full")
    for (;;) gpu.alloc<std::byte>(gpu.segment_size() / 5);
  if (what == "beyond" && far::rank() == 0) {
    constexpr std::size_t n = 100;
    far::device_stream work(gpu);
    auto from = gpu.alloc<long>(n), to = gpu.alloc<long>();
    work.fill(from, 0, n);
    work.launch(n + 1, add_all{from, to});
    work.synchronize();
  }
  far::barrier();
  return 0;
}

int main(int argc, char** argv) { return far::run(argc, argv, run); }

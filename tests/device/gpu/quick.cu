// A little of all that needs CUDA: every day `device.nvcc.quick` compiles and links this program.
#include <farside/device.hpp>

#include <cstdint>
#include <vector>

struct twice {
  far::device_ptr<double> at;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    *d.address(at + static_cast<std::ptrdiff_t>(i)) *= 2;
  }
};

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::device gpu;
    constexpr std::size_t n = 64;
    auto numbers = gpu.alloc<double>(n);
    far::device_stream work(gpu);
    work.fill(numbers, 1.0, n);
    work.launch(n, twice{numbers});
    work.done().get();

    const std::vector<std::uint64_t> keys{1, 2, 3}, values{10, 20, 30};
    far::device_hash_map<std::uint64_t, std::uint64_t> map(gpu, 100);
    map.insert(keys, values);
    map.accumulate(keys, values);
    const bool found = map.find(keys)[0].has_value();
    far::device_queue<std::uint64_t> queue(gpu, 0, 100 * far::nprocs());
    queue.push(keys);
    far::barrier();

    using dense = far::matrix<double, far::device_memory>;
    using sparse = far::sparse_matrix<double, std::int32_t, far::device_memory>;
    const far::matrix_shape square{n, n};
    dense x(square), y(square);
    sparse a(square), b(square), c(square);
    far::multiply(x, x, y);
    far::multiply(a, x, y);
    far::multiply(a, b, c);
    return found ? 0 : 1;
  });
}

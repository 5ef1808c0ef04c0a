// What device memory and containers in kernels cost on a GPU. `./dev gpu-test` runs it.
//
//   farside run -n 4 bench_device [--keys N] [--repeat N]
//
// Prints a line for each rank count's kind of work: medians, of all ranks together. Inserts are of different
// keys into an empty map of twice as many slots; finds are of all of these keys.
#include <farside/device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using u64 = std::uint64_t;
using map_type = far::device_hash_map<u64, u64>;

struct make_keys {
  far::device_ptr<u64> keys, values;
  u64 first;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    auto at = static_cast<std::ptrdiff_t>(i);
    d.put(keys + at, far::mix(first + i) >> 1);
    d.put(values + at, first + i);
  }
};

struct check_values {
  far::device_ptr<const u64> values;
  far::device_ptr<u64> wrong;
  u64 first;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    if (d.get(values + static_cast<std::ptrdiff_t>(i)) != first + i) d.fetch_add(wrong, u64{1});
  }
};

struct count_keys {
  far::device_map_ref<u64, u64> map;
  u64 different;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    map.accumulate(d, far::mix(i * (d.rank() + 1)) % different, 1);
  }
};

struct push_pop {
  far::device_queue_ref<u64> queue;
  bool pushes;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    u64 value = i;
    if (pushes)
      queue.push(d, value);
    else
      queue.pop(d, value);
  }
};

/// The median time of `work` in seconds, with all ranks at it, each from barrier to barrier.
template <class Before, class Work>
double median(int repeat, Before before, Work work) {
  std::vector<double> times;
  for (int i = 0; i <= repeat; ++i) {
    before();
    far::barrier();
    auto begin = std::chrono::steady_clock::now();
    work();
    far::barrier();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(took.count());  // the first one warms up
  }
  std::sort(times.begin(), times.end());
  return far::all_reduce(times[times.size() / 2], far::maximum());
}

template <class Work>
double median(int repeat, Work work) {
  return median(repeat, [] {}, work);
}

void line(const char* what, double rate, const char* unit) {
  if (far::rank() == 0) std::printf("%-46s %4u ranks %10.2f %s\n", what, far::nprocs(), rate, unit);
}

int run(int argc, char** argv) {
  u64 keys = 100'000'000;
  int repeat = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--keys") == 0) keys = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--repeat") == 0) repeat = std::atoi(argv[i + 1]);
  }
  far::device gpu;
  far::device_stream work(gpu);
  u64 n = keys / far::nprocs(), first = far::rank() * n;
  double all = static_cast<double>(n) * far::nprocs();
  int failed = 0;
  {
    auto k = gpu.alloc<u64>(n), v = gpu.alloc<u64>(n);
    auto wrong = gpu.alloc<u64>();
    map_type map(gpu, n * far::nprocs());
    work.launch(n, make_keys{k, v, first});
    work.fill(wrong, 0);
    work.synchronize();
    double insert = median(
        repeat, [&] { map.clear(); },
        [&] {
          map.insert(work, k, v, n);
          work.synchronize();
        });
    auto seen = map.outcome();
    failed += seen.present != 0 || seen.refused != 0;
    line("device_hash_map insert, 64 + 64 bits, load 0.5", all / insert / 1e9, "G/s");
    work.fill(v, 0, n);
    work.synchronize();
    far::barrier();
    double find = median(repeat, [&] {
      map.find(work, k, v, nullptr, n);
      work.synchronize();
    });
    line("device_hash_map find", all / find / 1e9, "G/s");
    work.launch(n, check_values{v, wrong, first});
    u64 bad = 0;
    work.get(wrong, &bad);
    work.synchronize();
    failed += bad != 0;
    map.clear();
    for (u64 different : {u64{1000}, u64{1'000'000}}) {
      double add = median(repeat, [&] {
        work.launch(n, count_keys{map.ref(), different});
        work.synchronize();
      });
      line(different == 1000 ? "device_hash_map accumulate on 1000 keys"
                             : "device_hash_map accumulate on 1000000 keys",
           all / add / 1e9, "G/s");
    }
    far::barrier();
    double copy = median(repeat, [&] {
      work.copy(v, far::device_ptr<const u64>(far::device_ptr<u64>::from_raw(k.raw())), n);
      work.synchronize();
    });
    line("copy within device memory, read and written", 16 * all / copy / 1e9, "GB/s");
    auto everyone = far::all_gather(k);
    double get = median(repeat, [&] {
      work.copy(v, far::device_ptr<const u64>(everyone[(far::rank() + 1) % far::nprocs()]), n);
      work.synchronize();
    });
    line("copy from the next rank's device memory", 8 * all / get / 1e9, "GB/s");
    double launch = median(repeat, [&] {
      for (int i = 0; i < 100; ++i) {
        work.launch(1, make_keys{k, v, first});
        work.synchronize();
      }
    });
    line("a kernel of one call, launched and awaited", launch * 1e4, "us");
    gpu.dealloc(k);
    gpu.dealloc(v);
    gpu.dealloc(wrong);
  }
  {
    u64 elements = 1 << 22;
    far::device_queue<u64> queue(gpu, 0, elements * far::nprocs());
    double push = median(
        repeat,
        [&] {
          work.launch(elements, push_pop{queue.ref(), false});
          work.synchronize();
        },
        [&] {
          work.launch(elements, push_pop{queue.ref(), true});
          work.synchronize();
        });
    double rate = static_cast<double>(elements) * far::nprocs();
    line("device_queue push, 64 bits", rate / push / 1e9, "G/s");
  }
  failed = static_cast<int>(far::all_reduce(failed));
  if (failed != 0 && far::rank() == 0) std::printf("WRONG RESULTS on %d ranks\n", failed);
  return failed != 0;
}

}  // namespace

int main(int argc, char** argv) { return far::run(argc, argv, run); }

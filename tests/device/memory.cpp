// far::device and far::device_ptr: allocation, copies, streams, futures, what kernels do to memory of all
// ranks.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include <numeric>
#include <vector>

namespace device_memory_tests {

struct scale {
  far::device_ptr<long> values;
  long by;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    *d.address(values + static_cast<long>(i)) *= by;
  }
};

/// Every atomic there is, on the words of another rank.
struct change_all {
  far::device_ptr<std::uint64_t> words;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    d.fetch_add(words, std::uint64_t{i});
    d.fetch_or(words + 1, std::uint64_t{1} << i % 64);
    d.fetch_xor(words + 2, std::uint64_t{i});
    d.fetch_min(words + 3, std::uint64_t{1000 - i});
    d.fetch_max(words + 4, std::uint64_t{i});
    d.fetch_and(words + 5, ~(std::uint64_t{1} << i % 64));
    std::uint64_t old = d.atomic_load(words + 6);
    for (;;) {
      std::uint64_t seen = d.compare_swap(words + 6, old, old + 2);
      if (seen == old) break;
      old = seen;
    }
    if (i == 0) d.exchange(words + 7, std::uint64_t{d.rank()} + 1);
  }
};

struct count_up {
  far::device_ptr<unsigned> word;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
    d.fetch_add(word, 1u);
  }
};

struct copy_by_kernel {
  far::device_ptr<const long> from;
  far::device_ptr<long> to;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    d.put(to + static_cast<long>(i), d.get(from + static_cast<long>(i)) + 1);
  }
};

far::rank_t next() { return (far::rank() + 1) % far::nprocs(); }

FAR_TEST(pointers) {
  far::device_ptr<int> null = nullptr;
  CHECK(!null);
  CHECK(null.local() == nullptr);
  far::device_ptr<int> p(3, 4096);
  CHECK_EQ(p.rank(), 3u);
  CHECK_EQ((p + 2).offset(), 4104u);
  CHECK_EQ((p + 5) - p, 5);
  CHECK(far::device_ptr<int>::from_raw(p.raw()) == p);
  CHECK(far::device_ptr<const int>(p).raw() == p.raw());
  CHECK_EQ(p.raw() >> 63, 1u);
  CHECK_EQ(to_text(p), "device 3:0x1000");
  CHECK(far::ptr<int>(3, 4096).raw() != p.raw());
}

FAR_TEST(allocation) {
  far::device gpu;
  std::size_t before = gpu.in_use();
  auto a = gpu.alloc<double>(1000);
  auto b = gpu.alloc<char>(1);
  CHECK_EQ(a.rank(), far::rank());
  CHECK_EQ(a.offset() % 256, 0u);
  CHECK_EQ(b.offset() % 256, 0u);
  CHECK(a.local() != nullptr);
  CHECK(gpu.in_use() >= before + 8001);
  CHECK_THROWS(gpu.alloc<char>(gpu.segment_size() + 1), "no room for");
  gpu.dealloc(b);
  gpu.dealloc(a);
  CHECK_THROWS(gpu.dealloc(a), "no allocation of this rank begins there");
  CHECK_THROWS(gpu.dealloc(far::device_ptr<int>((far::rank() + 1) % 2 + 5, 8192)), "no allocation");
  gpu.dealloc(far::device_ptr<int>());
  CHECK_EQ(gpu.in_use(), before);
  far::device again;
  CHECK(again.segment_size() == gpu.segment_size());
  CHECK_THROWS(far::device({.segment = gpu.segment_size() * 2}), "but the first one of this job");
}

FAR_TEST(copies) {
  far::device gpu;
  constexpr std::size_t n = 3000;
  auto own = gpu.alloc<long>(n), landed = gpu.alloc<long>(n);
  auto all = far::all_gather(own);
  std::vector<long> values(n), seen(n);
  std::iota(values.begin(), values.end(), 1000L * far::rank());
  gpu.put(own, values.data(), n);
  far::barrier();

  far::device_stream work(gpu);
  work.copy(landed, all[next()], n);  // a get between devices
  work.get(landed, seen.data(), n);
  work.synchronize();
  CHECK_EQ(seen.front(), 1000L * next());
  CHECK_EQ(seen.back(), 1000L * next() + static_cast<long>(n) - 1);
  far::barrier();

  work.launch(n, scale{landed, 3});
  work.copy(all[next()], far::device_ptr<const long>(landed), n);  // a put
  work.synchronize();
  far::barrier();
  gpu.get(own, seen.data(), n);
  for (std::size_t i = 0; i < n; i += 97)
    CHECK_EQ(seen[i], 3 * (1000L * far::rank() + static_cast<long>(i)));

  work.fill(own, 0x7f, 2);
  work.get(own, seen.data(), 3);
  work.synchronize();
  CHECK_EQ(seen[1], 0x7f7f7f7f7f7f7f7fL);
  CHECK_EQ(seen[2], 3 * (1000L * far::rank() + 2));
  far::barrier();
  gpu.get(all[next()] + 5, seen.data(), 1);  // a host reads another rank's device memory
  CHECK_EQ(seen[0], 3 * (1000L * next() + 5));
  far::barrier();
  gpu.dealloc(own);
  gpu.dealloc(landed);
}

FAR_TEST(wrong_pointers) {
  far::device gpu;
  long value = 0;
  CHECK_THROWS(gpu.put(far::device_ptr<long>(), &value), "the pointer is null");
  CHECK_THROWS(gpu.get(far::device_ptr<long>(far::nprocs(), 8192), &value),
               "there is no such rank");
  CHECK_THROWS(gpu.get(far::device_ptr<long>(0, 16), &value), "no pointer that far::device::alloc");
  CHECK_THROWS(gpu.get(far::device_ptr<long>(0, gpu.segment_size() - 8), &value, 2),
               "beyond the end");
  gpu.put(far::device_ptr<long>(), &value, 0);
}

FAR_TEST(streams_are_in_order_and_wait_for_each_other) {
  far::device gpu;
  constexpr std::size_t n = 500;
  auto a = gpu.alloc<long>(n), b = gpu.alloc<long>(n);
  std::vector<long> ones(n, 1), seen(n);
  for (int round = 0; round < 20; ++round) {
    far::device_stream first(gpu), second(gpu);
    first.put(a, ones.data(), n);
    for (int i = 0; i < 6; ++i) first.launch(n, scale{a, 2});
    second.fill(b, 0, n);
    second.wait(first);
    second.launch(n, copy_by_kernel{a, b});
    first.wait(second);
    first.launch(n, scale{a, 5});
    second.get(b, seen.data(), n);
    second.synchronize();
    CHECK_EQ(seen.front(), 65);
    CHECK_EQ(seen.back(), 65);
    first.get(a, seen.data(), n);
    first.synchronize();
    CHECK_EQ(seen[n / 2], 320);
  }
  gpu.dealloc(a);
  gpu.dealloc(b);
}

FAR_TEST(futures_of_streams) {
  far::device gpu;
  constexpr std::size_t n = 2000;
  auto a = gpu.alloc<long>(n);
  std::vector<long> ones(n, 1), seen(n);
  far::device_stream work(gpu);
  CHECK(work.done().is_ready());
  bool reached = false;
  long last = 0;
  for (int round = 0; round < 10; ++round) {
    work.put(a, ones.data(), n);
    for (int i = 0; i < 10; ++i) work.launch(n, scale{a, 2});
    work.get(a, seen.data(), n);
    auto after = work.done().then([&] {
      reached = true;
      last = seen[n - 1];
    });
    after.get();
    CHECK(reached);
    CHECK_EQ(last, 1024);
    std::fill(seen.begin(), seen.end(), 0);
    reached = false;
  }
  gpu.dealloc(a);
}

FAR_TEST(atomics_of_kernels_of_all_ranks) {
  far::device gpu;
  constexpr std::size_t n = 640;
  auto own = gpu.alloc<std::uint64_t>(8);
  auto all = far::all_gather(own);
  std::vector<std::uint64_t> words{0, 0, 0, 5000, 0, ~std::uint64_t{0}, 0, 0};
  gpu.put(own, words.data(), 8);
  far::barrier();
  far::device_stream work(gpu);
  for (auto p : all) work.launch(n, change_all{p});
  work.synchronize();
  far::barrier();
  gpu.get(own, words.data(), 8);
  std::uint64_t ranks = far::nprocs();
  CHECK_EQ(words[0], ranks * n * (n - 1) / 2);
  CHECK_EQ(words[1], ~std::uint64_t{0});
  std::uint64_t xored = 0;
  for (std::size_t i = 0; i < n; ++i) xored ^= i;
  CHECK_EQ(words[2], ranks % 2 == 0 ? 0 : xored);
  CHECK_EQ(words[3], 1000 - (n - 1));
  CHECK_EQ(words[4], n - 1);
  CHECK_EQ(words[5], 0u);
  CHECK_EQ(words[6], 2 * n * ranks);
  CHECK(words[7] >= 1 && words[7] <= ranks);
  auto small = gpu.alloc<unsigned>();
  auto smalls = far::all_gather(small);
  unsigned zero = 0;
  gpu.put(small, &zero);
  far::barrier();
  for (auto p : smalls) work.launch(n, count_up{p});
  work.synchronize();
  far::barrier();
  gpu.get(small, &zero);
  CHECK_EQ(zero, ranks * n);
  far::barrier();
  gpu.dealloc(small);
  gpu.dealloc(own);
}

#if FARSIDE_CHECKED
FAR_TEST(a_kernel_beyond_its_memory) {
  far::device gpu;
  far::device_stream work(gpu);
  auto wrong = far::device_ptr<long>(far::rank(), gpu.segment_size() - 8);
  work.launch(4, scale{wrong, 2});
  CHECK_THROWS(work.synchronize(), "a kernel accesses 8 bytes at device");
  work.launch(1, scale{far::device_ptr<long>(), 2});
  CHECK_THROWS(work.synchronize(), "which is no pointer to device memory");
  auto right = gpu.alloc<long>(33), next = gpu.alloc<long>(33);
  work.launch(33, scale{right, 2});
  work.synchronize();                // one fault does not stay
  work.launch(34, scale{right, 2});  // one more than it has, in memory that nobody has
  CHECK_THROWS(work.synchronize(), "a kernel accesses 8 bytes at device");
  work.launch(1, scale{right + 32 + 32, 2});  // between the two
  CHECK_THROWS(work.synchronize(), "a kernel accesses 8 bytes at device");
  gpu.dealloc(next);
  work.launch(1, scale{next, 2});  // no more
  CHECK_THROWS(work.synchronize(), "outside of the device memory which far::device has given out");
  work.launch(33, scale{right, 2});
  work.synchronize();
  gpu.dealloc(right);
}
#endif

}  // namespace device_memory_tests

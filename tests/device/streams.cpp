// Streams of device memory: who is told of a fault, and what the end of a stream waits for.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include <utility>

namespace device_stream_tests {

using u64 = std::uint64_t;

struct count_calls {
  far::device_ptr<u64> calls;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
    d.fetch_add(calls, u64{1});
  }
};

/// The end of a stream waits, also where a future of its work lives on.
FAR_TEST(the_end_of_a_stream_waits_for_its_work) {
  far::device gpu;
  constexpr std::size_t n = 200'000;
  auto calls = gpu.alloc<u64>();
  u64 seen = 0;
  gpu.put(calls, &seen);
  far::future<void> kept;
  {
    far::device_stream work(gpu);
    work.launch(n, count_calls{calls});
    kept = work.done();
  }
  gpu.get(calls, &seen);
  CHECK_EQ(seen, n);
  kept.get();
  gpu.dealloc(calls);
}

FAR_TEST(streams_that_were_moved) {
  far::device gpu;
  auto calls = gpu.alloc<u64>();
  u64 value = 3, seen = 0;
  far::device_stream one(gpu), other(std::move(one));
  CHECK_THROWS(one.put(calls, &value), "moved from");
  CHECK_THROWS(one.synchronize(), "moved from");
  CHECK_THROWS(other.wait(one), "moved from");
  other.put(calls, &value);
  other.get(calls, &seen);
  other.synchronize();
  CHECK_EQ(seen, 3u);
  gpu.dealloc(calls);
}

#if FARSIDE_CHECKED || !defined(FARSIDE_USE_CUDA)
/// Unchecked kernels of the stand-in throw themselves; those of a GPU cannot.
struct goes_wrong {
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
#if FARSIDE_CHECKED
    d.get(far::device_ptr<long>());
#else
    far::detail::raise("rank ", d.rank(), ": a kernel accesses nothing");
#endif
  }
};

void await(far::future<void> of) {
  while (!of.is_ready()) {
  }
}

FAR_TEST(a_dropped_future_takes_no_fault) {
  far::device gpu;
  far::device_stream work(gpu);
  work.launch(1, goes_wrong{});
  await(work.done());
  CHECK_THROWS(work.synchronize(), "a kernel accesses");
  work.synchronize();
}

FAR_TEST(all_who_waited_for_a_fault_throw_it) {
  far::device gpu;
  far::device_stream work(gpu);
  work.launch(1, goes_wrong{});
  auto first = work.done(), second = work.done();
  CHECK_THROWS(work.synchronize(), "a kernel accesses");
  auto later = work.done();
  CHECK_THROWS(second.get(), "a kernel accesses");
  CHECK_THROWS(first.get(), "a kernel accesses");
  later.get();
  work.launch(1, goes_wrong{});
  CHECK_THROWS(work.synchronize(), "a kernel accesses");
  work.synchronize();
}

FAR_TEST(futures_of_before_a_fault_do_not_throw_it) {
  far::device gpu;
  auto calls = gpu.alloc<u64>();
  far::device_stream work(gpu);
  work.fill(calls, 0);
  work.launch(10, count_calls{calls});
  auto before = work.done();
  work.launch(1, goes_wrong{});
  await(work.done());
  before.get();
  CHECK_THROWS(work.synchronize(), "a kernel accesses");
  gpu.dealloc(calls);
}
#endif

#if FARSIDE_CHECKED
struct misaligned {
  far::device_ptr<char> bytes;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
    d.put(far::pointer_cast<long>(bytes + 4), 1L);
  }
};

FAR_TEST(misaligned_accesses_are_named_so) {
  far::device gpu;
  auto bytes = gpu.alloc<char>(64);
  far::device_stream work(gpu);
  work.launch(1, misaligned{bytes});
  CHECK_THROWS(work.synchronize(), "which is misaligned: its type lies at multiples of 8 bytes");
  gpu.dealloc(bytes);
}
#endif

}  // namespace device_stream_tests

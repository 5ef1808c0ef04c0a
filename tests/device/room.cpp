// Room for containers in device memory: how much they take, that all ranks hear when one has none, and that
// nothing is kept when an exception ends one.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include <stdexcept>
#include <vector>

namespace device_room_tests {

using u64 = std::uint64_t;
using map = far::device_hash_map<u64, u64>;
constexpr std::size_t everything = ~std::size_t{0};

FAR_TEST(bulk_calls_take_room_for_what_they_are_given) {
  far::device gpu;
  map one(gpu, 1000), other(gpu, 1000);
  std::vector<u64> keys{1, 2, 3}, values{4, 5, 6};
  const std::size_t before = gpu.in_use();
  one.insert(keys, values);
  other.accumulate(keys, values);
  CHECK(gpu.in_use() - before < 10'000);
  const std::size_t with_buffers = gpu.in_use();
  far::barrier();
  CHECK_EQ(one.size(), 3u);
  CHECK_EQ(one.find(keys)[2].value_or(0), 6u);
  CHECK_EQ(gpu.in_use(), with_buffers);
  CHECK(one.local_entries().size() <= 3);
  CHECK(gpu.in_use() - before < 100'000);
  far::barrier();
}

/// Takes nearly all of rank 0's device memory, and no other rank's.
struct all_of_rank_0 {
  explicit all_of_rank_0(far::device& of)
      : taken(of, far::rank() == 0 ? of.segment_size() / 10 * 9 : 1000) {}
  far::device_block taken;
};

FAR_TEST(all_ranks_hear_that_one_has_no_room) {
  far::device gpu;
  const std::size_t before = gpu.in_use();
  {
    const all_of_rank_0 hog(gpu);
    const std::size_t capacity = gpu.segment_size() / 100 * far::nprocs();
    CHECK_THROWS(map(gpu, capacity), "room");
    CHECK_THROWS(far::device_queue<u64>(gpu, 0, gpu.segment_size() / 100), "room");
    far::barrier();
  }
  CHECK_THROWS(far::device_queue<u64>(gpu, 0, gpu.segment_size() / 16), "room");
  CHECK_EQ(gpu.in_use(), before);
  far::barrier();
}

FAR_TEST(what_an_exception_has_left_is_given_back) {
  far::device gpu;
  far::barrier();
  const std::size_t before = gpu.in_use();
  for (int i = 0; i < 3; ++i) {
    try {
      map left(gpu, 1000);
      far::device_queue<u64> queue(gpu, 0, 100);
      queue.push(std::vector<u64>{1});
      throw std::runtime_error("on purpose");
    } catch (const std::runtime_error&) {
    }
  }
  far::barrier();
  CHECK_EQ(gpu.in_use(), before);
}

FAR_TEST(a_push_without_room_keeps_nothing) {
  far::device gpu;
  far::device_queue<u64> queue(gpu, 0, 100);
  const std::size_t before = gpu.in_use();
  // Room for the elements, and none for those that are refused.
  const std::vector<u64> many(far::rank() == 0 ? gpu.segment_size() / sizeof(u64) / 10 * 6 : 0);
  if (far::rank() == 0 && many.size() < 100'000'000) CHECK_THROWS(queue.push(many), "no room for");
  CHECK_EQ(gpu.in_use(), before);
  far::barrier();
}

FAR_TEST(sizes_that_no_memory_has) {
  far::device gpu;
  for (std::size_t capacity : {everything, everything / 16, std::size_t{1} << 60}) {
    CHECK_THROWS(map(gpu, capacity), "no room for");
    CHECK_THROWS(far::device_queue<u64>(gpu, 0, capacity), "no room for");
  }
  CHECK_THROWS(map(gpu, 10, {.load = 1e-30}), "no room for");
  CHECK_THROWS(gpu.alloc<char>(everything), "no room for");
  CHECK_THROWS(gpu.alloc<char>((std::size_t{1} << 44) - 100), "no room for");
  CHECK_THROWS(far::device_block(gpu, everything), "no room for");
}

}  // namespace device_room_tests

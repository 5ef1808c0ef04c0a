// far::device_queue: order of magnitude aside, what goes in comes out once.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include <algorithm>
#include <vector>

namespace device_queue_tests {

using u64 = std::uint64_t;

struct item {
  u64 number, square, check;
};
item make_item(u64 n) { return {n, n * n, ~n}; }
FARSIDE_KERNEL_CODE inline bool whole(const item& i) {
  return i.square == i.number * i.number && i.check == ~i.number;
}

FAR_TEST(bulk) {
  far::device gpu;
  for (far::rank_t owner = 0; owner < std::min<far::rank_t>(far::nprocs(), 2); ++owner) {
    far::device_queue<item> queue(gpu, owner, 1000 * far::nprocs());
    std::vector<item> mine;
    for (u64 i = 0; i < 600; ++i) mine.push_back(make_item(far::rank() * 1000 + i));
    CHECK_EQ(queue.push(mine).size(), 0u);
    far::barrier();
    CHECK_EQ(queue.size(), 600u * far::nprocs());
    far::barrier();
    std::vector<u64> numbers;
    for (const item& i : queue.pop(600)) {
      CHECK(whole(i));
      numbers.push_back(i.number);
    }
    CHECK_EQ(numbers.size(), 600u);
    u64 sum = 0;
    for (u64 n : numbers) sum += n;
    u64 expected = 0;
    for (u64 r = 0; r < far::nprocs(); ++r) expected += 600 * r * 1000 + 600 * 599 / 2;
    CHECK_EQ(far::all_reduce(sum), expected);
    far::barrier();
    CHECK_EQ(queue.pop(10).size(), 0u);
    CHECK_EQ(queue.size(), 0u);
    far::barrier();
  }
}

FAR_TEST(full) {
  far::device gpu;
  far::device_queue<int> queue(gpu, far::nprocs() - 1, 100);
  if (far::rank() == 0) {
    std::vector<int> many(250);
    for (int i = 0; i < 250; ++i) many[static_cast<std::size_t>(i)] = i;
    for (int round = 0; round < 5; ++round) {
      auto refused = queue.push(many);
      CHECK_EQ(refused.size(), 150u);
      auto got = queue.pop(1000);
      CHECK_EQ(got.size(), 100u);
      got.insert(got.end(), refused.begin(), refused.end());
      std::sort(got.begin(), got.end());
      CHECK(got == many);
    }
  }
  far::barrier();
  CHECK_THROWS(far::device_queue<int>(gpu, 0, 0), "has room for nothing");
  CHECK_THROWS(far::device_queue<int>(gpu, far::nprocs(), 5), "there is no rank");
}

/// Pushes and pops in turns, on a small ring that goes round many times.
struct churn {
  far::device_queue_ref<item> queue;
  far::device_ptr<u64> pushed, popped, torn;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    u64 n = d.rank() * 100'000'000 + i;
    item e{n, n * n, ~n};
    if (i % 2 == 0) {
      if (queue.push(d, e)) d.fetch_add(pushed, n);
    } else if (queue.pop(d, e)) {
      d.fetch_add(popped, e.number);
      if (!whole(e)) d.fetch_add(torn, u64{1});
    }
  }
};

FAR_TEST(pushes_and_pops_at_the_same_time) {
  far::device gpu;
  std::size_t calls = gpu.kind() == std::string("cuda") ? 400'000 : 15'000;
  auto own = gpu.alloc<u64>(3);
  auto counts = far::device_ptr<u64>::from_raw(far::broadcast(own.raw(), 0));
  for (std::size_t capacity : {1, 5, 64, 3000}) {
    far::device_queue<item> queue(gpu, 0, capacity);
    std::vector<u64> seen(3);
    if (far::rank() == 0) gpu.put(own, seen.data(), 3);
    far::barrier();
    far::device_stream one(gpu), other(gpu);
    one.launch(calls, churn{queue.ref(), counts, counts + 1, counts + 2});
    other.launch(calls, churn{queue.ref(), counts, counts + 1, counts + 2});
    one.synchronize();
    other.synchronize();
    far::barrier();
    u64 rest = 0;
    if (far::rank() == 0) {
      for (const item& i : queue.pop(capacity)) {
        rest += i.number;
        CHECK(whole(i));
      }
      gpu.get(own, seen.data(), 3);
      CHECK_EQ(seen[0], seen[1] + rest);
      CHECK_EQ(seen[2], 0u);
      CHECK(seen[0] > 0);
      CHECK_EQ(queue.size(), 0u);
    }
    CHECK(true);
    far::barrier();
  }
  gpu.dealloc(own);
}

}  // namespace device_queue_tests

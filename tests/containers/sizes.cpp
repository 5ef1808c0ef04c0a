// Sizes that make no sense: each is refused by its number, on all ranks, before anything wraps.
#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/hash_map_buffer.hpp>
#include <farside/containers/array.hpp>
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/darray.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/containers/plain_bloom_filter.hpp>

#include "harness.hpp"

#include <string>

namespace sizes_tests {

namespace {

/// Calls `use(n)` with numbers that wrap when they are multiplied, added to or rounded up. Every
/// rank throws, and says the number; then all are still in step.
template <class Use>
void refuses(const char* what, Use use) {
  std::uint64_t wrap = ~std::uint64_t{0};
  for (std::uint64_t n : {wrap, wrap - 1, wrap - 63, wrap / 2 + 1, wrap / 3 * 2 + 10, wrap / 8 + 2,
                          wrap / 16 + 1, wrap / 24 + 1, std::uint64_t{1} << 62}) {
    std::string said = "nothing";
    try {
      use(n);
    } catch (const far::allocation_error& e) {
      said = e.what();
    }
    CHECK_EQ(said.find(what) != std::string::npos && said.find(std::to_string(n)) != said.npos
                 ? "a proper error"
                 : said,
             std::string("a proper error"));
    CHECK_EQ(far::all_reduce(1), static_cast<int>(far::nprocs()));
  }
}

}  // namespace

FAR_TEST(of_memory) {
  refuses("far::alloc: no room for", [](std::uint64_t n) { far::alloc<int>(n); });
  refuses("far::alloc_on: no room for", [](std::uint64_t n) { far::alloc_on<char>(0, n); });
  refuses("far::allocator: no room", [](std::uint64_t n) { far::allocator<long>().allocate(n); });
}

FAR_TEST(of_arrays) {
  refuses("array", [](std::uint64_t n) { far::array<long>(0, n); });
  refuses("array", [](std::uint64_t n) { far::array<char>(far::nprocs() - 1, n); });
  refuses("darray 'mine'", [](std::uint64_t n) { far::darray<long>(n, {.name = "mine"}); });
  refuses("darray", [](std::uint64_t n) { far::darray<char>(n, '0'); });
}

FAR_TEST(of_queues) {
  refuses("circular_queue", [](std::uint64_t n) { far::circular_queue<long>(0, n); });
  refuses("circular_queue", [](std::uint64_t n) {
    far::circular_queue<char, far::queue_protocol::two_atomics>(0, n);
  });
  refuses("checksum_queue", [](std::uint64_t n) { far::checksum_queue<std::string>(0, n); });
  refuses("fast_queue", [](std::uint64_t n) { far::fast_queue<int>(far::nprocs() - 1, n); });
  far::circular_queue<int> queue(0, 4);
  if (far::rank() == 0) queue.push(7);
  far::barrier();
  refuses("resize of ", [&](std::uint64_t n) { queue.resize(n); });
  CHECK_EQ(queue.capacity(), 4u);
  far::barrier();
  if (far::rank() == 0) CHECK_EQ(queue.pop(), 7);
  far::barrier();

  // Of what is there nobody can ask for too much.
  far::fast_queue<int> phased(0, 4);
  for (std::uint64_t all : {~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    if (far::rank() == 0) phased.push(1), queue.push(2);
    far::barrier();
    CHECK_EQ(far::all_reduce(phased.pop(all).size() + phased.try_pop(all).size()), 1u);
    CHECK_EQ(
        far::all_reduce(queue.try_pop(all).size() + queue.pop(all, far::concurrency::pop).size()),
        1u);
    far::barrier();
    CHECK(phased.empty() && queue.empty());
    far::barrier();
  }
}

FAR_TEST(of_maps) {
  refuses("hash_map", [](std::uint64_t n) { far::hash_map<long, long> map(n); });
  far::hash_map<long, long> map(10, {.name = "mine"});
  map.insert(far::rank(), 1);
  refuses("hash_map 'mine' reserve", [&](std::uint64_t n) { map.reserve(n); });
  far::barrier();
  CHECK_EQ(map.size(), std::size_t{far::nprocs()});
  for (far::rank_t r = 0; r < far::nprocs(); ++r) CHECK(map.find(r) == 1);
  far::barrier();
  using buffer = far::hash_map_buffer<far::hash_map<long, long>>;
  refuses("hash_map_buffer", [&](std::uint64_t n) { buffer(map, {.combining = n}); });
}

FAR_TEST(of_filters) {
  refuses("Bloom filter", [](std::uint64_t n) { far::bloom_filter<int>{n}; });
  refuses("Bloom filter", [](std::uint64_t n) { far::plain_bloom_filter<int>{n}; });
  refuses("Bloom filter", [](std::uint64_t n) { far::plain_bloom_filter<int>(n, 1e-9); });
  // Those that can be counted, and are too many.
  CHECK_THROWS(far::bloom_filter<int>(std::uint64_t{1} << 56), "no room for ");
}

FAR_TEST(of_exchanges) {
  refuses("exchange", [](std::uint64_t n) { far::exchange<int>({}, n); });
  refuses("exchange", [](std::uint64_t n) { far::exchange<int>({}, 0, n); });
  refuses("exchange", [](std::uint64_t n) { far::exchange<std::string>({}, 1024, n); });
}

}  // namespace sizes_tests

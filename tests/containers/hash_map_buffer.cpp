// hash_map_buffer against std::map.
#include <farside/algorithms/hash_map_buffer.hpp>

#include "amounts.hpp"
#include "harness.hpp"
#include "map_types.hpp"

#include <map>
#include <stdexcept>

namespace hash_map_buffer_tests {

namespace {

using namespace map_types;

using amounts::scaled;

template <class K>
void count_words(int n, far::concurrency alongside, std::size_t combining) {
  far::hash_map<K, int> counts(8);
  using buffer_type = far::hash_map_buffer<far::hash_map<K, int>>;
  buffer_type buffer(counts, {.combining = combining, .alongside = alongside});
  std::map<K, int> oracle;
  std::mt19937_64 same(7);  // all ranks know what each does
  for (int round = 0; round < 2; ++round) {
    for (far::rank_t r = 0; r < far::nprocs(); ++r)
      for (int i = 0; i < n; ++i) {
        K key = make<K>::of(static_cast<int>(same() % 50));
        int value = static_cast<int>(same() % 9);
        oracle[key] += value;
        if (r == far::rank()) buffer.accumulate(key, value);
      }
    buffer.flush();
    CHECK_EQ(counts.size(), oracle.size());
    for (const auto& [key, value] : oracle) CHECK(counts.find(key) == value);
    far::barrier();
  }
}

}  // namespace

FAR_TEST(buffered_counts) {
  count_words<int>(scaled(500), far::concurrency::everything, 64);
  count_words<int>(scaled(300), far::concurrency::owner_only, 1 << 13);
  count_words<int>(scaled(200), far::concurrency::everything, 0);
}
FAR_TEST(buffered_counts_of_pairs) {
  count_words<std::pair<int, int>>(scaled(200), far::concurrency::everything, 16);
}
FAR_TEST(buffered_counts_of_strings) {
  count_words<std::string>(scaled(200), far::concurrency::everything, 16);
  count_words<std::string>(scaled(200), far::concurrency::owner_only, 16);
}

// Changes of one rank to one key keep their order, also those that cannot be combined.
FAR_TEST(buffered_changes_keep_their_order) {
  far::hash_map<int, int> map(8);
  std::map<int, int> oracle;
  far::hash_map_buffer<far::hash_map<int, int>> buffer(map, {.combining = 8});
  auto random = far_test::random_engine();
  int mine = static_cast<int>(far::rank()) * 1000;
  for (int i = 0; i < scaled(600); ++i) {
    int key = mine + static_cast<int>(random() % 20), value = static_cast<int>(random() % 100);
    switch (random() % 3) {
      case 0:
        buffer.insert(key, value);
        oracle.emplace(key, value);
        break;
      case 1:
        buffer.insert_or_assign(key, value);
        oracle[key] = value;
        break;
      default:
        buffer.accumulate(key, value);
        oracle[key] += value;
    }
    if (i % 50 == 49) buffer.flush();
  }
  buffer.flush();
  for (const auto& [key, value] : oracle) CHECK(map.find(key) == value);
  far::barrier();
}

// One-sided operations at the same time as what owners apply.
FAR_TEST(buffered_and_direct_changes_together) {
  far::hash_map<int, long> map(0);
  far::hash_map_buffer buffer(map);
  int n = scaled(400);
  for (int i = 0; i < n; ++i) {
    buffer.accumulate(i % 30, 1);
    map.accumulate(i % 30, 1);
  }
  buffer.flush();
  long sum = 0;
  for (const auto& [key, value] : map) sum += value;
  CHECK_EQ(far::all_reduce(sum, std::plus<>()), 2L * n * static_cast<long>(far::nprocs()));
}

// The operator alone names the type of the buffer, and a promise needs no operator before it.
FAR_TEST(operators_and_promises_as_people_write_them) {
  far::hash_map<int, unsigned> map(8);
  far::hash_map_buffer marks(map, std::bit_or<>());
  static_assert(std::is_same_v<decltype(marks),
                               far::hash_map_buffer<far::hash_map<int, unsigned>, std::bit_or<>>>);
  far::hash_map_buffer sums(map, {.combining = 0});
  static_assert(std::is_same_v<decltype(sums), far::hash_map_buffer<far::hash_map<int, unsigned>>>);
  for (unsigned bit : {1u, 4u, 1u}) marks.accumulate(1, bit);
  marks.flush();
  CHECK_EQ(map.find(1), 5u);
  sums.flush();

  far::barrier();
  map.accumulate(2, 1, far::concurrency::modify);
  std::vector<std::pair<int, unsigned>> both{{2, 1}, {3, 1}};
  map.accumulate(both, far::concurrency::modify);
  map.async_accumulate(3, 1, far::concurrency::modify).get();
  far::barrier();
  CHECK_EQ(map.find(2), 2u * far::nprocs());
  CHECK_EQ(map.find(3), 2u * far::nprocs());
  far::barrier();
}

// An operator that throws: on all ranks, at flush, and only its own change is left out. Messages
// are so small that changes are also applied while others are sent.
FAR_TEST(an_operator_that_throws) {
  auto add = [](long a, long b) {
    if (a + b > 1000) throw std::overflow_error("too much");
    return a + b;
  };
  far::hash_map<int, long> map(100);
  far::hash_map_buffer<decltype(map), decltype(add)> buffer(
      map, {.message_bytes = 64, .combining = 0}, add);
  for (int key = 0; key < 40; ++key) buffer.accumulate(key, 1);
  buffer.flush();
  const long n = static_cast<long>(far::nprocs());
  for (int key = 0; key < 40; ++key) {
    buffer.accumulate(key, 1);
    if (far::rank() == 0 && key % 10 == 3) buffer.accumulate(key, 1000);
  }
  CHECK_THROWS(buffer.flush(), "too much");
  CHECK_EQ(map.size(), 40u);
  for (int key = 0; key < 40; ++key) CHECK_EQ(map.find(key), 2 * n);
  far::barrier();
  buffer.accumulate(3, 1);
  buffer.flush();
  CHECK_EQ(map.find(3), 3 * n);
  far::barrier();
}

}  // namespace hash_map_buffer_tests

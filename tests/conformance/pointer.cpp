// far::ptr: its bits, its arithmetic, and what iterators and linked structures need of it.
#include "harness.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <type_traits>
#include <unordered_set>

namespace pointer_tests {

using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

static_assert(sizeof(far::ptr<double>) == 8);
static_assert(std::is_trivially_copyable_v<far::ptr<double>>);
static_assert(std::random_access_iterator<far::ptr<int>>);
static_assert(std::random_access_iterator<far::ptr<const int>>);
static_assert(std::output_iterator<far::ptr<int>, int>);
static_assert(std::is_convertible_v<far::ptr<int>, far::ptr<const int>>);
static_assert(!std::is_convertible_v<far::ptr<const int>, far::ptr<int>>);
static_assert(!std::is_convertible_v<far::ptr<int>, far::ptr<long>>);
static_assert(far::ptr<int>(2, 64) + 3 ==
              far::ptr<int>(2, 76));  // all but dereferencing is constexpr

namespace {

struct node {
  long value;
  far::ptr<node> next;  // to a type that is not complete yet
};

struct triple {
  int a, b, c;
};

}  // namespace

FAR_TEST(bits_of_the_layout) {
  struct place {
    far::rank_t rank;
    std::size_t offset;
  };
  for (place at :
       {place{0, 8}, place{3, 0x1234}, place{far::max_ranks - 1, 0}, place{0, far::max_segment - 1},
        place{far::max_ranks - 1, far::max_segment - 1}}) {
    far::ptr<char> p(at.rank, at.offset);
    CHECK_EQ(p.rank(), at.rank);
    CHECK_EQ(p.offset(), at.offset);
    CHECK_EQ(p.raw(), std::uint64_t{at.rank} << 44 | at.offset);
    CHECK_EQ(p.raw() >> 63, 0u);  // host memory
    CHECK(far::ptr<char>::from_raw(p.raw()) == p);
  }
}

FAR_TEST(null) {
  far::ptr<int> p, q = nullptr;
  CHECK_EQ(p.raw(), 0u);
  CHECK(p == q);
  CHECK(p == nullptr);
  CHECK(!p);
  CHECK(p.local() == nullptr);
  CHECK(far::ptr<int>(1, 0));
  CHECK(far::ptr<int>(0, 4) != nullptr);
  std::ostringstream out;
  out << p << " " << far::ptr<int>(2, 0x1f4) << " " << 10;
  CHECK_EQ(out.str(), "null 2:0x1f4 10");
}

FAR_TEST(arithmetic_agrees_with_addresses) {
  auto random = far_test::random_engine();
  triple memory[101];
  triple* address = memory;
  far::ptr<triple> p(5, 4096);
  for (int i = 0; i < 500; ++i) {
    std::ptrdiff_t to = static_cast<std::ptrdiff_t>(random() % 101);
    std::ptrdiff_t step = to - (address - memory);
    switch (random() % 4) {
      case 0:
        p += step;
        break;
      case 1:
        p = p + step;
        break;
      case 2:
        p -= -step;
        break;
      default:
        p = step + p;
        break;
    }
    address += step;
    CHECK_EQ(p.offset(), 4096u + static_cast<std::size_t>(address - memory) * sizeof(triple));
    CHECK_EQ(p.rank(), 5u);
    CHECK_EQ(p - far::ptr<triple>(5, 4096), address - memory);
    CHECK_EQ(far::ptr<triple>(5, 4096) - p, memory - address);
  }
  p = far::ptr<triple>(5, 4096);
  CHECK(p++ == far::ptr<triple>(5, 4096));
  CHECK(p == far::ptr<triple>(5, 4108));
  CHECK(++p == far::ptr<triple>(5, 4120));
  CHECK(p-- == far::ptr<triple>(5, 4120));
  CHECK(--p == far::ptr<triple>(5, 4096));
  CHECK(&p[7] == p + 7);
}

FAR_TEST(comparison_orders_by_rank_and_offset) {
  std::vector<far::ptr<int>> sorted;
  for (far::rank_t rank : {0u, 1u, 2u, 500000u})
    for (std::size_t offset : {4u, 8u, 4096u}) sorted.push_back(far::ptr<int>(rank, offset));
  auto shuffled = sorted;
  auto random = far_test::random_engine();
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    CHECK(sorted[i - 1] < sorted[i]);
    CHECK(sorted[i] >= sorted[i - 1]);
    CHECK(sorted[i] != sorted[i - 1]);
  }
}

FAR_TEST(hashing) {
  std::unordered_set<far::ptr<int>> set;
  for (far::rank_t rank = 0; rank < 8; ++rank)
    for (std::size_t offset = 0; offset < 4096; offset += 4)
      set.insert(far::ptr<int>(rank, offset));
  CHECK_EQ(set.size(), 8u * 1024);
  CHECK(set.contains(far::ptr<int>(7, 4092)));
  CHECK(!set.contains(far::ptr<int>(8, 4092)));
}

FAR_TEST(pointer_casts) {
  auto words = objects_on_each_rank<std::uint64_t>(2, 0x8877665544332211);
  auto next = words[(far::rank() + 1) % far::nprocs()];
  auto bytes = far::pointer_cast<const unsigned char>(next);
  unsigned char expected[8];
  std::uint64_t word = 0x8877665544332211;
  std::memcpy(expected, &word, 8);
  for (int i = 0; i < 8; ++i) CHECK_EQ(static_cast<unsigned char>(bytes[i]), expected[i]);
  CHECK(far::pointer_cast<std::uint64_t>(far::pointer_cast<char>(next) + 8) == next + 1);
  release(words);
}

FAR_TEST(local_is_the_same_memory) {
  auto arrays = objects_on_each_rank<int>(8, 7);
  auto own = arrays[far::rank()];
  CHECK(own.local() != nullptr);
  CHECK_EQ((own + 5).local() - own.local(), 5);
  CHECK_EQ(own.local()[3], 7);
  far::barrier();
  auto next = arrays[(far::rank() + 1) % far::nprocs()];
  far::put(next + 3, static_cast<int>(far::rank()));
  far::barrier();
  CHECK_EQ(own.local()[3], static_cast<int>((far::rank() + far::nprocs() - 1) % far::nprocs()));
  far::barrier();
  if (int* there = next.local()) {  // where this process can reach it, it is the same memory too
    there[4] = 100 + static_cast<int>(far::rank());
    CHECK_EQ(far::get(next + 4), 100 + static_cast<int>(far::rank()));
  }
  release(arrays);
}

FAR_TEST(what_is_in_no_segment_has_no_address) {
  const std::size_t end = far::detail::here().link.segment_size();
  const far::rank_t me = far::rank();
  CHECK(far::ptr<long>(me, end + 8).local() == nullptr);
  CHECK(far::ptr<char>(me, end + 1).local() == nullptr);
  CHECK(far::ptr<long>(me, far::max_segment - 8).local() == nullptr);
  CHECK(far::ptr<long>(far::nprocs(), 4096).local() == nullptr);
  CHECK(far::ptr<long>(me, end - 8).local() != nullptr);
  CHECK(far::ptr<long>(me, end).local() != nullptr);  // the end of an array
}

FAR_TEST(references_read_and_write) {
  auto values = objects_on_each_rank<int>(4, 10);
  auto next = values[(far::rank() + 1) % far::nprocs()];
  *next = 3;
  CHECK_EQ(static_cast<int>(*next), 3);
  next[1] += 5;
  next[2] -= 5;
  next[3] *= 5;
  CHECK_EQ(static_cast<int>(next[1]), 15);
  CHECK_EQ(static_cast<int>(next[2]), 5);
  CHECK_EQ(static_cast<int>(next[3]), 50);
  next[3] /= 4;
  CHECK_EQ(static_cast<int>(next[3]), 12);
  next[0] = next[1];  // the value, as between references
  CHECK_EQ(static_cast<int>(next[0]), 15);
  CHECK_EQ(static_cast<int>(next[1]), 15);
  swap(next[0], next[2]);
  CHECK_EQ(static_cast<int>(next[0]), 5);
  CHECK_EQ(static_cast<int>(next[2]), 15);
  CHECK(&next[2] == next + 2);
  far::ptr<const int> constant = next;
  CHECK_EQ(static_cast<int>(constant[2]), 15);
  CHECK_EQ(far::get(constant + 2), 15);
  CHECK(constant == far::ptr<const int>(next));
  release(values);
}

FAR_TEST(standard_algorithms) {
  constexpr std::size_t n = 60;
  auto arrays = objects_on_each_rank<int>(n);
  auto random = far_test::random_engine();
  std::vector<int> oracle(n);
  for (int& v : oracle) v = static_cast<int>(random() % 1000);
  auto next = arrays[(far::rank() + 1) % far::nprocs()];

  std::copy(oracle.begin(), oracle.end(), next);
  CHECK_EQ(std::accumulate(next, next + n, 0), std::accumulate(oracle.begin(), oracle.end(), 0));
  CHECK(std::equal(oracle.begin(), oracle.end(), next));
  CHECK_EQ(std::distance(next, std::max_element(next, next + n)),
           std::distance(oracle.begin(), std::max_element(oracle.begin(), oracle.end())));
  CHECK_EQ(std::count(far::ptr<const int>(next), far::ptr<const int>(next + n), oracle[0]),
           std::count(oracle.begin(), oracle.end(), oracle[0]));

  std::sort(next, next + n);
  std::sort(oracle.begin(), oracle.end());
  std::vector<int> sorted(n);
  std::copy(next, next + n, sorted.begin());
  CHECK_EQ(sorted, oracle);
  CHECK(std::binary_search(next, next + n, oracle[7]));

  std::reverse(next, next + n);
  std::reverse(oracle.begin(), oracle.end());
  CHECK_EQ(far::get(next, n), oracle);
  std::fill(next, next + n / 2, -1);
  std::fill(oracle.begin(), oracle.begin() + n / 2, -1);
  CHECK_EQ(far::get(next, n), oracle);
  std::ranges::transform(next, next + n, next, [](int v) { return 2 * v; });
  std::ranges::transform(oracle, oracle.begin(), [](int v) { return 2 * v; });
  CHECK_EQ(far::get(next, n), oracle);

  far::barrier();
  auto own = arrays[far::rank()];  // and on own memory
  std::sort(own, own + n, [](int a, int b) { return a > b; });
  auto after = far::get(own, n);
  CHECK(std::is_sorted(after.rbegin(), after.rend()));
  release(arrays);
}

// Treiber's stack without pops: a far pointer fits a far compare-and-swap.
FAR_TEST(linked_list_across_ranks) {
  auto head = shared_objects<far::ptr<node>>(far::nprocs() - 1);
  constexpr long each = 25;
  for (long i = 0; i < each; ++i) {
    auto fresh = far::alloc<node>();
    auto old = far::atomic_load(head);
    for (;;) {
      far::put(fresh, node{far::rank() * each + i, old});
      far::flush(fresh.rank());
      auto seen = far::compare_swap(head, old, fresh);
      if (seen == old) break;
      old = seen;
    }
  }
  far::barrier();
  std::set<long> values;
  std::size_t length = 0;
  for (auto at = far::atomic_load(head); at;) {
    node n = far::get(at);
    values.insert(n.value);
    at = n.next;
    if (++length > 10'000) break;  // a cycle
  }
  std::size_t all = static_cast<std::size_t>(each) * far::nprocs();
  CHECK_EQ(length, all);
  CHECK_EQ(values.size(), all);
  CHECK_EQ(*values.rbegin(), static_cast<long>(all) - 1);
  far::barrier();
  if (far::rank() == 0)  // one rank gives back everybody's nodes
    for (auto at = far::atomic_load(head); at;) {
      auto next = far::get(at).next;
      far::dealloc(at);
      at = next;
    }
  release(head);
}

}  // namespace pointer_tests

// Far atomics against the same operations on std::atomic, alone and in a crowd.
#include "harness.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <numeric>
#include <set>

namespace atomics_tests {

using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

enum class colour : std::int32_t { red = -1, green = 7, blue = 1 << 30 };

/// Values at which an implementation for the wrong sign or width goes wrong.
template <class T>
std::vector<T> edges() {
  using limits = std::numeric_limits<T>;
  return {T(0),
          T(1),
          static_cast<T>(-1),
          limits::max(),
          limits::min(),
          static_cast<T>(limits::max() - 1),
          static_cast<T>(limits::max() / 2 + 1),
          T(0x55555555)};
}

/// The new value of each operation, as std::atomic would have it.
template <class T>
struct model {
  std::atomic<T> word;
  T min(T v) {
    T old = word;
    word = std::min(old, v);
    return old;
  }
  T max(T v) {
    T old = word;
    word = std::max(old, v);
    return old;
  }
};

template <class T>
void every_operation(far::ptr<T> at, T from, T value) {
  model<T> m;
  auto both = [&](auto far_operation, auto standard) {
    far::atomic_store(at, from);
    m.word = from;
    CHECK_EQ(far_operation(), standard());
    CHECK_EQ(far::atomic_load(at), m.word.load());
  };
  both([&] { return far::fetch_add(at, value); }, [&] { return m.word.fetch_add(value); });
  both([&] { return far::fetch_sub(at, value); }, [&] { return m.word.fetch_sub(value); });
  both([&] { return far::fetch_and(at, value); }, [&] { return m.word.fetch_and(value); });
  both([&] { return far::fetch_or(at, value); }, [&] { return m.word.fetch_or(value); });
  both([&] { return far::fetch_xor(at, value); }, [&] { return m.word.fetch_xor(value); });
  both([&] { return far::fetch_min(at, value); }, [&] { return m.min(value); });
  both([&] { return far::fetch_max(at, value); }, [&] { return m.max(value); });
  both([&] { return far::swap(at, value); }, [&] { return m.word.exchange(value); });
  both([&] { return far::compare_swap(at, from, value); },
       [&] {
         m.word = value;
         return from;
       });
  T wrong = static_cast<T>(from ^ 1);
  both([&] { return far::compare_swap(at, wrong, value); }, [&] { return from; });
}

template <class T>
void every_async_operation(far::ptr<T> at, T from, T value) {
  model<T> m;
  auto both = [&](auto far_operation, auto standard) {
    far::atomic_store(at, from);
    m.word = from;
    far::future<T> old = far_operation();
    CHECK_EQ(old.get(), standard());
    CHECK_EQ(far::atomic_load(at), m.word.load());
  };
  both([&] { return far::async_fetch_add(at, value); }, [&] { return m.word.fetch_add(value); });
  both([&] { return far::async_fetch_sub(at, value); }, [&] { return m.word.fetch_sub(value); });
  both([&] { return far::async_fetch_and(at, value); }, [&] { return m.word.fetch_and(value); });
  both([&] { return far::async_fetch_or(at, value); }, [&] { return m.word.fetch_or(value); });
  both([&] { return far::async_fetch_xor(at, value); }, [&] { return m.word.fetch_xor(value); });
  both([&] { return far::async_fetch_min(at, value); }, [&] { return m.min(value); });
  both([&] { return far::async_fetch_max(at, value); }, [&] { return m.max(value); });
  both([&] { return far::async_swap(at, value); }, [&] { return m.word.exchange(value); });
  both([&] { return far::async_compare_swap(at, from, value); },
       [&] {
         m.word = value;
         return from;
       });
}

template <class T>
void every_operation_on_edges() {
  auto words = objects_on_each_rank<T>(2);
  auto random = far_test::random_engine();
  for (auto at : {words[(far::rank() + 1) % far::nprocs()] + 1}) {
    for (T from : edges<T>()) {
      T value = edges<T>()[random() % edges<T>().size()];
      every_operation(at, from, value);
      every_operation(at, static_cast<T>(random()), static_cast<T>(random()));
    }
    every_async_operation(at, static_cast<T>(random()), static_cast<T>(random()));
    every_async_operation(at, std::numeric_limits<T>::min(), static_cast<T>(-1));
  }
  release(words);
}

}  // namespace

FAR_TEST(every_operation_int32) { every_operation_on_edges<std::int32_t>(); }
FAR_TEST(every_operation_uint32) { every_operation_on_edges<std::uint32_t>(); }
FAR_TEST(every_operation_int64) { every_operation_on_edges<std::int64_t>(); }
FAR_TEST(every_operation_uint64) { every_operation_on_edges<std::uint64_t>(); }
FAR_TEST(every_operation_long_long) { every_operation_on_edges<long long>(); }
FAR_TEST(every_operation_unsigned_long_long) { every_operation_on_edges<unsigned long long>(); }

FAR_TEST(own_memory) {
  auto own = far::make<std::int64_t>(-5);
  every_operation<std::int64_t>(own, -5, 12);
  every_async_operation<std::int64_t>(own, 100, -7);
  far::dealloc(own);
}

FAR_TEST(minimum_and_maximum_know_the_sign) {
  auto words = objects_on_each_rank<std::int32_t>(1, 3);
  auto at = words[(far::rank() + 1) % far::nprocs()];
  CHECK_EQ(far::fetch_min(at, -2), 3);
  CHECK_EQ(far::fetch_min(at, 1), -2);
  CHECK_EQ(far::fetch_max(at, -1), -2);
  CHECK_EQ(far::atomic_load(at), -1);
  auto unsigned_words = objects_on_each_rank<std::uint64_t>(1, 3u);
  auto large = unsigned_words[(far::rank() + 1) % far::nprocs()];
  CHECK_EQ(far::fetch_max(large, std::uint64_t{1} << 63), 3u);
  CHECK_EQ(far::fetch_min(large, 9u), std::uint64_t{1} << 63);
  CHECK_EQ(far::atomic_load(large), 9u);
  release(words);
  release(unsigned_words);
}

FAR_TEST(overflow_wraps) {
  auto words = objects_on_each_rank<std::int32_t>(1, std::numeric_limits<std::int32_t>::max());
  auto at = words[(far::rank() + 1) % far::nprocs()];
  CHECK_EQ(far::fetch_add(at, 1), std::numeric_limits<std::int32_t>::max());
  CHECK_EQ(far::fetch_sub(at, 1), std::numeric_limits<std::int32_t>::min());
  CHECK_EQ(far::atomic_load(at), std::numeric_limits<std::int32_t>::max());
  CHECK_EQ(far::fetch_sub(at, std::numeric_limits<std::int32_t>::min()),
           std::numeric_limits<std::int32_t>::max());
  CHECK_EQ(far::atomic_load(at), -1);
  release(words);
}

FAR_TEST(words_of_other_types) {
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  auto doubles = objects_on_each_rank<double>(1, 1.5);
  CHECK_EQ(far::swap(doubles[next], -0.25), 1.5);
  CHECK_EQ(far::compare_swap(doubles[next], -0.25, 1e300), -0.25);
  CHECK_EQ(far::compare_swap(doubles[next], 0.0, 7.0), 1e300);
  CHECK_EQ(far::atomic_load(doubles[next]), 1e300);
  far::atomic_store(doubles[next], 0.0);
  double zero = far::compare_swap(doubles[next], -0.0, 1.0);  // by its bytes: -0.0 is not 0.0
  CHECK_EQ(std::bit_cast<std::uint64_t>(zero), 0u);
  CHECK_EQ(std::bit_cast<std::uint64_t>(far::atomic_load(doubles[next])), 0u);
  CHECK_EQ(far::async_swap(doubles[next], 2.5).get(), 0.0);
  CHECK_EQ(far::async_compare_swap(doubles[next], 2.5, 3.5).get(), 2.5);
  CHECK_EQ(far::atomic_load(far::ptr<const double>(doubles[next])), 3.5);
  release(doubles);

  auto colours = objects_on_each_rank<colour>(2, colour::red);
  CHECK_EQ(far::swap(colours[next] + 1, colour::blue), colour::red);
  CHECK_EQ(far::compare_swap(colours[next] + 1, colour::green, colour::red), colour::blue);
  CHECK_EQ(far::compare_swap(colours[next] + 1, colour::blue, colour::green), colour::blue);
  CHECK_EQ(far::atomic_load(colours[next] + 1), colour::green);
  CHECK_EQ(far::atomic_load(colours[next]), colour::red);
  release(colours);

  auto pointers = objects_on_each_rank<far::ptr<int>>();
  auto somewhere = far::ptr<int>(3, 400);
  CHECK(far::swap(pointers[next], somewhere) == nullptr);
  CHECK(far::compare_swap(pointers[next], somewhere, somewhere + 1) == somewhere);
  CHECK(far::compare_swap(pointers[next], somewhere, nullptr) == somewhere + 1);
  CHECK(far::atomic_load(pointers[next]) == somewhere + 1);
  release(pointers);

  auto floats = objects_on_each_rank<float>(1, 2.0f);
  CHECK_EQ(far::swap(floats[next], 4.0f), 2.0f);
  CHECK_EQ(far::atomic_load(floats[next]), 4.0f);
  release(floats);
}

// Sums of every operation that commutes, from all ranks onto one word.
FAR_TEST(contended_counters_are_exact) {
  constexpr int each = 400;
  far::rank_t all = far::nprocs(), me = far::rank(), host = all / 2;
  auto counters = shared_objects<std::int64_t>(host, 4);
  auto narrow = shared_objects<std::int32_t>(host, 2);
  for (int i = 0; i < each; ++i) {
    far::fetch_add(counters, 3);
    far::fetch_sub(counters + 1, std::int64_t{me} + 1);
    far::fetch_xor(counters + 2, std::int64_t{1} << (me + static_cast<far::rank_t>(i)) % 40);
    far::fetch_max(counters + 3, std::int64_t{me} * each + i);
    far::fetch_add(narrow + 1, -2);
  }
  far::barrier();
  std::int64_t ranks = all, bits = 0;
  for (far::rank_t r = 0; r < all; ++r)
    for (int i = 0; i < each; ++i)
      bits ^= std::int64_t{1} << (r + static_cast<far::rank_t>(i)) % 40;
  CHECK_EQ(far::atomic_load(counters), 3 * each * ranks);
  CHECK_EQ(far::atomic_load(counters + 1), -each * ranks * (ranks + 1) / 2);
  CHECK_EQ(far::atomic_load(counters + 2), bits);
  CHECK_EQ(far::atomic_load(counters + 3), ranks * each - 1);
  CHECK_EQ(far::atomic_load(narrow + 1), -2 * each * ranks);
  CHECK_EQ(far::atomic_load(narrow), 0);
  release(counters);
  release(narrow);
}

FAR_TEST(every_ticket_is_drawn_once) {
  constexpr std::size_t each = 300;
  auto counter = shared_objects<std::uint32_t>(0);
  std::vector<std::uint32_t> tickets(each);
  for (auto& ticket : tickets) ticket = far::fetch_add(counter, 1);
  CHECK(std::is_sorted(tickets.begin(), tickets.end()));  // and in this rank's own order
  auto drawn = far::all_gather(std::span<const std::uint32_t>(tickets));
  std::sort(drawn.begin(), drawn.end());
  std::vector<std::uint32_t> expected(each * far::nprocs());
  std::iota(expected.begin(), expected.end(), 0u);
  CHECK(drawn == expected);
  release(counter);
}

FAR_TEST(increments_by_compare_swap) {
  constexpr int each = 100;
  auto counter = shared_objects<std::int64_t>(far::nprocs() - 1, 1, -1000);
  for (int i = 0; i < each; ++i) {
    auto seen = far::atomic_load(counter);
    for (;;) {
      auto was = far::compare_swap(counter, seen, seen + 1);
      if (was == seen) break;
      seen = was;
    }
  }
  far::barrier();
  CHECK_EQ(far::atomic_load(counter), -1000 + each * static_cast<std::int64_t>(far::nprocs()));
  release(counter);
}

FAR_TEST(swaps_hand_every_value_on) {
  constexpr std::uint64_t each = 200;
  auto word = shared_objects<std::uint64_t>(0);
  std::vector<std::uint64_t> got(each);
  for (std::uint64_t i = 0; i < each; ++i) got[i] = far::swap(word, far::rank() * each + i + 1);
  far::barrier();
  auto all = far::all_gather(std::span<const std::uint64_t>(got));
  all.push_back(far::atomic_load(word));  // the last one is still there
  std::sort(all.begin(), all.end());
  std::vector<std::uint64_t> expected(each * far::nprocs() + 1);
  std::iota(expected.begin(), expected.end(), 0u);
  CHECK(all == expected);
  release(word);
}

FAR_TEST(many_async_atomics_in_flight) {
  constexpr std::size_t each = 200;
  auto counters = objects_on_each_rank<std::uint64_t>(1, 0u);
  std::vector<far::future<std::uint64_t>> olds;
  for (std::size_t i = 0; i < each; ++i)
    for (auto at : counters) olds.push_back(far::async_fetch_add(at, 1));
  std::uint64_t sum = 0;
  for (auto& old : olds) sum += old.get();
  far::barrier();
  for (auto at : counters) CHECK_EQ(far::atomic_load(at), each * far::nprocs());
  std::uint64_t per_counter = each * far::nprocs();
  CHECK_EQ(far::all_reduce(sum), far::nprocs() * (per_counter * (per_counter - 1) / 2));
  release(counters);
}

// Halves of one 64-bit word belong to different ranks.
FAR_TEST(neighbours_do_not_disturb_each_other) {
  constexpr std::uint32_t each = 300;
  far::rank_t all = far::nprocs(), me = far::rank();
  auto words = shared_objects<std::uint32_t>(0, all + 1, 0xFFFF'FFF0u);
  for (std::uint32_t i = 0; i < each; ++i) {
    far::fetch_add(words + me, 1);  // wraps: a carry must not reach the neighbour
    if (i % 3 == 0) far::fetch_xor(words + me, 0x8000'0000u);
    if (i % 5 == 0) {
      auto now = far::atomic_load(words + me);
      CHECK_EQ(far::compare_swap(words + me, now, now), now);
    }
  }
  far::barrier();
  for (far::rank_t r = 0; r < all; ++r) CHECK_EQ(far::atomic_load(words + r), 0xFFFF'FFF0u + each);
  CHECK_EQ(far::atomic_load(words + all), 0xFFFF'FFF0u);
  release(words);
}

}  // namespace atomics_tests

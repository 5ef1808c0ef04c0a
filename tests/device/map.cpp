// far::device_hash_map against std::unordered_map, and, with many threads on few keys, against counts.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace device_map_tests {

using u64 = std::uint64_t;

std::vector<u64> random_keys(std::size_t n, u64 range, u64 salt = 0) {
  auto engine = far_test::random_engine(salt);
  std::vector<u64> result(n);
  for (u64& key : result) key = engine() % range;
  return result;
}

/// All ranks' map of keys to what they sum up to.
std::unordered_map<u64, u64> gather(const std::vector<u64>& keys, const std::vector<u64>& values) {
  std::vector<u64> all_keys, all_values;
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    auto k = far::broadcast(keys, r), v = far::broadcast(values, r);
    all_keys.insert(all_keys.end(), k.begin(), k.end());
    all_values.insert(all_values.end(), v.begin(), v.end());
  }
  std::unordered_map<u64, u64> result;
  for (std::size_t i = 0; i < all_keys.size(); ++i) result[all_keys[i]] += all_values[i];
  return result;
}

FAR_TEST(bulk_inserts_and_finds) {
  far::device gpu;
  far::device_hash_map<u64, u64> map(gpu, 20000);
  auto keys = random_keys(3000, 4000);
  std::vector<u64> values(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) values[i] = keys[i] * 7;
  std::size_t fresh = map.insert(keys, values);
  far::barrier();
  auto expected = gather(keys, values);
  CHECK_EQ(far::all_reduce(fresh), expected.size());
  CHECK_EQ(map.size(), expected.size());
  std::vector<u64> asked(5000);
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = i;
  auto found = map.find(asked);
  for (u64 key = 0; key < asked.size(); ++key) {
    bool there = expected.contains(key);
    if (found[key].has_value() != there) CHECK_EQ(found[key].has_value(), there);
    if (there && found[key] != key * 7) CHECK_EQ(*found[key], key * 7);
  }
  far::barrier();
  CHECK_EQ(map.insert(keys, values), 0u);
  map.clear();
  CHECK_EQ(map.size(), 0u);
  CHECK(!map.find(std::vector<u64>{keys[0]})[0]);
  far::barrier();
}

FAR_TEST(accumulates_of_all_ranks) {
  far::device gpu;
  far::device_hash_map<u64, u64> map(gpu, 3000);
  auto keys = random_keys(6000, 900);
  auto values = random_keys(6000, 100, 1);
  map.accumulate(keys, values);
  far::barrier();
  auto expected = gather(keys, values);
  u64 entries = 0;
  for (auto [key, value] : map.local_entries()) {
    ++entries;
    CHECK_EQ(map.ref().owner(key), far::rank());
    CHECK_EQ(value, expected[key]);
  }
  CHECK_EQ(far::all_reduce(entries), expected.size());
}

struct hammer {
  far::device_map_ref<u64, u64> map;
  u64 keys;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    map.accumulate(d, i % keys, 1);
  }
};

/// Inserts a key whose value names the caller; the winner counts itself.
struct race {
  far::device_map_ref<u64, u64> map;
  far::device_ptr<u64> winners, sum;
  u64 keys, calls;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    u64 mine = d.rank() * calls + i + 1;
    if (map.insert(d, i % keys, mine) == far::device_insert::inserted) {
      d.fetch_add(winners, u64{1});
      d.fetch_add(sum, mine);
    }
  }
};

FAR_TEST(many_threads_on_few_keys) {
  far::device gpu;
  u64 calls = gpu.kind() == std::string("cuda") ? 1'000'000 : 12'000;
  for (u64 keys : {u64{1}, u64{7}, u64{300}}) {
    far::device_hash_map<u64, u64> map(gpu, 1000);
    far::device_stream one(gpu), other(gpu);
    one.launch(calls, hammer{map.ref(), keys});
    other.launch(calls, hammer{map.ref(), keys});
    one.synchronize();
    other.synchronize();
    far::barrier();
    u64 sum = 0, entries = 0;
    for (auto [key, value] : map.local_entries()) {
      u64 each = calls / keys + (key < calls % keys);
      CHECK_EQ(value, 2 * far::nprocs() * each);
      sum += value;
      ++entries;
    }
    CHECK_EQ(far::all_reduce(sum), 2 * far::nprocs() * calls);
    CHECK_EQ(far::all_reduce(entries), keys);
  }
}

FAR_TEST(one_insert_of_a_key_wins) {
  far::device gpu;
  u64 calls = gpu.kind() == std::string("cuda") ? 1'000'000 : 12'000;
  auto own = gpu.alloc<u64>(2);
  auto counted = far::broadcast(own.raw(), 0);
  auto winners = far::device_ptr<u64>::from_raw(counted);
  for (u64 keys : {u64{1}, u64{50}, u64{4000}}) {
    far::device_hash_map<u64, u64> map(gpu, 5000);
    std::vector<u64> zeros(2);
    if (far::rank() == 0) gpu.put(own, zeros.data(), 2);
    far::barrier();
    far::device_stream one(gpu), other(gpu);
    one.launch(calls, race{map.ref(), winners, winners + 1, keys, calls});
    other.launch(calls, race{map.ref(), winners, winners + 1, keys, calls});
    one.synchronize();
    other.synchronize();
    far::barrier();
    u64 sum = 0;
    for (auto [key, value] : map.local_entries()) {
      CHECK_EQ((value - 1) % calls % keys, key);
      sum += value;
    }
    std::vector<u64> seen(2);
    gpu.get(winners, seen.data(), 2);
    CHECK_EQ(seen[0], keys);
    CHECK_EQ(far::all_reduce(sum), seen[1]);
    far::barrier();
  }
  gpu.dealloc(own);
}

FAR_TEST(full_and_forbidden) {
  far::device gpu;
  far::device_hash_map<u64, u64> map(gpu, 100, {.load = 0.95});
  std::vector<u64> keys(2000 * far::nprocs()), values(keys.size(), 1);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  far::barrier();
  if (far::rank() == 0) CHECK_THROWS(map.insert(keys, values), "has no slot left for");
  far::barrier();
  u64 entries = map.size();
  CHECK(entries >= 100 && entries < keys.size());
  // A full map still finds what is there, and adds to it.
  auto there = map.local_entries();
  std::vector<u64> present;
  for (auto [key, value] : there) present.push_back(key);
  CHECK_EQ(map.accumulate(present, std::vector<u64>(present.size(), 4)), 0u);
  for (auto found : map.find(present)) CHECK_EQ(found.value_or(0), 5u);
  CHECK_THROWS(map.insert(std::vector<u64>{~u64{0}}, std::vector<u64>{1}),
               "stands for an empty slot");
  CHECK_THROWS(map.insert(std::vector<u64>{5}, std::vector<u64>{~u64{0}}),
               "a value that is not there yet");
  CHECK_THROWS(map.insert(std::vector<u64>{5, 6}, std::vector<u64>{1}), "2 keys but 1 values");
  far::barrier();
}

FAR_TEST(inserts_by_streams_and_in_bulk_are_counted_apart) {
  far::device gpu;
  far::device_hash_map<u64, u64> map(gpu, 4000), other(gpu, 4000);
  far::device_stream one(gpu), two(gpu);
  const u64 first = far::rank() * 1000;
  std::vector<u64> keys(100), values(100, 7);
  for (u64 i = 0; i < keys.size(); ++i) keys[i] = first + i;
  CHECK_EQ(map.insert(keys, values), 100u);
  auto on_keys = gpu.alloc<u64>(100), on_values = gpu.alloc<u64>(100);
  gpu.put(on_keys, keys.data(), 100);
  gpu.put(on_values, values.data(), 100);
  map.insert(one, on_keys, on_values, 100);
  other.accumulate(two, on_keys, on_values, 60);  // several maps at once
  one.synchronize();
  two.synchronize();
  CHECK_EQ(map.insert(std::vector<u64>{first + 500, first + 501}, std::vector<u64>{1, 2}), 2u);
  CHECK_EQ(map.outcome().present, 100u);
  CHECK_EQ(map.outcome().present, 0u);
  CHECK_EQ(other.outcome().present, 0u);
  CHECK_EQ(other.insert(keys, values), 40u);
  far::barrier();
  CHECK_EQ(map.size(), 102u * far::nprocs());
  CHECK_EQ(other.size(), 100u * far::nprocs());
  gpu.dealloc(on_keys);
  gpu.dealloc(on_values);
  far::barrier();
}

/// Three parts: the two buffers are used again. The stand-in takes a second for them, so that it does it with 3
/// ranks alone.
FAR_TEST(bulk_inserts_of_several_parts) {
  far::device gpu;
  const bool large = gpu.kind() == std::string("cuda") || far::nprocs() == 3;
  const std::size_t n = large ? (std::size_t{2} << 20) + 1000 : 10'000;
  far::device_hash_map<u64, u64> map(gpu, n / 8, {.load = 0.9});
  if (far::rank() == 0) {
    std::vector<u64> keys(n), ones(n, 1);
    for (u64 i = 0; i < n; ++i) keys[i] = i % 1000;
    CHECK_EQ(map.accumulate(keys, ones), 1000u);
    u64 sum = 0;
    std::vector<u64> asked(keys.begin(), keys.begin() + 1000);
    for (auto found : map.find(asked)) sum += found.value_or(0);
    CHECK_EQ(sum, n);
  }
  CHECK(true);
  far::barrier();
}

struct no_sum {
  int a, b;
};

FAR_TEST(values_that_cannot_be_added) {
  far::device gpu;
  far::device_hash_map<u64, no_sum> map(gpu, 100);
  far::device_hash_map<far::device_ptr<long>, far::device_ptr<long>> pointers(gpu, 100);
  auto mine = gpu.alloc<long>();
  map.insert(std::vector<u64>{far::rank()}, std::vector<no_sum>{{1, 2}});
  pointers.insert(std::vector{mine}, std::vector{mine});
  far::barrier();
  CHECK_EQ(map.find(std::vector<u64>{far::nprocs() - 1})[0].value_or(no_sum{}).b, 2);
  CHECK(pointers.find(std::vector{mine})[0] == mine);
  far::barrier();
  gpu.dealloc(mine);
}

FAR_TEST(sums_may_be_minus_one) {
  far::device gpu;
  far::device_hash_map<u64, int> small(gpu, 100);
  far::device_hash_map<u64, std::int64_t> large(gpu, 100);
  const u64 key = far::rank();
  small.accumulate(std::vector<u64>{key, key}, std::vector<int>{-2, 1});
  large.accumulate(std::vector<u64>{key, key}, std::vector<std::int64_t>{-2, 1});
  CHECK_EQ(small.find(std::vector<u64>{key})[0].value_or(7), -1);
  CHECK_EQ(large.find(std::vector<u64>{key})[0].value_or(7), -1);
  far::barrier();
}

#if FARSIDE_CHECKED
struct insert_one {
  far::device_map_ref<u64, u64> map;
  u64 key, value;
  bool adds;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t) const {
    if (adds)
      map.accumulate(d, key, value);
    else
      map.insert(d, key, value);
  }
};

FAR_TEST(forbidden_keys_and_values_end_a_checked_kernel) {
  far::device gpu;
  far::device_hash_map<u64, u64> map(gpu, 100);
  far::device_stream work(gpu);
  for (bool adds : {false, true}) {
    work.launch(1, insert_one{map.ref(), ~u64{0}, 5, adds});
    CHECK_THROWS(work.synchronize(), "which stands for an empty slot");
    work.launch(1, insert_one{map.ref(), 7, ~u64{0}, adds});
    CHECK_THROWS(work.synchronize(), "a value that is not there yet");
  }
  far::barrier();
  CHECK_EQ(map.size(), 0u);
}
#endif

#if !defined(FARSIDE_USE_CUDA)
/// The path of processors that swap two words at once, which no CPU takes otherwise. The lock is for those who
/// claim slots: the value is stored first, as nobody looks at it before the key is there.
struct paired_atomics : far::detail::kernel_atomics {
  static constexpr bool swaps_pairs = true;
  using kernel_atomics::compare_swap;
  static far::detail::word_pair compare_swap(far::detail::word_pair* at,
                                             far::detail::word_pair expected,
                                             far::detail::word_pair desired) {
    static std::mutex claims;
    std::lock_guard lock(claims);
    const far::detail::word_pair seen = load(at);
    if (seen.first != expected.first || seen.second != expected.second) return seen;
    store(&at->second, desired.second);
    __atomic_store_n(&at->first, desired.first, __ATOMIC_RELEASE);
    return expected;
  }
};

FAR_TEST(slots_that_are_claimed_with_their_value) {
  using far::detail::word_pair;
  const far::detail::device_map_words words;
  constexpr u64 slots = 64, calls = 400;
  u64 wrong = 0;
  for (u64 round = 0; round < 50; ++round) {
    std::vector<word_pair> table(slots, word_pair{words.empty_key, words.absent_value});
    const far::detail::device_map_protocol<paired_atomics> map(table.data(), slots, words);
    const u64 keys = 1 + round % 60;
    auto work = [&](u64 thread) {
      for (u64 i = 0; i < calls; ++i) {
        const u64 key = (i + 17 * thread) % keys;
        map.change(far::mix(key) % slots, key, 1, far::detail::device_add_words<paired_atomics>{1});
      }
    };
    std::thread one(work, 0), two(work, 1);
    work(2);
    one.join();
    two.join();
    u64 sum = 0, entries = 0;
    for (u64 key = 0; key < keys; ++key) {
      u64 value = 0;
      if (map.find(far::mix(key) % slots, key, value)) sum += value;
    }
    for (const word_pair& slot : table) entries += slot.first != words.empty_key;
    wrong += sum != 3 * calls || entries != keys;
  }
  CHECK_EQ(wrong, 0u);
}
#endif

/// What a thread leaves that stops between claim and publication.
FAR_TEST(a_claimed_key_is_not_there_until_it_has_a_value) {
  far::detail::device_map_words words;
  far::detail::word_pair slots[2] = {{7, words.absent_value},
                                     {words.empty_key, words.absent_value}};
  const far::detail::device_map_protocol<far::detail::kernel_atomics> map(slots, 2, words);
  u64 value = 0;
  CHECK(!map.find(0, 7, value));
  CHECK(map.insert(0, 7, 70) == far::device_insert::inserted);
  CHECK(map.find(0, 7, value));
  CHECK_EQ(value, 70u);
  CHECK(map.insert(0, 7, 71) == far::device_insert::present);
  CHECK(map.insert(0, 8, 80) == far::device_insert::inserted);
  CHECK(map.insert(0, 9, 90) == far::device_insert::full);
}

struct largest {
  FARSIDE_KERNEL_CODE double operator()(double a, double b) const { return a < b ? b : a; }
};
struct raise_to {
  far::device_map_ref<int, double> map;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    map.accumulate(d, static_cast<int>(i % 10) - 5, static_cast<double>(i) + d.rank() * 0.25,
                   largest{});
  }
};

FAR_TEST(other_types_and_operations) {
  far::device gpu;
  far::device_hash_map<int, double> map(gpu, 100, {.empty_key = 1'000'000});
  far::device_stream work(gpu);
  work.launch(1000, raise_to{map.ref()});
  work.synchronize();
  far::barrier();
  std::vector<int> keys{-5, -1, 0, 4, 77, -1'000};
  auto found = map.find(keys);
  double more = (far::nprocs() - 1) * 0.25;
  CHECK_EQ(found[0].value_or(0), 990 + more);
  CHECK_EQ(found[1].value_or(0), 994 + more);
  CHECK_EQ(found[2].value_or(0), 995 + more);
  CHECK_EQ(found[3].value_or(0), 999 + more);
  CHECK(!found[4]);
  CHECK(!found[5]);
  far::barrier();
  map.accumulate(std::vector<int>{77, 77, 4}, std::vector<double>{1.5, 2, 1});
  far::barrier();
  CHECK_EQ(map.find(std::vector<int>{77})[0].value_or(0), 3.5 * far::nprocs());
  CHECK_EQ(map.find(std::vector<int>{4})[0].value_or(0), 999 + more + far::nprocs());
  far::barrier();
}

FAR_TEST(options_that_make_no_sense) {
  far::device gpu;
  using map = far::device_hash_map<u64, u64>;
  CHECK_THROWS(map(gpu, 10, {.load = 0}), "makes no sense");
  CHECK_THROWS(map(gpu, 10, {.load = 0.99}), "makes no sense");
  CHECK_THROWS(map(gpu, gpu.segment_size() * far::nprocs()), "no room for");
}

}  // namespace device_map_tests

// far::device_hash_map against std::unordered_map, and, with many threads on few keys, against counts.
#include "harness.hpp"
#include "stand_in.hpp"

#include <farside/device.hpp>

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

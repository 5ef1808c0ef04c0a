// put, get and copy: bytes arrive where they should, and nowhere else.
#include "harness.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace rma_tests {

using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

constexpr std::size_t room = 4096 + 64;

struct odd {  // 12 bytes: no power of two
  std::int32_t a, b, c;
  bool operator==(const odd&) const = default;
};

struct large {
  std::array<std::uint64_t, 37> words;
  bool operator==(const large&) const = default;
};

/// All small sizes, and the neighbours of the powers of two.
std::vector<std::size_t> interesting_sizes() {
  std::vector<std::size_t> sizes;
  for (std::size_t n = 1; n <= 40; ++n) sizes.push_back(n);
  for (std::size_t n = 64; n <= 4096; n *= 2)
    for (std::size_t size : {n - 1, n, n + 1})
      if (size <= 4096) sizes.push_back(size);
  return sizes;
}

std::vector<unsigned char> random_bytes(std::mt19937_64& random, std::size_t n) {
  std::vector<unsigned char> bytes(n);
  for (auto& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

}  // namespace

// Every size at changing offsets of either side, against a mirror: what was not meant stays.
FAR_TEST(sizes_and_unaligned_offsets) {
  auto buffers = objects_on_each_rank<unsigned char>(room, 0xEE);
  auto target = buffers[(far::rank() + 1) % far::nprocs()];
  auto random = far_test::random_engine();
  std::vector<unsigned char> mirror(room, 0xEE);
  for (std::size_t size : interesting_sizes()) {
    std::size_t there = random() % 40, here = random() % 24;
    auto source = random_bytes(random, size + here);
    far::put(target + there, source.data() + here, size);
    std::memcpy(mirror.data() + there, source.data() + here, size);
    auto kept = random_bytes(random, size + 48);
    auto seen = kept;
    far::get(target + there, seen.data() + here, size);
    CHECK(std::memcmp(seen.data() + here, mirror.data() + there, size) == 0);
    std::memcpy(kept.data() + here, mirror.data() + there, size);
    CHECK(seen == kept);  // nothing beside it was written
  }
  far::flush();
  CHECK(far::get(target, room) == mirror);
  far::barrier();
  auto all = far::all_gather(std::span<const unsigned char>(mirror));
  auto writer = (far::rank() + far::nprocs() - 1) % far::nprocs();
  CHECK(std::memcmp(buffers[far::rank()].local(), all.data() + writer * room, room) == 0);
  release(buffers);
}

FAR_TEST(own_puts_are_seen_by_own_gets) {
  auto words = objects_on_each_rank<std::uint64_t>(far::nprocs());
  auto random = far_test::random_engine();
  for (int i = 0; i < 200; ++i) {
    auto target = words[random() % far::nprocs()] + far::rank();
    std::uint64_t value = random();
    far::put(target, ~value);
    far::flush();  // or else the two would overlap
    far::put(target, value);
    CHECK_EQ(far::get(target), value);  // without a flush
  }
  release(words);
}

// Nothing but that flush completes them: whoever waits for them is told by a word of the writer's.
FAR_TEST(a_flush_of_one_rank_completes_its_puts) {
  constexpr std::size_t sizes[] = {1, 8, 24, 300};
  constexpr std::uint64_t rounds = 20;
  auto buffers = objects_on_each_rank<unsigned char>(room);
  auto told = objects_on_each_rank<std::uint64_t>();
  const far::rank_t right = (far::rank() + 1) % far::nprocs(),
                    left = (far::rank() + far::nprocs() - 1) % far::nprocs();
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    std::vector<unsigned char> bytes(room, static_cast<unsigned char>(round));
    std::ptrdiff_t at = 0;
    for (std::size_t size : sizes) {
      far::put(buffers[right] + at, bytes.data(), size);
      at += 512;
    }
    far::flush(right);
    far::fetch_add(told[far::rank()], std::uint64_t{1});
    while (far::atomic_load(told[left]) < round) far::progress();
    at = 0;
    for (std::size_t size : sizes) {
      std::vector<unsigned char> seen(size);
      far::get(buffers[far::rank()] + at, seen.data(), size);
      CHECK(seen == std::vector<unsigned char>(size, static_cast<unsigned char>(round)));
      at += 512;
    }
    far::barrier();
  }
  release(told);
  release(buffers);
}

// More than a back end keeps copies of.
FAR_TEST(many_puts_before_a_flush) {
  constexpr std::uint64_t n = 3000;
  auto words = objects_on_each_rank<std::uint64_t>(2 * n);
  auto target = words[(far::rank() + 1) % far::nprocs()];
  for (std::uint64_t i = 0; i < n; ++i) far::put(target + static_cast<std::ptrdiff_t>(i), i + 1);
  for (std::uint64_t i = n; i < 2 * n; i += 3) {
    std::array<std::uint64_t, 3> three{i + 1, i + 2, i + 3};
    far::put(target + static_cast<std::ptrdiff_t>(i), three.data(), three.size());
  }
  far::barrier();
  for (std::uint64_t i = 0; i < 2 * n; ++i)
    CHECK_EQ(far::get(words[far::rank()] + static_cast<std::ptrdiff_t>(i)), i + 1);
  release(words);
}

FAR_TEST(own_puts_are_seen_by_own_async_gets) {
  auto words = objects_on_each_rank<std::uint64_t>(far::nprocs());
  auto random = far_test::random_engine();
  for (int i = 0; i < 100; ++i) {
    auto target = words[random() % far::nprocs()] + far::rank();
    std::uint64_t value = random();
    far::put(target, value);
    CHECK_EQ(far::async_get(target).get(), value);
  }
  release(words);
}

FAR_TEST(all_pairs) {
  far::rank_t n = far::nprocs(), me = far::rank();
  auto tables = objects_on_each_rank<large>(n);
  auto value = [](far::rank_t from, far::rank_t to) {
    large v;
    for (std::size_t i = 0; i < v.words.size(); ++i) v.words[i] = from * 1'000'000u + to * 1000 + i;
    return v;
  };
  for (far::rank_t to = 0; to < n; ++to) far::put(tables[to] + me, value(me, to));
  far::barrier();
  for (far::rank_t of = 0; of < n; ++of)
    for (far::rank_t from = 0; from < n; ++from)
      CHECK(far::get(tables[of] + from) == value(from, of));
  for (far::rank_t from = 0; from < n; ++from) CHECK(tables[me].local()[from] == value(from, me));
  release(tables);
}

FAR_TEST(spans_vectors_and_odd_types) {
  auto arrays = objects_on_each_rank<odd>(50);
  auto next = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<odd> values(50);
  for (int i = 0; i < 50; ++i)
    values[static_cast<std::size_t>(i)] = {i, static_cast<int>(far::rank()), -i};
  far::put(next, std::span<const odd>(values));
  CHECK(far::get(next, 50) == values);
  values[17] = {1, 2, 3};
  far::put(next + 17, odd{1, 2, 3});
  CHECK(far::get(next, 50) == values);
  CHECK(far::get(far::ptr<const odd>(next) + 17) == values[17]);
  far::put(next + 10, values.data(), 7);
  std::copy_n(values.begin(), 7, values.begin() + 10);
  CHECK(far::get(next, 50) == values);
  release(arrays);
}

FAR_TEST(the_source_may_be_reused) {
  auto arrays = objects_on_each_rank<std::uint64_t>(64 * 8);
  auto next = arrays[(far::rank() + 1) % far::nprocs()];
  std::array<std::uint64_t, 8> source;
  for (std::uint64_t i = 0; i < 64; ++i) {
    source.fill(i * 10 + far::rank());
    far::put(next + static_cast<std::ptrdiff_t>(i) * 8, source.data(), 8);
    source.fill(~std::uint64_t{0});  // the put has its copy already
  }
  far::flush();
  auto seen = far::get(next, 64 * 8);
  for (std::uint64_t i = 0; i < 64 * 8; ++i) CHECK_EQ(seen[i], i / 8 * 10 + far::rank());
  release(arrays);
}

FAR_TEST(large_transfers) {
  constexpr std::size_t n = 300'001;
  auto arrays = objects_on_each_rank<unsigned char>(n);
  auto next = arrays[(far::rank() + 1) % far::nprocs()];
  auto random = far_test::random_engine();
  auto bytes = random_bytes(random, n);
  far::put(next, bytes.data(), n);
  CHECK(far::get(next, n) == bytes);
  CHECK(std::equal(bytes.begin() + 1000, bytes.begin() + 250'003,
                   far::get(next + 1000, 249'003).begin()));
  release(arrays);
}

FAR_TEST(copies_between_third_parties) {
  constexpr std::size_t n = 500;
  far::rank_t me = far::rank(), all = far::nprocs();
  auto from = objects_on_each_rank<long>(n), to = objects_on_each_rank<long>(2 * n);
  for (std::size_t i = 0; i < n; ++i) from[me].local()[i] = static_cast<long>(me * n + i);
  far::barrier();
  auto source = from[(me + 1) % all];  // neither is this rank's from three ranks on
  auto target = to[(me + 2) % all];
  far::copy(source, target, n);
  far::copy(far::ptr<const long>(source) + 1, target + n, n - 1);
  far::flush();
  std::vector<long> expected(n);
  std::iota(expected.begin(), expected.end(), static_cast<long>((me + 1) % all * n));
  CHECK_EQ(far::get(target, n), expected);
  CHECK_EQ(far::get(target + n, n - 1), std::vector<long>(expected.begin() + 1, expected.end()));
  far::barrier();
  auto copied = far::async_copy(target + 1, source, n - 1);
  copied.wait();
  far::flush();
  expected.erase(expected.begin());
  CHECK_EQ(far::get(source, n - 1), expected);
  release(from);
  release(to);
}

// Ranks own changing parts of everybody's arrays, phase by phase.
FAR_TEST(phases_with_overlapping_ranges) {
  far::rank_t me = far::rank(), all = far::nprocs();
  constexpr std::size_t part = 37;
  auto arrays = objects_on_each_rank<std::uint32_t>(part * all, 0u);
  for (std::uint32_t phase = 1; phase <= 20; ++phase) {
    auto target = arrays[(me + phase) % all];
    std::size_t mine = (me + phase / 2) % all;  // a permutation in each phase
    std::vector<std::uint32_t> values(part);
    for (std::size_t i = 0; i < part; ++i)
      values[i] = phase * 100'000 + me * 1000 + static_cast<std::uint32_t>(i);
    far::put(target + static_cast<std::ptrdiff_t>(mine * part), values.data(), part);
    far::barrier();
    far::rank_t reads = (me + 1) % all;
    far::rank_t writer = (reads + all * phase - phase) % all;  // whose target `reads` was
    std::size_t where = (writer + phase / 2) % all;
    auto seen = far::get(arrays[reads] + static_cast<std::ptrdiff_t>(where * part), part);
    for (std::size_t i = 0; i < part; ++i)
      CHECK_EQ(seen[i], phase * 100'000 + writer * 1000 + static_cast<std::uint32_t>(i));
    far::barrier();
  }
  release(arrays);
}

FAR_TEST(many_async_operations_in_flight) {
  constexpr std::size_t n = 200;
  auto arrays = objects_on_each_rank<std::uint64_t>(n * far::nprocs());
  far::rank_t me = far::rank();
  std::vector<std::uint64_t> source(n);
  for (std::size_t i = 0; i < n; ++i) source[i] = me * 1000 + i;
  std::vector<far::future<void>> puts;
  for (far::rank_t to = 0; to < far::nprocs(); ++to)
    for (std::size_t i = 0; i < n; ++i) {
      auto at = arrays[to] + static_cast<std::ptrdiff_t>(me * n + i);
      if (i % 2 == 0)
        puts.push_back(far::async_put(at, source[i]));
      else
        puts.push_back(far::async_put(at, &source[i], 1));
    }
  for (auto& put : puts) put.wait();
  far::barrier();
  std::vector<far::future<std::uint64_t>> gets;
  std::vector<std::uint64_t> landed(n * far::nprocs());
  std::vector<far::future<void>> bulk;
  for (far::rank_t of = 0; of < far::nprocs(); ++of) {
    for (std::size_t i = 0; i < n; ++i)
      gets.push_back(far::async_get(arrays[of] + static_cast<std::ptrdiff_t>(me * n + i)));
    bulk.push_back(
        far::async_get(arrays[of] + static_cast<std::ptrdiff_t>(me * n), &landed[of * n], n));
  }
  for (std::size_t k = gets.size(); k-- > 0;) CHECK_EQ(gets[k].get(), source[k % n]);  // any order
  for (auto& part : bulk) part.wait();
  for (std::size_t k = 0; k < landed.size(); ++k) CHECK_EQ(landed[k], source[k % n]);
  release(arrays);
}

// Operations that wait, on every rank, while others to every rank are under way.
FAR_TEST(blocking_operations_among_those_in_flight) {
  constexpr std::uint64_t n = 16;
  auto words = objects_on_each_rank<std::uint64_t>(n + 2, 7);
  const std::ptrdiff_t last = n + 1;
  const far::rank_t ranks = far::nprocs();
  const far::rank_t rounds = std::min<far::rank_t>(2 * ranks, 8);
  for (far::rank_t round = 0; round < rounds; ++round) {
    std::vector<far::future<std::uint64_t>> gets, adds;
    for (far::rank_t of = 0; of < ranks; ++of)
      for (std::uint64_t i = 0; i < n; ++i) {
        gets.push_back(far::async_get(words[of] + static_cast<std::ptrdiff_t>(i)));
        adds.push_back(far::async_fetch_add(words[of] + last, std::uint64_t{1}));
      }
    for (far::rank_t step = 0; step < ranks; ++step) {
      auto other = words[(round + step) % ranks];
      CHECK_EQ(far::get(other), 7u);
      std::array<std::uint64_t, n> block{};
      far::get(other, block.data(), n);
      CHECK_EQ(std::accumulate(block.begin(), block.end(), std::uint64_t{0}), 7 * n);
      far::put(other, block.data(), n / 2);  // what is there
      far::fetch_add(other + last, std::uint64_t{1});
    }
    for (auto& value : gets) CHECK_EQ(value.get(), 7u);
    for (auto& old : adds) CHECK(old.get() >= 7);
  }
  far::barrier();
  CHECK_EQ(far::get(words[far::rank()] + last), 7 + (n + 1) * rounds * ranks);
  release(words);
}

FAR_TEST(gets_to_segment_memory) {
  auto arrays = objects_on_each_rank<int>(100, static_cast<int>(far::rank()) + 1);
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  std::vector<int, far::allocator<int>> target(100);
  far::get(arrays[next], target.data(), 100);
  for (int v : target) CHECK_EQ(v, static_cast<int>(next) + 1);
  std::fill(target.begin(), target.end(), -5);
  far::async_get(arrays[next] + 50, target.data(), 50).wait();
  CHECK_EQ(std::accumulate(target.begin(), target.end(), 0),
           50 * (static_cast<int>(next) + 1) - 250);
  release(arrays);
}

FAR_TEST(zero_length) {
  auto arrays = objects_on_each_rank<int>(2, 5);
  auto next = arrays[(far::rank() + 1) % far::nprocs()];
  int x = 9;
  far::put(next, &x, 0);
  far::put(next, nullptr, 0);
  far::put(next, std::span<const int>());
  far::get(next, &x, 0);
  far::get(next, static_cast<int*>(nullptr), 0);
  far::async_put(next, &x, 0).wait();
  far::async_get(next, &x, 0).wait();
  far::copy(next, next + 1, 0);
  far::async_copy(next, next + 1, 0).wait();
  CHECK(far::get(next, 0).empty());
  CHECK_EQ(x, 9);
  far::barrier();
  CHECK_EQ(far::get(next, 2), std::vector<int>({5, 5}));
  release(arrays);
}

}  // namespace rma_tests

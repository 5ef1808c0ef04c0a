// Strided and vector forms of put, get and accumulate, against loops over single elements.
#include "harness.hpp"

#include <complex>
#include <map>
#include <numeric>

namespace strided_tests {

using far::operation;
using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;

namespace {

/// A random shape whose pieces do not overlap on either side, where it lies, and how far it goes.
struct random_shape {
  std::vector<std::ptrdiff_t> counts, far_strides, local_strides;
  std::ptrdiff_t far_start = 0, local_start = 0, far_size = 0, local_size = 0;

  random_shape(std::mt19937_64& random, std::size_t levels) {
    auto below = [&](std::ptrdiff_t n) {
      return static_cast<std::ptrdiff_t>(random() % static_cast<std::uint64_t>(n));
    };
    std::ptrdiff_t most = levels > 5 ? 2 : levels > 3 ? 3 : 5;
    counts.push_back(1 + below(most));
    std::ptrdiff_t far_span = counts[0], local_span = counts[0];
    for (std::size_t i = 0; i < levels; ++i) {
      std::ptrdiff_t count = 1 + below(most);
      auto side = [&](std::vector<std::ptrdiff_t>& strides, std::ptrdiff_t& span,
                      std::ptrdiff_t& start) {
        std::ptrdiff_t stride = span + (below(2) == 0 ? 0 : below(3));
        span += stride * (count - 1);
        bool backwards = below(4) == 0;
        if (backwards) start += stride * (count - 1);
        strides.push_back(backwards ? -stride : stride);
      };
      side(far_strides, far_span, far_start);
      side(local_strides, local_span, local_start);
      counts.push_back(count);
    }
    far_size = far_span, local_size = local_span;
  }

  far::strided get() const {
    return {far::level_list(counts), far::level_list(far_strides), far::level_list(local_strides)};
  }

  /// visit(place in far memory, place here) for each element.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::ptrdiff_t> at(counts.size(), 0);
    for (;;) {
      std::ptrdiff_t there = far_start + at[0], here = local_start + at[0];
      for (std::size_t i = 1; i < counts.size(); ++i)
        there += at[i] * far_strides[i - 1], here += at[i] * local_strides[i - 1];
      visit(static_cast<std::size_t>(there), static_cast<std::size_t>(here));
      std::size_t level = 0;
      while (level < counts.size() && ++at[level] == counts[level]) at[level++] = 0;
      if (level == counts.size()) return;
    }
  }
};

template <class T>
std::vector<T> numbered(std::ptrdiff_t n, int first) {
  std::vector<T> result;
  for (std::ptrdiff_t i = 0; i < n; ++i)
    result.push_back(static_cast<T>(static_cast<float>((first + i) % 1000)));
  return result;
}

/// Each rank on the memory of its neighbour: put, accumulate and get there, blocking and not.
template <class T>
void as_elements_one_by_one(bool async) {
  for (std::size_t levels = 0; levels <= 8; ++levels) {
    auto random = far_test::common_random_engine(levels);
    random_shape shape(random, levels);
    auto arrays = objects_on_each_rank<T>(static_cast<std::size_t>(shape.far_size), T(7));
    auto array = arrays[(far::rank() + 1) % far::nprocs()];
    auto source = numbered<T>(shape.local_size, static_cast<int>(far::rank()));
    std::vector<T> expected(static_cast<std::size_t>(shape.far_size), T(7));
    auto there = array + shape.far_start;
    const T* from = source.data() + shape.local_start;

    if (async)
      far::async_put_strided(there, from, shape.get()).get();
    else
      far::put_strided(there, from, shape.get());
    shape.for_each([&](std::size_t a, std::size_t b) { expected[a] = source[b]; });
    far::flush(array.rank());
    CHECK_EQ(far::get(array, expected.size()), expected);

    if constexpr (!std::is_void_v<far::detail::component_of<T>>) {
      for (T scale : {T(1), T(3)}) {
        if (async)
          far::async_accumulate_strided(there, from, shape.get(), scale).get();
        else
          far::accumulate_strided(there, from, shape.get(), scale);
        shape.for_each([&](std::size_t a, std::size_t b) { expected[a] += scale * source[b]; });
      }
      far::flush(array.rank());
      CHECK_EQ(far::get(array, expected.size()), expected);
    }

    std::vector<T> back(static_cast<std::size_t>(shape.local_size), T(1));
    auto expected_back = back;
    shape.for_each([&](std::size_t a, std::size_t b) { expected_back[b] = expected[a]; });
    if (async)
      far::async_get_strided(there, back.data() + shape.local_start, shape.get()).get();
    else
      far::get_strided(there, back.data() + shape.local_start, shape.get());
    CHECK_EQ(back, expected_back);
    release(arrays);
  }
}

struct counts {
  std::uint64_t gets = 0, puts = 0, waits = 0;
  bool operator==(const counts&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const counts& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.waits << " waits";
  }
};

template <class Work>
counts cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[operation::get].count, t[operation::put].count, t.waits};
}

}  // namespace

FAR_TEST(blocks_of_double) { as_elements_one_by_one<double>(false); }
FAR_TEST(blocks_of_double_async) { as_elements_one_by_one<double>(true); }
FAR_TEST(blocks_of_float) { as_elements_one_by_one<float>(false); }
FAR_TEST(blocks_of_complex) { as_elements_one_by_one<std::complex<float>>(true); }
FAR_TEST(blocks_of_int) { as_elements_one_by_one<std::int32_t>(false); }
FAR_TEST(blocks_of_bytes) { as_elements_one_by_one<unsigned char>(false); }

/// All ranks add columns and rows to one matrix at the same time.
FAR_TEST(overlapping_blocks_sum_up) {
  constexpr std::ptrdiff_t n = 12;
  auto matrix = shared_objects<double>(0, n * n);
  std::vector<double> ones(n, 1.0);
  for (std::ptrdiff_t i = 0; i < n; ++i) {
    far::accumulate_strided(matrix + i, ones.data(), {.counts = {1, n}, .far_strides = {n}});
    far::accumulate_strided(matrix + i * n, ones.data(), {.counts = {n}}, 2.0);
  }
  far::barrier();
  CHECK_EQ(far::get(matrix, n * n), std::vector<double>(n * n, 3.0 * far::nprocs()));
  release(matrix);
}

/// A stride of zero adds to one element, or sends one element many times.
FAR_TEST(strides_of_zero) {
  auto cells = objects_on_each_rank<std::int64_t>(5);
  auto mine = cells[(far::rank() + 1) % far::nprocs()];
  std::vector<std::int64_t> values{1, 2, 3, 4};
  far::accumulate_strided(mine, values.data(), {.counts = {1, 4}, .far_strides = {0}});
  far::put_strided(mine + 1, values.data() + 3,
                   {.counts = {1, 4}, .far_strides = {1}, .local_strides = {0}});
  far::barrier();
  CHECK_EQ(far::get(mine, 5), (std::vector<std::int64_t>{10, 4, 4, 4, 4}));
  release(cells);
}

FAR_TEST(blocks_of_nothing) {
  auto cell = shared_objects<int>(0, 1, 4);
  int value = 9;
  far::put_strided(cell, &value, {.counts = {0}});
  far::put_strided(cell, &value, {.counts = {3, 0, 5}, .far_strides = {7, 9}});
  far::accumulate_strided(cell, &value, {.counts = {1, 0}, .far_strides = {2}}, 4);
  far::async_get_strided(cell, &value, {.counts = {0, 2}}).get();
  far::barrier();
  CHECK_EQ(far::get(cell), 4);
  CHECK_EQ(value, 9);
  release(cell);
}

FAR_TEST(shapes_that_make_no_sense) {
  auto cell = shared_objects<int>(0);
  int value = 0;
  CHECK_THROWS(far::put_strided(cell, &value, {}), "no counts");
  CHECK_THROWS(far::put_strided(cell, &value, {.counts = {1, 2}, .far_strides = {1, 2}}),
               "2 counts and 2 far_strides");
  CHECK_THROWS(far::get_strided(cell, &value, {.counts = {1, -2}, .far_strides = {1}}), "-2");
  CHECK_THROWS(far::get_strided(cell, &value, {.counts = {1LL << 40, 1LL << 40}}), "no memory");
  std::vector<std::ptrdiff_t> ten(10, 1);
  CHECK_THROWS(far::level_list{ten}, "at most nine");
  release(cell);
}

FAR_TEST(pieces_on_all_ranks) {
  for (bool async : {false, true}) {
    auto arrays = objects_on_each_rank<double>(100 * far::nprocs(), 1.0);
    auto random = far_test::random_engine(async);
    // Each rank has a hundred elements of its own on every rank.
    std::vector<double> values(100 * far::nprocs());
    std::iota(values.begin(), values.end(), 1.0);
    std::vector<double> expected(values.size(), 1.0), back(values.size(), -1.0);
    std::vector<far::put_piece<double>> out;
    std::vector<far::get_piece<double>> in;
    for (far::rank_t rank = 0; rank < far::nprocs(); ++rank)
      for (std::size_t at = 0; at < 100;) {
        std::size_t n = std::min<std::size_t>(random() % 9, 100 - at);
        auto there = arrays[rank] + static_cast<std::ptrdiff_t>(100 * far::rank() + at);
        std::size_t here = 100 * rank + at;
        if (random() % 3 != 0) {
          out.push_back({there, values.data() + here, n});
          for (std::size_t i = here; i < here + n; ++i) expected[i] = 4 * values[i];
        }
        in.push_back({there, back.data() + here, n});
        at += n;
      }
    std::shuffle(out.begin(), out.end(), random);
    std::shuffle(in.begin(), in.end(), random);
    if (async) {
      far::async_put_pieces<double>(out).get();
      far::flush();
      far::async_accumulate_pieces<double>(out).get();
      far::async_accumulate_pieces<double>(out, 2.0).get();
      far::flush();
      far::async_get_pieces<double>(in).get();
    } else {
      far::put_pieces<double>(out);
      far::flush();
      far::accumulate_pieces<double>(out);
      far::accumulate_pieces<double>(out, 2.0);
      far::get_pieces<double>(in);  // sees this rank's own
    }
    CHECK_EQ(back, expected);
    far::put_pieces<double>({});
    release(arrays);
  }
}

/// More pieces than are in flight together, and the buffers at the end of it.
FAR_TEST(many_pieces) {
  constexpr std::ptrdiff_t n = 300;
  auto arrays = objects_on_each_rank<int>(2 * n);
  auto array = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<int> values(n), back(n);
  std::iota(values.begin(), values.end(), 5);
  auto put = far::async_put_strided(array, values.data(), {.counts = {1, n}, .far_strides = {2}});
  put.get();
  std::vector<int> source = std::exchange(values, {});  // it has been read
  std::fill(source.begin(), source.end(), 0);
  auto got = far::async_get_strided(array, back.data(), {.counts = {1, n}, .far_strides = {2}});
  got.get();
  std::vector<int> expected(n);
  std::iota(expected.begin(), expected.end(), 5);
  CHECK_EQ(back, expected);
  release(arrays);
}

FAR_TEST(costs) {
  auto arrays = objects_on_each_rank<double>(1000);
  auto array = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<double> values(1000, 1.0);
  far::strided block{.counts = {4, 10}, .far_strides = {100}};
  // By messages, and by calls of MPI with datatypes, short pieces share one request.
  const bool together = far::detail::limits_of_runs(far::detail::here().link).piece != 0;
  const std::uint64_t ten = together ? 1 : 10, two = together ? 1 : 2;
  CHECK_EQ(cost_of([&] { far::put_strided(array, values.data(), block); }), counts{.puts = ten});
  CHECK_EQ(cost_of([&] { far::get_strided(array, values.data(), block); }),
           (counts{.gets = ten, .waits = 1}));
  // Levels that lie densely on both sides are one piece.
  far::strided dense{.counts = {4, 5, 10}, .far_strides = {4, 20}};
  CHECK_EQ(cost_of([&] { far::put_strided(array, values.data(), dense); }), counts{.puts = 1});
  far::strided halves{.counts = {4, 5, 10}, .far_strides = {4, 100}};
  CHECK_EQ(cost_of([&] { far::get_strided(array, values.data(), halves); }),
           (counts{.gets = ten, .waits = 1}));
  std::vector<far::put_piece<double>> pieces{{array, values.data(), 3}, {array + 9, values.data()}};
  CHECK_EQ(cost_of([&] { far::put_pieces<double>(pieces); }), counts{.puts = two});
  if (far::detail::adds_natively<double>(far::detail::here().link)) {
    CHECK_EQ(cost_of([&] { far::accumulate_strided(array, values.data(), block, 2.0); }),
             counts{.puts = ten});
    CHECK_EQ(cost_of([&] { far::accumulate_pieces<double>(pieces); }), counts{.puts = two});
  }
  release(arrays);
}

/// More pieces than one request holds, of lengths around all limits of requests: 8 KiB, 16 KiB.
FAR_TEST(pieces_of_many_lengths) {
  auto random = far_test::common_random_engine(77);
  std::vector<std::size_t> lengths{1, 2047, 2048, 2049, 511, 513, 4095, 4096, 4097, 1, 3};
  for (int i = 0; i < 600; ++i) lengths.push_back(1 + random() % 5);
  std::size_t all = 0;
  for (std::size_t n : lengths) all += n + n % 3;
  auto arrays = objects_on_each_rank<std::int32_t>(all, 1);
  auto array = arrays[(far::rank() + 1) % far::nprocs()];
  std::vector<std::int32_t> values(all), expected(all, 1), back(all, 0), expected_back(all, 0);
  std::iota(values.begin(), values.end(), 100);
  std::vector<far::put_piece<std::int32_t>> out;
  std::vector<far::get_piece<std::int32_t>> in;
  std::size_t at = 0;
  for (std::size_t n : lengths) {
    out.push_back({array + static_cast<std::ptrdiff_t>(at), values.data() + at, n});
    in.push_back({array + static_cast<std::ptrdiff_t>(at), back.data() + at, n});
    for (std::size_t i = at; i < at + n; ++i)
      expected[i] = 3 * values[i], expected_back[i] = expected[i];
    at += n + n % 3;
  }
  far::put_pieces<std::int32_t>(out);
  far::flush(array.rank());
  far::accumulate_pieces<std::int32_t>(out, 2);
  far::get_pieces<std::int32_t>(in);  // sees this rank's own
  CHECK_EQ(back, expected_back);
  CHECK_EQ(far::get(array, all), expected);
  release(arrays);
}

}  // namespace strided_tests

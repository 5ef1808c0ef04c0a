// Location consistency: what one rank does to one place takes effect in its program order, given
// the flushes that docs/memory_model.md names, and no others.
#include "harness.hpp"

namespace location_tests {

using far::strided;

using far_test::objects_on_each_rank;
using far_test::release;

namespace {

/// A random program of one rank on a few words of its own, which lie on another rank, and what it
/// must see. `fence` is called where the model asks for a flush between two operations on a word.
class program {
 public:
  explicit program(far::ptr<std::int64_t> words)
      : words_(words), random_(far_test::random_engine()) {}

  template <class Fence>
  void run(int steps, Fence fence) {
    for (int i = 0; i < steps; ++i) {
      std::size_t which = random_() % size;
      auto word = words_ + static_cast<std::ptrdiff_t>(which);
      auto value = static_cast<std::int64_t>(random_() % 1000);
      std::int64_t& known = known_[which];
      switch (random_() % 6) {
        case 0:
          before(which, changes::put, fence);
          far::put(word, known = value);
          break;
        case 1:
          before(which, changes::accumulate, fence);
          far::accumulate(word, value);
          known += value;
          break;
        case 2:
          before(which, changes::atomic, fence);
          CHECK_EQ(far::fetch_add(word, value), known);
          known += value;
          break;
        case 3:
          before(which, changes::atomic, fence);
          CHECK_EQ(far::compare_swap(word, known, value), known);
          known = value;
          break;
        default:
          CHECK_EQ(far::get(word), known);  // needs no fence
      }
    }
    CHECK_EQ(far::get(words_, size), std::vector<std::int64_t>(known_, known_ + size));
  }

 private:
  static constexpr std::size_t size = 3;
  enum class changes { nothing, put, accumulate, atomic };

  /// Accumulates add up in any order, and atomics are complete; everything else needs a flush.
  template <class Fence>
  void before(std::size_t which, changes next, Fence fence) {
    changes& last = last_[which];
    bool ordered = last == changes::nothing || last == changes::atomic ||
                   (last == changes::accumulate && next == changes::accumulate);
    if (!ordered) {
      fence(words_.rank());
      for (changes& of : last_) of = changes::nothing;
    }
    last = next;
  }

  far::ptr<std::int64_t> words_;
  std::mt19937_64 random_;
  std::int64_t known_[size] = {};
  changes last_[size] = {};
};

}  // namespace

FAR_TEST(a_flush_of_one_rank_orders) {
  auto words = objects_on_each_rank<std::int64_t>(3);
  program(words[(far::rank() + 1) % far::nprocs()]).run(150, [](far::rank_t r) { far::flush(r); });
  release(words);
}

FAR_TEST(a_flush_of_all_ranks_orders) {
  auto words = objects_on_each_rank<std::int64_t>(3);
  program(words[(far::rank() + 1) % far::nprocs()]).run(150, [](far::rank_t) { far::flush(); });
  release(words);
}

FAR_TEST(own_memory_is_no_exception) {
  auto words = objects_on_each_rank<std::int64_t>(3);
  program(words[far::rank()]).run(150, [](far::rank_t r) { far::flush(r); });
  release(words);
}

/// A get sees what this rank has accumulated before, flushed or not, in every form.
FAR_TEST(own_accumulates_are_seen) {
  auto arrays = objects_on_each_rank<double>(400);
  std::vector<double> ones(200, 1.0), back(200);
  for (far::rank_t i = 0; i < far::nprocs(); ++i) {
    auto array = arrays[(far::rank() + i) % far::nprocs()];
    for (double round = 1; round <= 3; ++round) {
      far::accumulate_strided(array, ones.data(), {.counts = {1, 200}, .far_strides = {2}});
      far::get_strided(array, back.data(), {.counts = {1, 200}, .far_strides = {2}});
      // Others add too: what this rank has added is there at least.
      for (double value : back) CHECK(far::nprocs() > 1 ? value >= round : value == round);
    }
  }
  release(arrays);
}

/// Announced by an atomic, after a flush of that rank alone.
FAR_TEST(accumulates_are_announced_after_a_flush) {
  auto sums = objects_on_each_rank<double>(20);
  auto flags = objects_on_each_rank<std::uint32_t>();
  far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
  std::vector<double> ones(20, 1.0);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    far::accumulate(sums[next], ones.data(), 20);
    far::flush(next);
    far::fetch_add(flags[next], 1);
    while (far::atomic_load(flags[me]) < round) far::detail::here().wait_round();
    for (double sum : far::get(sums[me], 20)) CHECK(sum >= round);
  }
  release(sums);
  release(flags);
}

namespace {

/// Random puts, sums, atomics, strided and listed forms that overlap on another rank, and no flush
/// that the program makes; `model` is what a plain array becomes.
template <class T>
void runs_in_order(int steps) {
  constexpr std::size_t size = 40;
  auto arrays = objects_on_each_rank<T>(size);
  auto home = arrays[(far::rank() + 1) % far::nprocs()];
  auto random = far_test::random_engine();
  std::vector<T> model(size);
  far::in_order mine;
  auto at = [&](std::size_t i) { return home + static_cast<std::ptrdiff_t>(i); };
  for (int step = 0; step < steps; ++step) {
    std::size_t from = random() % size, n = 1 + random() % std::min<std::size_t>(size - from, 6);
    std::vector<T> values(n);
    for (T& v : values) v = static_cast<T>(random() % 100);
    std::size_t half = size / 2, column = random() % half;
    switch (random() % 6) {
      case 0:
        mine.put(at(from), values.data(), n);
        std::copy(values.begin(), values.end(), model.begin() + static_cast<std::ptrdiff_t>(from));
        break;
      case 1:
        mine.accumulate(at(from), values.data(), n, T(2));
        for (std::size_t i = 0; i < n; ++i) model[from + i] += T(2) * values[i];
        break;
      case 2: {
        T two[2] = {T(7), T(9)};
        strided shape{.counts = {1, 2}, .far_strides = {half}};
        if (random() % 2 == 0) {
          mine.put_strided(at(column), two, shape);
          model[column] = two[0], model[column + half] = two[1];
        } else {
          mine.accumulate_strided(at(column), two, shape);
          model[column] += two[0], model[column + half] += two[1];
        }
        break;
      }
      case 3: {
        far::put_piece<T> pieces[] = {{at(column), values.data(), 1},
                                      {at(half + column), &values[n - 1], 1}};
        mine.template put_pieces<T>(pieces);
        model[column] = values[0], model[half + column] = values[n - 1];
        mine.template accumulate_pieces<T>(pieces);
        model[column] += values[0], model[half + column] += values[n - 1];
        break;
      }
      case 4:
        if constexpr (std::is_integral_v<T>) {
          CHECK_EQ(mine.fetch_add(at(from), values[0]), model[from]);
          model[from] += values[0];
          CHECK_EQ(mine.swap(at(from), T(5)), model[from]);
          CHECK_EQ(mine.compare_swap(at(from), T(5), T(6)), T(5));
          model[from] = T(6);
        }
        break;
      default: {
        std::vector<T> seen(n);
        mine.get(at(from), seen.data(), n);
        CHECK(std::equal(seen.begin(), seen.end(),
                         model.begin() + static_cast<std::ptrdiff_t>(from)));
      }
    }
  }
  mine.flush(home.rank());
  CHECK_EQ(far::get(home, size), model);
  far::barrier();
  release(arrays);
}

}  // namespace

FAR_TEST(in_order_of_integers) { runs_in_order<std::int64_t>(120); }
FAR_TEST(in_order_of_doubles) { runs_in_order<double>(120); }

/// Long puts, which a transport may send by another way than short ones.
FAR_TEST(in_order_of_long_puts) {
  constexpr std::size_t n = 6000;
  auto arrays = objects_on_each_rank<double>(n);
  auto home = arrays[(far::rank() + 1) % far::nprocs()];
  far::in_order mine;
  std::vector<double> values(n, 3.0), ones(n, 1.0);
  for (int round = 1; round <= 4; ++round) {
    std::fill(values.begin(), values.end(), round);
    mine.put(home, values.data(), n);
    mine.accumulate(home + 100, ones.data(), n - 200);
    mine.accumulate(home + 50, ones.data(), n - 100);
    mine.put(home + 60, ones.data(), 20);
  }
  std::vector<double> seen(n);
  mine.get(home, seen.data(), n);
  CHECK_EQ(seen[0], 4.0);
  CHECK_EQ(seen[55], 5.0);
  CHECK_EQ(seen[70], 1.0);
  CHECK_EQ(seen[3000], 6.0);
  far::barrier();
  release(arrays);
}

/// A flush where two operations could change places, and nowhere else.
FAR_TEST(in_order_flushes_on_hazards_alone) {
  auto arrays = objects_on_each_rank<double>(100);
  auto home = arrays[(far::rank() + 1) % far::nprocs()];
  bool coherent = far::detail::here().link.coherent();
  far::in_order mine;
  double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto flushed = [&, before = std::uint64_t{0}]() mutable {
    return mine.flushes() - std::exchange(before, mine.flushes());
  };
  for (int i = 0; i < 12; ++i) mine.put(home + 8 * i, x, 8);
  CHECK_EQ(flushed(), 0u);
  mine.put(home + 4, x, 8);
  CHECK_EQ(flushed(), coherent ? 0u : 1u);
  mine.accumulate(home + 40, x, 8);
  mine.accumulate(home + 44, x, 8);
  mine.get(home, x, 8);
  CHECK_EQ(flushed(), 0u);
  mine.put(home + 47, x, 1);
  CHECK_EQ(flushed(), coherent ? 0u : 1u);
  mine.flush();
  mine.accumulate(home + 47, x, 1);
  CHECK_EQ(flushed(), 0u);
  far::barrier();
  release(arrays);
}

}  // namespace location_tests

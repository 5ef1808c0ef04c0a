// Location consistency: what one rank does to one place takes effect in its program order, given
// the flushes that docs/memory_model.md names, and no others.
#include "harness.hpp"

namespace location_tests {

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

}  // namespace location_tests

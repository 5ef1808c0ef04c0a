// The allocator of a rank's own segment against a list of intervals.
#include <farside/detail/local_heap.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using far::detail::local_heap;

namespace {

/// What is allocated: nothing overlaps, all is inside and aligned.
struct oracle {
  std::size_t begin, end;
  std::map<std::size_t, std::size_t> blocks;  ///< offset to size as the heap rounds it

  void add(std::size_t at, std::size_t bytes, std::size_t alignment) {
    std::size_t size = (std::max<std::size_t>(bytes, 1) + local_heap::unit - 1) / local_heap::unit *
                       local_heap::unit;
    CHECK(at % std::max(alignment, local_heap::unit) == 0);
    CHECK(at >= begin && at + size <= end);
    auto next = blocks.lower_bound(at);
    CHECK(next == blocks.end() || at + size <= next->first);
    CHECK(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= at);
    blocks.emplace(at, size);
  }
  std::size_t in_use() const {
    std::size_t sum = 0;
    for (auto [at, size] : blocks) sum += size;
    return sum;
  }
  /// The largest gap.
  std::size_t largest() const {
    std::size_t most = 0, from = begin;
    for (auto [at, size] : blocks) {
      most = std::max(most, at - from);
      from = at + size;
    }
    return std::max(most, end - from);
  }
};

void small_cases() {
  local_heap none;
  CHECK(!none.allocate(1, 1));
  CHECK(none.largest_free() == 0);
  CHECK(!none.deallocate(0));

  local_heap heap(64, 64 + 256);
  CHECK(heap.largest_free() == 256);
  CHECK(!heap.allocate(257, 16));
  auto all = heap.allocate(256, 16);
  CHECK(all && *all == 64);
  CHECK(!heap.allocate(0, 1));  // also nothing needs a place of its own
  CHECK(!heap.deallocate(80));
  CHECK(heap.deallocate(64));
  CHECK(!heap.deallocate(64));

  auto empty = heap.allocate(0, 1), other = heap.allocate(0, 1);
  CHECK(empty && other && *empty != *other);
  CHECK(heap.deallocate(*empty) && heap.deallocate(*other));

  auto wide = heap.allocate(16, 128);
  CHECK(wide && *wide == 128);
  auto best = heap.allocate(48, 16);  // best fit: before it, not behind
  CHECK(best && *best == 64);
  CHECK(heap.deallocate(*wide) && heap.deallocate(*best));
  CHECK(heap.largest_free() == 256 && heap.in_use() == 0 && heap.total_free() == 256);
  CHECK(!heap.allocate(~std::size_t{0} - 64, 16));
}

void random_run(unsigned seed) {
  std::mt19937 random(seed);
  std::size_t begin = 64 * (random() % 100), size = 4096 + 64 * (random() % 4096);
  local_heap heap(begin, begin + size);
  oracle books{begin, begin + size, {}};
  std::vector<std::size_t> held;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 5 < (step / 500 % 2 == 0 ? 3u : 2u)) {
      std::size_t bytes = random() % 8 == 0 ? random() % size : random() % 200;
      std::size_t alignment = std::size_t{1} << random() % 9;
      if (auto at = heap.allocate(bytes, alignment)) {
        books.add(*at, bytes, alignment);
        held.push_back(*at);
      } else {
        CHECK(books.largest() <
              bytes + std::max(alignment, local_heap::unit));  // it was full indeed
      }
    } else if (!held.empty()) {
      std::size_t which = random() % held.size();
      std::size_t at = held[which];
      CHECK(heap.deallocate(at));
      CHECK(!heap.deallocate(at));
      books.blocks.erase(at);
      held[which] = held.back();
      held.pop_back();
    }
    if (step % 50 != 0) continue;
    CHECK(heap.in_use() == books.in_use());
    CHECK(heap.total_free() == size - books.in_use());
    CHECK(heap.largest_free() == books.largest());
  }
  for (auto at : held) CHECK(heap.deallocate(at));
  CHECK(heap.in_use() == 0 && heap.largest_free() == size);  // one piece again
}

}  // namespace

int main() {
  small_cases();
  for (unsigned seed = 1; seed <= 20; ++seed) random_run(seed);
  return verdict("local_heap");
}

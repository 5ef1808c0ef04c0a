// The allocator of a rank's own segment against a list of intervals.
#include <farside/core/detail/heap/local_heap.hpp>

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

/// The end of a block can be given back: what is left of it stays, and what was cut off is found again.
void trimmed_blocks() {
  local_heap heap(64, 64 + 1024);
  auto first = heap.allocate(512, 16), second = heap.allocate(256, 16);
  CHECK(first && second && *first == 64 && *second == 64 + 512);
  CHECK(!heap.trim(80, 32) && !heap.trim(4096, 32));
  CHECK(heap.trim(*first, 100));
  CHECK(heap.in_use() == 128 + 256 && heap.total_free() + heap.in_use() == 1024);
  CHECK(heap.trim(*first, 128) && heap.trim(*first, 4000) && heap.in_use() == 128 + 256);
  auto between = heap.allocate(512 - 128, 16);
  CHECK(between && *between == 64 + 128);
  CHECK(heap.trim(*second, 0) && heap.free_at_end() == 1024 - 512 - local_heap::unit);
  CHECK(heap.deallocate(*first) && heap.deallocate(*between) && heap.deallocate(*second));
  CHECK(heap.in_use() == 0 && heap.largest_free() == 1024);
}

/// Grown by what it lacks, a block fits, just so; what is free at the end can be cut off.
void grow_and_shrink() {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    local_heap heap(4160, 4160);
    CHECK(heap.size() == 0 && heap.free_at_end() == 0 && !heap.allocate(1, 1));
    oracle books{4160, 4160, {}};
    for (int step = 0; step < 30; ++step) {
      std::size_t bytes = random() % 300, alignment = std::size_t{1} << random() % 9;
      auto at = heap.allocate(bytes, alignment);
      if (!at) {
        std::size_t more = heap.shortage(bytes, alignment);
        CHECK(more > 0 && more % local_heap::unit == 0);
        heap.extend(more - local_heap::unit);
        CHECK(!heap.allocate(bytes, alignment) &&
              heap.shortage(bytes, alignment) == local_heap::unit);
        heap.extend(local_heap::unit);
        books.end += more;
        at = heap.allocate(bytes, alignment);
        CHECK(at);
      }
      books.add(*at, bytes, alignment);
      if (step % 3 == 2) {
        auto victim = std::next(books.blocks.begin(),
                                static_cast<std::ptrdiff_t>(random() % books.blocks.size()));
        CHECK(heap.deallocate(victim->first));
        books.blocks.erase(victim);
      }
      auto [last, size] = *books.blocks.rbegin();
      CHECK(heap.free_at_end() == books.end - last - size);
      if (step % 5 == 4) {
        std::size_t less = heap.free_at_end() / 2 / local_heap::unit * local_heap::unit;
        heap.shrink(less);
        books.end -= less;
      }
      CHECK(heap.size() == books.end - books.begin);
      CHECK(heap.total_free() + heap.in_use() == heap.size());
    }
    for (auto [at, size] : books.blocks) CHECK(heap.deallocate(at));
    CHECK(heap.free_at_end() == heap.size());
    heap.shrink(heap.size());
    CHECK(heap.size() == 0 && !heap.allocate(1, 1));
  }
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
  trimmed_blocks();
  grow_and_shrink();
  for (unsigned seed = 1; seed <= 20; ++seed) random_run(seed);
  return verdict("local_heap");
}

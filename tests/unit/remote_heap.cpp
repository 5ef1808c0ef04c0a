// The allocator of far::alloc_on: its size classes, and its blocks against a list of intervals.
#include <farside/farside.hpp>

#include <map>
#include <random>

#include "check.hpp"

using far::detail::remote_heap;

namespace {

void size_classes() {
  std::size_t last = 0;
  for (unsigned i = 0; i < remote_heap::classes; ++i) {
    std::size_t size = remote_heap::class_size(i);
    CHECK(size % 16 == 0);
    CHECK(size >= last);
    last = size;
  }
  CHECK(last > far::max_segment);
  auto check = [](std::size_t bytes) {
    unsigned index = remote_heap::class_of(bytes);
    CHECK(index < remote_heap::classes);
    CHECK(remote_heap::class_size(index) >= bytes);                    // it fits,
    CHECK(index == 0 || remote_heap::class_size(index - 1) < bytes ||  // no smaller one does
          remote_heap::class_size(index - 1) == remote_heap::class_size(index));
    if (bytes > 64)
      CHECK(remote_heap::class_size(index) <= bytes + bytes / 4 + 16);  // little is lost
  };
  for (std::size_t bytes = 1; bytes <= 5000; ++bytes) check(bytes);
  for (unsigned bit = 12; bit <= 43; ++bit)
    for (std::size_t quarter = 4; quarter <= 8; ++quarter)
      for (std::size_t around : {0, 1, 2}) check((quarter << (bit - 2)) + around - 1);
}

void blocks() {
  auto& c = far::detail::here();
  constexpr std::size_t size = 1 << 16;
  auto region = far::alloc<std::byte>(size + 64);
  std::vector<std::byte> zeros(size + 64);
  far::put(region, zeros.data(), zeros.size());
  std::size_t begin = (region.offset() + 63) & ~std::size_t{63};
  remote_heap heap(begin, begin + size);

  CHECK(!heap.contains(begin));  // its own words are no blocks
  CHECK(heap.contains(begin + size - 1));
  CHECK(!heap.contains(begin + size));
  CHECK(heap.untouched(c.link, 0) == heap.capacity());
  CHECK(!heap.allocate(c.link, 0, size));
  CHECK(!heap.allocate(c.link, 0, ~std::size_t{0}));

  std::mt19937 random(1);
  std::map<std::size_t, std::size_t> held;
  bool was_full = false;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 20 < 11) {
      std::size_t bytes = random() % 4 == 0 ? random() % 8000 : random() % 200;
      auto at = heap.allocate(c.link, 0, bytes);
      was_full |= !at;
      if (!at) continue;
      CHECK(*at % 16 == 0 && *at + bytes <= begin + size && heap.contains(*at));
      auto next = held.lower_bound(*at);
      CHECK(next == held.end() || *at + bytes <= next->first);
      CHECK(next == held.begin() || std::prev(next)->first + std::prev(next)->second <= *at);
      held.emplace(*at, bytes);
      std::vector<unsigned char> fill(bytes, 0xff);  // what a user writes does not confuse it
      c.link.put(0, *at, fill.data(), bytes);
    } else if (!held.empty()) {
      auto which = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      CHECK(heap.deallocate(c.link, 0, which->first));
      CHECK(!heap.deallocate(c.link, 0, which->first));
      held.erase(which);
    }
  }
  CHECK(was_full);
  for (auto [at, bytes] : held) CHECK(heap.deallocate(c.link, 0, at));

  // Full of small blocks: the same number fits again after all were freed.
  auto fill = [&] {
    std::vector<std::size_t> all;
    while (auto at = heap.allocate(c.link, 0, 16)) all.push_back(*at);
    return all;
  };
  auto first = fill();
  for (auto at : first) CHECK(heap.deallocate(c.link, 0, at));
  auto second = fill();
  CHECK(!first.empty() && first.size() == second.size());
  for (auto at : second) CHECK(heap.deallocate(c.link, 0, at));
  far::dealloc(region);
}

}  // namespace

int main(int argc, char** argv) {
  far::runtime world(argc, argv, {.segment = 1 << 24});
  size_classes();
  blocks();
  return verdict("remote_heap");
}

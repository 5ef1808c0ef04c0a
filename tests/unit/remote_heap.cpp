// The allocator of far::alloc_on, and the boundary that it shares with far::alloc: sizes of blocks,
// and blocks against a list of intervals.
#include <farside/farside.hpp>

#include <map>
#include <random>

#include "check.hpp"

using far::detail::boundary;
using far::detail::remote_heap;
namespace sizes = far::detail::size_classes;

namespace {

void check_size(std::size_t bytes) {
  std::size_t up = sizes::round_up(bytes);
  CHECK(up >= bytes && up % sizes::step == 0);
  CHECK(sizes::round_down(up) == up && sizes::round_up(up) == up);  // it is a size
  // It belongs to a class, whose sizes are no larger, and whose granules tell it.
  unsigned index = sizes::class_of(up);
  CHECK(index < sizes::count && sizes::size_of(index) <= up);
  CHECK((up - sizes::size_of(index)) % sizes::granule_of(index) == 0);
  CHECK((up - sizes::size_of(index)) / sizes::granule_of(index) < 1u << 24);
  if (index + 1 < sizes::count && up < sizes::large)
    CHECK(sizes::size_of(index) == up);
  else if (index + 1 < sizes::count)
    CHECK(up < sizes::size_of(index + 1));
  // Little is lost.
  if (bytes >= sizes::large)
    CHECK(up - bytes < std::max<std::size_t>(4096, bytes >> 19));
  else
    CHECK(up < bytes + bytes / 4 + 32);
  if (bytes < sizes::step) return;
  std::size_t down = sizes::round_down(bytes);
  CHECK(down <= bytes && sizes::round_up(down) == down);
  CHECK(down == bytes || up > bytes);
  CHECK(sizes::round_up(down + 1) ==
        (down == up ? sizes::round_up(up + 1) : up));  // no size between
}

void block_sizes() {
  for (unsigned i = 1; i < sizes::count; ++i) CHECK(sizes::size_of(i) >= sizes::size_of(i - 1));
  CHECK(sizes::size_of(0) == sizes::step && sizes::size_of(sizes::first_large) == sizes::large);
  for (std::size_t bytes = 1; bytes <= 200'000; ++bytes) check_size(bytes);
  for (unsigned bit = 12; bit <= 43; ++bit)
    for (std::size_t part = 16; part < 32; ++part)
      for (std::size_t around : {0, 1, 2, 33, 4097}) check_size((part << (bit - 4)) + around - 1);
  check_size(far::max_segment - 1);
}

/// A region of the test's own, zero, as a segment is in the beginning.
struct region {
  explicit region(std::size_t bytes) : memory(far::alloc<std::byte>(bytes + 64)) {
    std::vector<std::byte> zeros(bytes + 64);
    far::put(memory, zeros.data(), zeros.size());
    begin = (memory.offset() + 63) & ~std::size_t{63};
    end = begin + bytes;
  }
  ~region() { far::dealloc(memory); }
  region(const region&) = delete;
  far::ptr<std::byte> memory;
  std::size_t begin, end;
};

/// What is allocated: nothing overlaps, all is inside.
struct intervals {
  std::map<std::size_t, std::size_t> held;
  void add(std::size_t begin, std::size_t bytes) {
    auto next = held.lower_bound(begin);
    CHECK(next == held.end() || begin + bytes <= next->first);
    CHECK(next == held.begin() || std::prev(next)->first + std::prev(next)->second <= begin);
    held.emplace(begin, bytes);
  }
};

void never_waits() { CHECK(!"waits, and there is nobody to wait for"); }

void both_sides_of_the_boundary() {
  auto& link = far::detail::here().link;
  region r(1 << 20);
  boundary split(r.begin, r.begin + 64, r.end);
  CHECK(split.unit() == 4096 && split.capacity() == (1 << 20) - 64);
  CHECK(split.untouched(link, 0) == split.capacity() && split.bottom(link, 0) == r.end);

  // Growth of the local side is generous while there is plenty, and exact in the end.
  CHECK(split.raise_top(link, 1, 0) == 4096);
  CHECK(split.raise_top(link, 5000, 30'000) == 28'672);
  CHECK(split.raise_top(link, 5000, ~std::size_t{0}) ==
        (split.capacity() - 32'768) / 16 / 4096 * 4096);
  std::size_t top = 32'768 + (split.capacity() - 32'768) / 16 / 4096 * 4096;
  CHECK(split.untouched(link, 0) == split.capacity() - top);

  // The remote side takes what it needs, downwards.
  CHECK(split.lower_bottom(link, 0, 32) == r.end - 32);
  CHECK(split.lower_bottom(link, 0, 1024) == r.end - 1056);
  CHECK(!split.raise_bottom(link, 0, r.end - 32, 32));  // not the lowest
  CHECK(split.raise_bottom(link, 0, r.end - 1056, 1024));
  CHECK(split.raise_bottom(link, 0, r.end - 32, 32));
  CHECK(split.bottom(link, 0) == r.end);

  // They meet, and do not cross.
  std::size_t rest = split.untouched(link, 0);
  CHECK(!split.lower_bottom(link, 0, rest + 32));
  CHECK(split.raise_top(link, rest + 32, 0) == 0);
  CHECK(split.lower_bottom(link, 0, rest - 64) == r.begin + 64 + top + 64);
  CHECK(split.untouched(link, 0) == 64 && split.raise_top(link, 64, 0) == 0);  // no whole unit
  CHECK(!split.lower_bottom(link, 0, 96));
  CHECK(split.lower_bottom(link, 0, 64) == r.begin + 64 + top);
  CHECK(split.untouched(link, 0) == 0 && !split.lower_bottom(link, 0, 32));
  split.lower_top(link, 8192);
  CHECK(split.untouched(link, 0) == 8192);
  CHECK(split.lower_bottom(link, 0, 8192) == r.begin + 64 + top - 8192);

  // The largest segment: both counts fit, and its unit is larger.
  boundary largest(r.begin, 4096, far::max_segment);
  CHECK(largest.unit() == 1 << 20);
  boundary usual(r.begin, 4096, std::size_t{64} << 30);
  CHECK(usual.unit() == 4096);
}

void random_blocks(std::size_t size, std::size_t most) {
  auto& link = far::detail::here().link;
  region r(size);
  remote_heap heap(r.begin, r.end);
  const boundary& split = heap.split();
  CHECK(split.begin() > r.begin && split.end() == r.end);
  CHECK(!heap.allocate(link, 0, size, never_waits));
  CHECK(!heap.allocate(link, 0, ~std::size_t{0}, never_waits));

  std::mt19937 random(1);
  intervals books;
  auto& held = books.held;
  bool was_full = false;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 20 < 11) {
      std::size_t bytes = random() % 4 == 0 ? random() % most : random() % 200;
      auto at = heap.allocate(link, 0, bytes, never_waits);
      was_full |= !at;
      if (!at) continue;
      CHECK(remote_heap::is_payload(*at) && *at >= split.begin() && *at + bytes <= r.end);
      books.add(*at, bytes);
      std::vector<unsigned char> fill(bytes, 0xff);  // what a user writes does not confuse it
      link.put(0, *at, fill.data(), bytes);
    } else if (!held.empty()) {
      auto which = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      CHECK(heap.deallocate(link, 0, which->first));
      CHECK(!heap.deallocate(link, 0, which->first));
      held.erase(which);
    }
  }
  CHECK(was_full);
  for (auto [at, bytes] : held) CHECK(heap.deallocate(link, 0, at));
  CHECK(!heap.deallocate(link, 0, r.begin + 16));  // the heap's own words
  CHECK(!heap.deallocate(link, 0, r.end + 16));

  // Full of small blocks: the same number fits again after all were freed, and nothing is lost.
  auto fill = [&] {
    std::vector<std::size_t> all;
    while (auto at = heap.allocate(link, 0, 16, never_waits)) all.push_back(*at);
    return all;
  };
  auto first = fill();
  CHECK(first.size() == split.capacity() / 32);
  CHECK(heap.largest(link, 0) == 0);
  for (auto at : first) CHECK(heap.deallocate(link, 0, at));
  auto second = fill();
  CHECK(first.size() == second.size());
  CHECK(split.untouched(link, 0) == 0);
  std::shuffle(second.begin(), second.end(), random);
  for (auto at : second) CHECK(heap.deallocate(link, 0, at));
  CHECK(heap.largest(link, 0) == 16);

  // Joined, all of it is untouched again, and one piece.
  heap.join(link, 0, never_waits);
  CHECK(split.untouched(link, 0) == split.capacity());
  CHECK(heap.largest(link, 0) == sizes::round_down(split.capacity()) - remote_heap::header);
  auto all = heap.allocate(link, 0, heap.largest(link, 0), never_waits);
  CHECK(all && heap.deallocate(link, 0, *all));
  CHECK((split.untouched(link, 0) == split.capacity()) == (split.capacity() >= sizes::large));
}

/// What alloc_on finds in a full segment: cut from larger blocks, joined from smaller ones.
void full_segment() {
  auto& link = far::detail::here().link;
  constexpr std::size_t page = 4096, piece = 20 * page - remote_heap::header;
  region r(2 << 20);
  remote_heap heap(r.begin, r.end);
  const boundary& split = heap.split();
  std::vector<std::size_t> pieces;
  while (auto at = heap.allocate(link, 0, piece, never_waits)) pieces.push_back(*at);
  CHECK(pieces.size() == split.capacity() / (20 * page));  // page by page: nothing is wasted
  CHECK(heap.largest(link, 0) ==
        sizes::round_down(split.capacity() % (20 * page)) - remote_heap::header);
  while (heap.allocate(link, 0, 16, never_waits)) {
  }
  CHECK(split.untouched(link, 0) == 0 && heap.largest(link, 0) == 0);

  // One of the same size is used again; a smaller one leaves a rest; a larger one needs neighbours.
  CHECK(heap.deallocate(link, 0, pieces[3]));
  CHECK(heap.largest(link, 0) == piece);
  CHECK(heap.allocate(link, 0, piece - 100, never_waits) == pieces[3]);
  CHECK(heap.deallocate(link, 0, pieces[3]));
  auto upper = heap.allocate(link, 0, 10 * page - remote_heap::header, never_waits);
  CHECK(upper == pieces[3] + 10 * page);
  CHECK(heap.allocate(link, 0, 5 * page - remote_heap::header, never_waits) ==
        pieces[3] + 5 * page);
  CHECK(heap.allocate(link, 0, 5 * page - remote_heap::header, never_waits) == pieces[3]);
  CHECK(heap.deallocate(link, 0, pieces[7]) && heap.deallocate(link, 0, pieces[9]));
  CHECK(!heap.allocate(link, 0, 2 * piece, never_waits));
  CHECK(heap.largest(link, 0) == piece);
  CHECK(heap.deallocate(link, 0, pieces[8]));
  CHECK(heap.largest(link, 0) == piece);  // nobody has joined them yet
  auto joined = heap.allocate(link, 0, 3 * 20 * page - remote_heap::header, never_waits);
  CHECK(joined == pieces[9]);

  // Of blocks of one class the first need not be large enough: it is found all the same.
  CHECK(heap.deallocate(link, 0, *joined));
  auto small = heap.allocate(link, 0, 17 * page - 16, never_waits);
  auto large = heap.allocate(link, 0, 17 * page + 1000, never_waits);
  auto other = heap.allocate(link, 0, 16 * page - 16, never_waits);
  CHECK(small && large && other);
  CHECK(heap.deallocate(link, 0, *large) && heap.deallocate(link, 0, *small));
  CHECK(heap.allocate(link, 0, 17 * page + 1000, never_waits).has_value());
}

}  // namespace

int main(int argc, char** argv) {
  far::runtime world(argc, argv, {.segment = 1 << 24});
  block_sizes();
  both_sides_of_the_boundary();
  random_blocks(1 << 16, 8000);
  random_blocks(1 << 20, 200'000);
  full_segment();
  return verdict("remote_heap");
}

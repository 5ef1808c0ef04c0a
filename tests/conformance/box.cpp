// far::box: objects of any type in far memory, packed, read and released by different ranks.
#include "harness.hpp"

#include <map>
#include <optional>

namespace box_tests {

namespace {

using far::rank_t;
using texts = std::map<std::string, std::vector<std::string>>;

texts texts_of(rank_t rank) {
  texts result;
  result["name"] = {"rank " + std::to_string(rank)};
  result["lines"] = std::vector<std::string>(rank * 3, std::string(rank * 17, 'l'));
  result[""] = {};
  return result;
}

std::size_t local_in_use() {
  auto& c = far::detail::here();
  far::detail::collect_freed(c);
  return c.heap.in_use();
}

/// Where the memory begins that far::alloc_on has taken: stays if blocks are used again.
std::size_t bottom() {
  auto& c = far::detail::here();
  return c.far_heap.split().bottom(c.link, c.link.rank());
}

}  // namespace

FAR_TEST(a_box_lies_in_far_memory_and_every_rank_unpacks_it) {
  rank_t n = far::nprocs(), me = far::rank();
  auto place = far::make<far::box<texts>>(far::box<texts>::pack(texts_of(me)));
  auto in_place = far::make<far::box<std::pair<int, double>>>(
      far::box<std::pair<int, double>>::pack({static_cast<int>(me), 0.5 * me}));
  auto places = far::all_gather(place);
  auto in_places = far::all_gather(in_place);
  far::barrier();
  for (rank_t r = 0; r < n; ++r) {
    CHECK(far::get(places[r]).unpack() == texts_of(r));
    CHECK(far::get(in_places[r]).unpack() == std::pair(static_cast<int>(r), 0.5 * r));
  }
  far::barrier();
  far::get(place).release();
  far::dealloc(place);
  far::dealloc(in_place);
}

FAR_TEST(packed_on_another_rank) {
  rank_t n = far::nprocs(), me = far::rank();
  for (rank_t shift = 0; shift < n; ++shift) {
    rank_t host = (me + shift) % n;
    auto boxed = far::box<texts>::pack_on(host, texts_of(me));
    CHECK(boxed.unpack() == texts_of(me));
    far::flush(host);
    auto all = far::all_gather(boxed);
    far::barrier();
    for (rank_t r = 0; r < n; ++r) CHECK(all[r].unpack() == texts_of(r));
    far::barrier();
    boxed.release();
  }
  CHECK_THROWS(far::box<std::string>::pack_on(n, "x"), "there are only");
}

FAR_TEST(released_by_another_rank_and_nothing_is_left) {
  rank_t n = far::nprocs(), me = far::rank();
  far::barrier();
  std::size_t before = local_in_use();
  std::size_t bottom_then = 0;
  for (int round = 0; round < 30; ++round) {
    std::string text(static_cast<std::size_t>(1 + me * 100), static_cast<char>('a' + round % 26));
    auto own = far::all_gather(far::box<std::string>::pack(text));
    auto elsewhere = far::all_gather(far::box<std::string>::pack_on((me + 1) % n, text));
    far::barrier();
    rank_t other = (me + static_cast<rank_t>(round)) % n;
    auto expected =
        std::string(static_cast<std::size_t>(1 + other * 100), static_cast<char>('a' + round % 26));
    CHECK(own[other].unpack() == expected);
    CHECK(elsewhere[other].unpack() == expected);
    far::barrier();
    own[other].release();
    elsewhere[other].release();
    far::barrier();
    if (round == 1) bottom_then = bottom();
  }
  CHECK_EQ(local_in_use(), before);
  CHECK_EQ(bottom(), bottom_then);
  far::barrier();
}

FAR_TEST(swapped_by_value) {
  // A box of a small fixed-length object is a word that atomics can work on.
  struct half {
    std::uint16_t a, b;
    bool operator==(const half&) const = default;
  };
  static_assert(sizeof(far::box<half>) == 4);
  rank_t n = far::nprocs(), me = far::rank();
  far::ptr<far::box<half>> word;
  if (me == 0) word = far::make<far::box<half>>(far::box<half>::pack({1000, 1001}));
  word = far::broadcast(word, 0);
  auto old = far::swap(word, far::box<half>::pack({static_cast<std::uint16_t>(me), 7})).unpack();
  far::barrier();
  auto last = far::get(word).unpack();
  // Each value that was written was taken out once, but the last one; the first one was too.
  auto seen = far::all_gather(old);
  seen.push_back(last);
  for (rank_t r = 0; r < n; ++r)
    CHECK_EQ(std::count(seen.begin(), seen.end(), half{static_cast<std::uint16_t>(r), 7}), 1);
  CHECK_EQ(std::count(seen.begin(), seen.end(), half{1000, 1001}), 1);
  far::barrier();
  if (me == 0) far::dealloc(word);
}

FAR_TEST(large_objects) {
  std::vector<std::uint64_t> many(200'000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = i * (far::rank() + 1);
  auto boxed = far::box<std::vector<std::uint64_t>>::pack(many);
  auto all = far::all_gather(boxed);
  far::barrier();
  rank_t next = (far::rank() + 1) % far::nprocs();
  auto theirs = all[next].unpack();
  CHECK_EQ(theirs.size(), many.size());
  bool same = true;
  for (std::size_t i = 0; i < theirs.size(); ++i) same &= theirs[i] == i * (next + 1);
  CHECK(same);
  far::barrier();
  boxed.release();
}

}  // namespace box_tests

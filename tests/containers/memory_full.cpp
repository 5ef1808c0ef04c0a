// When memory runs out: an operation that throws has had no effect, a collective that fails on one
// rank throws on all, and afterwards everything works on.
#include "full_segments.hpp"
#include "harness.hpp"
#include "map_types.hpp"

#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/hash_map_buffer.hpp>
#include <farside/containers/array.hpp>
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/counter.hpp>
#include <farside/containers/darray.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/plain_bloom_filter.hpp>
#include <farside/core/mutex.hpp>

#include <memory>
#include <string>

namespace memory_full_tests {

namespace {

using namespace map_types;
using full_segments::ballast;
using full_segments::refused;

/// Collective: `make` throws on all ranks while the last one has no room, and works when it has.
template <class Make>
void refused_by_all(const char* what, Make make) {
  std::unique_ptr<ballast> full;
  if (far::rank() + 1 == far::nprocs()) full = std::make_unique<ballast>();
  far::barrier();
  bool threw = refused(make);
  CHECK(threw);
  if (!threw) std::printf("rank %u: %s did not throw\n", far::rank(), what);
  CHECK_EQ(far::all_reduce(1), static_cast<int>(far::nprocs()));  // still in step
  full.reset();
  far::barrier();
  make();
  far::barrier();
}

}  // namespace

FAR_TEST(what_one_rank_cannot_make_none_makes) {
  const far::rank_t last = far::nprocs() - 1;
  refused_by_all("hash_map", [] { far::hash_map<int, int> x(1000); });
  refused_by_all("circular_queue", [&] { far::circular_queue<int> x(last, 1000); });
  refused_by_all("fast_queue", [&] { far::fast_queue<std::string> x(last, 1000); });
  refused_by_all("array", [&] { far::array<int> x(last, 1000); });
  refused_by_all("darray", [] { far::darray<long> x(std::size_t{100} * far::nprocs()); });
  refused_by_all("bloom_filter", [] { far::bloom_filter<int> x(10000); });
  refused_by_all("plain_bloom_filter", [] { far::plain_bloom_filter<int> x(10000); });
  refused_by_all("counter", [&] { far::counter x(0, last); });
  refused_by_all("mutex_set", [] { far::mutex_set x(10); });
  refused_by_all("exchange", [] { far::exchange<long> x({}, 4096); });
  refused_by_all("split", [] { far::world().split(0); });
}

FAR_TEST(a_queue_stays_where_it_is) {
  const far::rank_t last = far::nprocs() - 1;
  far::circular_queue<int> queue(0, 8);
  if (far::rank() == 0) queue.push(7);
  far::barrier();
  std::unique_ptr<ballast> full;
  if (far::rank() == last) full = std::make_unique<ballast>();
  far::barrier();
  CHECK(refused([&] { queue.migrate(last); }));
  full.reset();
  far::barrier();
  CHECK_EQ(queue.size(), 1U);
  queue.migrate(last);
  CHECK_EQ(queue.host(), last);
  if (far::rank() == last) CHECK_EQ(queue.pop(), 7);
  far::barrier();
}

FAR_TEST(a_map_that_cannot_be_reserved_is_as_it_was) {
  far::hash_map<int, int> map(0);
  const int keys = 40;
  for (int k = static_cast<int>(far::rank()); k < keys; k += static_cast<int>(far::nprocs()))
    map.insert(k, 2 * k);
  far::barrier();  // before memory is full
  refused_by_all("reserve", [&] { map.reserve(std::size_t{100000} * far::nprocs()); });
  CHECK_EQ(map.size(), static_cast<std::size_t>(keys));
  for (int k = 0; k < keys; ++k) CHECK_EQ(map.find(k).value_or(-1), 2 * k);
  far::barrier();
}

// A number that outgrows its cell makes its table move. Without room for that, the number is right
// all the same, and nobody is told that it is not.
FAR_TEST(additions_that_find_no_room) {
  const std::int64_t start = (std::int64_t{1} << 59) - 1;
  far::hash_map<int, std::int64_t> map(16);
  if (far::rank() == 0) map.insert(1, start);
  far::barrier();
  {
    ballast full;
    far::barrier();
    std::int64_t counted = 0;
    for (int i = 0; i < 3; ++i) counted += !refused([&] { map.accumulate(1, 1); });
    std::int64_t refusals = 0;
    for (int i = 0; i < 3; ++i)  // too large to be added without a look
      refusals += refused([&] { map.accumulate(1, std::int64_t{1} << 60); });
    CHECK_EQ(refusals, 3);
    counted = far::all_reduce(counted);
    far::barrier();
    CHECK_EQ(map.find(1).value_or(0) - start, counted);
    far::barrier();
  }
  far::barrier();
  if (far::rank() == 0) map.accumulate(1, std::int64_t{1} << 60);  // sixteen of them would wrap
  far::barrier();
  CHECK(map.find(1).value_or(0) > start + (std::int64_t{1} << 60));
  map.clear();
  CHECK_EQ(map.size(), 0U);
  far::barrier();
}

// A buffer whose owner has no room: all throw, nothing is lost, and the next flush goes on.
FAR_TEST(buffered_changes_that_find_no_room) {
  const int me = static_cast<int>(far::rank()), all = static_cast<int>(far::nprocs());
  const int keys = 400 * all;
  far::hash_map<int, std::string> map(8);
  far::hash_map_buffer buffer(map);
  far::barrier();
  std::unique_ptr<ballast> full;
  if (me + 1 == all) full = std::make_unique<ballast>();
  far::barrier();
  for (int k = me; k < keys; k += all) buffer.insert(k, "old");
  for (int k = me; k < keys; k += all) buffer.insert_or_assign(k, make<std::string>::of(k));
  CHECK(refused([&] { buffer.flush(); }));
  CHECK_EQ(far::all_reduce(1), all);  // still in step
  CHECK(map.size() < static_cast<std::size_t>(keys));
  far::barrier();
  full.reset();
  far::barrier();
  buffer.flush();
  CHECK_EQ(map.size(), static_cast<std::size_t>(keys));
  for (int k = 0; k < keys; ++k) CHECK(map.find(k) == make<std::string>::of(k));
  far::barrier();
}

// An operation of variable length that finds no room for its bytes has changed nothing.
FAR_TEST(strings_that_find_no_room) {
  const int me = static_cast<int>(far::rank());
  const std::string before = "before, and long enough to need room of its own", after(5000, 'x');
  far::hash_map<int, std::string> map(64);
  far::circular_queue<std::string> queue(0, 64);
  map.insert(me, before);
  far::barrier();
  {
    ballast full(64);
    far::barrier();
    CHECK(refused([&] { map.insert_or_assign(me, after); }));
    CHECK(refused([&] { map.insert(1000 + me, after); }));
    CHECK(refused([&] { queue.push(after); }));
    CHECK(refused([&] { queue.push(std::vector<std::string>{before, after, before}); }));
    far::barrier();
    CHECK(map.find(me).value_or("") == before);
    CHECK(!map.contains(1000 + me));
    CHECK_EQ(queue.size(), 0U);
    far::barrier();
  }
  far::barrier();
  CHECK_EQ(map.size(), static_cast<std::size_t>(far::nprocs()));
  CHECK(!map.insert_or_assign(me, after));
  queue.push(after);
  far::barrier();
  CHECK(map.find(me).value_or("") == after);
  CHECK_EQ(queue.size(), static_cast<std::uint64_t>(far::nprocs()));
  far::barrier();
}

}  // namespace memory_full_tests

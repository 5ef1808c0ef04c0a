// What is trivially copyable, or of fixed length, goes in and out of a box, far memory and a future
// without memory from the heap and without its serializer being asked. Caches that get no memory make no
// operation fail that has succeeded.
#include <farside/farside.hpp>

#include <cstdlib>
#include <new>

#include "check.hpp"

static long allocations = 0;
static std::size_t most = ~std::size_t{0};  // larger ones are refused
static long refused = 0;

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (bytes > most)
    ++refused;
  else if (void* at = std::malloc(bytes == 0 ? 1 : bytes))
    return at;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }

namespace {

struct point {
  double x, y;
  int label;
  friend bool operator==(const point&, const point&) = default;
};

}  // namespace

template <>
struct far::serializer<point> {
  static void save(far::writer&, const point&) { throw std::logic_error("asked to save"); }
  static point load(far::reader&) { throw std::logic_error("asked to load"); }
};

int main(int argc, char** argv) {
  far::runtime world(argc, argv);
  using pair = std::pair<int, double>;
  point p{1, 2, 3};
  std::array<int, 100> many{};
  auto where = far::make<point>(p);
  auto word = far::make<long>(1);
  auto boxes = far::alloc<far::box<pair>>(2);
  far::put(boxes, far::box<pair>::pack({7, 7.5}));

  bool same = true;
  long before = allocations;
  for (int i = 0; i < 10; ++i) {
    p.label = many[5] = i;
    same &= far::box<point>::pack(p).unpack() == p;
    same &= far::box<std::array<int, 100>>::pack(many).unpack() == many;
    same &= far::box<pair>::pack({i, 2.5}).unpack() == pair(i, 2.5);
    far::box<point>::pack_on(0, p).release();
    far::put(where, p);
    same &= far::get(where) == p;
    far::copy(boxes, boxes + 1, 1);
    same &= far::get(boxes + 1).unpack() == pair(7, 7.5);
    same &= far::fetch_add(word, 1) == i + 1;
    far::flush();
    far::barrier();
  }
  long during = allocations - before;
  CHECK(same);
  CHECK(during == 0);

  // Futures of what shared memory completes at once; a continuation too.
  before = allocations;
  for (int i = 0; i < 10; ++i) {
    same &= far::async_get(where).get() == p;
    same &= far::async_get(where).then([](point q) { return q.label; }).get() == p.label;
    far::async_put(where, p).wait();
  }
  during = allocations - before;
  CHECK(same);
  CHECK(during == 0);

  // What a rank knows of places is in tables of its own, which are made when there is the first one.
  far::store<long, std::array<long, 20>> things(100);
  most = 4096;
  for (long k = 0; k < 3; ++k) {
    things.put(k, {k, k + 1});
    same &= things.get(k) == std::array<long, 20>{k, k + 1};
  }
  same &= things.size() == 3;
  most = ~std::size_t{0};
  CHECK(same);
  CHECK(refused > 0);

  before = allocations;
  auto text = std::make_unique<std::string>(100, 'x');
  CHECK(allocations > before);  // they are counted indeed
  return verdict("allocation_free");
}

// Promises, and in checked builds what happens to those who break them.
#include "harness.hpp"
#include "map_types.hpp"

namespace promises_tests {

namespace {

using far::concurrency;

}  // namespace

FAR_TEST(promises_have_names) {
  CHECK_EQ(to_text(concurrency::find | concurrency::insert), std::string("find | insert"));
  CHECK_EQ(to_text(concurrency::everything), std::string("everything"));
  CHECK_EQ(to_text(concurrency::nothing), std::string("nothing"));
  CHECK(includes(concurrency::everything, concurrency::pop));
  CHECK(!includes(concurrency::find, concurrency::insert));
}

FAR_TEST(kept_promises_pass) {
  far::hash_map<int, int> map(8);
  int me = static_cast<int>(far::rank());
  map.insert(me, 1, concurrency::insert);
  far::barrier();
  CHECK(map.find(me, concurrency::find) == 1);
  far::barrier();
  map.accumulate(me, 1, std::plus<>(), concurrency::modify | concurrency::find);
  CHECK(map.find(me, concurrency::modify | concurrency::find) == 2);
  far::barrier();
  CHECK(map.erase(me, concurrency::erase));
  far::barrier();
}

#if FARSIDE_CHECKED
namespace {

/// Whether some rank was told of a broken promise, in words that name `first` and `second`.
template <class Work>
bool somebody_is_told(const char* first, const char* second, Work work) {
  far::barrier();
  bool told = false;
  try {
    work();
  } catch (const far::usage_error& e) {
    std::string text = e.what();
    told = text.find("a promise was broken") != std::string::npos &&
           text.find(first) != std::string::npos && text.find(second) != std::string::npos &&
           text.find("on rank") != std::string::npos;
  }
  bool result = far::all_reduce(told ? 1 : 0, far::maximum()) == 1;
  far::barrier();
  return result;
}

bool first_half() { return far::rank() == 0; }
bool second_half() { return far::rank() == far::nprocs() - 1; }

}  // namespace

FAR_TEST(broken_promises_are_told) {
  far::hash_map<int, int> map(8, {.name = "ages"});
  // Only finds were promised, and somebody inserts.
  CHECK(somebody_is_told("find(17)", "insert(4)", [&] {
    if (first_half()) map.find(17, concurrency::find);
    if (second_half()) map.insert(4, 1);
  }));
  CHECK(somebody_is_told("insert(5)", "erase(6)", [&] {
    if (first_half()) map.insert(5, 1, concurrency::insert | concurrency::find);
    if (second_half()) map.erase(6);
  }));
  CHECK(somebody_is_told("modify", "find(8)", [&] {
    if (first_half()) map.modify(7, [](int& x) { ++x; }, concurrency::modify);
    if (second_half()) map.find(8);
  }));
  CHECK(somebody_is_told("erase(9)", "accumulate(1)", [&] {
    if (second_half()) map.erase(9, concurrency::erase);
    if (first_half()) map.accumulate(1, 1);
  }));
  // Whatever else is promised with it, `local` says that nobody else is there.
  int mine = 0;
  while (map.owner(mine) != far::rank()) ++mine;
  CHECK(somebody_is_told("accumulate", "find(8)", [&] {
    if (first_half())
      map.accumulate(mine, 1, {}, concurrency::everything | concurrency::owner_only);
    if (second_half()) map.find(8);
  }));
  if (far::nprocs() > 1)  // not even its own kind: others may not do the same
    CHECK(somebody_is_told("ages", "insert_or_assign(3)", [&] {
      if (first_half()) map.insert_or_assign(3, 1, concurrency::insert);
      if (second_half()) map.insert_or_assign(3, 2);
    }));
  // With a barrier between them all is well.
  CHECK(!somebody_is_told("find", "insert", [&] {
    if (first_half()) map.find(17, concurrency::find);
    far::barrier();
    if (second_half()) map.insert(41, 1);
  }));
}

FAR_TEST(local_promises_are_about_own_keys) {
  far::hash_map<int, int> map(8);
  far::barrier();
  if (far::nprocs() > 1) {
    int other = 0;
    while (map.owner(other) == far::rank()) ++other;
    CHECK_THROWS(map.find(other, concurrency::owner_only), "promised to be local");
  }
  int mine = 0;
  while (map.owner(mine) != far::rank()) ++mine;
  CHECK(map.insert(mine, 1, concurrency::owner_only));
  far::barrier();
}

FAR_TEST(modify_may_not_communicate) {
  far::hash_map<int, int> map(8), other(8);
  CHECK_THROWS(map.modify(1, [&](int& x) { x = other.find(2).value_or(1); }), "communicates");
  CHECK_THROWS(map.modify(1, [&](int&) { far::barrier(); }), "communicates");
  CHECK(!map.find(1));
  far::barrier();
}
#endif

}  // namespace promises_tests

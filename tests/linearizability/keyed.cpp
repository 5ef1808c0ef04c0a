// Maps, sets and counters: histories known to be good and known to be bad.
#include "by_hand.hpp"

using namespace linearizability;
using linearizability::map;
using linearizability::set;

namespace {

using value = std::optional<std::uint64_t>;
const value nothing;

struct maps : by_hand<map> {
  static void one_after_the_other() {
    CHECK(good("no operation", {}));
    CHECK(good("all of them", {
                                  done(0, 1, 2, map::find(7), nothing),
                                  done(0, 3, 4, map::insert(7, 1), true),
                                  done(0, 5, 6, map::insert(7, 2), false),
                                  done(0, 7, 8, map::find(7), value(1)),
                                  done(0, 9, 10, map::insert_or_assign(7, 3), false),
                                  done(0, 11, 12, map::fetch_add(7, 4), 3),
                                  done(0, 13, 14, map::find(7), value(7)),
                                  done(0, 15, 16, map::erase(7), true),
                                  done(0, 17, 18, map::erase(7), false),
                                  done(0, 19, 20, map::fetch_add(7, 9), 0),
                                  done(0, 21, 22, map::find(7), value(9)),
                                  done(0, 23, 24, map::insert_or_assign(8, 1), true),
                              }));
    CHECK(bad("insert replaces",
              {done(0, 1, 2, map::insert(7, 1), true), done(0, 3, 4, map::insert(7, 2), false),
               done(0, 5, 6, map::find(7), value(2))},
              "find(7) -> 2 (it would be 1)"));
    CHECK(bad("created by fetch_add from another value than 0",
              {done(0, 1, 2, map::fetch_add(7, 5), 1)}));
  }

  static void at_the_same_time() {
    CHECK(good("two readers see the write differently",
               {done(0, 1, 10, map::insert(7, 1), true), done(1, 2, 3, map::find(7), nothing),
                done(2, 4, 5, map::find(7), value(1))}));
    CHECK(bad("both inserts report success",
              {done(0, 1, 4, map::insert(7, 1), true), done(1, 2, 3, map::insert(7, 2), true)},
              "insert(7, 1) -> true"));
    CHECK(bad("lost update",
              {done(0, 1, 2, map::insert(7, 10), true), done(1, 3, 6, map::fetch_add(7, 1), 10),
               done(2, 4, 5, map::fetch_add(7, 1), 10)},
              "fetch_add(7, 1) -> 10 (it would be 11)"));
    CHECK(bad(
        "stale read",
        {done(0, 1, 2, map::insert(7, 1), true), done(0, 3, 4, map::insert_or_assign(7, 2), false),
         done(1, 5, 6, map::find(7), value(1))},
        "find(7) -> 1 (it would be 2)"));
    CHECK(bad(
        "read going backwards",
        {done(0, 1, 2, map::insert(7, 1), true), done(0, 3, 20, map::insert_or_assign(7, 2), false),
         done(1, 4, 5, map::find(7), value(2)), done(2, 6, 7, map::find(7), value(1))},
        "find(7) -> 1"));
    CHECK(bad("value out of thin air",
              {done(0, 1, 4, map::insert(7, 1), true), done(1, 2, 3, map::find(7), value(5))},
              "find(7) -> 5"));
    CHECK(bad("erased twice",
              {done(0, 1, 2, map::insert(7, 1), true), done(1, 3, 6, map::erase(7), true),
               done(2, 4, 5, map::erase(7), true)}));
    CHECK(bad("two readers see two writes in different orders",
              {done(0, 1, 2, map::insert_or_assign(7, 1), true),
               done(0, 3, 20, map::insert_or_assign(7, 2), false),
               done(1, 4, 20, map::insert_or_assign(7, 3), false),
               done(2, 5, 6, map::find(7), value(2)), done(2, 7, 8, map::find(7), value(3)),
               done(3, 5, 6, map::find(7), value(3)), done(3, 7, 8, map::find(7), value(2))}));
    CHECK(good("equal stamps overlap",
               {done(0, 1, 2, map::insert(7, 1), true), done(1, 2, 3, map::find(7), nothing)}));
  }

  static void partitions() {
    CHECK(good("keys do not see each other",
               {done(0, 1, 2, map::insert(1, 1), true), done(1, 1, 2, map::insert(2, 1), true),
                done(0, 3, 4, map::find(2), value(1)), done(1, 3, 4, map::find(1), value(1))}));
    history two = {done(0, 1, 2, map::insert(1, 1), true), done(1, 1, 2, map::insert(2, 1), true),
                   done(0, 3, 4, map::find(1), value(1)), done(1, 3, 4, map::find(2), nothing)};
    CHECK(bad("one key of two", two, "of partition 2"));
    result found = check(two);
    CHECK(found.partitions == 2 && found.failed == 1 && found.undecided == 0);
    CHECK(found.report.find("find(1)") == std::string::npos);
  }

  static void not_returned() {
    CHECK(good("took effect",
               {lost(0, 1, map::insert(7, 1)), done(1, 5, 6, map::find(7), value(1))}));
    CHECK(good("took no effect",
               {lost(0, 1, map::insert(7, 1)), done(1, 5, 6, map::find(7), nothing)}));
    CHECK(good("took effect late",
               {lost(0, 1, map::insert(7, 1)), done(1, 5, 6, map::find(7), nothing),
                done(1, 7, 8, map::find(7), value(1))}));
    CHECK(bad("took effect, and then did not",
              {lost(0, 1, map::insert(7, 1)), done(1, 5, 6, map::find(7), value(1)),
               done(1, 7, 8, map::find(7), nothing)},
              "did not return"));
    CHECK(bad("took effect before it began",
              {done(1, 1, 2, map::find(7), value(1)), lost(0, 3, map::insert(7, 1))}));
    CHECK(bad("took effect twice",
              {lost(0, 1, map::fetch_add(7, 1)), done(1, 3, 4, map::fetch_add(7, 1), 0),
               done(1, 5, 6, map::find(7), value(3))}));
    CHECK(good("said nothing", {silent(0, 1, 2, map::insert_or_assign(7, 1)),
                                silent(0, 3, 4, map::insert_or_assign(7, 2)),
                                done(0, 5, 6, map::find(7), value(2))}));
    CHECK(bad("said nothing, but returned", {silent(0, 1, 2, map::insert_or_assign(7, 1)),
                                             done(0, 5, 6, map::find(7), nothing)}));
  }
};

struct sets : by_hand<set> {
  static void known() {
    CHECK(good("one after the other",
               {done(0, 1, 2, set::contains(1), false), done(0, 3, 4, set::insert(1), true),
                done(0, 5, 6, set::insert(1), false), done(0, 7, 8, set::contains(1), true),
                done(0, 9, 10, set::erase(1), true), done(0, 11, 12, set::erase(1), false)}));
    CHECK(good("insert and erase meet",
               {done(0, 1, 4, set::insert(1), true), done(1, 2, 3, set::erase(1), true),
                done(0, 5, 6, set::contains(1), false)}));
    CHECK(good("erase came first",
               {done(0, 1, 4, set::insert(1), true), done(1, 2, 3, set::erase(1), false),
                done(0, 5, 6, set::contains(1), true)}));
    CHECK(bad("insert and erase meet, and both win",
              {done(0, 1, 4, set::insert(1), true), done(1, 2, 3, set::erase(1), true),
               done(0, 5, 6, set::contains(1), true)},
              "contains(1) -> true (it would be false)"));
    CHECK(bad("both insert",
              {done(0, 1, 4, set::insert(1), true), done(1, 2, 3, set::insert(1), true)}));
    CHECK(bad("both find it there",
              {done(0, 1, 4, set::insert(1), false), done(1, 2, 3, set::insert(1), false)}));
    CHECK(bad("gone by itself",
              {done(0, 1, 2, set::insert(1), true), done(1, 3, 4, set::contains(1), false)}));
    CHECK(good("erased by one that did not return",
               {done(0, 1, 2, set::insert(1), true), lost(2, 1, set::erase(1)),
                done(1, 3, 4, set::contains(1), false)}));
  }
};

struct counters : by_hand<counter> {
  static void known() {
    CHECK(good(
        "at the same time",
        {done(0, 1, 9, counter::fetch_add(0, 1), 2), done(1, 2, 9, counter::fetch_add(0, 2), 0),
         done(2, 3, 9, counter::fetch_add(0, 4), 3), done(3, 10, 11, counter::read(0), 7)}));
    CHECK(good("counters do not see each other",
               {done(0, 1, 2, counter::fetch_add(0, 1), 0), done(0, 3, 4, counter::read(1), 0)}));
    CHECK(bad(
        "lost update",
        {done(0, 1, 4, counter::fetch_add(0, 1), 0), done(1, 2, 3, counter::fetch_add(0, 1), 0)},
        "fetch_add(0, 1) -> 0"));
    CHECK(bad("an order that is none", {done(0, 1, 9, counter::fetch_add(0, 1), 2),
                                        done(1, 2, 9, counter::fetch_add(0, 2), 1)}));
    CHECK(bad("read going backwards",
              {done(0, 1, 20, counter::fetch_add(0, 1), 0), done(1, 2, 3, counter::read(0), 1),
               done(2, 4, 5, counter::read(0), 0)},
              "read(0) -> 0 (it would be 1)"));
    CHECK(bad("against real time", {done(0, 1, 2, counter::fetch_add(0, 1), 1),
                                    done(1, 3, 4, counter::fetch_add(0, 1), 0)}));
    CHECK(good("one that did not return is seen",
               {lost(0, 1, counter::fetch_add(0, 5)), done(1, 3, 4, counter::fetch_add(0, 1), 5)}));
    CHECK(bad("half of one that did not return is seen",
              {lost(0, 1, counter::fetch_add(0, 5)), done(1, 3, 4, counter::fetch_add(0, 1), 3)}));
  }

  /// Many that did not return: none of the reads says which of them took effect.
  static void many_lost() {
    history h;
    for (std::uint32_t i = 0; i < 8; ++i) h.push_back(lost(i, 1, counter::fetch_add(0, 1)));
    for (std::uint64_t i = 0; i < 9; ++i)
      h.push_back(done(9, 10 + 2 * i, 11 + 2 * i, counter::read(0), i));
    CHECK(good("8 lost, seen one by one", h));
    h.push_back(done(9, 40, 41, counter::read(0), 9));
    CHECK(bad("9 of 8 seen", h, "read(0) -> 9"));
  }
};

}  // namespace

int main() {
  maps::one_after_the_other();
  maps::at_the_same_time();
  maps::partitions();
  maps::not_returned();
  sets::known();
  counters::known();
  counters::many_lost();
  return verdict("linearizability.keyed");
}

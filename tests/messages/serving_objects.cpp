// What handlers find on their rank: values of far::rank_local, and containers that were named as
// arguments.
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>
#include <farside/containers/array.hpp>
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/counter.hpp>
#include <farside/containers/darray.hpp>
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/containers/plain_bloom_filter.hpp>
#include <farside/core/distributed.hpp>
#include <farside/core/rank_local.hpp>

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace serving_objects_tests {

using namespace messages;

namespace {

far::rank_local<std::map<std::string, long>> stock;
far::rank_local<std::vector<long>> of_each([] {
  return std::vector<long>(far::nprocs(), static_cast<long>(far::rank()));
});

/// A hash function that is another one in each filter.
struct salted {
  std::uint64_t salt = 0;
  std::uint64_t operator()(int key) const {
    return far::hash<std::uint64_t>()(salt + static_cast<unsigned>(key));
  }
};

std::string text_of(far::future<void> answer) {
  try {
    answer.get();
  } catch (const far::rpc_error& e) {
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const char* part) {
  if (text.find(part) != text.npos) return true;
  std::fprintf(stderr, "no '%s' in: %s\n", part, text.c_str());
  return false;
}

}  // namespace

FAR_TEST(rank_locals_are_of_one_rank) {
  for (far::rank_t r = 0; r < far::nprocs(); ++r)
    for (int i = 0; i < 3; ++i)
      far::rpc_ff(
          r, [](std::string what, long n) { (*stock)[what] += n; }, std::string("moon"),
          static_cast<long>(r));
  far::quiesce();
  CHECK_EQ(stock->size(), 1u);
  CHECK_EQ(stock->at("moon"), 3L * far::nprocs() * far::rank());
  stock->clear();

  CHECK_EQ(of_each->size(), far::nprocs());
  CHECK_EQ(of_each->back(), static_cast<long>(far::rank()));
  long there = far::rpc(next_rank(), [] { return of_each->at(0); }).get();
  CHECK_EQ(there, static_cast<long>(next_rank()));
  CHECK(&*of_each == of_each.operator->());
  far::barrier();
}

FAR_TEST(containers_travel_by_name) {
  far::hash_map<int, std::string> map(100);
  far::hash_map<int, std::string> other(100);
  far::darray<int> spread(10, 0);
  far::array<long> table(0, 10);
  table.fill(0);
  far::bloom_filter<int, salted> filter(100, 0.01, {}, salted{77});
  far::plain_bloom_filter<int> plain(100);
  far::circular_queue<std::string> queue(0, 64);
  far::checksum_queue<int> checked(0, 64);
  far::counter tickets(10);
  far::mutex_set doors(3);
  far::mutex door;
  int me = static_cast<int>(far::rank());
  auto change = [](far::hash_map<int, std::string>& m, far::darray<int>& d, far::array<long>& a,
                   far::bloom_filter<int, salted>& f, far::plain_bloom_filter<int>& p,
                   far::circular_queue<std::string>& q, far::checksum_queue<int>& c,
                   far::counter& t, far::mutex_set& ds, far::mutex& d1, int from,
                   std::string text) {
    m.insert(from, text);
    d.fetch_add(1, 1);
    a.fetch_add(2, 1);
    f.insert(from);
    p.insert(from);
    q.push(text);
    c.push(from);
    t.next();
    return std::pair(far::rank(), ds.size() + d1.host());
  };
  auto done = far::rpc(next_rank(), change, map, spread, table, filter, plain, queue, checked,
                       tickets, doors, door, me, "from " + std::to_string(me));
  CHECK_EQ(done.get(), std::pair(next_rank(), std::size_t{3}));
  far::quiesce();
  far::barrier();
  CHECK_EQ(map.size(), far::nprocs());
  CHECK_EQ(other.size(), 0u);
  int n = static_cast<int>(far::nprocs());
  for (int r = 0; r < n; ++r) {
    CHECK_EQ(map.find(r), "from " + std::to_string(r));
    CHECK(filter.contains(r));
    CHECK(plain.contains(r));
  }
  CHECK_EQ(spread.get(1), n);
  CHECK_EQ(table.get(2), n);
  CHECK_EQ(queue.size(), far::nprocs());
  CHECK_EQ(checked.size(), far::nprocs());
  CHECK_EQ(tickets.value(), 10u + far::nprocs());
  far::barrier();
}

FAR_TEST(containers_in_phases_and_visits) {
  far::fast_queue<int> inbox(0, std::size_t{far::nprocs()} * far::nprocs());
  far::distributed<std::vector<int>> mine;
  far::visits visits;
  for (far::rank_t r = 0; r < far::nprocs(); ++r)
    visits.visit(
        r,
        [](far::distributed<std::vector<int>>& v, far::fast_queue<int>& q, int from) {
          v->push_back(from);
          q.push(from);
        },
        mine, inbox, static_cast<int>(far::rank()));
  far::quiesce();
  far::barrier();
  CHECK_EQ(mine->size(), far::nprocs());
  CHECK_EQ(inbox.size(), std::uint64_t{far::nprocs()} * far::nprocs());
  CHECK(mine.fetch(next_rank()).get().size() == far::nprocs());
  far::barrier();
}

FAR_TEST(a_container_may_be_named_as_soon_as_it_is_made) {
  for (int i = 0; i < scaled(64); ++i) {
    far::distributed<int> number(i);
    far::counter tickets;
    for (far::rank_t r = 0; r < far::nprocs(); ++r)
      CHECK_EQ(far::rpc(
                   r, [](far::distributed<int>& x, far::counter& t) { return t.next(), *x; },
                   number, tickets)
                   .get(),
               i);
    far::barrier();
    CHECK_EQ(tickets.value(), std::uint64_t{far::nprocs()} * far::nprocs());
  }
}

FAR_TEST(containers_of_teams) {
  far::team half =
      far::world().split(static_cast<int>(far::rank() % 2), -static_cast<int>(far::rank()));
  far::team pair = half.split(0);
  far::distributed<int> of_half(static_cast<int>(far::rank()), {.over = half});
  far::distributed<int> of_pair(100 + static_cast<int>(far::rank()), {.over = pair});
  for (far::rank_t m = 0; m < half.size(); ++m) {
    far::rank_t r = half.world_rank(m);
    auto sum = far::rpc(
        r, [](far::distributed<int>& a, far::distributed<int>& b) { return *a + *b; }, of_half,
        of_pair);
    CHECK_EQ(sum.get(), 100 + 2 * static_cast<int>(r));
  }
  if (far::nprocs() > 1) {
    try {
      far::rpc(next_rank(), [](far::distributed<int>&) {}, of_half).get();
      CHECK(next_rank() % 2 == far::rank() % 2);  // the last and the first, of an odd number
    } catch (const far::error& e) {
      CHECK(contains(e.what(), "no member of its team"));
      CHECK(contains(e.what(), "distributed '"));
    }
  }
  far::barrier();
}

FAR_TEST(containers_that_have_gone_or_are_not_there_yet) {
  using number = far::distributed<int>;
  far::detail::object_name name;
  far::rpc(next_rank(), [] {}).get();
  {
    std::optional<number> first(std::in_place, 1);
    name = far::detail::handle_access::handle(*first)->id;
    far::quiesce();
  }
  auto use = [](far::detail::object_name of) {
    using state = std::remove_reference_t<decltype(*far::detail::handle_access::handle(
        std::declval<number&>()))>;
    far::detail::find_object<number, state>(of);
  };
  std::string gone = text_of(far::rpc(next_rank(), use, name));
  CHECK(contains(gone, "has destroyed already"));
  CHECK(contains(gone, "far::quiesce()"));
  CHECK(contains(gone, "distributed<int>"));
  name.number += 1000;
  std::string early = text_of(far::rpc(next_rank(), use, name));
  CHECK(contains(early, "has not constructed yet"));
  far::barrier();
  far::counter other;
  name.number -= 999;  // which is the counter
  std::string wrong = text_of(far::rpc(next_rank(), use, name));
  CHECK(contains(wrong, "is counter '"));
  CHECK(contains(wrong, "in the same order"));
  far::barrier();
}

FAR_TEST(empty_handles_are_refused) {
  far::hash_map<int, int> nothing;
  bool thrown = false;
  try {
    far::rpc(0, [](far::hash_map<int, int>&) {}, nothing).get();
  } catch (const far::error&) {
    thrown = true;
  }
  CHECK(thrown);
  far::barrier();
}

}  // namespace serving_objects_tests

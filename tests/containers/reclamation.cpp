// Memory that others may still use is not freed: handlers and continuations run inside barriers, on
// ranks that the others have left behind there.
#include "amounts.hpp"
#include "harness.hpp"

#include <farside/containers/array.hpp>
#include <farside/containers/bloom_filter.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/darray.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/core/rpc.hpp>

#include <array>
#include <atomic>
#include <vector>

namespace reclamation_tests {

namespace {

using map_type = far::hash_map<long, double>;

/// Keys that one member holds.
std::vector<long> keys_of(const map_type& map, far::rank_t member, std::size_t n) {
  std::vector<long> keys;
  for (long k = 1; keys.size() < n; ++k)
    if (map.owner(k) == member) keys.push_back(k);
  return keys;
}

/// Takes memory of the sizes that tables have, and leaves zeros in it, as long as it lives.
class reuse {
 public:
  explicit reuse(far::rank_t on) {
    for (std::size_t words : {64, 96, 128, 160, 256, 512, 1024}) {
      std::vector<long> zeros(words);
      blocks_.push_back(far::alloc_on<long>(on, words));
      far::put(blocks_.back(), zeros.data(), words);
    }
    far::flush();
  }
  ~reuse() {
    for (auto block : blocks_) far::dealloc(block);
  }
  reuse(const reuse&) = delete;

 private:
  std::vector<far::ptr<long>> blocks_;
};

/// One rank inserts, all meet, and that rank looks by `find(key)` for what it inserted earlier,
/// while the owner may still be inside the barrier. How many it does not find.
template <class Find>
int lost_while_owner_is_in_a_barrier(map_type& map, std::size_t n, Find find) {
  const far::rank_t owner = far::nprocs() - 1;
  auto keys = keys_of(map, owner, n);
  int lost = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (far::rank() == 0) map.insert(keys[i], 0.5);
    far::barrier();
    if (far::rank() != 0) continue;
    reuse memory(owner);
    lost += !find(keys[i / 2]);
  }
  far::barrier();
  return lost;
}

std::size_t rounds() { return static_cast<std::size_t>(amounts::many(300)) + 40; }

}  // namespace

FAR_TEST(owners_serve_inside_a_barrier) {
  map_type map(1, {.engine = far::engine::rpc});
  CHECK_EQ(
      lost_while_owner_is_in_a_barrier(map, rounds(), [&](long key) { return map.contains(key); }),
      0);
}

FAR_TEST(handlers_of_users_run_inside_a_barrier) {
  static std::array<std::atomic<const map_type*>, 1024>
      maps;  // of each rank, as ranks may be threads
  map_type map(1);
  maps[far::rank()] = &map;
  far::barrier();
  auto find_there = [](long key) {
    return far::rpc(
               far::nprocs() - 1, [](long k) { return maps[far::rank()].load()->contains(k); }, key)
        .get();
  };
  CHECK_EQ(lost_while_owner_is_in_a_barrier(map, rounds(), find_there), 0);
  far::quiesce();
}

// Operations under way over a barrier may move a table inside it. What they have left is used by
// ranks that have left the barrier before.
FAR_TEST(continuations_run_inside_a_barrier) {
  const auto me = static_cast<long>(far::rank()), all = static_cast<long>(far::nprocs());
  map_type map(1);
  int lost = 0;
  for (long i = 0; i < 40; ++i) {
    std::vector<far::future<bool>> inserts;
    if (i % all == me)
      for (long j = 0; j < 2; ++j) inserts.push_back(map.async_insert(2 * i + j, 1.5));
    far::barrier();
    for (auto& insert : inserts) CHECK(insert.get());
    if (i % all == me)
      for (far::rank_t r = 0; r < far::nprocs(); ++r) reuse memory(r);
    for (long k = 0; k < 2 * i - 2; k += 3) lost += !map.contains(k);
  }
  far::barrier();
  CHECK_EQ(lost, 0);
  CHECK_EQ(map.size(), 80U);
}

// A map ends when what was begun on it has ended, also what nobody waits for.
FAR_TEST(a_map_waits_for_what_is_under_way) {
  far::future<bool> insert;
  far::future<std::optional<double>> find;
  {
    map_type map(1);
    insert = map.async_insert(static_cast<long>(far::rank()), 2.5);
    find = map.async_find(12345);
  }
  CHECK(insert.get());
  CHECK(!find.get());
  far::barrier();
}

// So do others, whose operations end by themselves, or mark what they have popped.
FAR_TEST(containers_wait_for_what_is_under_way) {
  const far::rank_t me = far::rank(), all = far::nprocs();
  for (far::rank_t round = 0; round < 6; ++round) {
    const far::rank_t host = round % all;
    {
      far::bloom_filter<far::rank_t> filter(64);
      for (far::rank_t i = 0; i < 4; ++i) (void)filter.async_insert(i * all + me);
      (void)filter.async_find(0);
    }
    {
      far::darray<long> spread(all * 4);
      for (far::rank_t i = 0; i < 4; ++i) {
        (void)spread.async_put((i * all + me + 1) % (all * 4), 7);
        (void)spread.async_get((i * all + me + 2) % (all * 4));
      }
    }
    {
      far::array<long> hosted(host, 8);
      for (far::rank_t i = 0; i < 4; ++i) (void)hosted.async_put(i, 7);
    }
    {
      far::circular_queue<std::string> queue(host, 2 * std::size_t{all});
      if (round % 2 == 0)
        queue.push("one");
      else
        (void)queue.async_push("one");
      (void)queue.try_pop();
    }
    reuse memory(host);
    CHECK_EQ(far::all_reduce(1), static_cast<int>(all));
  }
}

// Pushes for which there was no room while the queue lived fail, and never touch its memory again.
FAR_TEST(a_queue_ends_before_there_is_room) {
  for (int round = 0; round < 3; ++round) {
    far::future<void> push;
    {
      far::circular_queue<int> queue(0, 1);
      if (far::rank() == 0) queue.push(0);
      far::barrier();
      push = queue.async_push(1);
      if (round == 1 && far::rank() == 0) (void)queue.try_pop();
    }
    reuse memory(0);
    bool failed = false;
    try {
      push.get();
    } catch (const far::error&) {
      failed = true;
    }
    int failures = far::all_reduce(failed ? 1 : 0), all = static_cast<int>(far::nprocs());
    CHECK(round == 1 ? failures == all - 1 || failures == all : failures == all);
  }
}

// The bytes of keys that were erased are freed with the tables that named them, and all is given
// back when the map ends.
FAR_TEST(what_tables_leave_is_given_back) {
  auto free_bytes = [] {
    std::vector<far::ptr<std::byte>> all;
    std::size_t sum = 0;
    for (std::size_t piece = std::size_t{1} << 16; piece >= 1024; piece /= 2)
      for (int i = 0; i < 4; ++i) try {
          all.push_back(far::alloc<std::byte>(piece));
          sum += piece;
        } catch (const far::allocation_error&) {
        }
    for (auto block : all) far::dealloc(block);
    return sum;
  };
  auto before = free_bytes();
  for (int round = 0; round < 3; ++round) {
    far::hash_map<std::string, std::string> map(0);
    for (int i = 0; i < 60; ++i) {
      std::string key =
          std::to_string(i * static_cast<int>(far::nprocs()) + static_cast<int>(far::rank()));
      map.insert(key, std::string(100, 'v'));
      if (i % 2 != 0) CHECK(map.erase(key));
      if (i % 8 == 0) far::barrier();
    }
    far::barrier();
    CHECK_EQ(map.size(), 30U * far::nprocs());
    far::barrier();
  }
  CHECK_EQ(free_bytes(), before);
  far::barrier();
}

}  // namespace reclamation_tests

// far::circular_queue, its two_atomics protocol, and far::checksum_queue against std::deque, and
// what many ranks do to one queue. far::fast_queue, costs and promises: queues_more.cpp.
#include "queue_types.hpp"

namespace queues_tests {

using namespace queue_test;

namespace {

/// Random operations of this rank alone, compared with a deque.
template <class T, class Queue>
void compare_with_deque(Queue& q, int steps, std::uint64_t salt) {
  std::deque<T> oracle;
  auto random = far_test::random_engine(salt);
  std::uint64_t next = 0, capacity = q.capacity();
  auto below = [&](std::uint64_t n) { return random() % n; };
  auto fresh = [&](std::uint64_t n) {
    std::vector<T> values;
    for (std::uint64_t i = 0; i < n; ++i) values.push_back(make<T>(next++));
    return values;
  };
  auto expect_first = [&](const std::vector<T>& got) {
    CHECK(got.size() <= oracle.size());
    for (const T& value : got) {
      CHECK(!oracle.empty() && value == oracle.front());
      oracle.pop_front();
    }
  };
  for (int step = 0; step < steps; ++step) {
    std::uint64_t room = capacity - oracle.size();
    switch (below(10)) {
      case 0:
      case 1: {
        if (room == 0) break;
        auto value = fresh(1);
        q.push(value[0]);
        oracle.push_back(value[0]);
        break;
      }
      case 2: {
        auto value = fresh(1);
        bool pushed = q.try_push(value[0]);
        CHECK_EQ(pushed, room != 0);
        if (pushed) oracle.push_back(value[0]);
        break;
      }
      case 3: {
        auto values = fresh(below(room + 1));
        q.push(std::span<const T>(values));
        oracle.insert(oracle.end(), values.begin(), values.end());
        break;
      }
      case 4: {
        auto values = fresh(1 + below(capacity));
        bool pushed = q.try_push(std::span<const T>(values));
        CHECK_EQ(pushed, room >= values.size());
        if (pushed) oracle.insert(oracle.end(), values.begin(), values.end());
        break;
      }
      case 5: {
        if (room == 0) break;
        auto value = fresh(1);
        q.async_push(value[0]).get();
        far::flush();
        oracle.push_back(value[0]);
        break;
      }
      case 6:
        if (!oracle.empty()) expect_first({q.pop()});
        break;
      case 7: {
        std::optional<T> got = q.try_pop();
        CHECK_EQ(got.has_value(), !oracle.empty());
        if (got) expect_first({*got});
        break;
      }
      case 8:
        expect_first(q.pop(below(oracle.size() + 1)));
        break;
      case 9: {
        std::uint64_t most = below(capacity + 3), there = std::min(most, oracle.size());
        auto got = q.try_pop(most);
        CHECK_EQ(got.size(), there);
        expect_first(got);
        break;
      }
    }
    CHECK_EQ(q.size(), oracle.size());
  }
  CHECK(q.as_vector() == std::vector<T>(oracle.begin(), oracle.end()));
  CHECK_EQ(q.empty(), oracle.empty());
}

/// Each rank has a queue of its own, on the next rank, and all run at the same time.
template <class T, template <class> class Queue>
void each_its_own(std::initializer_list<std::uint64_t> capacities, int steps) {
  for (std::uint64_t capacity : capacities) {
    std::vector<Queue<T>> queues;
    for (far::rank_t r = 0; r < far::nprocs(); ++r)
      queues.emplace_back((r + 1) % far::nprocs(), capacity);
    compare_with_deque<T>(queues[far::rank()], steps, capacity);
    far::barrier();
    while (!queues.empty()) queues.pop_back();
  }
}

}  // namespace

MIXED_TEST(as_a_deque_of_numbers) { each_its_own<long, Queue>({1, 2, 3, 31, 33, 70}, 60); }
MIXED_TEST(as_a_deque_of_chars) { each_its_own<unsigned char, Queue>({2, 5}, 60); }
MIXED_TEST(as_a_deque_of_strings) { each_its_own<std::string, Queue>({1, 6}, 50); }
MIXED_TEST(as_a_deque_of_records) { each_its_own<record, Queue>({4}, 50); }
MIXED_TEST(as_a_deque_of_dates) { each_its_own<date, Queue>({3}, 50); }
MIXED_TEST(as_a_deque_of_wide_elements) { each_its_own<wide, Queue>({1, 5, 40}, 50); }

/// Everybody pushes and pops, in all forms; nothing is lost, doubled or out of a producer's order.
MIXED_TEST(all_push_and_pop) {
  constexpr std::uint64_t unit = 1'000'000;
  for (std::uint64_t capacity : {1, 3, 40}) {
    Queue<wide> q(far::nprocs() / 2, capacity);
    std::uint64_t each = far::nprocs() > 16 ? 8 : 40, pushed = 0, popped = 0, sum = 0;
    std::vector<std::uint64_t> last(far::nprocs(), 0);
    auto random = far_test::random_engine(capacity);
    auto take = [&](const wide& value) {
      std::uint64_t from = value.words[1] / unit, number = value.words[1] % unit;
      CHECK(value == make<wide>(value.words[1]));
      CHECK(from < far::nprocs() && number > last[from]);
      if (from < far::nprocs()) last[from] = number;
      sum += number;
      ++popped;
    };
    auto next = [&] { return make<wide>(far::rank() * unit + ++pushed); };
    // Who waits for room has nothing in the queue, and who waits for an element has some: so
    // somebody can always go on.
    while (popped < each) {
      if (pushed < each && (pushed == popped || random() % 2 == 0)) {
        switch (pushed == popped ? random() % 3 : 1 + random() % 2) {
          case 0:
            q.push(next());
            break;
          case 1: {
            wide value = next();
            if (!q.try_push(value)) --pushed;
            break;
          }
          default: {
            std::vector<wide> some(1 + random() % std::min(capacity, each - pushed));
            std::uint64_t before = pushed;
            for (auto& value : some) value = next();
            if (!q.try_push(std::span<const wide>(some))) pushed = before;
          }
        }
      } else if (pushed > popped) {
        switch (random() % 3) {
          case 0:
            take(q.pop());
            break;
          case 1:
            if (auto value = q.try_pop()) take(*value);
            break;
          default:
            for (const wide& value : q.try_pop(std::min<std::uint64_t>(3, pushed - popped)))
              take(value);
        }
      }
    }
    far::barrier();
    CHECK_EQ(q.size(), 0u);
    CHECK_EQ(far::all_reduce(sum), far::nprocs() * each * (each + 1) / 2);
    auto all = q.statistics();
    CHECK_EQ(all.pushes, far::nprocs() * each);
    CHECK_EQ(all.pops, all.pushes);
  }
}

/// Words that are the same in two rounds of a slot, and others in the next: one that lands late
/// must not land on what came after it.
MIXED_TEST(words_that_come_again) {
  Queue<wide> q(0, 1);
  auto random = far_test::random_engine();
  const bool alone = far::nprocs() == 1;
  const int pushers = alone ? 1 : static_cast<int>(far::nprocs()) - 1;
  const int each = std::max(4, 60 / pushers);
  std::uint64_t pushed = 0, popped = 0;
  auto push = [&] {
    wide next;
    std::uint64_t same = random() % 2;
    for (auto& word : next.words) pushed += word = same;
    q.async_push(next).wait();  // on its way
  };
  auto pop = [&] {
    for (auto word : q.pop().words) popped += word;
  };
  // Who pushes does not pop: it would see to it that its own words land.
  for (int i = 0; i < (far::rank() == 0 ? each * pushers : each); ++i) {
    if (far::rank() != 0 || alone) push();
    if (far::rank() == 0) pop();
  }
  far::barrier();
  CHECK_EQ(far::all_reduce(popped), far::all_reduce(pushed));
  CHECK(q.empty());
}

/// Some only push and some only pop, always waiting: for room, and for elements.
MIXED_TEST(producers_and_consumers) {
  if (far::nprocs() < 2) SKIP("needs 2 ranks");
  Queue<std::string> q(0, 2);
  const int each = std::max(1, 60 / static_cast<int>(far::nprocs()));
  far::rank_t producers = far::nprocs() / 2, consumers = far::nprocs() - producers;
  long sum = 0;
  if (far::rank() < producers) {
    for (int i = 0; i < each * static_cast<int>(consumers); ++i) q.push(std::to_string(i));
  } else {
    for (int i = 0; i < each * static_cast<int>(producers); ++i) sum += std::stol(q.pop());
  }
  far::barrier();
  long n = each * static_cast<long>(consumers);
  CHECK_EQ(far::all_reduce(sum), static_cast<long>(producers) * n * (n - 1) / 2);
  CHECK(q.empty());
}

/// Pushes of many wait until all have room, and stay together.
MIXED_TEST(pushes_of_many_stay_together) {
  Queue<int> q(0, 10);
  constexpr int parts = 6;
  int n = static_cast<int>(far::nprocs());
  std::vector<int> seen;
  if (far::rank() != 0 || n == 1) {
    for (int part = 0; part < (n == 1 ? 1 : parts); ++part) {
      std::vector<int> values(5);
      for (int i = 0; i < 5; ++i) values[i] = static_cast<int>(far::rank()) * 1000 + part * 5 + i;
      q.push(std::span<const int>(values));
    }
  }
  if (far::rank() == 0) {
    std::size_t all = static_cast<std::size_t>(n == 1 ? 5 : 5 * parts * (n - 1));
    while (seen.size() < all) {
      auto some = q.pop(std::min<std::uint64_t>(all - seen.size(), 1 + seen.size() % 17));
      seen.insert(seen.end(), some.begin(), some.end());
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      CHECK(i % 5 == 0 ? seen[i] % 5 == 0 : seen[i] == seen[i - 1] + 1);
  }
  far::barrier();
  CHECK(q.empty());
}

MIXED_TEST(full_and_empty_change_nothing) {
  Queue<std::string> q(far::nprocs() - 1, 3);
  in_turn([&] {
    CHECK(!q.try_pop());
    CHECK(q.try_pop(5).empty());
    for (int i = 0; i < 3; ++i) CHECK(q.try_push(std::to_string(i)));
    std::vector<std::string> more{"a", "b"};
    for (int i = 0; i < 4; ++i) {
      CHECK(!q.try_push("no"));
      CHECK(!q.try_push(std::span<const std::string>(more)));
    }
    CHECK_EQ(q.pop(), "0");
    CHECK(!q.try_push(std::span<const std::string>(more)));
    CHECK(q.try_push("3"));
    CHECK(q.as_vector() == (std::vector<std::string>{"1", "2", "3"}));
    std::vector<std::string> none;
    q.push(std::span<const std::string>(none));
    CHECK(q.pop(std::uint64_t{0}).empty());
    CHECK_EQ(q.try_pop(9).size(), 3u);
    CHECK(q.empty());
  });
}

/// An async_push to a full queue is ready once there is room.
MIXED_TEST(async_push_waits_for_room) {
  Queue<long> q(0, 2);
  in_turn([&] {
    std::vector<far::future<void>> pushes;
    for (long i = 0; i < 2; ++i) pushes.push_back(q.async_push(i));
    for (auto& push : pushes) push.get();
    auto third = q.async_push(2);
    for (int i = 0; i < 20; ++i) CHECK(!third.is_ready());
    long first = q.pop();
    third.get();
    far::flush();
    long second = q.pop();
    CHECK_EQ(std::min(first, second), 0);
    CHECK_EQ(std::max(first, second), 1);
    CHECK_EQ(q.pop(), 2);
  });
}

MIXED_TEST(resize_and_migrate_keep_the_order) {
  Queue<std::string> q(0, 5);
  std::vector<std::string> expected;
  int next = 0;
  auto push_by = [&](far::rank_t who, int n) {
    for (int i = 0; i < n; ++i, ++next) {
      expected.push_back(make<std::string>(static_cast<std::uint64_t>(next)));
      if (far::rank() == who % far::nprocs()) q.push(expected.back());
    }
    far::barrier();
  };
  auto pop_by = [&](far::rank_t who, int n) {
    for (int i = 0; i < n; ++i) {
      if (far::rank() == who % far::nprocs()) CHECK_EQ(q.pop(), expected.front());
      expected.erase(expected.begin());
    }
    far::barrier();
  };
  push_by(1, 4), pop_by(2, 3), push_by(2, 4);  // it has wrapped
  CHECK_THROWS(q.resize(4), "has 5 elements");
  q.resize(50);
  CHECK_EQ(q.capacity(), 50u);
  CHECK(q.as_vector() == expected);
  far::barrier();
  push_by(0, 40), pop_by(1, 44);
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    q.migrate(r);
    CHECK_EQ(q.host(), r);
    CHECK(q.as_vector() == expected);
    far::barrier();
    push_by(r + 1, 2), pop_by(r, 2);
  }
  q.resize(expected.size());
  far::barrier();
  CHECK(!q.try_push("x"));
  far::barrier();
  pop_by(3, 1);
  std::uint64_t pops = q.statistics().pops;
  q.clear();
  expected.clear();
  CHECK(q.empty());
  CHECK_EQ(q.statistics().pops, q.statistics().pushes);
  CHECK(q.statistics().pops >= pops);
  far::barrier();
  push_by(1, 1), pop_by(0, 1);
  CHECK_THROWS(q.resize(0), "capacity of 0");
  CHECK_THROWS(q.migrate(far::nprocs()), "members");
}

/// Serialized bytes are given back by whoever pops, clears or destroys.
MIXED_TEST(serialized_bytes_are_freed) {
  auto in_use = [] {
    far::barrier();  // what others have freed is on this rank's list
    far::dealloc(far::alloc<char>());
    return far::detail::here().heap.in_use();
  };
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {  // every pair of ranks has talked: what
    Queue<int> first(r, far::nprocs());              // messages need, if they are sent, is there
    first.push(1), first.pop();
  }
  {
    Queue<std::string> q(0, 8);
    std::size_t before = in_use();
    for (int round = 0; round < 6; ++round) {
      q.push(std::string(1000, 'x'));
      CHECK_EQ(q.pop().size(), 1000u);
    }
    far::barrier();
    in_turn([&] {
      while (q.try_push("y")) continue;
    });
    in_turn([&] { CHECK(!q.try_push(std::string(500, 'z'))); });
    q.clear();
    CHECK_EQ(in_use(), before);
    if (far::rank() == far::nprocs() - 1)
      for (int i = 0; i < 5; ++i) q.push("left behind");
  }
  std::size_t between = in_use();
  {
    Queue<std::string> q(0, 8);
    q.migrate(far::nprocs() - 1);
    if (far::rank() == 0) q.push("left behind");
  }
  CHECK_EQ(in_use(), between);
}

MIXED_TEST(moved_handles) {
  Queue<int> a(0, 4);
  if (far::rank() == 0) a.push(1);
  far::barrier();
  Queue<int> b(std::move(a));
  CHECK_EQ(b.size(), 1u);
  CHECK_THROWS(a.size(), "moved from");
  CHECK_THROWS(a.push(1), "moved from");
  Queue<int> c(0, 2);
  c = std::move(b);
  CHECK_EQ(c.capacity(), 4u);
  far::barrier();
  if (far::rank() == far::nprocs() - 1) CHECK_EQ(c.pop(), 1);
  far::barrier();
  CHECK(c.empty());
}

/// Half of the ranks have a queue of their own, whose host is named by its place in the team.
MIXED_TEST(teams) {
  bool odd = far::rank() % 2 == 1;
  far::team half = far::world().split(odd ? 1 : 0);
  {
    Queue<int> q(half.size() - 1, 100, {.name = odd ? "odd" : "even", .over = half});
    CHECK_EQ(q.name(), odd ? "odd" : "even");
    CHECK_EQ(q.host(), half.size() - 1);
    q.push(static_cast<int>(far::rank()));
    far::barrier(half);
    CHECK_EQ(q.size(), half.size());
    far::barrier(half);
    CHECK_EQ(q.pop() % 2, odd ? 1 : 0);
    q.migrate(0);
    CHECK(q.empty());
  }
  far::barrier();
}

MIXED_TEST(several_queues_end_in_any_order) {
  auto first = std::make_unique<Queue<int>>(0, 3);
  auto second = std::make_unique<Queue<std::string>>(far::nprocs() - 1, 3);
  if (far::rank() == 0) {
    first->push(1);
    second->push("one");
  }
  far::barrier();
  first.reset();
  CHECK_EQ(second->size(), 1u);
  far::barrier();
  Queue<int> third(0, 3);  // perhaps where the first one was
  CHECK(third.empty());
  CHECK(!third.try_pop());
  far::barrier();
  second.reset();
}

/// What an earlier queue left in its memory is not taken for elements.
MIXED_TEST(a_new_queue_is_empty) {
  for (int i = 0; i < 3; ++i) {
    Queue<long> q(0, 6);
    CHECK(!q.try_pop());
    far::barrier();
    if (far::rank() == 0) {
      CHECK(!q.local_pop());
      for (long j = 0; j < 6; ++j) q.push(j);
    }
    far::barrier();
    CHECK(q.as_vector() == (std::vector<long>{0, 1, 2, 3, 4, 5}));
    far::barrier();
  }
}

MIXED_TEST(wrong_arguments) {
  CHECK_THROWS(Queue<int>(0, 0), "capacity of 0");
  CHECK_THROWS(Queue<int>(far::nprocs(), 1, {.name = "lost"}), "'lost' on member");
  Queue<int> q(0, 4);
  std::vector<int> five(5);
  CHECK_THROWS(q.push(std::span<const int>(five)), "holds 4 at most");
  CHECK_THROWS(q.try_push(std::span<const int>(five)), "holds 4 at most");
  CHECK_EQ(q.size(), 0u);
  if (far::rank() != 0) CHECK_THROWS(q.local_pop(), "only its host");
  far::barrier();
}

MIXED_TEST(iteration_and_statistics) {
  Queue<int> q(far::nprocs() - 1, 6);
  if (far::rank() == 0)
    for (int i = 0; i < 20; ++i) {
      q.push(i);
      if (i >= 5) CHECK_EQ(q.pop(), i - 5);
    }
  far::barrier();
  std::vector<int> seen;
  for (int value : q) seen.push_back(value);
  CHECK(seen == (std::vector<int>{15, 16, 17, 18, 19}));
  auto all = q.statistics();
  CHECK_EQ(all.size, 5u);
  CHECK_EQ(all.capacity, 6u);
  CHECK_EQ(all.pushes, 20u);
  CHECK_EQ(all.pops, 15u);
  CHECK(all.bytes >= 6 * sizeof(int));
  q.resize(9);
  CHECK_EQ(q.statistics().pushes, 20u);
  CHECK_EQ(q.statistics().pops, 15u);
}

// A ring of many blocks: each element has a place of its own, whatever their size and however they
// are pushed.
template <class T>
void fill_large_ring() {
  const std::uint64_t capacity = 3000;
  far::circular_queue<T> q(0, capacity);
  if (far::rank() == far::nprocs() - 1) {
    for (std::uint64_t lap = 0, next = 0; lap < 2; ++lap) {
      std::vector<T> many;
      while (many.size() < capacity - 200) many.push_back(make<T>(next++));
      q.push(std::span<const T>(many));
      for (int i = 0; i < 200; ++i) q.push(make<T>(next++));
      CHECK(!q.try_push(make<T>(0)));
      std::vector<T> got = q.pop(capacity);
      for (std::uint64_t i = 0; i < capacity; ++i) CHECK(got[i] == make<T>(lap * capacity + i));
    }
  }
  far::barrier();
}
FAR_TEST(a_large_ring) {
  fill_large_ring<long>();
  fill_large_ring<wide>();
}

}  // namespace queues_tests

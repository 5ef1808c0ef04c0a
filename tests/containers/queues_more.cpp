// far::fast_queue; what operations of all queues cost; promises, kept and broken.
#include "queue_types.hpp"

namespace queues_more_tests {

using namespace queue_test;
using far::concurrency;
using far::container_operation;

namespace {

/// Phases of pushes by all and pops by all; what each rank popped, in its order.
template <class T>
void phases(std::uint64_t capacity, int rounds) {
  far::fast_queue<T> q(far::nprocs() / 2, capacity);
  auto random = far_test::random_engine(capacity);
  std::uint64_t next = 0;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t before = far::broadcast(q.size(), 0);
    far::barrier();
    std::uint64_t pushed = 0;
    for (int i = 0; i < 6; ++i) {
      if (random() % 2 == 0) {
        pushed += q.try_push(make<T>(next++));
      } else {
        std::vector<T> some;
        for (std::uint64_t n = 1 + random() % std::min<std::uint64_t>(capacity, 4); n != 0; --n)
          some.push_back(make<T>(next++));
        if (q.try_push(std::span<const T>(some))) pushed += some.size();
      }
    }
    far::barrier();
    std::uint64_t all = before + far::all_reduce(pushed);
    CHECK_EQ(q.size(), all);
    CHECK(all <= capacity);
    far::barrier();
    std::uint64_t popped = 0;
    for (int i = 0; i < 5; ++i)
      popped += random() % 2 == 0 ? q.try_pop().has_value() : q.pop(random() % 4).size();
    far::barrier();
    CHECK_EQ(q.size(), all - far::all_reduce(popped));
    far::barrier();
  }
}

}  // namespace

FAR_TEST(fast_queue_phases) {
  for (std::uint64_t capacity : {1, 2, 7, 64}) phases<long>(capacity, 6);
  phases<std::string>(9, 5);
  phases<date>(5, 5);
}

/// Each phase is one operation, of the ranks in turn.
FAR_TEST(fast_queue_is_first_in_first_out) {
  far::fast_queue<std::string> q(far::nprocs() - 1, 7);
  std::deque<std::string> oracle;  // the same on all ranks
  for (int i = 0; i < 60; ++i) {
    bool mine = static_cast<far::rank_t>(i) % far::nprocs() == far::rank();
    std::string text = make<std::string>(static_cast<std::uint64_t>(i));
    if (i % 3 == 2 && i < 50) {
      if (mine) CHECK_EQ(q.pop(), oracle.front());
      oracle.pop_front();
    } else if (oracle.size() < 7) {
      if (mine && i % 3 == 0) q.push(text);
      if (mine && i % 3 != 0) q.async_push(text).get();
      oracle.push_back(text);
    } else if (mine) {
      CHECK(!q.try_push(text));
      CHECK_THROWS(q.push(text), "is full: 0 of 1");
      CHECK_THROWS(q.async_push(text).get(), "is full");
    }
    far::barrier();
  }
  CHECK(q.as_vector() == std::vector<std::string>(oracle.begin(), oracle.end()));
  CHECK_EQ(oracle.size(), 7u);
  far::barrier();
  if (far::rank() == 0) {
    CHECK_EQ(q.try_pop(100).size(), 7u);
    CHECK(!q.try_pop());
    CHECK_THROWS(q.pop(), "is empty");
  }
}

/// Of more pushes than there is room for, as many succeed as there is room for: none is lost, and
/// the queue is whole afterwards.
FAR_TEST(fast_queue_overrun_by_all) {
  for (int round = 0; round < 4; ++round) {
    far::fast_queue<std::uint64_t> q(0, 5);
    for (int again = 0; again < 3; ++again) {
      std::uint64_t pushed = 0;
      for (std::uint64_t i = 0; i < 6; ++i) pushed += q.try_push(far::rank() * 100 + i);
      far::barrier();
      CHECK_EQ(far::all_reduce(pushed), 5u);
      CHECK_EQ(q.size(), 5u);
      far::barrier();
      std::vector<std::uint64_t> mine;
      for (int i = 0; i < 6; ++i)
        if (auto value = q.try_pop()) mine.push_back(*value);
      for (std::uint64_t value : mine) CHECK(value % 100 < 6 && value / 100 < far::nprocs());
      far::barrier();
      CHECK_EQ(far::all_reduce(mine.size()), 5u);
      CHECK_EQ(q.size(), 0u);
      far::barrier();
    }
  }
}

FAR_TEST(fast_queue_pushes_what_fits) {
  far::fast_queue<int> q(0, 8);
  std::vector<int> six{1, 2, 3, 4, 5, 6}, nine(9);
  CHECK_THROWS(q.push(std::span<const int>(nine)), "holds 8 at most");
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    if (r == far::rank()) {
      q.push(std::span<const int>(six));
      CHECK(!q.try_push(std::span<const int>(six)));
      CHECK_THROWS(q.push(std::span<const int>(six)), "2 of 6");
    }
    far::barrier();
    CHECK(q.as_vector() == (std::vector<int>{1, 2, 3, 4, 5, 6, 1, 2}));
    far::barrier();
    if (r == far::rank()) CHECK_EQ(q.pop(std::uint64_t{20}).size(), 8u);
    far::barrier();
  }
}

FAR_TEST(fast_queue_moves) {
  far::fast_queue<std::string> q(0, 2 * far::nprocs());
  q.push(make<std::string>(far::rank()));
  far::barrier();
  auto all = q.as_vector();
  CHECK_EQ(all.size(), far::nprocs());
  q.resize(3 * far::nprocs());
  q.migrate(far::nprocs() - 1);
  CHECK(q.as_vector() == all);
  CHECK_EQ(q.statistics().size, far::nprocs());
  std::size_t counted = 0;
  for (const std::string& text : q) counted += !text.empty();
  CHECK_EQ(counted, far::nprocs());
  CHECK_THROWS(q.resize(0), "capacity of 0");
  far::barrier();
  if (far::rank() == far::nprocs() - 1) {
    for (const std::string& text : all) CHECK_EQ(q.local_pop().value(), text);
    CHECK(!q.local_pop());
  } else {
    CHECK_THROWS(q.local_pop(), "only its host");
  }
  far::barrier();
  q.push("again");
  q.clear();
  CHECK(q.empty());
  CHECK_EQ(q.statistics().pushes, 2 * far::nprocs());
}

FAR_TEST(costs_of_fast_queue) {
  far::fast_queue<long> q(far::nprocs() - 1, 1100 * far::nprocs());
  std::vector<long> many(1024, 5);
  in_turn([&] {
    q.push(1);  // it has seen where the end is
    check_cost(q, cost{.puts = 1, .atomics = 1, .waits = 1}, [&] { q.push(1); });
    check_cost(q, cost{.puts = 1, .atomics = 1, .waits = 1}, [&] { q.try_push(1); });
    check_cost(q, cost{.puts = 1, .atomics = 1, .waits = 1},
               [&] { q.push(std::span<const long>(many)); });
  });
  in_turn([&] {
    q.pop();  // it has seen how many there are
    check_cost(q, cost{.gets = 1, .atomics = 1, .waits = 2}, [&] { q.pop(); });
    check_cost(q, cost{.gets = 1, .atomics = 1, .waits = 2}, [&] { q.pop(std::uint64_t{1000}); });
  });
  // Where they wrap there are two puts, and two gets; and who comes to the end looks where it is.
  far::fast_queue<long> small(0, 1500);
  if (far::rank() == 0) small.push(std::span<const long>(many));
  far::barrier();
  if (far::rank() == 0) small.pop(1024);
  far::barrier();
  if (far::rank() == 0) {
    small.push(1);
    check_cost(small, cost{.puts = 2, .atomics = 2, .waits = 2},
               [&] { small.push(std::span<const long>(many)); });
  }
  far::barrier();
  if (far::rank() == 0) {
    small.pop();
    check_cost(small, cost{.gets = 2, .atomics = 1, .waits = 3}, [&] { small.pop(1024); });
  }
}

namespace {

/// What an operation of this rank alone costs, when it has looked at the queue lately.
template <class Queue>
void expect_costs(Queue& q, cost push, cost push_many, cost pop, cost pop_many) {
  std::vector<long> many(20, 5);
  in_turn([&] {
    q.push(1), q.pop(), q.try_push(1), q.try_pop();
    check_cost(q, push, [&] { q.push(1); });
    check_cost(q, push, [&] { q.try_push(1); });
    check_cost(q, push_many, [&] { q.push(std::span<const long>(many)); });
    check_cost(q, pop, [&] { q.pop(); });
    q.try_pop();  // it has seen how many there are
    check_cost(q, pop, [&] { q.try_pop(); });
    check_cost(q, pop_many, [&] { q.pop(std::uint64_t{19}); });
    check_cost(q, cost{.atomics = 1, .waits = 1}, [&] { CHECK(!q.try_pop()); });
  });
}

}  // namespace

FAR_TEST(costs_of_circular_queue) {
  far::circular_queue<long> q(far::nprocs() - 1, 100'000);  // all of it lies in one block
  cost push{.puts = 1, .atomics = 1, .flushes = 1, .waits = 2};
  cost pop{.gets = 1, .atomics = 2, .waits = 2};  // one atomic is not waited for
  expect_costs(q, push, push, pop, pop);
  far::checksum_queue<long> checked(far::nprocs() - 1, 100'000);
  expect_costs(checked, push, push, pop, pop);
}

FAR_TEST(costs_of_two_atomics) {
  two_atomics<long> q(far::nprocs() - 1, 10'000);
  q.push(1);
  far::barrier();
  q.pop();
  far::barrier();
  in_turn([&] {
    q.push(1), q.push(1), q.pop();
    check_cost(q, cost{.puts = 1, .atomics = 2, .flushes = 1, .waits = 3}, [&] { q.push(1); });
    q.pop();
    q.push(1), q.push(1);
    q.pop();  // it has seen how many there are
    check_cost(q, cost{.gets = 1, .atomics = 2, .waits = 3}, [&] { q.pop(); });
    q.pop();
  });
}

/// A full queue costs 1 atomic to find out; the look for room is shared by many pushes.
FAR_TEST(costs_of_room) {
  far::circular_queue<long> q(far::nprocs() - 1, 100);
  in_turn([&] {
    q.push(7), q.pop();
    auto filled = cost_of([&] {
      for (long i = 0; i < 100; ++i) q.push(i);
    });
    bool sent =
        q.engine_of(far::container_operation::push) == far::engine::rpc && q.host() != far::rank();
    if (!sent) {
      CHECK_EQ(filled.atomics, 100u);
      CHECK_EQ(filled.puts, 100u);
      if (far::rank() == 0) CHECK(filled.gets <= 4);  // later ones may wait for marks under way
    }
    CHECK(!q.try_push(0));
    check_cost(q, cost{.atomics = 1, .waits = 1}, [&] { CHECK(!q.try_push(0)); });
    auto emptied = cost_of([&] {
      for (long i = 0; i < 100; ++i) CHECK_EQ(q.pop(), i);
    });
    if (!sent) {
      CHECK_EQ(emptied.gets, 100u);
      CHECK_EQ(emptied.atomics, 200u);
    }
  });
}

FAR_TEST(costs_of_promises) {
  far::circular_queue<long> q(far::nprocs() - 1, 10'000);
  q.push(1, concurrency::push), q.push(1, concurrency::push);
  check_cost(q, cost{.puts = 1, .atomics = 1, .waits = 1}, [&] { q.push(1, concurrency::push); });
  check_cost(q, cost{.puts = 1, .atomics = 1, .waits = 1},
             [&] { q.try_push(1, concurrency::push); });
  far::barrier();
  q.pop(concurrency::pop);
  check_cost(q, cost{.gets = 1, .atomics = 1, .waits = 2}, [&] { q.pop(concurrency::pop); });
  far::barrier();
  CHECK_EQ(q.size(), 2 * far::nprocs());
  far::barrier();
  q.push(2), q.push(3);  // the marks have been sent
  far::barrier();
  std::uint64_t others = 0;
  if (far::rank() == far::nprocs() - 1) {
    auto messages = [&] {
      std::uint64_t sum = 0;
      for (far::rank_t r = 0; r < far::nprocs(); ++r)
        if (r != far::rank()) sum += far::detail::here().counts->messages_to[r];
      return sum;
    };
    q.local_pop();
    others = messages();
    for (far::rank_t i = 0; i < far::nprocs(); ++i)
      q.pop(concurrency::push | concurrency::owner_only);
    while (q.local_pop()) continue;
    others = messages() - others;
  }
  CHECK_EQ(others, 0u);
  far::barrier();
  CHECK(q.empty());
}

/// Phases under promises take turns with such that promise nothing, round after round of the ring.
MIXED_TEST(promised_phases) {
  Queue<std::string> q(0, 4 * far::nprocs() + 3);
  std::uint64_t each = 4;
  for (int round = 0; round < 6; ++round) {
    concurrency pushing = round % 3 == 0 ? concurrency::push : concurrency::everything;
    concurrency popping = round % 2 == 0 ? concurrency::pop : concurrency::everything;
    for (std::uint64_t i = 0; i < each; ++i) {
      std::string text = std::to_string(far::rank()) + ":" + std::to_string(i);
      if ((i + far::rank()) % 2 == 0)
        q.push(text, pushing);
      else
        CHECK(q.try_push(text, pushing));
    }
    far::barrier();
    CHECK_EQ(q.size(), each * far::nprocs());
    far::barrier();
    std::uint64_t got = 0;
    for (std::uint64_t i = 0; i < each; ++i)
      got += i % 2 == 0 ? !q.pop(popping).empty() : q.try_pop(popping).has_value();
    CHECK_EQ(got, each);
    far::barrier();
    CHECK(q.empty());
    far::barrier();
  }
}

/// A queue that nobody may empty is full; one that nobody may fill is empty: said, not waited for.
FAR_TEST(promises_that_would_wait_for_ever) {
  far::circular_queue<int> q(0, 3);
  std::vector<int> two{1, 2};
  if (far::rank() == 0) {
    q.push(std::span<const int>(two), concurrency::push);
    CHECK_THROWS(q.push(std::span<const int>(two), concurrency::push), "1 of 2");
    CHECK_THROWS(q.push(9, concurrency::push), "is full");
    CHECK(!q.try_push(9, concurrency::push));
  }
  far::barrier();
  CHECK(q.as_vector() == (std::vector<int>{1, 2, 1}));
  q.clear();
  in_turn([&] {
    CHECK_THROWS(q.pop(concurrency::pop), "is empty");
    CHECK(q.pop(std::uint64_t{3}, concurrency::pop).empty());
  });
  far::barrier();
  if (far::rank() == 0) q.push(7);
  far::barrier();
  CHECK(q.as_vector() == std::vector<int>{7});
}

/// The host takes what others push meanwhile.
MIXED_TEST(local_pops_while_others_push) {
  Queue<wide> q(far::nprocs() - 1, 3);
  std::uint64_t each = 20, n = far::nprocs() - 1;
  std::vector<std::uint64_t> next(far::nprocs(), 0);
  if (far::rank() == n) {
    for (std::uint64_t i = 0; i < n * each; ++i) {
      std::optional<wide> value;
      if (i % 2 == 0)
        value = q.pop(concurrency::push | concurrency::owner_only);
      else
        while (!(value = q.local_pop())) far::progress();
      std::uint64_t from = value->words[1] / 1000;
      CHECK_EQ(value->words[1] % 1000, next[from]++);
    }
    CHECK(!q.local_pop());
  } else {
    for (std::uint64_t i = 0; i < each; ++i) q.push(make<wide>(far::rank() * 1000 + i));
  }
  far::barrier();
  if (far::rank() == n) {  // its own pops of both kinds take turns
    for (std::uint64_t i = 0; i < 3; ++i) q.push(make<wide>(i));
    CHECK(q.local_pop() == make<wide>(0));
    CHECK(q.pop() == make<wide>(1));
    CHECK(q.local_pop() == make<wide>(2));
  }
  far::barrier();
  CHECK(q.empty());
}

#if FARSIDE_CHECKED
namespace {

/// Both are made between the same two barriers, on different ranks; at least one of them must say
/// that a promise was broken.
template <class First, class Second>
void expect_broken(First first, Second second) {
  if (far::nprocs() < 2) return;
  far::barrier();
  int told = 0;
  auto attempt = [&](auto& operation) {
    try {
      operation();
    } catch (const far::usage_error& e) {
      told = std::string(e.what()).find("promise was broken") != std::string::npos;
    }
  };
  if (far::rank() == 0) attempt(first);
  if (far::rank() == 1) attempt(second);
  far::barrier();
  CHECK(far::all_reduce(told) >= 1);
  far::barrier();
}

}  // namespace

FAR_TEST(broken_promises_are_told) {
  far::circular_queue<int> q(0, 30 * far::nprocs());
  for (int i = 0; i < 20; ++i) q.push(i);
  expect_broken([&] { q.push(1, concurrency::push); }, [&] { q.try_pop(); });
  expect_broken([&] { q.push(1); }, [&] { q.pop(concurrency::pop); });
  expect_broken([&] { q.push(1, concurrency::push); }, [&] { q.pop(concurrency::pop); });
  expect_broken([&] { q.local_pop(); }, [&] { q.try_pop(); });
  expect_broken([&] { q.try_push(1); }, [&] { q.try_pop(concurrency::pop); });
  far::fast_queue<int> fast(0, 10 * far::nprocs());
  for (int i = 0; i < 4; ++i) fast.push(i);
  expect_broken([&] { fast.push(1); }, [&] { fast.try_pop(); });
  expect_broken([&] { fast.local_pop(); }, [&] { fast.try_pop(); });
  // What keeps its promises goes on.
  far::barrier();
  q.push(1, concurrency::push);
  far::barrier();
  q.pop(concurrency::pop);
  far::barrier();
  fast.push(1);
  far::barrier();
  CHECK(!fast.empty());
}
#endif

}  // namespace queues_more_tests

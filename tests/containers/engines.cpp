// Maps and queues whose operations are sent to the owners: how many messages that takes, what
// happens where an owner cannot at once, and how engine::automatic decides. The tests of all
// containers are run with FARSIDE_ENGINE=rpc as well: these are about what is special to messages.
#include "map_types.hpp"
#include "queue_types.hpp"

#include <farside/core/rpc.hpp>

#include <memory>

namespace engines_tests {

namespace {

using far::concurrency;
using far::container_operation;
using far::engine;

constexpr auto sent = [] {
  far::container_options with;
  with.engine = engine::rpc;
  return with;
};

int me() { return static_cast<int>(far::rank()); }

/// Whether a container does as it was asked: the environment may have said otherwise.
template <class Container>
bool by_rpc(const Container& c, container_operation kind) {
  return c.engine_of(kind) == engine::rpc;
}

/// The messages, and the declined operations, of some work.
struct traffic {
  std::uint64_t messages, operations, declined;
  bool operator==(const traffic&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const traffic& t) {
    return out << t.messages << " messages with " << t.operations << " operations, " << t.declined
               << " declined";
  }
};
template <class Container, class Work>
traffic traffic_of(const Container& c, Work work) {
  auto before = c.engine_use();
  work();
  auto after = c.engine_use();
  return {after.messages - before.messages, after.operations - before.operations,
          after.declined - before.declined};
}

/// A key that another rank holds.
template <class Map>
int foreign_key(const Map& map, int from = 0) {
  while (map.owner(from) == far::rank()) ++from;
  return from;
}

}  // namespace

FAR_TEST(the_model_adds_up) {
  far::engine_costs slow_messages{
      .get = 10, .put = 20, .atomic = 30, .own_get = 1, .own_put = 2, .own_atomic = 3, .rpc = 100};
  far::operation_cost insert{.puts = 1, .atomics = 1}, all{.gets = 1, .puts = 1, .atomics = 2};
  CHECK_EQ(predict_rma(insert, slow_messages), 50);
  CHECK_EQ(predict_rma(all, slow_messages), 90);
  CHECK_EQ(predict_rpc(insert, slow_messages, std::chrono::nanoseconds(0)), 105);
  CHECK_EQ(predict_rpc(all, slow_messages, std::chrono::microseconds(2)), 1109);
}

FAR_TEST(automatic_follows_the_model) {
  far::container_options with;
  with.engine = engine::automatic;
  far::hash_map<int, long> map(100, with);
  far::circular_queue<std::string> queue(0, 8, with);
  const far::engine_costs costs = map.engine_use().costs;
  if (costs.rpc > 0) {  // nobody has said otherwise
    for (double measured :
         {costs.get, costs.put, costs.atomic, costs.own_get, costs.own_put, costs.own_atomic})
      CHECK(measured > 0);
    auto expected = [&](const far::operation_cost& of) {
      auto none = std::chrono::nanoseconds(0);
      return predict_rpc(of, costs, none) < predict_rma(of, costs) ? engine::rpc : engine::rma;
    };
    CHECK(map.engine_of(container_operation::find) == expected({.gets = 1}));
    CHECK(map.engine_of(container_operation::insert) == expected({.puts = 1, .atomics = 1}));
    CHECK(map.engine_of(container_operation::modify) == expected({.gets = 1, .atomics = 1}));
    CHECK(map.engine_of(container_operation::erase) == expected({.gets = 1, .atomics = 1}));
    CHECK(queue.engine_of(container_operation::push) == expected({.puts = 1, .atomics = 1}));
  }
  for (container_operation kind : {container_operation::find, container_operation::insert,
                                   container_operation::modify, container_operation::erase}) {
    int chosen = static_cast<int>(map.engine_of(kind));
    CHECK_EQ(far::all_reduce(chosen, far::minimum()), far::all_reduce(chosen, far::maximum()));
  }
  map.accumulate(1, 1L);
  queue_test::in_turn([&] {
    queue.push("text");
    CHECK_EQ(queue.pop(), "text");
  });
  CHECK(map.find(1) == static_cast<long>(far::nprocs()));
  far::barrier();
  // Members that compute for a second between calls would make messages wait for half of that.
  with.computes = std::chrono::seconds(1);
  far::hash_map<int, long> busy(100, with);
  if (costs.rpc > 0 && far::detail::here().attends == far::attention::poll)
    CHECK(busy.engine_of(container_operation::modify) == engine::rma);
}

/// Rank 0 waits, by reading its own part only, for what another rank sends.
FAR_TEST(who_polls_its_own_part_serves) {
  far::hash_map<int, int> map(100, sent());
  int key = 0;
  while (map.owner(key) != 0) ++key;
  if (far::rank() == far::nprocs() - 1) map.insert(key, 1);
  if (far::rank() == 0)
    while (!map.find(key)) {
    }
  far::barrier();
  CHECK_EQ(map.size(), 1u);
}

FAR_TEST(map_operations_are_one_message_each) {
  far::hash_map<int, map_types::triple> map(4000, sent());
  far::hash_map<int, int> counts(4000, sent());
  if (far::nprocs() == 1 || !by_rpc(map, container_operation::find)) SKIP("nothing is sent");
  using map_types::triple;
  triple t{1, 2, 3};
  auto one = traffic{1, 1, 0};
  queue_test::in_turn([&] {
    int key = foreign_key(map, 1000 * me());
    CHECK_EQ(traffic_of(map, [&] { CHECK(map.insert(key, t)); }), one);
    CHECK_EQ(traffic_of(map, [&] { CHECK(!map.insert(key, t)); }), one);
    CHECK_EQ(traffic_of(map, [&] { CHECK(map.find(key) == t); }), one);
    CHECK_EQ(traffic_of(map, [&] { CHECK(map.find(key, concurrency::everything) == t); }), one);
    CHECK_EQ(traffic_of(map, [&] { CHECK(!map.insert_or_assign(key, t)); }), one);
    CHECK_EQ(traffic_of(map, [&] { map.modify(key, [](triple& x) { ++x.a; }); }), one);
    CHECK_EQ(map.find(key)->a, 2u);
    CHECK_EQ(traffic_of(map, [&] { CHECK(map.erase(key)); }), one);
    CHECK_EQ(traffic_of(map, [&] { CHECK(!map.erase(key)); }), one);
    CHECK_EQ(traffic_of(counts, [&] { CHECK(!counts.accumulate(key, 3)); }), one);
    CHECK_EQ(traffic_of(counts, [&] { CHECK(counts.accumulate(key, 4) == 3); }), one);
    CHECK_EQ(traffic_of(counts, [&] { CHECK(counts.erase(key)); }), one);
    // What holds something of this rank stays here, and so do its own keys.
    int step = 5, own = 0;
    while (map.owner(own) != far::rank()) ++own;
    auto add = [&](int a, int b) { return a + b + step; };
    CHECK_EQ(traffic_of(counts, [&] { counts.accumulate(key, 1, add); }), (traffic{0, 0, 0}));
    CHECK_EQ(traffic_of(counts, [&] { CHECK(counts.accumulate(key, 1, add) == 1); }),
             (traffic{0, 0, 0}));
    CHECK(counts.erase(key));
    CHECK_EQ(traffic_of(map, [&] { map.insert(own, t), map.erase(own); }), (traffic{0, 0, 0}));
  });
}

FAR_TEST(many_map_operations_are_a_message_for_each_owner) {
  far::hash_map<int, int> map(4000, sent());
  if (far::nprocs() == 1 || !by_rpc(map, container_operation::find)) SKIP("nothing is sent");
  std::vector<std::pair<int, int>> entries;
  std::vector<int> keys;
  for (int i = 0; i < 200; ++i) entries.emplace_back(me() * 1000 + i, i), keys.push_back(i);
  std::size_t foreign = 0;
  for (const auto& [key, value] : entries) foreign += map.owner(key) != far::rank();
  auto others = far::nprocs() - 1;
  traffic made = traffic_of(map, [&] { CHECK_EQ(map.insert(entries), 200u); });
  CHECK_EQ(made, (traffic{others, foreign, 0}));
  far::barrier();
  made = traffic_of(map, [&] {
    for (const auto& found : map.find(keys)) CHECK(found.has_value());
  });
  CHECK_EQ(made.messages, others);
  CHECK_EQ(made.declined, 0u);
  far::barrier();
}

/// Operations that are sent and such that are not change the same entries at the same time.
FAR_TEST(both_engines_in_one_map) {
  far::hash_map<int, long> numbers(0, sent());
  far::hash_map<int, map_types::triple> plain(0, sent());
  far::hash_map<std::string, std::string> texts(0, sent());
  using map_types::triple;
  int rounds = far::nprocs() > 8 ? 10 : 40;
  long step = 1;  // captured: such a function does not travel
  for (int i = 0; i < rounds; ++i) {
    if (i % 2 == me() % 2) {
      numbers.modify(i % 3, [](long& x) { ++x; });
      plain.modify(i % 3, [](triple& t) { t.a += 1, t.b += 2; });
      texts.modify("key " + std::to_string(i % 3), [](std::string& s) { s += 'x'; });
    } else {
      numbers.modify(i % 3, [step](long& x) { x += step; });
      plain.modify(i % 3,
                   [&](triple& t) { t.a += 1, t.b += static_cast<unsigned long>(2 * step); });
      texts.modify("key " + std::to_string(i % 3),
                   [&](std::string& s) { s.append(static_cast<std::size_t>(step), 'x'); });
    }
    numbers.insert(1000 + me() * rounds + i, i);  // tables grow meanwhile
    plain.insert(1000 + me() * rounds + i, triple{});
  }
  far::barrier();
  long sum = 0;
  std::uint64_t a = 0, length = 0;
  for (int k = 0; k < 3; ++k) {
    sum += numbers.find(k).value_or(0);
    triple t = plain.find(k).value_or(triple{});
    CHECK_EQ(t.b, 2 * t.a);
    a += t.a;
    length += texts.find("key " + std::to_string(k)).value_or("").size();
  }
  auto all = static_cast<std::uint64_t>(rounds) * far::nprocs();
  CHECK_EQ(static_cast<std::uint64_t>(sum), all);
  CHECK_EQ(a, all);
  CHECK_EQ(length, all);
  CHECK_EQ(numbers.size(), all + 3);
  far::barrier();
}

/// A function that throws at the owner throws here, as what it is, and nothing has changed.
FAR_TEST(what_a_function_throws_comes_back) {
  far::hash_map<int, int> map(100, sent());
  struct refused : std::runtime_error {
    using runtime_error::runtime_error;
  };
  map.insert(me(), 1);
  bool caught = false;
  try {
    map.modify((me() + 1) % static_cast<int>(far::nprocs()),
               [](int&) { throw refused("not this one"); });
  } catch (const refused&) {
    caught = true;
  }
  CHECK(caught);
  far::barrier();
  CHECK(map.find(me()) == 1);
  far::barrier();
}

/// Handlers of a program's own messages may use containers: those operations are not sent.
FAR_TEST(containers_in_handlers) {
  struct objects {
    far::hash_map<int, int> map{100, sent()};
    far::circular_queue<int> queue{far::nprocs() - 1, 64, sent()};
  };
  objects mine;
  far::ptr<objects*> cell = far::make<objects*>(&mine);
  auto cells = far::all_gather(cell);
  far::barrier();
  far::rank_t next = (far::rank() + 1) % far::nprocs();
  auto answer = far::rpc(
      next,
      [](far::ptr<objects*> at, int key) {
        objects& here = *far::get(at);
        here.map.insert(key, key + 1);
        here.queue.try_push(key);
        return here.map.find(key).value_or(-1);
      },
      cells[next], me());
  CHECK_EQ(answer.get(), me() + 1);
  far::quiesce();  // handlers have counted what they inserted
  far::barrier();
  CHECK_EQ(mine.map.size(), far::nprocs());
  CHECK_EQ(mine.queue.size(), far::nprocs());
  far::barrier();
  far::dealloc(cell);
}

/// A container may end while operations that nobody waits for are under way.
FAR_TEST(forgotten_futures) {
  for (int round = 0; round < 3; ++round) {
    far::hash_map<int, std::string> map(8, sent());
    far::circular_queue<std::string> queue(0, 100 * far::nprocs(), sent());
    if (far::nprocs() == 1 || !by_rpc(map, container_operation::modify)) SKIP("nothing is sent");
    for (int i = 0, key = 0; i < 60; ++i, ++key) {
      key = foreign_key(map, key % 50);
      static_cast<void>(map.async_insert_or_assign(key, std::to_string(i)));
      if (far::rank() != 0) static_cast<void>(queue.async_push(std::to_string(i)));
    }
    if (round == 2) {  // what was begun is done in the end
      far::barrier();
      CHECK(map.async_find(foreign_key(map)).get().has_value());
    }
  }
}

/// Operations that are not waited for travel together.
FAR_TEST(async_operations_travel_together) {
  far::hash_map<int, int> map(4000, sent());
  if (far::nprocs() == 1 || !by_rpc(map, container_operation::find)) SKIP("nothing is sent");
  if (far::detail::here().attends != far::attention::poll) SKIP("a thread sends them at any time");
  far::barrier();
  std::vector<int> keys;
  for (int key = me() * 10000; keys.size() < 20; ++key)
    if (map.owner(key) == (far::rank() + 1) % far::nprocs()) keys.push_back(key);
  map.insert(keys[0], 0);  // the ring is there
  map.erase(keys[0]);
  far::barrier();
  far::stats::enable();
  auto before = far::stats::snapshot();
  std::vector<far::future<bool>> made;
  for (int key : keys) made.push_back(map.async_insert(key, key));
  CHECK_EQ((far::stats::snapshot() - before)[far::operation::put].count, 0u);
  for (auto& one : made) CHECK(one.get());
  for (int key : keys) CHECK(map.find(key) == key);
  far::barrier();
}

FAR_TEST(queue_operations_are_one_message_each) {
  far::circular_queue<long> q(far::nprocs() - 1, 100, sent());
  far::checksum_queue<std::string> texts(0, 100, sent());
  far::circular_queue<int, far::queue_protocol::two_atomics> two(0, 100, sent());
  if (far::nprocs() == 1 || !by_rpc(q, container_operation::push)) SKIP("nothing is sent");
  auto check = [&](auto& queue, auto value) {
    auto one = queue.host() == far::rank() ? traffic{0, 0, 0} : traffic{1, 1, 0};
    auto three = queue.host() == far::rank() ? traffic{0, 0, 0} : traffic{1, 3, 0};
    std::vector<decltype(value)> many(3, value);
    CHECK_EQ(traffic_of(queue, [&] { queue.push(value); }), one);
    CHECK_EQ(traffic_of(queue, [&] { CHECK(queue.try_push(value)); }), one);
    CHECK_EQ(traffic_of(queue, [&] { queue.push(std::span<const decltype(value)>(many)); }), three);
    CHECK_EQ(traffic_of(queue, [&] { CHECK(queue.pop() == value); }), one);
    CHECK_EQ(traffic_of(queue, [&] { CHECK(queue.try_pop() == value); }), one);
    CHECK_EQ(traffic_of(queue, [&] { CHECK(queue.pop(std::uint64_t{3}) == many); }), one);
    CHECK_EQ(traffic_of(queue, [&] { CHECK(!queue.try_pop()); }), one);
  };
  queue_test::in_turn([&] {
    check(q, 5L);
    check(texts, std::string("five"));
    check(two, 5);
  });
}

/// A host declines to wait: whoever does waits one-sided, and gets what it waits for.
FAR_TEST(hosts_do_not_wait) {
  far::circular_queue<int> q(0, 2, sent());
  if (far::nprocs() == 1 || !by_rpc(q, container_operation::push)) SKIP("nothing is sent");
  far::rank_t last = far::nprocs() - 1;
  if (far::rank() == last) {
    traffic made = traffic_of(q, [&] { CHECK_EQ(q.pop(), 7); });
    CHECK(made == (traffic{1, 1, 0}) || made == (traffic{1, 1, 1}));
  } else if (far::rank() == 0) {
    q.push(7);
  }
  far::barrier();
  if (far::rank() == last) {
    q.push(1), q.push(2);
    CHECK_EQ(traffic_of(q, [&] { CHECK(!q.try_push(3)); }), (traffic{1, 1, 0}));  // it knows
  }
  far::barrier();
  if (far::rank() == last) q.push(3);
  if (far::rank() == 0) CHECK_EQ(q.pop(), 1);
  far::barrier();
  CHECK(q.as_vector() == (std::vector<int>{2, 3}));
}

/// Pushes and pops that are sent meet those of the host, and those that wait with a ticket.
template <template <class> class Queue>
static void both_engines_in_one_queue() {
  for (std::uint64_t capacity : {1, 2, 5}) {
    Queue<queue_test::wide> q(far::nprocs() / 2, capacity, sent());
    auto random = far_test::random_engine(capacity);
    std::uint64_t each = far::nprocs() > 8 ? 6 : 30, pushed = 0, popped = 0, sum = 0;
    while (popped < each) {
      // Who waits for room has nothing in the queue, and who waits for an element has some.
      if (pushed < each && (pushed == popped || random() % 2 == 0)) {
        auto value = queue_test::make<queue_test::wide>(far::rank() * 1000 + pushed + 1);
        if (pushed == popped && random() % 2 == 0)
          q.push(value), ++pushed;
        else
          pushed += q.try_push(value);
      } else {
        std::optional<queue_test::wide> value;
        if (random() % 2 == 0)
          value = q.pop();
        else
          value = q.try_pop();
        if (!value) continue;
        CHECK(*value == queue_test::make<queue_test::wide>(value->words[1]));
        sum += value->words[1] % 1000;
        ++popped;
      }
    }
    far::barrier();
    CHECK(q.empty());
    CHECK_EQ(far::all_reduce(sum), far::nprocs() * each * (each + 1) / 2);
  }
}
FAR_TEST(both_engines_in_one_circular_queue) { both_engines_in_one_queue<queue_test::circular>(); }
FAR_TEST(both_engines_in_one_checksum_queue) { both_engines_in_one_queue<queue_test::checksum>(); }
FAR_TEST(both_engines_in_one_two_atomics) { both_engines_in_one_queue<queue_test::two_atomics>(); }

/// What was pushed by message is there after the barrier, for all.
FAR_TEST(phases_by_message) {
  far::fast_queue<std::uint64_t> q(far::nprocs() - 1, 40 * far::nprocs(), sent());
  far::circular_queue<std::string> promised(0, 40 * far::nprocs(), sent());
  for (std::uint64_t round = 0; round < 5; ++round) {
    std::vector<std::uint64_t> some{round, round + 1, round + 2};
    q.push(round);
    q.push(std::span<const std::uint64_t>(some));
    promised.push(std::to_string(round), concurrency::push);
    far::barrier();
    auto all = q.as_vector();  // one-sided
    CHECK_EQ(all.size(), 4 * far::nprocs());
    std::uint64_t sum = 0;
    for (std::uint64_t value : all) sum += value;
    CHECK_EQ(sum, (4 * round + 3) * far::nprocs());
    for (const std::string& text : promised.as_vector()) CHECK_EQ(text, std::to_string(round));
    far::barrier();
    std::uint64_t popped = 0;
    while (!q.pop(std::uint64_t{3}).empty()) ++popped;
    CHECK_EQ(promised.pop(concurrency::pop), std::to_string(round));
    CHECK(far::all_reduce(popped) > 0);
    far::barrier();
    CHECK(q.empty() && promised.empty());
    far::barrier();
  }
}

/// A new host is asked as soon as its queue has come to it, and the old one no longer.
FAR_TEST(queues_that_move) {
  far::circular_queue<int> q(0, 4 * far::nprocs(), sent());
  for (far::rank_t r = 0; r < 2 * far::nprocs(); ++r) {
    q.push(me());
    q.migrate(r % far::nprocs());
    q.push(me());
    CHECK(q.pop() >= 0);
    far::barrier();
    CHECK_EQ(q.size(), far::nprocs());
    far::barrier();
    CHECK(q.pop() >= 0);
    far::barrier();
  }
  CHECK(q.empty());
  far::barrier();
}

/// Some members of the world have a container whose operations are sent, others know nothing of it.
FAR_TEST(sent_within_a_team) {
  bool in = far::rank() % 2 == 0;
  far::team half = far::world().split(in ? 0 : 1);
  if (in) {
    auto with = sent();
    with.over = half;
    far::hash_map<int, int> map(10, with);
    for (int i = 0; i < 20; ++i) map.accumulate(i, 1);
    far::barrier(half);
    for (int i = 0; i < 20; ++i) CHECK(map.find(i) == static_cast<int>(half.size()));
    far::barrier(half);
  }
  far::barrier();
}

}  // namespace engines_tests

// Bulk operations of queues under contention: what try_push and try_pop of many promise, checked on
// short histories by trying all orders.
//
// A bulk try_pop is two steps of its call. It looks: if it returns fewer elements than it might,
// the queue held none but those, at that moment. It takes them, the oldest, next to each other.
// What is pushed in between stays, and whoever tries to push in between may still find the queue
// full.
#include "amounts.hpp"
#include "queue_types.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <set>
#include <utility>
#include <vector>

namespace queue_bulk_tests {

using namespace queue_test;

namespace {

enum class step : std::uint8_t { push, refuse, look, take };

/// Up to three values.
struct few {
  std::array<std::uint64_t, 3> values{};
  std::size_t n = 0;

  few(std::initializer_list<std::uint64_t> some) : few(std::vector<std::uint64_t>(some)) {}
  explicit few(const std::vector<std::uint64_t>& some) : n(some.size()) {
    std::copy(some.begin(), some.end(), values.begin());
  }
  const std::uint64_t* begin() const { return values.data(); }
  const std::uint64_t* end() const { return begin() + n; }
  std::size_t size() const { return n; }
  bool empty() const { return n == 0; }
};

/// One step of a call, which took effect between two moments.
struct event {
  step what;
  few values;  ///< pushed, refused, or returned
  std::uint64_t begin, end;
};

/// Is there an order of the events, true to real time, in which a queue of that capacity does the
/// same? It begins empty.
class orders {
 public:
  orders(std::vector<event> events, std::size_t capacity)
      : events_(std::move(events)), capacity_(capacity) {}
  bool any() { return go_on(0, {}); }

 private:
  using contents = std::vector<std::uint64_t>;

  bool apply(const event& e, contents& queue) const {
    switch (e.what) {
      case step::push:
        queue.insert(queue.end(), e.values.begin(), e.values.end());
        return queue.size() <= capacity_;
      case step::refuse:
        return queue.size() + e.values.size() > capacity_;
      case step::look:
        return std::all_of(queue.begin(), queue.end(), [&](std::uint64_t v) {
          return std::find(e.values.begin(), e.values.end(), v) != e.values.end();
        });
      case step::take:
        if (queue.size() < e.values.size() ||
            !std::equal(e.values.begin(), e.values.end(), queue.begin()))
          return false;
        queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(e.values.size()));
        return true;
    }
    return false;
  }
  bool go_on(std::uint64_t done, const contents& queue) {
    if (done == (std::uint64_t{1} << events_.size()) - 1) return true;
    if (!seen_.insert({done, queue}).second) return false;
    std::uint64_t first_end = ~std::uint64_t{0};
    for (std::size_t i = 0; i < events_.size(); ++i)
      if ((done >> i & 1) == 0) first_end = std::min(first_end, events_[i].end);
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if ((done >> i & 1) != 0 || events_[i].begin > first_end) continue;
      contents next = queue;
      if (apply(events_[i], next) && go_on(done | std::uint64_t{1} << i, next)) return true;
    }
    return false;
  }

  std::vector<event> events_;
  std::size_t capacity_;
  std::set<std::pair<std::uint64_t, contents>> seen_;
};

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// What a rank does in one history.
template <class Queue>
std::vector<event> act(Queue& q, std::mt19937_64& random, std::uint64_t& fresh) {
  std::vector<event> mine;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t n = 1 + random() % 3;
    if (random() % 2 == 0) {
      std::vector<std::uint64_t> values;
      for (; values.size() < std::min(n, q.capacity());) values.push_back(++fresh);
      std::uint64_t begin = now();
      bool pushed = q.try_push(values);
      mine.push_back({pushed ? step::push : step::refuse, few(values), begin, now()});
    } else {
      std::uint64_t begin = now();
      std::vector<std::uint64_t> got = q.try_pop(n);
      std::uint64_t end = now();
      if (got.size() < std::min(n, q.capacity()))
        mine.push_back({step::look, few(got), begin, end});
      if (!got.empty()) mine.push_back({step::take, few(got), begin, end});
    }
  }
  return mine;
}

template <template <class> class Queue>
void many_histories(int histories) {
  auto random = far_test::random_engine();
  std::uint64_t fresh = std::uint64_t{far::rank()} << 32;
  int wrong = 0, fewer = 0;
  for (std::uint64_t capacity : {1, 2, 3, 5}) {
    Queue<std::uint64_t> q(static_cast<far::rank_t>(capacity) % far::nprocs(), capacity);
    for (int i = 0; i < histories / 4; ++i) {
      far::barrier();
      std::vector<event> mine;
      if (far::rank() < 3) mine = act(q, random, fresh);
      auto all = far::gather(mine, 0);
      far::barrier();
      if (far::rank() != 0) continue;
      std::vector<event> history;
      for (const auto& some : all) history.insert(history.end(), some.begin(), some.end());
      for (const event& e : history) fewer += e.what == step::look && !e.values.empty();
      wrong += !orders(history, capacity).any();
      while (!q.try_pop(capacity).empty()) {
      }
    }
    far::barrier();
  }
  CHECK_EQ(wrong, 0);
  if (far::rank() == 0 && histories >= 100) CHECK(fewer > 0);
}

}  // namespace

FAR_TEST(circular) { many_histories<circular>(amounts::many(600)); }
FAR_TEST(checksum) { many_histories<checksum>(amounts::many(200)); }
FAR_TEST(two_atomics) { many_histories<two_atomics>(amounts::many(200)); }

// The check itself: it knows what must not be.
FAR_TEST(the_check_fails) {
  const event push{step::push, {1, 2}, 1, 2}, full{step::refuse, {3, 4}, 3, 4};
  // Two were there all the time, and one was returned of three that were asked for.
  CHECK(!orders({push, {step::look, {1}, 5, 6}, {step::take, {1}, 5, 6}}, 3).any());
  // One of them came while it ran.
  CHECK(orders({{step::push, {1}, 1, 2},
                {step::push, {2}, 4, 5},
                {step::look, {1}, 3, 6},
                {step::take, {1}, 3, 6}},
               3)
            .any());
  // And somebody found no room before they were taken.
  CHECK(orders({{step::push, {1}, 1, 2},
                {step::push, {2, 3}, 4, 5},
                {step::refuse, {4}, 6, 7},
                {step::look, {1}, 3, 8},
                {step::take, {1}, 3, 8}},
               3)
            .any());
  CHECK(!orders({push, {step::take, {2}, 3, 4}}, 3).any());     // not the oldest
  CHECK(!orders({push, {step::take, {1, 3}, 3, 4}}, 3).any());  // not next to each other
  CHECK(!orders({push, {step::look, {}, 3, 4}}, 3).any());      // not empty
  CHECK(orders({push, full}, 3).any());
  CHECK(!orders({push, full}, 4).any());
}

}  // namespace queue_bulk_tests

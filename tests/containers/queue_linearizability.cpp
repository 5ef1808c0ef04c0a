// Many short histories of queues under contention, each checked: is there an order of its
// operations in which a queue of that capacity would have given the same answers?
//
// Histories are of two kinds. In one each rank pushes and pops, in all forms; in the other some
// push and some pop, and as the queues are small they wait for each other in the midst of their
// operations: those overlap even where ranks share a core. What waits can always go on (see below).
// The stamps are the machine's monotonic clock, or the simulated one, taken right before and after
// each operation.
#include "amounts.hpp"
#include "linearizability/checks.hpp"
#include "queue_types.hpp"

#include <thread>

namespace queue_linearizability_tests {

using namespace queue_test;

namespace {

using linearizability::event;
using spec = linearizability::queue;

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

using amounts::many;
using amounts::simulated;

/// What came of many histories, on rank 0.
struct tally {
  std::size_t histories = 0, operations = 0, overlapping = 0;
};

std::size_t count_overlapping(const std::vector<event<spec>>& history) {
  std::size_t count = 0;
  for (const auto& a : history)
    count += std::any_of(history.begin(), history.end(), [&](const auto& b) {
      return a.client != b.client && !precedes(a, b) && !precedes(b, a);
    });
  return count;
}

/// What one rank does to a queue in one history, and its log.
template <class Queue>
class client {
 public:
  client(Queue& q, std::uint64_t number)
      : q_(q), number_(number), random_(far_test::random_engine(number)), log_(far::rank(), now) {}

  const auto& events() const { return log_.events(); }

  /// Pushes and pops `each` values. Who waits for room has nothing in the queue, and who waits for
  /// an element has some: so somebody can always go on.
  void push_and_pop(std::uint64_t each) {
    std::uint64_t popped = 0;
    for (int tries = 0; popped < each; ++tries) {
      if (pushed_ < each && (pushed_ == popped || coin())) {
        push(pushed_ != popped || (tries <= 4 && coin()));
      } else {
        popped += pop(tries <= 8 && coin());
      }
    }
  }

  /// These come to an end if as many are popped by others, or pushed.
  void only_push(std::uint64_t n) {
    for (int tries = 0; pushed_ < n; ++tries) push(tries <= 2 && coin());
  }
  void only_pop(std::uint64_t n) {
    for (std::uint64_t popped = 0, tries = 0; popped < n; ++tries)
      popped += pop(tries <= 2 && coin());
  }

 private:
  bool coin() { return random_() % 2 == 0; }

  void push(bool only_try) {
    std::uint64_t value = (number_ * 64 + far::rank()) * 64 + pushed_ + 1;
    if (only_try) {
      pushed_ += log_.run(spec::try_push(value), [&] { return q_.try_push(value); });
    } else {
      log_.run(spec::push(value), [&] { q_.push(value); });
      ++pushed_;
    }
  }
  bool pop(bool only_try) {
    if (only_try) return log_.run(spec::try_pop(), [&] { return q_.try_pop(); }).has_value();
    log_.run(spec::pop(), [&] { return q_.pop(); });
    return true;
  }

  Queue& q_;
  std::uint64_t number_;
  std::mt19937_64 random_;
  linearizability::recorder<spec> log_;
  std::uint64_t pushed_ = 0;
};

/// One history on an empty queue, which is left empty.
template <class Queue>
void one_history(Queue& q, std::uint64_t number, tally& all) {
  std::uint64_t members = std::min<far::rank_t>(far::nprocs(), 4);  // few operations a history
  std::uint64_t each = std::max<std::uint64_t>(2, 8 / members), pushers = members / 2;
  client<Queue> mine(q, number);
  std::uint64_t begin = far::broadcast(now() + (simulated() ? 0 : 10'000), 0);
  while (now() < begin) std::this_thread::yield();
  if (far::rank() >= members) {
  } else if (pushers == 0 || number % 4 == 0) {
    mine.push_and_pop(each);
  } else {
    std::uint64_t poppers = members - pushers;
    if (far::rank() % 2 == 1)
      mine.only_push(each * poppers);
    else
      mine.only_pop(each * pushers);
  }
  auto history = linearizability::merged(far::all_gather(mine.events()));
  if (far::rank() == 0) {
    ++all.histories;
    all.operations += history.size();
    all.overlapping += count_overlapping(history);
    auto found = linearizability::check<spec>(history, spec{q.capacity()});
    CHECK(found.good());
    if (!found.good()) std::fprintf(stderr, "%s\n", found.report.c_str());
  }
  far::barrier();
  CHECK(q.empty());
  far::barrier();
}

template <template <class> class Queue>
void many_histories(const char* name, std::uint64_t histories) {
  tally all;
  for (std::uint64_t capacity : {1, 2, 3, 5}) {
    Queue<std::uint64_t> q(static_cast<far::rank_t>(capacity) % far::nprocs(), capacity);
    for (std::uint64_t i = 0; i < histories / 4; ++i) one_history(q, capacity * histories + i, all);
  }
  if (far::rank() == 0)
    std::printf("linearizability: queue %zu histories, %zu operations, %zu overlapping (%s)\n",
                all.histories, all.operations, all.overlapping, name);
}

}  // namespace

FAR_TEST(circular) { many_histories<circular>("circular_queue", many(300)); }
FAR_TEST(checksum) { many_histories<checksum>("checksum_queue", many(300)); }
FAR_TEST(two_atomics) { many_histories<two_atomics>("two_atomics", many(300)); }

}  // namespace queue_linearizability_tests

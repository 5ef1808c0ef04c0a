// More messages than there is room for, from everybody at once, and from handlers: nothing is lost,
// nobody waits for ever, and quiesce waits for all of it.
#include "rank_state.hpp"

#include <farside/core/rpc.hpp>

#include <map>
#include <string>

namespace rpc_flood_tests {

using namespace messages;

namespace {

std::size_t kept() { return far::detail::messenger::of(far::detail::here()).kept(); }

struct account {
  std::map<far::rank_t, long> next;  ///< by sender
  long messages = 0, bytes = 0, disorder = 0;
};

/// Handlers that send: each message makes two, `left` times.
struct storm {
  static void hit(far::ptr<storm*> here, std::vector<far::ptr<storm*>> all, int left,
                  std::uint64_t seed) {
    ++of(here).hits;
    for (int i = 0; left > 0 && i < 2; ++i) {
      seed = far::detail::hash_bytes(&seed, sizeof seed) + static_cast<std::uint64_t>(i);
      auto to = static_cast<far::rank_t>(seed % far::nprocs());
      far::rpc_ff(to, hit, all[to], all, left - 1, seed);
    }
  }
  long hits = 0;
};

/// Handlers that pass on what they get.
struct ring {
  static void pass(far::ptr<ring*> here, std::vector<far::ptr<ring*>> all, int left,
                   std::string ballast) {
    ring& mine = of(here);
    ++mine.passed;
    mine.bytes += static_cast<long>(ballast.size());
    if (left > 0) far::rpc_ff(next_rank(), pass, all[next_rank()], all, left - 1, ballast);
  }
  long passed = 0, bytes = 0;
};

template <class T>
std::vector<far::ptr<T*>> everywhere(const on_each_rank<T>& objects) {
  std::vector<far::ptr<T*>> all;
  for (far::rank_t r = 0; r < far::nprocs(); ++r) all.push_back(objects.at(r));
  return all;
}

}  // namespace

FAR_TEST(from_all_to_one) {
  on_each_rank<account> seen;
  auto random = far_test::random_engine();
  long n = scaled(1600), bytes = 0;
  far::rank_t to = far::nprocs() - 1;
  std::size_t most_kept = 0;
  for (long i = 0; i < n; ++i) {
    std::string ballast(random() % 2000, 'x');
    bytes += static_cast<long>(ballast.size());
    far::rpc_ff(
        to,
        [](far::ptr<account*> at, far::rank_t from, long number, const std::string& s) {
          account& a = of(at);
          ++a.messages;
          a.bytes += static_cast<long>(s.size());
          a.disorder += a.next[from]++ != number;
        },
        seen.at(to), far::rank(), i, ballast);
    most_kept = std::max(most_kept, kept());
  }
  CHECK_EQ(most_kept, 0);  // who sends waits: nothing piles up
  far::quiesce();
  long sent = far::all_reduce(n), total = far::all_reduce(bytes);
  CHECK_EQ(seen->messages, far::rank() == to ? sent : 0);
  CHECK_EQ(seen->bytes, far::rank() == to ? total : 0);
  CHECK_EQ(seen->disorder, 0);
}

FAR_TEST(from_all_to_one_with_answers) {
  std::vector<far::future<std::string>> answers;
  int n = scaled(800);
  for (int i = 0; i < n; ++i)
    answers.push_back(
        far::rpc(0, [](int x) { return std::string(static_cast<std::size_t>(x), 'r'); }, i % 300));
  int wrong = 0;
  for (int i = 0; i < n; ++i)
    wrong += answers[static_cast<std::size_t>(i)].get() !=
             std::string(static_cast<std::size_t>(i % 300), 'r');
  CHECK_EQ(wrong, 0);
}

FAR_TEST(handlers_that_send) {
  on_each_rank<storm> seen;
  auto all = everywhere(seen);
  int depth = far::nprocs() > 8 ? 3 : 6, storms = scaled(24);
  auto random = far_test::random_engine();
  for (int i = 0; i < storms; ++i) {
    auto to = static_cast<far::rank_t>(random() % far::nprocs());
    far::rpc_ff(to, &storm::hit, all[to], all, depth, std::uint64_t{random()});
  }
  far::quiesce();
  long expected = static_cast<long>(far::nprocs()) * storms * ((2L << depth) - 1);
  CHECK_EQ(far::all_reduce(seen->hits), expected);
}

FAR_TEST(rings_that_are_full_in_a_circle) {
  on_each_rank<ring> seen;
  auto all = everywhere(seen);
  // Each is half a ring, and all go the same way: soon every ring is full, and what handlers send
  // is kept, more than a rank keeps as long as anything moves.
  std::string ballast(far::detail::ring_bytes(far::nprocs()) / 2 - 500, 'b');
  int messages = 24, hops = 4;
  for (int i = 0; i < messages; ++i)
    far::rpc_ff(next_rank(), &ring::pass, all[next_rank()], all, hops - 1, ballast);
  far::quiesce();
  CHECK_EQ(seen->passed, messages * hops);
  CHECK_EQ(seen->bytes, static_cast<long>(messages * hops) * static_cast<long>(ballast.size()));
  CHECK_EQ(kept(), 0);
}

FAR_TEST(messages_of_handlers_keep_their_order) {
  on_each_rank<account> seen;
  struct burst {
    static void note(far::ptr<account*> here, long number, const std::string&) {
      account& mine = of(here);
      mine.disorder += mine.next[0]++ != number;
    }
    static void begin(far::ptr<account*> there) {
      for (long i = 0; i < 60; ++i)  // some that fit where the one before did not
        far::rpc_ff(next_rank(), note, there, i, std::string(i % 3 == 0 ? 30'000 : 10, 'o'));
    }
  };
  far::rpc_ff(far::rank(), &burst::begin, seen.at(next_rank()));
  far::quiesce();
  CHECK_EQ(seen->next[0], 60);
  CHECK_EQ(seen->disorder, 0);
}

FAR_TEST(more_kept_than_a_rank_likes) {
  on_each_rank<ring> seen;
  auto all = everywhere(seen);
  // A handler sends so much at once that the limit is passed on all ranks together.
  struct burst {
    static void begin(far::ptr<ring*> here, std::vector<far::ptr<ring*>> all) {
      ++of(here).passed;
      for (int i = 0; i < 3; ++i)
        far::rpc_ff(next_rank(), &ring::pass, all[next_rank()], all, 2,
                    std::string(std::size_t{450} << 10, 'k'));
    }
  };
  far::rpc_ff(next_rank(), &burst::begin, all[next_rank()], all);
  far::quiesce();
  CHECK_EQ(seen->passed, 1 + 3 * 3);
  CHECK_EQ(kept(), 0);
}

FAR_TEST(quiesce_after_little_storms) {
  // Few messages, that branch: counts of one round are easily equal by accident.
  on_each_rank<storm> seen;
  auto all = everywhere(seen);
  auto random = far_test::random_engine();
  auto common = far_test::common_random_engine();
  for (int round = 0, n = far::nprocs() > 8 ? 8 : 40, expected = 0; round < n; ++round) {
    int depth = static_cast<int>(common() % 4);
    auto first = static_cast<far::rank_t>(common() % far::nprocs());
    auto seed = std::uint64_t{common()};
    for (auto delay = random() % 8; delay > 0; --delay) far::progress();
    if (far::rank() == first) {
      auto to = static_cast<far::rank_t>(seed % far::nprocs());
      far::rpc_ff(to, &storm::hit, all[to], all, depth, seed);
    }
    far::quiesce();
    expected += (2 << depth) - 1;
    CHECK_EQ(far::all_reduce(seen->hits), expected);
  }
}

FAR_TEST(quiesce_waits_for_chains) {
  on_each_rank<ring> seen;
  auto all = everywhere(seen);
  far::quiesce();  // nothing was sent
  far::quiesce();
  int hops = 100;
  if (far::rank() == 0)
    far::rpc_ff(next_rank(), &ring::pass, all[next_rank()], all, hops - 1, std::string());
  far::quiesce();
  CHECK_EQ(far::all_reduce(seen->passed), hops);
  // A chain of futures, each begun by the answer to the one before.
  struct chain {
    static far::future<int> go(int left) {
      return far::rpc(
                 next_rank(static_cast<far::rank_t>(left)), [](int x) { return x - 1; }, left)
          .then([](int x) { return x == 0 ? far::future<int>::ready(0) : go(x); });
    }
  };
  auto end = chain::go(30);
  far::quiesce();
  CHECK(end.is_ready());
}

}  // namespace rpc_flood_tests

// far::visits: gathered messages, directly and by way of a node's ranks.
#include "rank_state.hpp"

#include <farside/algorithms/visit.hpp>

#include <map>
#include <numeric>
#include <string>

namespace visit_tests {

using namespace messages;

namespace {

using words = std::map<std::string, long>;

void count_word(far::ptr<words*> here, const std::string& word) { ++of(here)[word]; }

std::vector<far::visit_options> ways() {
  using far::route;
  return {{},
          {.batch_bytes = 1},
          {.batch_bytes = 300},
          {.route = route::node, .node_ranks = 1},
          {.route = route::node, .node_ranks = 2},
          {.route = route::node, .batch_bytes = 100, .node_ranks = 3},
          {.route = route::node}};
}

/// A tree of visits, made by handlers.
struct tree {
  far::visits* visits = nullptr;
  long nodes = 0;

  static void grow(far::ptr<tree*> here, std::vector<far::ptr<tree*>> all, int depth, int index) {
    tree& mine = of(here);
    ++mine.nodes;
    for (int child = 0; depth > 0 && child < 3; ++child) {
      auto to = static_cast<far::rank_t>(3 * index + child) % far::nprocs();
      mine.visits->visit(to, grow, all[to], all, depth - 1, 3 * index + child);
    }
  }
};

}  // namespace

FAR_TEST(words_are_counted_where_they_belong) {
  for (const auto& way : ways()) {
    on_each_rank<words> mine;
    far::visits visits(way);
    auto random = far_test::random_engine();
    std::map<std::string, long> expected;
    for (int i = 0, n = scaled(1200); i < n; ++i) {
      std::string word = std::to_string(random() % 97);
      if (random() % 50 == 0) word += std::string(1000, '.');
      ++expected[word];
      auto to = static_cast<far::rank_t>(far::detail::hash_bytes(word.data(), word.size()) %
                                         far::nprocs());
      visits.visit(to, count_word, mine.at(to), word);
    }
    far::quiesce();
    auto sum = [](words a, const words& b) {
      for (const auto& [word, n] : b) a[word] += n;
      return a;
    };
    CHECK(far::all_reduce(*mine, sum) == far::all_reduce(expected, sum));
    long misplaced = 0;
    for (const auto& [word, n] : *mine)
      misplaced += far::detail::hash_bytes(word.data(), word.size()) % far::nprocs() != far::rank();
    CHECK_EQ(misplaced, 0);
  }
}

FAR_TEST(visits_of_a_pair_keep_their_order) {
  struct log {
    std::map<far::rank_t, std::vector<int>> from;
  };
  for (const auto& way : ways()) {
    on_each_rank<log> seen;
    far::visits visits(way);
    auto random = far_test::random_engine();
    std::vector<int> sent(far::nprocs());
    for (int i = 0, n = scaled(800); i < n; ++i) {
      auto to = static_cast<far::rank_t>(random() % far::nprocs());
      visits.visit(
          to, [](far::ptr<log*> at, far::rank_t from, int k) { of(at).from[from].push_back(k); },
          seen.at(to), far::rank(), sent[to]++);
      if (random() % 100 == 0) visits.ship();
      if (random() % 20 == 0) far::progress();
    }
    far::quiesce();
    auto expected = far::all_to_all(sent);
    for (far::rank_t r = 0; r < far::nprocs(); ++r) {
      std::vector<int> order(static_cast<std::size_t>(expected[r]));
      std::iota(order.begin(), order.end(), 0);
      CHECK(seen->from[r] == order);
    }
  }
}

FAR_TEST(handlers_may_visit) {
  for (const auto& way : ways()) {
    on_each_rank<tree> mine;
    far::visits visits(way);
    mine->visits = &visits;
    std::vector<far::ptr<tree*>> all;
    for (far::rank_t r = 0; r < far::nprocs(); ++r) all.push_back(mine.at(r));
    far::barrier();
    visits.visit(next_rank(), &tree::grow, all[next_rank()], all, 4, static_cast<int>(far::rank()));
    far::quiesce();
    CHECK_EQ(far::all_reduce(mine->nodes), 121L * far::nprocs());
  }
}

FAR_TEST(functions_differ_within_a_batch) {
  on_each_rank<std::vector<int>> seen;
  {
    far::visits visits;
    far::rank_t to = next_rank();
    for (int i = 0; i < 5; ++i) {
      visits.visit(
          to, [](far::ptr<std::vector<int>*> at, int x) { of(at).push_back(x); }, seen.at(to), i);
      visits.visit(
          to, [](far::ptr<std::vector<int>*> at, int x) { of(at).push_back(10 * x); }, seen.at(to),
          i);
    }
    visits.visit(to, [](far::ptr<std::vector<int>*> at) { of(at).push_back(-1); }, seen.at(to));
    CHECK_THROWS(visits.visit(far::nprocs(), [] {}), "only");
  }  // what is left is shipped
  far::quiesce();
  CHECK_EQ(*seen, (std::vector<int>{0, 0, 1, 10, 2, 20, 3, 30, 4, 40, -1}));
}

FAR_TEST(a_way_by_node_is_always_the_same) {
  far::detail::node_map map(3);  // 0 1 2 | 3 4 5 | 6
  far::rank_t n = far::nprocs();
  for (far::rank_t a = 0; a < n; ++a)
    for (far::rank_t b = 0; b < n; ++b) {
      far::rank_t hop = map.next_hop(a, b);
      CHECK(hop < n);
      CHECK_EQ(hop / 3, b / 3);  // in b's node: the second hop stays within it
      CHECK_EQ(map.next_hop(hop, b), b);
      if (a / 3 == b / 3) CHECK_EQ(hop, b);
    }
}

}  // namespace visit_tests

// The machinery of far::future by hand-made states: order, failures, chains, coroutines.
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
// g++-12 with the address sanitizer takes an empty std::optional<std::string> for one that is read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <farside/farside.hpp>

#include "check.hpp"

using far::future;
using far::detail::future_state;

namespace {

template <class T>
auto make() {
  auto state = std::make_shared<future_state<T>>();
  return std::pair(state, future<T>(state));
}

std::exception_ptr failure(const char* why) {
  return std::make_exception_ptr(std::runtime_error(why));
}

void ready_at_once() {
  auto f = future<int>::ready(5);
  CHECK(f.valid() && f.is_ready());
  CHECK(f.get() == 5);
  CHECK_THROWS(f.get(), "taken already");
  future<void>::ready().get();
  CHECK(future<std::string>::ready(3u, 'x').get() == "xxx");
  CHECK_THROWS(future<int>::failed(failure("why")).get(), "why");
  future<int> nothing;
  CHECK(!nothing.valid());
  CHECK_THROWS(nothing.get(), "holds nothing");
  CHECK_THROWS(nothing.is_ready(), "holds nothing");
  auto first = future<int>::ready(6);
  auto moved = std::move(first);
  CHECK(moved.valid() && !first.valid());
}

void ready_later() {
  auto [state, f] = make<std::string>();
  CHECK(f.valid() && !f.is_ready());
  state->set("done");
  CHECK(f.is_ready());
  CHECK(f.get() == "done");

  auto [broken, g] = make<int>();
  broken->fail(failure("broken"));
  CHECK(g.is_ready());
  CHECK_THROWS(g.get(), "broken");

  // Something that others make ready is found by a wait.
  struct later : far::detail::pending {
    int rounds = 0;
    std::shared_ptr<future_state<int>> state;
    bool poll() override {
      if (++rounds < 5) return false;
      state->set(rounds);
      return true;
    }
  };
  auto [slow, h] = make<int>();
  auto item = std::make_shared<later>();
  item->state = slow;
  auto& c = far::detail::here();
  c.in_flight.push_back(item);
  CHECK(!h.is_ready());
  CHECK(h.get() == 5);
  CHECK(c.in_flight.empty());
}

void continuations() {
  // Now, and later; of values, of nothing, of futures.
  CHECK(future<int>::ready(2).then([](int x) { return x * 2.5; }).get() == 5.0);
  bool ran = false;
  future<void>::ready().then([&] { ran = true; }).get();
  CHECK(ran);
  CHECK(future<int>::ready(2).then([](int x) { return future<int>::ready(x + 1); }).get() == 3);

  auto [state, f] = make<int>();
  int seen = 0;
  auto chain = std::move(f).then([&](int x) { return seen = x; }).then([](int x) {
    return std::to_string(x);
  });
  CHECK(!chain.is_ready() && seen == 0);
  state->set(7);
  CHECK(seen == 7 && chain.is_ready());
  CHECK(chain.get() == "7");

  // A continuation that returns a future is waited for in turn.
  auto [outer, g] = make<int>();
  auto [inner, h] = make<int>();
  auto kept = std::make_shared<future<int>>(std::move(h));
  auto both = g.then([kept](int) { return std::move(*kept); });
  outer->set(1);
  CHECK(!both.is_ready());
  inner->set(2);
  CHECK(both.get() == 2);

  // What it captures need not be copyable.
  auto unique = std::make_unique<int>(4);
  CHECK(future<int>::ready(1).then([u = std::move(unique)](int x) { return x + *u; }).get() == 5);
  auto [s, k] = make<int>();
  auto sum = k.then([u = std::make_unique<int>(40)](int x) { return x + *u; });
  s->set(2);
  CHECK(sum.get() == 42);
}

void failures_travel() {
  auto fails = [](int) -> int { throw std::runtime_error("thrown inside"); };
  CHECK_THROWS(future<int>::ready(1).then(fails).get(), "thrown inside");
  auto [state, f] = make<int>();
  bool ran = false;
  auto end = f.then(fails).then([&](int x) {
    ran = true;
    return x;
  });
  state->set(1);
  CHECK(end.is_ready() && !ran);
  CHECK_THROWS(end.get(), "thrown inside");

  auto [broken, g] = make<void>();
  auto next = g.then([] { return 1; });
  broken->fail(failure("at the beginning"));
  CHECK_THROWS(next.get(), "at the beginning");

  auto [outer, h] = make<int>();
  auto nested = h.then([](int) { return future<int>::failed(failure("of the inner one")); });
  outer->set(1);
  CHECK_THROWS(nested.get(), "of the inner one");

  int seen = 0;
  auto [last, k] = make<int>();
  k.finally([&](future<int> done) {
    try {
      seen = done.get();
    } catch (const std::exception&) {
      seen = -1;
    }
  });
  CHECK(seen == 0);
  last->fail(failure("seen by finally"));
  CHECK(seen == -1);
}

void all_of_many() {
  auto [a, fa] = make<int>();
  auto [b, fb] = make<std::string>();
  auto [n, fn] = make<void>();
  auto all = far::when_all(std::move(fa), std::move(fb), std::move(fn), future<double>::ready(2.5));
  n->set({});
  b->set("b");
  CHECK(!all.is_ready());
  a->set(1);
  auto [x, y, none, z] = all.get();
  CHECK(x == 1 && y == "b" && z == 2.5);
  (void)none;
  far::when_all().get();

  std::vector<std::shared_ptr<future_state<int>>> states;
  std::vector<future<int>> parts;
  for (int i = 0; i < 5; ++i) {
    auto [state, f] = make<int>();
    states.push_back(state);
    parts.push_back(std::move(f));
  }
  auto list = far::when_all(std::move(parts));
  for (int i = 4; i >= 0; --i) {
    CHECK(!list.is_ready());
    states[static_cast<std::size_t>(i)]->set(i * i);
  }
  CHECK(list.get() == (std::vector<int>{0, 1, 4, 9, 16}));
  CHECK(far::when_all(std::vector<future<int>>()).get().empty());
  std::vector<future<bool>> answers;
  for (bool answer : {true, false, true}) answers.push_back(future<bool>::ready(answer));
  CHECK((far::when_all(std::move(answers)).get() == std::vector<bool>{true, false, true}));
  far::when_all(std::vector<future<void>>()).get();
  std::vector<future<void>> voids;
  voids.push_back(future<void>::ready());
  far::when_all(std::move(voids)).get();

  auto [good, fg] = make<int>();
  auto [bad, fbad] = make<int>();
  auto mixed = far::when_all(std::move(fg), std::move(fbad));
  bad->fail(failure("one of them"));
  CHECK(
      !mixed.is_ready());  // not before the last one: what is in flight may use what is then freed
  good->set(1);
  CHECK_THROWS(mixed.get(), "one of them");
}

future<int> add_later(future<int> a, future<int> b) {
  co_return co_await std::move(a) + co_await std::move(b);
}
future<void> rethrow_later(future<int> a, std::string& saw) {
  try {
    co_await std::move(a);
  } catch (const std::exception& e) {
    saw = e.what();
    throw;
  }
}

void coroutines() {
  auto [a, fa] = make<int>();
  auto [b, fb] = make<int>();
  auto sum = add_later(std::move(fa), std::move(fb));
  CHECK(!sum.is_ready());
  b->set(2);
  CHECK(!sum.is_ready());
  a->set(40);
  CHECK(sum.is_ready() && sum.get() == 42);
  CHECK(add_later(future<int>::ready(1), future<int>::ready(2)).get() == 3);

  auto [broken, fbroken] = make<int>();
  std::string saw;
  auto end = rethrow_later(std::move(fbroken), saw);
  broken->fail(failure("inside a coroutine"));
  CHECK(saw == "inside a coroutine");
  CHECK_THROWS(end.get(), "inside a coroutine");
}

void long_chains() {
  auto [state, f] = make<int>();
  future<int> chain = std::move(f);
  for (int i = 0; i < 1000; ++i) chain = chain.then([](int x) { return x + 1; });
  state->set(0);
  CHECK(chain.get() == 1000);
}

}  // namespace

int main(int argc, char** argv) {
  far::runtime world(argc, argv);
  ready_at_once();
  ready_later();
  continuations();
  failures_travel();
  all_of_many();
  coroutines();
  long_chains();
  return verdict("future");
}

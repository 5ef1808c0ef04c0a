// far::store: posts, fences, and who waits for keys that are yet to come.
#include "containers/amounts.hpp"
#include "containers/full_segments.hpp"
#include "harness.hpp"
#include "store_types.hpp"

#include <farside/algorithms/on_keys.hpp>

#include <chrono>
#include <memory>
#include <thread>

namespace store_posts_tests {

namespace {

using namespace store_types;
using amounts::simulated;

int me() { return static_cast<int>(far::rank()); }
int all() { return static_cast<int>(far::nprocs()); }

far::store_options with_slots(std::uint32_t slots, far::on_duplicate what = {}) {
  far::store_options with;
  with.pending_slots = slots;
  with.on_duplicate = what;
  return with;
}

/// A key that a member holds, from `from` on.
template <class Store>
int key_of(const Store& data, far::rank_t owner, int from = 0) {
  while (data.owner(from) != owner) ++from;
  return from;
}

template <class V>
void check_posts() {
  far::store<int, V> data(0, with_slots(4));
  const int each = amounts::scaled(40);
  for (int i = 0; i < each; ++i) data.post(i * all() + me(), value_of<V>(i));
  far::fence_report report = data.fence();
  CHECK_EQ(report.activated, static_cast<std::uint64_t>(each * all()));
  CHECK_EQ(report.duplicates, 0u);
  CHECK_EQ(data.size(), static_cast<std::size_t>(each * all()));
  for (int i = 0; i < each; ++i)
    for (int r = 0; r < all(); ++r) CHECK(data.get(i * all() + r) == value_of<V>(i));
  report = data.fence();
  CHECK_EQ(report.activated + report.duplicates + report.held_back, 0u);
  std::vector<std::pair<int, V>> many;
  for (int i = 0; i < 5; ++i) many.emplace_back(-1 - i, value_of<V>(me()));  // all post the same
  data.post(many);
  report = data.fence();
  CHECK_EQ(report.activated, 5u);
  CHECK_EQ(report.duplicates, static_cast<std::uint64_t>(5 * (all() - 1)));
}

}  // namespace

FAR_TEST(posts_in_buckets) { check_posts<int>(); }
FAR_TEST(posts_of_objects) { check_posts<large>(); }
FAR_TEST(posts_of_strings) { check_posts<std::string>(); }

FAR_TEST(duplicates) {
  const int last = all() - 1;
  {
    far::store<int, large> keeps(10), replaces(10, with_slots(8, far::on_duplicate::replace));
    if (me() == 0) keeps.put(1, value_of<large>(1)), replaces.put(1, value_of<large>(1));
    far::barrier();
    if (me() == last) keeps.post(1, value_of<large>(2)), replaces.post(1, value_of<large>(2));
    CHECK_EQ(keeps.fence().duplicates, 1u);
    CHECK_EQ(replaces.fence().duplicates, 1u);
    CHECK(keeps.get(1) == value_of<large>(1));
    CHECK(replaces.get(1) == value_of<large>(2));
    far::barrier();
  }
  far::store_options strict = with_slots(8, far::on_duplicate::error);
  strict.name = "strict";
  far::store<std::string, int> data(10, strict);
  if (me() == 0) data.put("twice", 1);
  far::barrier();
  data.fence();
  if (me() == last) data.post("twice", 2), data.post("once", 3);
  CHECK_THROWS(data.fence(),
               "store 'strict': fence: 1 posts had a key that was there already, which "
               "on_duplicate::error forbids: ");
  CHECK_EQ(far::all_reduce(1), all());  // still in step
  CHECK(data.get("twice") == 1 && data.get("once") == 3);
  CHECK_EQ(data.fence().duplicates, 0u);
}

/// One rank computes and calls nothing. Whoever posts to it waits when the slots are taken, unless a
/// thread serves; nothing is lost. FARSIDE_STORE_SECONDS says for how long.
FAR_TEST(an_owner_that_computes) {
  const char* text = std::getenv("FARSIDE_STORE_SECONDS");
  const double seconds = text != nullptr ? std::atof(text) : 0.05;
  const bool by_thread = far::detail::here().attends == far::attention::thread;
  const int each = simulated() ? 30 : seconds >= 1 ? 100000 / std::max(all() - 1, 1) : 400;
  far::store<int, std::array<int, 30>> data(1000, with_slots(8));
  const far::rank_t owner = far::nprocs() - 1;
  auto ended = far_test::shared_objects<int>(owner);
  std::vector<int> keys;
  for (int i = me() * 1000000; static_cast<int>(keys.size()) < each; ++i)
    if (data.owner(i) == owner) keys.push_back(i);
  far::barrier();
  bool in_time = true;
  if (far::rank() != owner) {
    for (int key : keys) data.post(key, {key});
    far::fetch_add(ended, 1);
  } else if (!simulated()) {
    const auto begin = std::chrono::steady_clock::now();
    auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    std::atomic_ref<int> seen(*ended.local());
    if (by_thread)
      while ((in_time = passed() < 60) && seen.load() != all() - 1) std::this_thread::yield();
    else
      while (passed() < seconds) {
      }
  }
  CHECK(in_time);
  const far::fence_report report = data.fence();
  CHECK_EQ(report.activated,
           static_cast<std::uint64_t>(each) * far::nprocs() - static_cast<std::uint64_t>(each));
  if (!simulated() && !by_thread && all() > 1) CHECK(report.held_back > 0);
  CHECK_EQ(data.size(), report.activated);
  if (far::rank() != owner)
    for (std::size_t i = 0; i < keys.size(); i += 7) CHECK((*data.get(keys[i]))[0] == keys[i]);
  far_test::release(ended);
}

/// Continuations post, and so do those of what they have posted: a fence waits for all of it.
FAR_TEST(a_fence_and_continuations) {
  const int depth = 5, trees = 2;
  far::store<int, large> data(0, with_slots(2));
  auto random = far_test::common_random_engine();
  // Key t * 64 + n is node n of a tree: its children are 2n and 2n + 1.
  std::atomic<int> ran{0};
  int expected = 0;
  for (int t = 0; t < trees; ++t)
    for (int n = 1; n < 1 << depth; ++n) {
      if ((n + t) % all() != me()) continue;
      ++expected;
      data.when(t * 64 + n).finally([&data, &ran, t, n](far::future<large> node) {
        const int value = static_cast<int>(node.get().first);
        if (2 * n < 1 << depth) {
          data.post(t * 64 + 2 * n, value_of<large>(value + 1));
          data.post(t * 64 + 2 * n + 1, value_of<large>(value + 2));
        }
        ++ran;
      });
    }
  if (random() % 2 == 0) far::barrier();
  for (int t = 0; t < trees; ++t)
    if (t % all() == me()) data.post(t * 64 + 1, value_of<large>(0));
  const far::fence_report report = data.fence();
  CHECK_EQ(ran.load(), expected);
  CHECK_EQ(report.activated, static_cast<std::uint64_t>(trees * ((1 << depth) - 1)));
  CHECK_EQ(data.size(), report.activated);
  for (int t = 0; t < trees; ++t)
    for (int n = 1; n < 1 << depth; ++n) {
      int value = 0;
      for (int at = n; at > 1; at /= 2) value += 1 + at % 2;
      CHECK(data.get(t * 64 + n) == value_of<large>(value));
    }
  CHECK_EQ(data.statistics().waiting, 0u);
}

template <class V>
void check_when() {
  far::store<int, V> data(0);
  if (me() == 0) data.put(1, value_of<V>(1));
  far::barrier();
  CHECK(data.when(1).get() == value_of<V>(1));  // it is there
  far::future<V> one = data.when(2), again = data.when(2);
  far::future<V> other = data.when(10 + me());
  CHECK(!one.is_ready());
  CHECK_EQ(data.fence().activated, 0u);  // who waits for what nobody has put is not waited for
  CHECK_EQ(data.statistics().waiting, static_cast<std::uint64_t>(3 * all()));
  CHECK(!data.get(2) && !data.contains(2) && !data.update(2, value_of<V>(1)) && !data.erase(2));
  CHECK_EQ(data.size(), 1u);
  std::size_t seen = 0;
  for (const auto& entry : data.everywhere()) seen += entry.first == 1;
  CHECK_EQ(seen, 1u);
  for (auto entry : data.local()) seen += entry.key != 1;
  CHECK_EQ(seen, 1u);
  far::barrier();
  if (me() == all() - 1) {
    CHECK(data.put(2, value_of<V>(2)));
    CHECK(data.erase(2));  // who waits has the value all the same
  }
  data.put(10 + (me() + 1) % all(), value_of<V>(me()));
  CHECK(one.get() == value_of<V>(2));
  CHECK(again.get() == value_of<V>(2));
  CHECK(other.get() == value_of<V>((me() + all() - 1) % all()));
  data.fence();
  CHECK_EQ(data.size(), static_cast<std::size_t>(1 + all()));
  far::future<V> later = data.when(2);  // and anew
  far::barrier();
  if (me() == 0) data.async_put(2, value_of<V>(3)).get();
  CHECK(later.get() == value_of<V>(3));
  // A clear leaves those who wait, and a growing index too.
  far::future<V> kept = data.when(99);
  data.clear();
  CHECK(data.empty());
  data.reserve(500);
  far::barrier();
  if (me() == 0) data.post(99, value_of<V>(4));
  CHECK(kept.get() == value_of<V>(4));
  data.fence();
  CHECK_EQ(data.size(), 1u);
}

FAR_TEST(waiting_for_small_values) { check_when<int>(); }
FAR_TEST(waiting_for_objects) { check_when<large>(); }
FAR_TEST(waiting_for_strings) { check_when<std::string>(); }

/// A store that ends tells those who wait.
FAR_TEST(waiting_in_vain) {
  far::future<int> never;
  {
    far::store_options with;
    with.name = "short-lived";
    far::store<int, int> data(10, with);
    never = data.when(5);
  }
  far::barrier();
  CHECK_THROWS(never.get(), "nobody had put the key");
}

/// A post that finds no room stays pending, and a fence says so on all ranks.
FAR_TEST(posts_without_room) {
  far::store_options with = with_slots(8);
  with.name = "narrow";
  far::store<int, std::string> data(100, with);
  const far::rank_t owner = far::nprocs() - 1;
  const int key = key_of(data, owner, 10 * me() * all());
  data.post(key_of(data, owner, 1000000), "so that there are rings");
  data.fence();
  const std::string value(20000, 'x');
  {
    std::unique_ptr<full_segments::ballast> full;
    if (far::rank() == owner) full = std::make_unique<full_segments::ballast>();
    far::barrier();
    if (me() == 0) {
      bool sent = true;
      try {
        data.post(key, value);
      } catch (const far::allocation_error&) {  // not even sent
        sent = false;
      }
      CHECK(sent);
    }
    const std::string names = far::text("rank ", owner);
    CHECK_THROWS(data.fence(),
                 "store 'narrow': fence: a post could not be activated, and stays "
                 "pending. ");
    CHECK_THROWS(data.fence(), names);
    CHECK_EQ(far::all_reduce(1), all());  // still in step
    full.reset();
    far::barrier();
  }
  CHECK_EQ(data.fence().activated, 1u);
  if (me() == 0) CHECK(data.get(key) == value);
  far::barrier();
}

/// Posts of handlers never wait.
FAR_TEST(posts_of_handlers) {
  far::store<int, int> data(0, with_slots(1));
  const int n = amounts::scaled(30);
  far::rpc_ff((far::rank() + 1) % far::nprocs(),
              [](far::store<int, int>& there, int first, int count) {
                for (int i = 0; i < count; ++i) there.post(first + i, i);
              },
              data, me() * n, n);
  far::quiesce();
  CHECK_EQ(data.fence().activated, static_cast<std::uint64_t>(n * all()));
  for (int i = 0; i < n * all(); ++i) CHECK(data.get(i) == i % n);
  far::barrier();
}

// --- far::on_keys ----------------------------------------------------------------------------------

/// Each number is the sum of the two before it, and nobody says in which order.
FAR_TEST(functions_on_keys) {
  far::store<int, std::uint64_t> numbers(10);
  const int n = 30;
  for (int i = n - 1; i >= 2; --i)
    if (i % all() == me())
      static_cast<void>(far::on_keys(
          numbers, {i - 2, i - 1},
          [](auto& store, std::uint64_t a, std::uint64_t b, int to) { store.post(to, a + b); }, i));
  if (me() == 0) numbers.put(0, 0);
  if (me() == all() - 1) numbers.put(1, 1);
  const far::fence_report report = numbers.fence();
  CHECK_EQ(report.activated, static_cast<std::uint64_t>(n - 2));
  std::uint64_t a = 0, b = 1;
  for (int i = 0; i < n; ++i, b += a, a = b - a) CHECK(numbers.get(i) == a);
  far::barrier();
}

FAR_TEST(results_on_keys) {
  far::store<int, std::string> texts(10);
  auto where = far::on_keys(texts, {7, 8}, [](auto&, const std::string& a, const std::string& b) {
    return std::pair(far::rank(), a + b);
  });
  auto fails = far::on_keys(texts, {7}, [](auto&, const std::string&) -> int {
    throw std::runtime_error("seven is not wanted");
  });
  texts.fence();  // nothing is there, and so nothing is waited for
  CHECK(!where.is_ready());
  far::barrier();
  if (me() == 0) texts.put(7, "se"), texts.post(8, "ven");
  const auto [rank, text] = where.get();
  CHECK_EQ(rank, texts.owner(7));
  CHECK_EQ(text, std::string("seven"));
  CHECK_THROWS(fails.get(), "seven is not wanted");
  texts.fence();
  far::barrier();
}

}  // namespace store_posts_tests

// A small test harness for suites that run on several ranks: one launch runs every test on all
// ranks, which may be processes or threads of one process.
//
//   FAR_TEST(swaps_return_the_old_value) {
//     auto p = far::broadcast(far::rank() == 0 ? far::make<int>(1) : far::ptr<int>(), 0);
//     CHECK_EQ(far::get(p), 1);
//   }
//
// Every rank runs every test, in one order. A failed check is printed with its rank and counted;
// the test goes on, so that the ranks stay together. After each test all ranks meet and agree on
// whether it passed. An exception that leaves a test ends its rank, and with it the job.
// Tests that share nothing but far memory: a static that a test changes would be shared by the
// ranks that are threads of one process.
#pragma once

#include <farside/farside.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace far_test {

struct test_case {
  std::string name;  ///< file.test
  void (*body)();
};

/// All tests of the program. Filled before main begins, read-only after.
inline std::vector<test_case>& registry() {
  static std::vector<test_case> cases;
  return cases;
}

/// "…/conformance/rma.cpp" and "zero_length" -> "rma.zero_length".
inline std::string full_name(std::string_view file, std::string_view test) {
  if (auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  if (auto dot = file.rfind('.'); dot != std::string_view::npos)
    file.remove_suffix(file.size() - dot);
  return std::string(file) + "." + std::string(test);
}

struct registration {
  registration(const char* file, const char* test, void (*body)()) {
    registry().push_back({full_name(file, test), body});
  }
};

/// One rank's account of the tests.
struct session {
  std::string test;               ///< the one that runs
  std::atomic<long> failures{0};  ///< failed checks of this test on this rank
  std::atomic<long> checks{0};    ///< checks of this test on this rank
  std::string skipped;            ///< the reason, if this test was skipped
  std::uint64_t seed = 1;
  std::uint64_t round = 0;  ///< of --repeat
};

/// The sessions of this process, by rank: ranks may be processes, threads or fibres of one thread.
inline session* sessions[1 << 14];

/// The session of the calling thread's rank.
inline session& here() { return *sessions[far::rank()]; }

/// Random numbers that differ between ranks, tests and rounds, and return with --seed.
inline std::mt19937_64 random_engine(std::uint64_t salt = 0) {
  session& s = here();
  std::seed_seq seeds{s.seed, s.round, std::uint64_t{std::hash<std::string>()(s.test)},
                      std::uint64_t{far::rank()}, salt};
  return std::mt19937_64(seeds);
}

/// The same on all ranks.
inline std::mt19937_64 common_random_engine(std::uint64_t salt = 0) {
  session& s = here();
  std::seed_seq seeds{s.seed, s.round, std::uint64_t{std::hash<std::string>()(s.test)}, salt};
  return std::mt19937_64(seeds);
}

/// A value as a failed check prints it.
template <class T>
std::string show(const T& value) {
  std::ostringstream out;
  if constexpr (std::same_as<T, std::byte>) {
    out << std::to_integer<int>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    out << static_cast<int>(value);
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else if constexpr (std::ranges::input_range<const T>) {
    std::size_t n = 0;
    out << '[';
    for (const auto& element : value) {
      if (n == 16) {
        out << ", ...";
        break;
      }
      out << (n++ == 0 ? "" : ", ") << show(element);
    }
    out << ']';
  } else {
    out << "an object of " << sizeof(T) << " bytes";
  }
  return out.str();
}

template <class A, class B>
bool equal(const A& a, const B& b) {
  constexpr bool plain_integers = std::is_integral_v<A> && std::is_integral_v<B> &&
                                  !std::is_same_v<A, bool> && !std::is_same_v<B, bool> &&
                                  !std::is_same_v<A, char> && !std::is_same_v<B, char>;
  if constexpr (plain_integers)
    return std::cmp_equal(a, b);
  else
    return a == b;
}

/// Counts one check; prints it if it failed.
inline void report(bool good, const char* file, int line, std::string_view text,
                   const std::string& values = {}) {
  session& s = here();
  s.checks.fetch_add(1, std::memory_order_relaxed);
  if (good) return;
  constexpr long most = 20;  // a wrong loop need not say so a thousand times
  long before = s.failures.fetch_add(1, std::memory_order_relaxed);
  if (before > most) return;
  std::ostringstream out;  // one write: lines of different ranks do not mix
  out << "rank " << far::rank() << ": " << file << ":" << line << ": " << s.test << ": " << text;
  if (!values.empty()) out << " (" << values << ")";
  if (before == most)
    out << "\nrank " << far::rank() << ": " << s.test << ": further failures are only counted";
  out << "\n";
  std::fputs(out.str().c_str(), stderr);
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* file, int line, const char* text) {
  bool good = equal(a, b);
  report(good, file, line, text, good ? std::string() : show(a) + " against " + show(b));
}

template <class Call>
void check_throws(Call call, std::string_view part, const char* file, int line, const char* text) {
  std::string saw = "nothing was thrown";
  bool good = false;
  try {
    call();
  } catch (const std::exception& e) {
    saw = std::string("the message is: ") + e.what();
    good = std::string_view(e.what()).find(part) != std::string_view::npos;
  }
  report(good, file, line, text,
         good ? std::string() : saw + "; expected in it: " + std::string(part));
}

/// Runs one test on this rank and agrees with the others. True if it passed or was skipped.
enum class outcome { passed, failed, skipped };

inline outcome run_one(session& s, const test_case& test) {
  s.test = test.name;
  s.failures = 0;
  s.checks = 0;
  s.skipped.clear();
  auto begin = std::chrono::steady_clock::now();
  try {
    test.body();
  } catch (...) {
    std::fprintf(stderr, "rank %u: test %s was left by an exception\n", far::rank(),
                 test.name.c_str());
    throw;
  }
  // What the next one does shall be done as if nobody had ever counted.
  if (far::detail::here().stats_target.empty()) far::stats::disable();
  far::barrier();
  long failures = far::all_reduce(s.failures.load());
  long checks = far::all_reduce(s.checks.load());
  auto skips = far::all_reduce(static_cast<far::rank_t>(!s.skipped.empty()));
  bool together = skips == 0 || skips == far::nprocs();
  bool empty = skips == 0 && checks == 0;
  auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                  begin);
  bool failed = failures != 0 || !together || empty;
  if (far::rank() == 0) {
    if (!together)
      std::printf("FAILED %s: only %u of %u ranks skipped it\n", s.test.c_str(), skips,
                  far::nprocs());
    else if (empty)
      std::printf("FAILED %s: no rank checked anything\n", s.test.c_str());
    else if (failed)
      std::printf("FAILED %s: %ld checks, with --seed %llu\n", s.test.c_str(), failures,
                  static_cast<unsigned long long>(s.seed));
    else if (skips != 0)
      std::printf("skipped %s: %s\n", s.test.c_str(), s.skipped.c_str());
    else
      std::printf("ok %s (%lld ms)\n", s.test.c_str(), static_cast<long long>(ms.count()));
    std::fflush(stdout);
  }
  return failed ? outcome::failed : skips != 0 ? outcome::skipped : outcome::passed;
}

/// `n` objects of that value on `owner`, complete and known to all. Collective.
template <class T>
far::ptr<T> shared_objects(far::rank_t owner, std::size_t n = 1, const T& value = T()) {
  far::ptr<T> at = nullptr;
  if (far::rank() == owner) {
    at = far::alloc<T>(n);
    std::vector<T> values(n, value);
    far::put(at, values.data(), n);
  }
  at = far::broadcast(at, owner);
  far::barrier();
  return at;
}

/// One such array on each rank. Collective.
template <class T>
std::vector<far::ptr<T>> objects_on_each_rank(std::size_t n = 1, const T& value = T()) {
  far::ptr<T> own = far::alloc<T>(n);
  std::vector<T> values(n, value);
  far::put(own, values.data(), n);
  auto all = far::all_gather(own);
  far::barrier();
  return all;
}

/// Gives back what the two above made, when nobody uses it any more. Collective.
template <class T>
void release(far::ptr<T> shared) {
  far::barrier();
  if (far::rank() == shared.rank()) far::dealloc(shared);
}
template <class T>
void release(const std::vector<far::ptr<T>>& on_each) {
  far::barrier();
  far::dealloc(on_each[far::rank()]);
}

/// A remark of rank 0, which says more than passed or failed.
template <class... Parts>
void note(const Parts&... parts) {
  if (far::rank() != 0) return;
  std::ostringstream out;
  out << "   " << here().test << ": ";
  (out << ... << parts) << "\n";
  std::fputs(out.str().c_str(), stdout);
}

}  // namespace far_test

#define FAR_TEST(name)                                                                     \
  static void far_test_body_##name();                                                      \
  static const far_test::registration far_test_registration_##name(__FILE__, #name,        \
                                                                   &far_test_body_##name); \
  static void far_test_body_##name()

#define CHECK(...) \
  far_test::report(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, "CHECK(" #__VA_ARGS__ ")")

#define CHECK_EQ(a, b) \
  far_test::check_equal((a), (b), __FILE__, __LINE__, "CHECK_EQ(" #a ", " #b ")")

/// `expression` must throw a std::exception whose message contains `part`.
#define CHECK_THROWS(expression, part)                                                     \
  far_test::check_throws([&] { static_cast<void>(expression); }, part, __FILE__, __LINE__, \
                         "CHECK_THROWS(" #expression ")")

/// Leaves the test, on all ranks together; it is counted and its reason printed.
#define SKIP(reason)                   \
  do {                                 \
    far_test::here().skipped = reason; \
    return;                            \
  } while (false)

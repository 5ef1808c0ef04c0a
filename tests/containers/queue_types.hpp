// What the tests of the queues have in common: element types, the three queues for any mix of
// operations, and counting.
#pragma once

#include "harness.hpp"

#include <farside/containers/checksum_queue.hpp>
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/fast_queue.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace queue_test {

template <class T>
using circular = far::circular_queue<T>;
template <class T>
using checksum = far::checksum_queue<T>;
template <class T>
using two_atomics = far::circular_queue<T, far::queue_protocol::two_atomics>;

/// Variable length.
struct record {
  std::string name;
  std::vector<int> values;
  bool operator==(const record&) const = default;
};
/// Fixed length, not trivially copyable, and not a whole number of words.
struct date {
  int day, month, year;
  char mark;
  date(int d, int m, int y, char c) : day(d), month(m), year(y), mark(c) {}
  date(const date& other)
      : day(other.day), month(other.month), year(other.year), mark(other.mark) {}
  date& operator=(const date&) = default;
  bool operator==(const date&) const = default;
};
/// Several words, most of which are the same from one to the next.
struct wide {
  std::uint64_t words[5] = {};
  bool operator==(const wide&) const = default;
};

/// The i-th element of each type; those of different i differ.
template <class T>
T make(std::uint64_t i) {
  return static_cast<T>(i);
}
template <>
inline std::string make(std::uint64_t i) {
  return std::string(i % 40, 'x') + std::to_string(i);
}
template <>
inline record make(std::uint64_t i) {
  return {make<std::string>(i), std::vector<int>(i % 7, static_cast<int>(i))};
}
template <>
inline date make(std::uint64_t i) {
  return {static_cast<int>(i), 2, 3, 'm'};
}
template <>
inline wide make(std::uint64_t i) {
  return {{7, i, 7, 7, 7}};
}

/// What a piece of work cost this rank.
struct cost {
  std::uint64_t gets = 0, puts = 0, atomics = 0, flushes = 0, waits = 0;
  bool operator==(const cost&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const cost& c) {
    return out << c.gets << " gets, " << c.puts << " puts, " << c.atomics << " atomics, "
               << c.flushes << " flushes, " << c.waits << " waits";
  }
};

template <class Work>
cost cost_of(Work work) {
  far::stats::enable();
  auto before = far::stats::snapshot();
  work();
  auto t = far::stats::snapshot() - before;
  return {t[far::operation::get].count, t[far::operation::put].count,
          t[far::operation::atomic].count, t[far::operation::flush].count, t.waits};
}

/// Checks what a push or pop costs this rank; a message, and nothing else of its own, if that is
/// how it travels.
template <class Queue, class Work>
void check_cost(const Queue& q, const cost& expected, Work work) {
  bool sent =
      q.engine_of(far::container_operation::push) == far::engine::rpc && q.host() != far::rank();
  auto before = q.engine_use();
  cost made = cost_of(work);
  auto after = q.engine_use();
  if (!sent) CHECK_EQ(made, expected);
  CHECK_EQ(after.messages - before.messages, sent ? 1u : 0u);
  CHECK_EQ(after.declined, before.declined);
}

/// One after another, the first member first, with barriers between.
template <class Body>
void in_turn(Body body) {
  for (far::rank_t r = 0; r < far::nprocs(); ++r) {
    if (r == far::rank()) body();
    far::barrier();
  }
}

}  // namespace queue_test

template <>
struct far::serializer<queue_test::record> {
  static void save(far::writer& out, const queue_test::record& r) { out << r.name << r.values; }
  static queue_test::record load(far::reader& in) {
    queue_test::record r;
    in >> r.name >> r.values;
    return r;
  }
};
template <>
struct far::serializer<queue_test::date> {
  using fixed = std::array<int, 4>;
  static fixed pack(const queue_test::date& d) { return {d.day, d.month, d.year, d.mark}; }
  static queue_test::date unpack(const fixed& f) {
    return {f[0], f[1], f[2], static_cast<char>(f[3])};
  }
};

/// A test of each of the three: the body is a template of the queue.
#define MIXED_TEST(name)                                                         \
  template <template <class> class Queue>                                        \
  static void mixed_body_##name();                                               \
  FAR_TEST(name##_circular) { mixed_body_##name<queue_test::circular>(); }       \
  FAR_TEST(name##_checksum) { mixed_body_##name<queue_test::checksum>(); }       \
  FAR_TEST(name##_two_atomics) { mixed_body_##name<queue_test::two_atomics>(); } \
  template <template <class> class Queue>                                        \
  static void mixed_body_##name()

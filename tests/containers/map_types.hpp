// Keys and values of the kinds that a hash map can meet, made from numbers.
#pragma once

#include <farside/containers/hash_map.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace map_types {

/// Fixed length by a far::serializer.
struct date {
  int year = 0, month = 0, day = 0;
  bool operator==(const date&) const = default;
  auto operator<=>(const date&) const = default;
  virtual ~date() = default;  // not trivially copyable
};

/// Variable length by a far::serializer.
struct record {
  std::string name;
  std::vector<int> marks;
  bool operator==(const record&) const = default;
  auto operator<=>(const record&) const = default;
};

/// Every key has the same hash.
struct collides_always {
  template <class K>
  std::size_t operator()(const K&) const {
    return 42;
  }
};

/// Three words.
struct triple {
  std::uint64_t a, b, c;
  bool operator==(const triple&) const = default;
  auto operator<=>(const triple&) const = default;
};

/// A key whose members have the names of those of an entry. One number makes one, too.
struct edge {
  std::int64_t first = 0, second = 0;
  edge() = default;
  edge(std::int64_t from, std::int64_t to = 7) : first(from), second(to) {}
  bool operator==(const edge&) const = default;
  auto operator<=>(const edge&) const = default;
};

template <class T>
struct make;
template <class T>
  requires std::is_arithmetic_v<T>
struct make<T> {
  static T of(int i) { return static_cast<T>(i); }
};
template <>
struct make<std::string> {
  static std::string of(int i) {
    return std::string(static_cast<std::size_t>(i) % 40, 'x') + std::to_string(i);
  }
};
template <>
struct make<date> {
  static date of(int i) {
    date d;
    d.year = i, d.month = i % 12, d.day = -i;
    return d;
  }
};
template <>
struct make<edge> {
  static edge of(int i) { return {i / 5, i % 5}; }
};
template <class A, class B>
struct make<std::pair<A, B>> {
  static std::pair<A, B> of(int i) { return {make<A>::of(i / 5), make<B>::of(i % 5)}; }
};
template <>
struct make<record> {
  static record of(int i) {
    return {std::to_string(i), std::vector<int>(static_cast<std::size_t>(i) % 7, i)};
  }
};
template <>
struct make<triple> {
  static triple of(int i) {
    auto u = static_cast<std::uint64_t>(i);
    return {u, ~u, u * u};
  }
};

}  // namespace map_types

template <>
struct far::serializer<map_types::date> {
  using fixed = std::array<int, 3>;
  static fixed pack(const map_types::date& d) { return {d.year, d.month, d.day}; }
  static map_types::date unpack(const fixed& f) {
    map_types::date d;
    d.year = f[0], d.month = f[1], d.day = f[2];
    return d;
  }
};
template <>
struct far::serializer<map_types::record> {
  static void save(far::writer& out, const map_types::record& r) { out << r.name << r.marks; }
  static map_types::record load(far::reader& in) {
    map_types::record r;
    in >> r.name >> r.marks;
    return r;
  }
};

// Values of the kinds that a store tells apart: in the bucket, at their owner, with cells, and of
// variable length.
#pragma once

#include "containers/map_types.hpp"

#include <farside/containers/store.hpp>

#include <array>
#include <cstdint>
#include <string>

namespace store_types {

/// 96 bytes: at its owner.
struct large {
  std::int64_t first;
  std::array<std::int64_t, 11> rest;
  bool operator==(const large&) const = default;
};

/// Two cells, and what changes as a whole.
struct counted {
  std::int64_t visits;
  std::int64_t name;
  std::uint16_t small;
  std::array<std::int64_t, 3> rest;
  bool operator==(const counted&) const = default;
};

template <class V>
V value_of(int i);
template <>
inline std::int64_t value_of(int i) {
  return i;
}
template <>
inline int value_of(int i) {
  return i;
}
template <>
inline large value_of(int i) {
  large v{i, {}};
  v.rest.fill(i * std::int64_t{1000} + 1);
  return v;
}
template <>
inline counted value_of(int i) {
  return {0, i, 0, {i, -i, 3}};
}
template <>
inline std::string value_of(int i) {
  return std::string(static_cast<std::size_t>(i * 37 % 150), 'v') + std::to_string(i);
}
template <>
inline map_types::record value_of(int i) {
  return map_types::make<map_types::record>::of(i);
}

inline void change(std::int64_t& v) { v += 1000; }
inline void change(large& v) { ++v.first, v.rest[10] -= 5; }
inline void change(counted& v) { ++v.name, --v.rest[2]; }
inline void change(std::string& v) { v += "and more than there was"; }
inline void change(map_types::record& v) { v.marks.insert(v.marks.end(), {1, 2, 3, 4, 5, 6}); }

struct by_length {
  far::rank_t operator()(const std::string& key, far::rank_t members) const {
    return static_cast<far::rank_t>(key.size()) % members;
  }
};

}  // namespace store_types

template <>
struct far::cells_of<store_types::counted>
    : far::cells<&store_types::counted::visits, &store_types::counted::small> {};

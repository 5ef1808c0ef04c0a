// How a key or value is kept in words of far memory, a bucket's or an object's: in place if it is of
// fixed length, else {where, size, checksum} of its bytes, which lie in the segment of the rank that
// stored it. A reader that finds other bytes than the checksum's has come too early or too late, and
// looks at those words again: bytes that were freed may hold anything.
#pragma once

#include <farside/base/hot.hpp>
#include <farside/base/mutants.hpp>
#include <farside/containers/detail/retirement.hpp>
#include <farside/core/hash.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/serialization.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T, bool InPlace = fixed_length<T>>
struct stored {
  static constexpr bool in_place = true;
  using form = typename fixed_form<T>::type;
  static constexpr std::size_t words = (sizeof(form) + 7) / 8;

  FARSIDE_HOT static void pack(const T& value, std::uint64_t* to) {
    to[words - 1] = 0;
    auto&& packed = fixed_form<T>::pack(value);
    std::memcpy(to, &packed, sizeof(form));
  }
  static std::optional<T> unpack(const std::uint64_t* from) { return read(from); }
  FARSIDE_HOT static T read(const std::uint64_t* from) {
    struct alignas(form) image {
      std::byte bytes[sizeof(form)];
    } copy;
    std::memcpy(&copy, from, sizeof(form));
    return fixed_form<T>::unpack(std::bit_cast<form>(copy));
  }
  /// Whether it is `value`; nothing if that cannot be told yet.
  FARSIDE_HOT static std::optional<bool> equals(const std::uint64_t* from, const T& value) {
    return read(from) == value;
  }
  static void release(const std::uint64_t*) {}
  static void try_room(const T&, std::vector<ptr<std::byte>>&) {}
};

template <class T>
struct stored<T, false> {
  static constexpr bool in_place = false;
  static constexpr std::size_t words = 3;

  /// The bytes go to this rank's own segment, and are there after the next flush.
  static void pack(const T& value, std::uint64_t* to) {
    auto bytes = to_bytes(value);
    auto at = room_for(bytes);
    // Uncounted, like the allocation: own memory.
    context& c = here();
    c.link.put(at.rank(), at.offset(), bytes.data(), bytes.size());
    c.link.flush(at.rank());
    to[0] = at.raw();
    to[1] = bytes.size();
    to[2] = hash_bytes(bytes.data(), bytes.size());
  }
  static std::optional<T> unpack(const std::uint64_t* from) {
    stale_reads until_checked(here().link);
    auto bytes = get(where(from), static_cast<std::size_t>(from[1]));
    if (hash_bytes(bytes.data(), bytes.size()) != from[2] && !FARSIDE_MUTANT(map_bytes_not_checked))
      return std::nullopt;
    return from_bytes<T>(bytes);
  }
  static std::optional<bool> equals(const std::uint64_t* from, const T& value) {
    auto held = unpack(from);
    if (!held) return std::nullopt;
    return *held == value;
  }
  static void release(const std::uint64_t* from) { dealloc(where(from)); }
  /// Takes what pack() will take.
  static void try_room(const T& value, std::vector<ptr<std::byte>>& taken) {
    taken.push_back(room_for(to_bytes(value)));
  }

 private:
  static ptr<std::byte> room_for(const std::vector<std::byte>& bytes) {
    return alloc<std::byte>(std::max<std::size_t>(bytes.size(), 1));
  }
  static ptr<std::byte> where(const std::uint64_t* from) {
    return ptr<std::byte>::from_raw(from[0]);
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail

// Keys of a file's records as unsigned numbers of the same order.
//
//   u32, u64   as they are
//   i32, i64   the sign bit turned over
//   f32, f64   -inf ... -0 +0 ... +inf, then NaN. Positive numbers get the sign bit, of negative
//   ones
//              all bits are turned over; that would put NaN with a sign first, so the circle of
//              numbers is turned by as many as there are of those. Among NaN the bits decide.
//
// Each is one to one, so keys of the same number have the same bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace programs {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

enum class key_type { u32, i32, u64, i64, f32, f64 };

struct record_form {
  key_type type = key_type::u32;
  std::size_t size = 0;    ///< bytes of a record; 0: not said
  std::size_t offset = 0;  ///< of the key in it
  bool bare = true;        ///< a record is its key
};

constexpr std::size_t bytes_of(key_type type) {
  return type == key_type::u32 || type == key_type::i32 || type == key_type::f32 ? 4 : 8;
}

template <key_type Type>
struct key_bits {
  static constexpr bool narrow = bytes_of(Type) == 4;
  using number = std::conditional_t<narrow, std::uint32_t, std::uint64_t>;
  static constexpr number sign = number{1} << (narrow ? 31 : 63);
  static constexpr number signed_nans = (number{1} << (narrow ? 23 : 52)) - 1;

  static number order(number raw) {
    if constexpr (Type == key_type::i32 || Type == key_type::i64) return raw ^ sign;
    if constexpr (Type == key_type::f32 || Type == key_type::f64)
      return (raw & sign ? ~raw : raw | sign) - signed_nans;
    return raw;
  }
  static number raw(number order) {
    if constexpr (Type == key_type::i32 || Type == key_type::i64) return order ^ sign;
    if constexpr (Type == key_type::f32 || Type == key_type::f64) {
      order += signed_nans;
      return order & sign ? order ^ sign : ~order;
    }
    return order;
  }
  static number read(const std::byte* at) {
    number raw;
    std::memcpy(&raw, at, sizeof raw);
    return order(raw);
  }
};

/// Calls `use(key_bits<Type>())` for the type that is known at run time only.
template <class Use>
auto with_key(key_type type, Use use) {
  switch (type) {
    case key_type::u32:
      return use(key_bits<key_type::u32>());
    case key_type::i32:
      return use(key_bits<key_type::i32>());
    case key_type::u64:
      return use(key_bits<key_type::u64>());
    case key_type::i64:
      return use(key_bits<key_type::i64>());
    case key_type::f32:
      return use(key_bits<key_type::f32>());
    case key_type::f64:
      break;
  }
  return use(key_bits<key_type::f64>());
}

}  // namespace programs

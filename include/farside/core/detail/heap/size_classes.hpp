// Sizes of the blocks of remote_heap.hpp, and the free list each belongs to.
//
// Below 64 KiB a block has one of four sizes to each doubling, 2^e * {4, 5, 6, 7} / 4 rounded up to
// multiples of 32, and each size is a class. From 64 KiB on a size is a multiple of the class's
// `granule`, 4 KiB (a millionth in blocks of more than 4 GiB); there are eight classes to each
// doubling, and a class has all sizes from its own up to the next one's.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace far::inline FARSIDE_BACKEND::detail::size_classes {

inline constexpr std::size_t step = 32;                       ///< all sizes are multiples of it
inline constexpr std::size_t large = std::size_t{64} * 1024;  ///< the first large size
inline constexpr unsigned first_large = 44;                   ///< and its class
inline constexpr unsigned count = first_large + 28 * 8;       ///< up to 2^44

/// The smallest size of a class.
constexpr std::size_t size_of(unsigned index) {
  if (index >= first_large)
    return (std::size_t{8} + (index - first_large) % 8) << ((index - first_large) / 8 + 13);
  std::size_t size = (std::size_t{4} + index % 4) << (index / 4 + 3);
  return (size + step - 1) / step * step;
}

/// What sizes of a class are multiples of.
constexpr std::size_t granule_of(unsigned index) {
  if (index < first_large) return size_of(index);
  return std::max<std::size_t>(4096, std::bit_floor(size_of(index)) >> 20);
}

/// The class that a block of `size` bytes, at least 32, belongs to: the last whose blocks are not
/// larger.
constexpr unsigned class_of(std::size_t size) {
  unsigned parts = size >= large ? 3 : 2;  // 2^parts classes to a doubling
  auto exponent = static_cast<unsigned>(std::bit_width(size)) - 1;
  unsigned part = static_cast<unsigned>(size >> (exponent - parts)) & ((1u << parts) - 1);
  if (size >= large) return std::min(count - 1, first_large + (exponent - 16) * 8 + part);
  unsigned index = (exponent - 5) * 4 + part;
  while (size_of(index) > size) --index;  // as small sizes are rounded up
  return index;
}

/// The largest size of a block within `bytes`, at least 32.
constexpr std::size_t round_down(std::size_t bytes) {
  unsigned index = class_of(bytes);
  if (index < first_large) return size_of(index);
  return bytes / granule_of(index) * granule_of(index);
}

/// The smallest size of a block that holds `bytes`.
constexpr std::size_t round_up(std::size_t bytes) {
  if (bytes <= step) return step;
  unsigned index = class_of(bytes);
  if (index >= first_large)
    return (bytes + granule_of(index) - 1) / granule_of(index) * granule_of(index);
  while (size_of(index) < bytes) ++index;
  return size_of(index);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::size_classes

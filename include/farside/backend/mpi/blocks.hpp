// How bytes are cut into blocks, each of which is one call of MPI.
#pragma once

#include <farside/base/types.hpp>

#include <algorithm>
#include <cstddef>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// So many bytes are one call of MPI, whose counts are ints.
inline constexpr std::size_t longest_block = std::size_t{1} << 30;

/// Whether one call of MPI does it.
inline bool one_block(std::size_t offset, std::size_t bytes) {
  return bytes < 8 || ((offset | bytes) % 8 == 0 && bytes <= longest_block);
}

/// Calls `move(begin, length)` for blocks that hold only whole words of the segment, or less than
/// one word each.
template <class Move>
void by_words(std::size_t offset, std::size_t bytes, Move&& move) {
  std::size_t begin = -offset % 8;
  if (begin != 0) move(std::size_t{0}, begin);
  for (std::size_t length; bytes - begin >= 8; begin += length) {
    length = std::min(longest_block, (bytes - begin) / 8 * 8);
    move(begin, length);
  }
  if (begin < bytes) move(begin, bytes - begin);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

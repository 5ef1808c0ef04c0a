// Puts and gets that are not one call of MPI: long ones, those that begin or end inside of words,
// and those whose private side is aligned in another way than the segment.
#pragma once

#include <farside/backend/mpi/window.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

[[gnu::cold]] inline void window::put_blocks(rank_t rank, std::size_t offset, const void* from,
                                             std::size_t bytes) {
  by_words(offset, bytes, [&](std::size_t begin, std::size_t length) {
    put_block(rank, offset + begin, static_cast<const char*>(from) + begin, length);
  });
}

[[gnu::cold]] inline void window::get_blocks(rank_t rank, std::size_t offset, void* to,
                                             std::size_t bytes) {
  by_words(offset, bytes, [&](std::size_t begin, std::size_t length) {
    get_block(rank, offset + begin, static_cast<char*>(to) + begin, length);
  });
}

[[gnu::cold]] inline void window::put_by_copies(rank_t rank, std::size_t offset, const void* from,
                                                std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  std::vector<std::uint64_t> words(std::min(bytes, piece) / 8 + 2);
  char* copy = reinterpret_cast<char*>(words.data()) + offset % 8;
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    std::size_t length = std::min(piece, bytes - begin);
    std::memcpy(copy, static_cast<const char*>(from) + begin, length);
    start_put(rank, offset + begin, copy, length);
    complete_local(rank);
  }
}

[[gnu::cold]] inline void window::get_by_copies(rank_t rank, std::size_t offset, void* to,
                                                std::size_t bytes) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  std::vector<std::uint64_t> words(std::min(bytes, piece) / 8 + 2);
  char* copy = reinterpret_cast<char*>(words.data()) + offset % 8;
  for (std::size_t begin = 0; begin < bytes; begin += piece) {
    std::size_t length = std::min(piece, bytes - begin);
    get(rank, offset + begin, copy, length);
    std::memcpy(static_cast<char*>(to) + begin, copy, length);
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

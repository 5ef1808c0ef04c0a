// The window of window.hpp with FARSIDE_MPI_STRICT=1: relies on nothing that the MPI standard does
// not promise, at a price.
//
//   put, get     of aligned 8-byte words are MPI_Accumulate with MPI_REPLACE and MPI_Get_accumulate
//                with MPI_NO_OP of 64-bit words, atomic for each word; what is left of aligned
//                4-byte words likewise with 32-bit ones; odd bytes are MPI_Put and MPI_Get. Own
//                memory is no exception.
//   fetch_op     is a compare-and-swap loop, whatever it does, so that only these and NO_OP meet on
//                a word: 1 atomic load and at least 1 compare-and-swap, and complete on return.
//   signal       adds, and nothing but await() looks at that word meanwhile, by NO_OP.
//
// A race is defined then between accesses that cut memory into the same words; racing on odd bytes,
// or on halves and wholes of a word, is undefined in any mode.
#pragma once

#include <farside/backend/mpi/window.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Calls `move(begin, length, type, size)` for blocks of whole words of one type: of 8 bytes where
/// they are aligned, of 4 where those do not fit, and bytes.
template <class Move>
void by_types(std::size_t offset, std::size_t bytes, std::size_t most, Move&& move) {
  for (std::size_t begin = 0, length; begin < bytes; begin += length) {
    std::size_t at = offset + begin, left = bytes - begin;
    if (at % 8 == 0 && left >= 8)
      move(begin, length = std::min(most, left / 8 * 8), MPI_UINT64_T, std::size_t{8});
    else if (at % 4 == 0 && left >= 4)
      move(begin, length = 4, MPI_UINT32_T, std::size_t{4});
    else
      move(begin, length = std::min(left, 4 - at % 4), MPI_BYTE, std::size_t{1});
  }
}

[[gnu::cold]] inline void window::put_strictly(rank_t rank, std::size_t offset, const void* from,
                                               std::size_t bytes) {
  by_types(offset, bytes, longest_block,
           [&](std::size_t begin, std::size_t length, MPI_Datatype type, std::size_t size) {
             const char* source = static_cast<const char*>(from) + begin;
             if (size == 1) return put_block(rank, offset + begin, source, length);
             int count = static_cast<int>(length / size);
             MPI_Accumulate(source, count, type, static_cast<int>(rank),
                            place(rank, offset + begin), count, type, MPI_REPLACE, win_);
           });
}

[[gnu::cold]] inline void window::get_strictly(rank_t rank, std::size_t offset, void* to,
                                               std::size_t bytes) {
  by_types(offset, bytes, longest_block,
           [&](std::size_t begin, std::size_t length, MPI_Datatype type, std::size_t size) {
             char* target = static_cast<char*>(to) + begin;
             if (size == 1) return get_block(rank, offset + begin, target, length);
             int count = static_cast<int>(length / size);
             MPI_Get_accumulate(nullptr, 0, type, target, count, type, static_cast<int>(rank),
                                place(rank, offset + begin), count, type, MPI_NO_OP, win_);
           });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

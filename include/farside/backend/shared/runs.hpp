// Pieces of one segment that travel together, in one request: a list of runs, and their bytes one
// after another.
//
//   run {offset, bytes = 8, stride = 800, count = 3}:    |##......|##......|##
//   and its bytes:                                       |######|
//
// A strided block of two levels is one run; one of three levels is a run for each plane; any list
// of pieces is a list of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace far::inline FARSIDE_BACKEND::detail {

/// `count` pieces of `bytes` bytes each, `stride` bytes apart.
struct run {
  std::uint64_t offset;
  std::int64_t stride;
  std::uint32_t bytes, count;
};
static_assert(sizeof(run) == 24);

/// What one request holds.
struct run_limits {
  std::size_t put = 0;       ///< bytes of runs and data of a put
  std::size_t get = 0;       ///< bytes of data of a get, whose runs have the room of a put
  std::size_t piece = 0;     ///< longer pieces are worth an operation of their own; 0: all are
  bool whole_words = false;  ///< puts and gets: only pieces of whole aligned words of 8 bytes
};

/// Adds a piece to the end of a list of runs.
template <class List>
void append_piece(List& runs, std::uint64_t offset, std::uint32_t bytes) {
  if (!runs.empty()) {
    run& last = runs.back();
    auto step = static_cast<std::int64_t>(offset - last.offset);
    if (last.bytes == bytes && (last.count == 1 || step == last.stride * last.count)) {
      if (last.count == 1) last.stride = step;
      ++last.count;
      return;
    }
  }
  runs.push_back({offset, 0, bytes, 1});
}

/// Calls `visit(offset in the segment, bytes)` for each piece, until one gives false. Whether none
/// did.
template <class Visit>
bool for_each_piece(std::span<const run> runs, Visit&& visit) {
  for (const run& r : runs)
    for (std::uint32_t i = 0; i < r.count; ++i)
      if (!visit(r.offset + static_cast<std::uint64_t>(r.stride * i), std::size_t{r.bytes}))
        return false;
  return true;
}

/// How many pieces there are.
inline std::size_t count_pieces(std::span<const run> runs) {
  std::size_t pieces = 0;
  for (const run& r : runs) pieces += r.count;
  return pieces;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// How large the segments are of ranks that share memory.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/base/environment.hpp>

#include <algorithm>
#include <bit>

namespace far::inline FARSIDE_BACKEND::detail {

/// Room for all of the machine's memory in each segment, as nothing is committed before it is
/// touched; less only where the address space of so many ranks would not hold it, or where it would
/// be no fixed_segments that have twice of what each rank could have.
inline std::size_t default_segment(rank_t nprocs) {
#ifdef FARSIDE_TSAN
  constexpr unsigned address_bits = 33;  // the sanitizer maps a multiple of it, and asks for it
#else
  constexpr unsigned address_bits = 45;
#endif
  unsigned rank_bits = static_cast<unsigned>(std::bit_width(nprocs - 1u));
  unsigned bits = static_cast<unsigned>(std::bit_width(memory_limit() - 1));
  std::size_t size = std::size_t{1} << std::min(bits, address_bits - rank_bits);
  bool is_enough = memory_limit() / nprocs <= fixed_segments::apart / 2;
  return is_enough ? std::min(size, fixed_segments::apart) : size;
}

inline std::size_t choose_segment(const start_options& options, rank_t nprocs) {
  constexpr std::size_t most = std::size_t{1} << 44;
  std::size_t size = options.segment != 0
                         ? options.segment
                         : size_setting("FARSIDE_SEGMENT").value_or(default_segment(nprocs));
  if (size > most)
    raise("a segment of ", size, " bytes is too large: far pointers address ", most,
          " bytes a rank.");
  return size;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

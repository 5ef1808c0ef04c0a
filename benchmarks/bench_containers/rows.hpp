// The parts of bench_containers: each measures one family of containers.
#pragma once

#include <farside/base/random.hpp>
#include <farside/core/hash.hpp>

#include "../harness.hpp"

namespace far::bench {

void map_rows(suite& s);
void map_change_rows(suite& s);
void buffer_rows(suite& s);
void queue_rows(suite& s);
void small_rows(suite& s);
void call_rows(suite& s);  ///< only where ranks share no memory

/// Keys that look random, and are all different.
inline std::uint64_t key_of(std::uint64_t i) { return random_stream(i)() >> 4; }

/// A hash as a number from 0 to n - 1, by its high bits.
inline std::uint64_t reduced(std::uint64_t hash, std::uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(hash) * n >> 64);
}

inline bool coherent() { return native().coherent(); }

}  // namespace far::bench

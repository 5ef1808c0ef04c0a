// The parts of bench_containers: each measures one family of containers.
#pragma once

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
inline std::uint64_t key_of(std::uint64_t i) { return mix(i) >> 4; }

inline bool coherent() { return native().coherent(); }

}  // namespace far::bench

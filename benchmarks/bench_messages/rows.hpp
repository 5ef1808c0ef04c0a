// The parts of bench_messages.
#pragma once

#include <farside/core/rpc.hpp>

#include "../harness.hpp"

namespace far::bench {

using word = std::uint64_t;

void round_trip_rows(suite& s);
void engine_rows(suite& s);
void attention_rows(suite& s);
void bandwidth_rows(suite& s);

/// Every rank but the first does `work` n times with rank 0, which waits for them in a barrier, and
/// so serves. Alone, a rank works with itself.
template <class Work>
auto clients(Work work) {
  return [work](std::size_t n) mutable {
    if (rank() != 0 || nprocs() == 1)
      while (n-- > 0) work();
    barrier();
  };
}

}  // namespace far::bench

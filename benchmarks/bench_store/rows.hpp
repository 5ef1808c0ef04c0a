// The parts of bench_store.
#pragma once

#include <farside/containers/store.hpp>

#include "../harness.hpp"

#include <array>

namespace far::bench {

using word = std::uint64_t;

void get_rows(suite& s);        ///< by how many entries there are
void matching_rows(suite& s);   ///< beside lists that their owner searches
void neighbour_rows(suite& s);  ///< large values, by how many ranks there are
void visible_rows(suite& s);    ///< puts and posts, until a get sees them
void floor_rows(suite& s);      ///< beside a map, memcpy and a vector

template <std::size_t Bytes>
using block = std::array<word, Bytes / sizeof(word)>;

template <std::size_t Bytes>
block<Bytes> block_of(word key) {
  block<Bytes> result;
  result.fill(key);
  return result;
}

/// All keys lie on one rank.
struct on_rank {
  rank_t where = 0;
  rank_t operator()(const word&, rank_t) const { return where; }
};

/// Keys are dealt out.
struct by_number {
  rank_t operator()(const word& key, rank_t ranks) const {
    return static_cast<rank_t>(key % ranks);
  }
};

/// Nanoseconds that `work` takes.
template <class Work>
double time_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

/// Every rank but the first does `work` n times, and says how long that took; rank 0 waits for them in
/// a barrier, and so serves. Alone, a rank works with itself.
template <class Work>
auto clients(Work work) {
  return [work](std::size_t n) mutable {
    double took = 0;
    if (rank() != 0 || nprocs() == 1)
      took = time_of([&] {
        while (n-- > 0) work();
      });
    barrier();
    return took;
  };
}

/// Numbers below `count`, one after another, in an order that looks random.
class some_numbers {
 public:
  explicit some_numbers(std::size_t count) : count_(count), at_(rank()) {}
  word next() { return mix(at_++) % count_; }

 private:
  std::size_t count_;
  word at_;
};

inline const char* served_how() { return served_by_thread() ? "served by a thread" : "polled"; }
/// Whether this run is the one that measures what the way of serving does not change.
inline bool is_first_way() {
  return !served_by_thread() && (native().coherent() || strategy_name() == "rma");
}

}  // namespace far::bench

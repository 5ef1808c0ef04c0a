// The bucket sort of the ISx benchmark: keys, uniform over a known range, to the ranks that own
// them.
#pragma once

#include <common/big_array.hpp>
#include <common/stopwatch.hpp>
#include <farside/algorithms/exchange.hpp>
#include <sort/radix.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace programs {

using isx_key = std::uint32_t;

/// Which rank owns a key: equal parts of [0, range), in order.
class key_owner {
 public:
  explicit key_owner(std::uint64_t range) : scale_((std::uint64_t{far::nprocs()} << 32) / range) {}
  far::rank_t operator()(isx_key key) const {
    return static_cast<far::rank_t>((key * scale_) >> 32);
  }

 private:
  std::uint64_t scale_;
};

/// What one sort can leave to the next.
struct sort_memory {
  big_array<isx_key> arrived, scratch;
};

/// Collective. Sorts the keys of all ranks: each gets those it owns, in order, valid until `memory`
/// is used again. Keys are on their way to their owner while others are being looked at, and are
/// taken from the mail as they arrive.
inline std::span<isx_key> bucket_sort(std::span<const isx_key> data, key_owner owner,
                                      sort_memory& memory, stopwatch& watch) {
  far::exchange<isx_key> mail;
  memory.arrived.clear();
  auto take = [&](std::span<const isx_key> some) { memory.arrived.append(some); };

  std::vector<std::array<isx_key, 256>> buffers(mail.size());
  std::vector<std::size_t> held(mail.size());
  for (isx_key key : data) {
    far::rank_t rank = owner(key);
    buffers[rank][held[rank]++] = key;
    if (held[rank] == buffers[rank].size()) {
      mail.send(rank, buffers[rank], take);
      held[rank] = 0;
    }
  }
  for (far::rank_t rank = 0; rank < mail.size(); ++rank)
    mail.send(rank, std::span(buffers[rank]).first(held[rank]), take);
  mail.finish(take);
  watch.lap("bucket + exchange");

  std::size_t n = memory.arrived.size();
  memory.scratch.resize(n);
  isx_key* sorted = radix::sort(memory.arrived.data(), memory.scratch.data(), n, std::identity());
  watch.lap("sort what arrived");
  return {sorted, n};
}

}  // namespace programs

// Policies of a hash map: in which buckets a key may be.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// The sequence of buckets in which a key may be. A policy must reach all of them in
/// `capacity + extra` steps.
struct linear_probing {
  static constexpr std::uint64_t extra = 0;
  /// The bucket of a step. Local; no communication.
  static std::uint64_t at(std::uint64_t home, std::uint64_t step, std::uint64_t capacity) {
    std::uint64_t i = home + step;
    return i < capacity ? i : i - capacity;
  }
};

/// Groups of four neighbours, at distances that grow by one group each: fewer keys pile up. After
/// 64 groups it goes on linearly, so that every bucket is reached.
struct quadratic_probing {
  static constexpr std::uint64_t extra = 256;
  /// The bucket of a step. Local; no communication.
  static std::uint64_t at(std::uint64_t home, std::uint64_t step, std::uint64_t capacity) {
    std::uint64_t group = step / 4;
    std::uint64_t far =
        step < extra ? home + group * (group + 1) * 2 + step % 4 : home + (step - extra);
    return far % capacity;
  }
};

}  // namespace far::inline FARSIDE_BACKEND

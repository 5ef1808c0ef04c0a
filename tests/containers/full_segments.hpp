// Segments that are full, or nearly so, so that operations fail for lack of room.
#pragma once

#include <farside/core/memory.hpp>
#include <farside/core/team.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace full_segments {

/// Takes what is free in this rank's own segment, less one piece of `spare` bytes, until it ends.
/// Pieces smaller than `least` stay free. One-sided.
class ballast {
 public:
  explicit ballast(std::size_t spare = 0, std::size_t largest = std::size_t{1} << 40,
                   std::size_t least = 16) {
    far::ptr<std::byte> hole;
    if (spare != 0) try {
        hole = far::alloc_on<std::byte>(far::rank(), spare);
      } catch (const far::allocation_error&) {  // others have been faster
      }
    // Most of it so that it is one piece again when it is freed.
    auto own = [](std::size_t bytes) { return far::alloc<std::byte>(bytes); };
    auto far_away = [](std::size_t bytes) { return far::alloc_on<std::byte>(far::rank(), bytes); };
    constexpr std::size_t large = 65536;
    fill(largest, std::max(large, least), own);
    fill(largest, least, far_away);
    fill(std::min(largest, large), least, own);
    far::dealloc(hole);  // null where there is none
  }
  ~ballast() { give_back(); }
  ballast(const ballast&) = delete;

  void give_back() {
    for (auto block : taken_) far::dealloc(block);
    taken_.clear();
  }

 private:
  template <class Take>
  void fill(std::size_t largest, std::size_t least, Take take) {
    for (std::size_t piece = largest; piece >= least; piece /= 2) try {
        while (true) taken_.push_back(take(piece));
      } catch (const far::allocation_error&) {
      }
  }

  std::vector<far::ptr<std::byte>> taken_;
};

/// Whether `work` throws far::allocation_error.
template <class Work>
bool refused(Work work) {
  try {
    work();
    return false;
  } catch (const far::allocation_error&) {
    return true;
  }
}

}  // namespace full_segments

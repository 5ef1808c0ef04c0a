// How many members there are in each dimension of a far::global_array.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// One dimension after another gets a divisor of the members that are left.
class grid_search {
 public:
  grid_search(std::span<const std::ptrdiff_t> shape, std::span<const std::size_t> wanted,
              std::span<std::size_t> best)
      : shape_(shape), wanted_(wanted), best_(best), now_(shape.size(), 1) {}

  void over(std::size_t members) {
    for (std::size_t part = 1; part <= members; ++part)
      if (members % part == 0) divisors_.push_back(part);
    from(0, members);
  }

 private:
  void from(std::size_t d, std::size_t left) {
    if (d == shape_.size()) {
      if (left == 1) judge();
      return;
    }
    const bool fixed = !wanted_.empty() && wanted_[d] != 0;
    for (std::size_t part : divisors_) {
      if (left % part != 0 || (fixed && part != wanted_[d])) continue;
      now_[d] = part;
      from(d + 1, left / part);
    }
  }
  /// The largest block first, as that is what one member has to do; then the surface.
  void judge() {
    double volume = 1, surface = 0;
    for (std::size_t d = 0; d < shape_.size(); ++d) volume *= extent(d);
    for (std::size_t d = 0; d < shape_.size(); ++d) surface += volume / extent(d);
    if (least_volume_ >= 0 &&
        (volume > least_volume_ || (volume == least_volume_ && surface >= least_surface_)))
      return;
    least_volume_ = volume, least_surface_ = surface;
    std::copy(now_.begin(), now_.end(), best_.begin());
  }
  double extent(std::size_t d) const {
    const auto parts = static_cast<std::ptrdiff_t>(now_[d]);
    return static_cast<double>(std::max<std::ptrdiff_t>(1, (shape_[d] + parts - 1) / parts));
  }

  std::span<const std::ptrdiff_t> shape_;
  std::span<const std::size_t> wanted_;
  std::span<std::size_t> best_;
  std::vector<std::size_t> now_, divisors_;
  double least_volume_ = -1, least_surface_ = 0;
};

/// The grid of `members` members, without a rest, whose blocks have the least surface; a dimension
/// for which `wanted` is not 0 has so many.
inline void choose_grid(std::span<const std::ptrdiff_t> shape, std::span<const std::size_t> wanted,
                        std::size_t members, std::span<std::size_t> grid) {
  // Where some dimensions are given, the others share what is left, without a rest.
  std::size_t given = 1;
  bool all_given = !wanted.empty();
  for (std::size_t parts : wanted) {
    if (parts != 0) given *= parts;
    all_given = all_given && parts != 0;
  }
  grid_search(shape, wanted, grid).over(all_given ? given : given * (members / given));
}

}  // namespace far::inline FARSIDE_BACKEND::detail

// A function and the leaves of its tree, as SVG.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wavelets_program {

/// A leaf, where it is cut.
struct picture_box {
  double x, y, side;
  std::uint32_t level;
};

struct picture {
  std::string title, about;
  std::array<std::string, 2> axes;
  std::size_t columns = 0, rows = 0;
  std::vector<double>
      values;  ///< row by row, from the lowest one; of one dimension at both ends, too
  std::vector<picture_box> boxes;
  std::vector<std::uint64_t> leaves_of_level;
};

/// Of one dimension: a curve, and the leaves below it by their levels.
std::string curve_svg(const picture&);
/// Of two: colours, the leaves' borders, and how many leaves each level has.
std::string map_svg(const picture&);

}  // namespace wavelets_program

// Figures of `farside bench`: measured points, drawn as SVG.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace far::app {

struct figure {
  struct series {
    std::string name;
    std::vector<std::pair<double, double>> points;
  };
  std::string title, x_label, unit;  ///< unit: of the measurements
  std::vector<series> lines;

  /// Where it is kept in a folder of figures.
  std::string file_name() const;
  std::string svg() const;
};

/// Puts points, as benchmarks write them, to their figures: a line each, with tabs between figure,
/// label of x, series, unit, x and y.
void add_points(std::vector<figure>& to, const std::string& text);

}  // namespace far::app

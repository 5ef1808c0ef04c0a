// Where the work is: products of each tile of C, of all stages together and of each of them.
#include "results.hpp"

#include <toolkit/svg.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

namespace multiply_program {

namespace {

using toolkit::printed;

using tile_value = std::function<std::uint64_t(std::size_t, std::size_t)>;

/// The mean over tiles of C.
double mean_of(const piece_counts& of, const tile_value& value) {
  double sum = 0;
  for (std::size_t i = 0; i < of.m; ++i)
    for (std::size_t j = 0; j < of.n; ++j) sum += static_cast<double>(value(i, j));
  return sum / static_cast<double>(std::max<std::size_t>(1, of.m * of.n));
}

/// What colours stand for: multiples of a map's mean, from the least of all maps to the largest.
struct range {
  double least = HUGE_VAL, most = 0;

  void take(const piece_counts& of, const tile_value& value) {
    const double mean = mean_of(of, value);
    for (std::size_t i = 0; i < of.m; ++i)
      for (std::size_t j = 0; j < of.n; ++j)
        if (mean > 0) {
          least = std::min(least, static_cast<double>(value(i, j)) / mean);
          most = std::max(most, static_cast<double>(value(i, j)) / mean);
        }
  }
  double shade(double share) const { return most > least ? (share - least) / (most - least) : 0.5; }
};

/// Boxes for tiles of C, coloured by what value(i, j) says by the mean of all.
void boxes(toolkit::canvas& out, double x, double y, double width, double height,
           const piece_counts& of, const range& colours, const tile_value& value) {
  const double mean = mean_of(of, value);
  const double wide = width / static_cast<double>(of.n), high = height / static_cast<double>(of.m);
  for (std::size_t i = 0; i < of.m; ++i)
    for (std::size_t j = 0; j < of.n; ++j) {
      const auto share = static_cast<double>(value(i, j));
      if (share == 0 && colours.least == 0) continue;
      out.rect(x + wide * static_cast<double>(j), y + high * static_cast<double>(i), wide, high,
               toolkit::lightness_colour(mean > 0 ? colours.shade(share / mean) : 0),
               "shape-rendering='crispEdges'");
    }
  out.rect(x, y, width, height, "none", "stroke='#222'");
}

}  // namespace

std::string heat_map_svg(const problem& of) {
  const piece_counts& pieces = of.pieces;
  const double whole = pieces.imbalance(), in_step = pieces.imbalance_in_step();
  auto of_all = [&](std::size_t i, std::size_t j) { return pieces.of_tile(i, j); };
  auto of_stage = [&](std::size_t l) {
    return [&pieces, l](std::size_t i, std::size_t j) { return pieces.at(i, j, l); };
  };
  range colours;
  colours.take(pieces, of_all);
  for (std::size_t l = 0; l < pieces.k; ++l) colours.take(pieces, of_stage(l));
  const double most = std::max(1.0, colours.most);
  // Stages as small maps where there are not too many, else as bars.
  const std::size_t across = static_cast<std::size_t>(
      std::ceil(std::sqrt(static_cast<double>(std::max<std::size_t>(1, pieces.k)))));
  const bool small_maps = pieces.k <= 64;
  const double side = 380, left = 40, top = 110, right = left + side + 70;
  const double height =
      pieces.n == 0
          ? side
          : std::clamp(side * static_cast<double>(pieces.m) / static_cast<double>(pieces.n),
                       side / 4, side);
  const double cell = side / static_cast<double>(across);
  const std::size_t down = (pieces.k + across - 1) / std::max<std::size_t>(1, across);
  const double small = (cell - 12) * std::min(1.0, height / side);
  const double row = small + 26;
  const double stages_height = small_maps ? row * static_cast<double>(down) : side;
  const double bottom = top + std::max(height, stages_height);
  toolkit::canvas out(right + side + 40, bottom + 96);
  const std::string name = of.a == of.b ? of.a + ", squared" : of.a + " by " + of.b;
  out.text(left, 28, "Who has how much to multiply", "font-size='17' font-weight='bold'");
  out.text(left, 48, name);
  out.text(left, 66,
           toolkit::grouped(pieces.total()) + " products in " + std::to_string(pieces.m) + " x " +
               std::to_string(pieces.n) + " tiles of C, as if a rank had each of them, in " +
               std::to_string(pieces.k) + (pieces.k == 1 ? " stage" : " stages"),
           "fill-opacity='0.8'");
  out.text(left, top - 12, "all stages: most / mean = " + printed("%.2f", whole),
           "font-weight='bold'");
  boxes(out, left, top, side, height, pieces, colours, of_all);
  out.text(right, top - 12,
           "each stage; if all wait after each: " + printed("%.2f", in_step) + " times the mean",
           "font-weight='bold'");
  if (small_maps) {
    for (std::size_t l = 0; l < pieces.k; ++l) {
      const double x = right + cell * static_cast<double>(l % across),
                   y = top + row * static_cast<double>(l / across);
      boxes(out, x, y, cell - 12, small, pieces, colours, of_stage(l));
      out.text(x, y + small + 14, printed("%.2f", pieces.imbalance(l)), "font-size='11'");
    }
  } else {
    const double wide = side / static_cast<double>(pieces.k);
    for (std::size_t l = 0; l < pieces.k; ++l) {
      const double bar = most > 0 ? side * pieces.imbalance(l) / most : 0;
      out.rect(right + wide * static_cast<double>(l), top + side - bar, wide * 0.8, bar,
               toolkit::lightness_colour(pieces.imbalance(l) / most));
    }
    out.line(right, top + side, right + side, top + side, "#222");
    out.text(right, top + side + 18,
             "most / mean of each stage; the longest bar is " + printed("%.2f", most));
  }
  // What the colours mean.
  const double y = bottom + 42;
  for (int i = 0; i < 32; ++i)
    out.rect(left + 5 * i, y, 5, 12, toolkit::lightness_colour((i + 0.5) / 32),
             "shape-rendering='crispEdges'");
  out.text(left + 168, y + 11,
           "products of a tile: from " + printed("%.2f", std::min(colours.least, most)) + " to " +
               printed("%.2f", colours.most) + " times the mean of its map" +
               (colours.least == 0 ? "; white: none" : ""));
  return out.finish();
}

}  // namespace multiply_program

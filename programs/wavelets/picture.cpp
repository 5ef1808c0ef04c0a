#include "picture.hpp"

#include <toolkit/svg.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace wavelets_program {

namespace {

using toolkit::canvas;
using toolkit::printed;

/// Colours of values: by lightness, or from blue by white to orange where both signs occur.
class scale {
 public:
  explicit scale(const std::vector<double>& values)
      : least_(*std::min_element(values.begin(), values.end())),
        most_(*std::max_element(values.begin(), values.end())) {
    const double large = std::max(std::abs(least_), std::abs(most_));
    both_ = least_ < -0.01 * large && most_ > 0.01 * large;
    if (both_) least_ = -large, most_ = large;
  }
  double least() const { return least_; }
  double most() const { return most_; }
  double shade(double value) const {
    return most_ > least_ ? (value - least_) / (most_ - least_) : 0;
  }
  std::string colour(double shade) const {
    constexpr std::array<std::array<int, 3>, 5> two_sided = {
        {{5, 48, 97}, {67, 147, 195}, {247, 247, 247}, {230, 145, 60}, {127, 59, 8}}};
    constexpr std::array<std::array<int, 3>, 5> one_sided = {
        {{250, 250, 252}, {188, 214, 240}, {88, 150, 205}, {25, 85, 155}, {5, 30, 75}}};
    constexpr double steps = 96;
    const double of_step = std::round(shade * steps) / steps;
    return toolkit::colour_between(both_ ? two_sided : one_sided, of_step);
  }

 private:
  double least_, most_;
  bool both_ = false;
};

constexpr double left = 64, top = 76;

void head(canvas& out, const picture& p) {
  // The longest titles are expressions; a picture has room for this much of them.
  const std::string title = p.title.size() > 90 ? p.title.substr(0, 87) + "..." : p.title;
  out.text(left, 30, title, "font-size='17' font-weight='bold'");
  out.text(left, 52, p.about);
}

void levels(canvas& out, const picture& p, double x, double y, double width) {
  out.text(x, y, "leaves by level", "font-weight='bold'");
  std::uint64_t most = 1;
  for (auto n : p.leaves_of_level) most = std::max(most, n);
  double at = y + 10;
  for (std::size_t level = 0; level < p.leaves_of_level.size(); ++level) {
    const auto n = p.leaves_of_level[level];
    if (n == 0) continue;
    out.text(x + 18, at + 13, std::to_string(level), "text-anchor='end'");
    const double length = (width - 90) * static_cast<double>(n) / static_cast<double>(most);
    out.rect(x + 26, at + 2, std::max(1.0, length), 13, "#5896cd");
    out.text(x + 32 + length, at + 13, toolkit::grouped(n));
    at += 19;
  }
}

}  // namespace

std::string map_svg(const picture& p) {
  constexpr double side = 560;
  canvas out(left + side + 260, top + side + 60);
  head(out, p);
  const scale colours(p.values);
  const double width = side / static_cast<double>(p.columns),
               height = side / static_cast<double>(p.rows);
  out.raw() << "<g shape-rendering='crispEdges'>\n";
  for (std::size_t row = 0; row < p.rows; ++row)
    for (std::size_t column = 0; column < p.columns;) {
      auto colour_at = [&](std::size_t c) {
        return colours.colour(colours.shade(p.values[row * p.columns + c]));
      };
      const std::string own = colour_at(column);
      std::size_t end = column + 1;
      while (end < p.columns && colour_at(end) == own) ++end;
      out.rect(left + width * static_cast<double>(column),
               top + side - height * static_cast<double>(row + 1),
               width * static_cast<double>(end - column), height, own);
      column = end;
    }
  out.raw() << "</g>\n<path fill='none' stroke='#222' stroke-width='0.6' stroke-opacity='0.55' d='";
  for (const picture_box& b : p.boxes)
    out.raw() << "M" << left + side * b.x << " " << top + side * (1 - b.y) << "h" << side * b.side
              << "v" << -side * b.side << "h" << -side * b.side << "z";
  out.raw() << "'/>\n";
  out.rect(left, top, side, side, "none", "stroke='#222'");
  for (double tick : {0.0, 0.5, 1.0}) {
    out.text(left + side * tick, top + side + 18, printed("%g", tick), "text-anchor='middle'");
    out.text(left - 8, top + side * (1 - tick) + 5, printed("%g", tick), "text-anchor='end'");
  }
  out.text(left + side / 2, top + side + 38, p.axes[0], "text-anchor='middle' font-style='italic'");
  out.text(left - 36, top + side / 2 + 5, p.axes[1], "text-anchor='middle' font-style='italic'");

  // What the colours mean.
  const double x = left + side + 28;
  constexpr int steps = 48;
  constexpr double tall = 200;
  for (int i = 0; i < steps; ++i)
    out.rect(x, top + tall * (steps - 1 - i) / steps, 16, tall / steps + 0.3,
             colours.colour((i + 0.5) / steps), "shape-rendering='crispEdges'");
  out.rect(x, top, 16, tall, "none", "stroke='#222' stroke-width='0.5'");
  out.text(x + 24, top + 9, printed("%.4g", colours.most()));
  out.text(x + 24, top + tall / 2 + 4, printed("%.4g", (colours.most() + colours.least()) / 2));
  out.text(x + 24, top + tall, printed("%.4g", colours.least()));
  levels(out, p, x, top + tall + 44, 220);
  return out.finish();
}

std::string curve_svg(const picture& p) {
  constexpr double width = 640, height = 320, below = 20;
  std::uint32_t deepest = 0;
  for (const auto& b : p.boxes) deepest = std::max(deepest, b.level);
  const double tree = std::min(180.0, 14.0 * (deepest + 1));
  canvas out(left + width + 260, top + height + below + tree + 70);
  head(out, p);
  auto [least, most] = std::minmax_element(p.values.begin(), p.values.end());
  double low = std::min(0.0, *least), high = std::max(0.0, *most);
  if (!(high > low)) high = low + 1;
  const double room = 0.05 * (high - low);
  low -= room, high += room;
  auto y_of = [&](double value) { return top + height * (high - value) / (high - low); };
  out.line(left, y_of(0), left + width, y_of(0), "#bbb");
  for (double value : {*least, *most})
    out.text(left - 8, y_of(value) + 4, printed("%.4g", value), "text-anchor='end'");
  out.raw() << "<polyline fill='none' stroke='#19559b' stroke-width='1.8' points='";
  for (std::size_t i = 0; i < p.columns; ++i)
    out.raw() << left + width * static_cast<double>(i) / static_cast<double>(p.columns - 1) << ","
              << y_of(p.values[i]) << " ";
  out.raw() << "'/>\n";
  out.rect(left, top, width, height, "none", "stroke='#222'");

  // Leaves: the deeper, the lower.
  const double begin = top + height + below, step = tree / (deepest + 1);
  for (const picture_box& b : p.boxes)
    out.rect(left + width * b.x, begin + step * b.level, width * b.side, step,
             toolkit::lightness_colour(deepest == 0 ? 0 : static_cast<double>(b.level) / deepest),
             "stroke='white' stroke-width='0.5'");
  out.text(left - 6, begin + 10, "level 0", "text-anchor='end' font-size='11'");
  out.text(left - 8, begin + tree, std::to_string(deepest), "text-anchor='end' font-size='11'");
  for (double tick : {0.0, 0.25, 0.5, 0.75, 1.0})
    out.text(left + width * tick, begin + tree + 18, printed("%g", tick), "text-anchor='middle'");
  out.text(left + width / 2, begin + tree + 38, p.axes[0],
           "text-anchor='middle' font-style='italic'");
  levels(out, p, left + width + 28, top + 10, 220);
  return out.finish();
}

}  // namespace wavelets_program

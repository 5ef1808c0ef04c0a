#include "spy.hpp"

#include <toolkit/svg.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace matrix_program {

namespace {

/// Which share of a cell's places have entries, by logarithms: from 0 for the emptiest cell that
/// has any to 1 for the fullest.
class shades {
 public:
  explicit shades(const raster& cells) : cells_(cells) {
    for (std::size_t r = 0; r < cells.rows; ++r)
      for (std::size_t c = 0; c < cells.columns; ++c)
        if (cells.at(r, c) != 0) {
          least_ = std::min(least_, density(r, c));
          most_ = std::max(most_, density(r, c));
        }
  }
  double density(std::size_t r, std::size_t c) const {
    return static_cast<double>(cells_.at(r, c)) / cells_.places(r, c);
  }
  double of(std::size_t r, std::size_t c) const { return of(density(r, c)); }
  double of(double density) const {
    if (!(most_ > least_)) return 1;
    return std::log(density / least_) / std::log(most_ / least_);
  }
  double least() const { return least_; }
  double most() const { return most_; }

 private:
  const raster& cells_;
  double least_ = INFINITY, most_ = 0;
};

/// "0.0123 %", "1 %".
std::string percent(double share) { return toolkit::printed("%.3g", 100 * share) + " %"; }

}  // namespace

std::string text_picture(const raster& cells) {
  constexpr const char ink[] = ".:+*#@";
  shades shade(cells);
  std::string border = "  +" + std::string(cells.columns, '-') + "+\n", result = border;
  for (std::size_t r = 0; r < cells.rows; ++r) {
    result += "  |";
    for (std::size_t c = 0; c < cells.columns; ++c)
      result += cells.at(r, c) == 0
                    ? ' '
                    : ink[std::min<std::size_t>(5, static_cast<std::size_t>(6 * shade.of(r, c)))];
    result += "|\n";
  }
  return result + border;
}

std::string svg_picture(const raster& cells, const raster& grid, const std::string& title,
                        std::uint64_t entries) {
  const far::matrix_shape shape = cells.shape();
  // As the matrix is, but neither side shorter than a quarter of the other.
  const double longest = 640;
  const double ratio = std::clamp(static_cast<double>(shape.rows) /
                                      static_cast<double>(std::max<std::size_t>(1, shape.columns)),
                                  0.25, 4.0);
  const double width = ratio > 1 ? longest / ratio : longest,
               height = ratio > 1 ? longest : longest * ratio;
  const double left = 96, top = 88, total_width = std::max(left + width + 40, 560.0),
               total_height = top + height + 92;
  std::ostringstream out;
  out.precision(7);
  out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << total_width << " "
      << total_height << "' width='" << total_width << "' height='" << total_height
      << "' font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' "
         "fill='white'/>\n";
  auto text = [&](double x, double y, const std::string& words, const char* more = "") {
    out << "<text x='" << x << "' y='" << y << "' fill='#222' " << more << ">"
        << toolkit::svg_escaped(words) << "</text>\n";
  };
  text(left, 30, title, "font-size='17' font-weight='bold'");
  const double places = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  text(left, 51,
       toolkit::grouped(shape.rows) + " x " + toolkit::grouped(shape.columns) + ", " +
           toolkit::grouped(entries) + " entries, " +
           percent(places == 0 ? 0 : static_cast<double>(entries) / places) + " of all places");

  // Cells, by edges that lie on a fine grid, so that neighbours leave no gap between them.
  shades shade(cells);
  out << "<g shape-rendering='crispEdges'>\n";
  auto x_of = [&](double c) { return left + width * c / static_cast<double>(cells.columns); };
  auto y_of = [&](double r) { return top + height * r / static_cast<double>(cells.rows); };
  for (std::size_t r = 0; r < cells.rows; ++r)
    for (std::size_t c = 0; c < cells.columns;) {
      if (cells.at(r, c) == 0) {
        ++c;
        continue;
      }
      const std::string own = toolkit::lightness_colour(shade.of(r, c));
      std::size_t end = c + 1;
      while (end < cells.columns && cells.at(r, end) != 0 &&
             toolkit::lightness_colour(shade.of(r, end)) == own)
        ++end;
      const double x = x_of(static_cast<double>(c)), y = y_of(static_cast<double>(r));
      out << "<rect x='" << x << "' y='" << y << "' width='" << x_of(static_cast<double>(end)) - x
          << "' height='" << y_of(static_cast<double>(r + 1)) - y << "' fill='" << own << "'/>\n";
      c = end;
    }
  out << "</g>\n<rect x='" << left << "' y='" << top << "' width='" << width << "' height='"
      << height << "' fill='none' stroke='#222'/>\n";
  if (shape.rows != 0 && shape.columns != 0) {
    auto dash = [&](double x0, double y0, double x1, double y1) {
      out << "<line x1='" << x0 << "' y1='" << y0 << "' x2='" << x1 << "' y2='" << y1
          << "' stroke='#d55e00' stroke-dasharray='6 4'/>\n";
    };
    for (std::size_t i = 1; i < grid.rows; ++i) {
      double y = top + height *
                           static_cast<double>(far::even_part(shape.rows, i, grid.rows).first) /
                           static_cast<double>(shape.rows);
      dash(left, y, left + width, y);
    }
    for (std::size_t i = 1; i < grid.columns; ++i) {
      double x =
          left + width * static_cast<double>(far::even_part(shape.columns, i, grid.columns).first) /
                     static_cast<double>(shape.columns);
      dash(x, top, x, top + height);
    }
    text(left, top - 8, "0", "text-anchor='start' fill-opacity='0.7'");
    text(left + width, top - 8, toolkit::grouped(shape.columns - 1),
         "text-anchor='end' fill-opacity='0.7'");
    text(left + width / 2, top - 8, "columns", "text-anchor='middle' fill-opacity='0.7'");
    text(left - 8, top + 11, "0", "text-anchor='end' fill-opacity='0.7'");
    text(left - 8, top + height, toolkit::grouped(shape.rows - 1),
         "text-anchor='end' fill-opacity='0.7'");
    text(left - 8, top + height / 2 + 4, "rows", "text-anchor='end' fill-opacity='0.7'");
  }

  // What the colours and the dashes mean.
  const double y = top + height + 26;
  if (entries != 0) {
    constexpr int steps = 24;
    const bool one = !(shade.most() > shade.least());
    for (int i = one ? steps - 1 : 0; i < steps; ++i)
      out << "<rect shape-rendering='crispEdges' x='" << left + (one ? 0 : 5 * i) << "' y='" << y
          << "' width='" << (one ? 14 : 5) << "' height='12' fill='"
          << toolkit::lightness_colour((i + 0.5) / steps) << "'/>\n";
    text(left + (one ? 22 : 5 * steps + 8), y + 11,
         (one ? percent(shade.most())
              : percent(shade.least()) + " to " + percent(shade.most()) + ", by logarithms,") +
             " of a cell's places");
  }
  if (grid.rows * grid.columns > 1) {
    std::uint64_t most = *std::max_element(grid.counts.begin(), grid.counts.end());
    double mean = static_cast<double>(entries) / static_cast<double>(grid.counts.size());
    out << "<line x1='" << left << "' y1='" << y + 34 << "' x2='" << left + 36 << "' y2='" << y + 34
        << "' stroke='#d55e00' stroke-dasharray='6 4'/>\n";
    text(left + 44, y + 38,
         "a grid of " + std::to_string(grid.rows) + " x " + std::to_string(grid.columns) +
             " ranks; the fullest block has " +
             (mean > 0 ? toolkit::printed("%.2f", static_cast<double>(most) / mean) : "0") +
             " times the mean");
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace matrix_program

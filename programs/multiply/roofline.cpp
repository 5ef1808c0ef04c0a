// What was reached, below the roofs of the network, of memory and of arithmetic.
#include "results.hpp"

#include <toolkit/svg.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <cmath>

namespace multiply_program {

namespace {

using toolkit::printed;

std::string flops(double f) {
  return f >= 1e9 ? printed("%.3g", f / 1e9) + " Gflop/s" : printed("%.3g", f / 1e6) + " Mflop/s";
}

/// Logarithms of both directions.
struct axes {
  double left, top, width, height;
  double least_x, most_x, least_y, most_y;

  double x(double v) const {
    return left + width * std::log(v / least_x) / std::log(most_x / least_x);
  }
  double y(double v) const {
    return top + height * (1 - std::log(v / least_y) / std::log(most_y / least_y));
  }
};

/// Powers of ten with a grid behind the drawing.
void draw_grid(toolkit::canvas& out, const axes& on) {
  for (double v = std::pow(10, std::ceil(std::log10(on.least_x))); v <= on.most_x; v *= 10) {
    out.line(on.x(v), on.top, on.x(v), on.top + on.height, "#e3e3e3");
    out.text(on.x(v), on.top + on.height + 18, printed("%g", v), "text-anchor='middle'");
  }
  for (double v = std::pow(10, std::ceil(std::log10(on.least_y))); v <= on.most_y; v *= 10) {
    out.line(on.left, on.y(v), on.left + on.width, on.y(v), "#e3e3e3");
    out.text(on.left - 8, on.y(v) + 4, printed("%g", v / 1e9), "text-anchor='end'");
  }
  out.rect(on.left, on.top, on.width, on.height, "none", "stroke='#222'");
  out.text(on.left + on.width / 2, on.top + on.height + 40,
           "flops for each byte that ranks move between each other", "text-anchor='middle'");
  out.text(on.left - 46, on.top - 10, "Gflop/s of a rank");
}

void dashed(toolkit::canvas& out, double x0, double y0, double x1, double y1,
            const std::string& colour, const char* dashes) {
  out.raw() << "<line x1='" << x0 << "' y1='" << y0 << "' x2='" << x1 << "' y2='" << y1
            << "' stroke='" << colour << "' stroke-width='1.6' stroke-dasharray='" << dashes
            << "'/>\n";
}

}  // namespace

std::string roofline_svg(const std::vector<problem>& all, const bandwidths& with) {
  constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73",
                                     "#cc79a7", "#b07d00", "#56b4e9"};
  const double ranks = far::nprocs();
  struct point {
    std::size_t problem;
    double x, y;
    std::string name;
  };
  std::vector<point> points;
  double most_y = with.arithmetic, least_y = with.arithmetic;
  double most_x = with.network > 0 ? with.arithmetic / with.network : 1, least_x = most_x;
  for (std::size_t p = 0; p < all.size(); ++p) {
    least_y = std::min(least_y, std::max(1.0, local_roof(all[p], with)));
    for (const outcome& by : all[p].outcomes) {
      const double reached = all[p].flops() / by.median().seconds / ranks;
      const double x = all[p].network_intensity(by);
      if (!(reached > 0)) continue;
      points.push_back({p, x, reached, to_text(by.algorithm)});
      least_y = std::min(least_y, reached), most_y = std::max(most_y, reached);
      if (x > 0) least_x = std::min(least_x, x), most_x = std::max(most_x, x);
    }
  }
  const double legend = 46 + 20.0 * static_cast<double>(points.size() + all.size());
  const axes on{76, 76, 560, 380, least_x / 4, most_x * 8, least_y / 3, most_y * 2};
  toolkit::canvas out(1060, std::max(540.0, 76 + legend + 60));
  out.text(30, 30, "How far below the roof", "font-size='17' font-weight='bold'");
  const std::string moved = with.network > 0
                                ? printed("%.3g", with.network / 1e9) + " GB/s from another rank"
                                : "nothing from other ranks";
  out.text(30, 50,
           printed("%g", ranks) + " ranks; a rank moves " + printed("%.3g", with.memory / 1e9) +
               " GB/s to and from memory, " + moved,
           "fill-opacity='0.8'");
  draw_grid(out, on);

  // The network's slope, and the peak of arithmetic.
  if (with.network > 0) {
    const double from = std::max(on.least_x, on.least_y / with.network),
                 to = std::min(on.most_x, with.arithmetic / with.network);
    out.raw() << "<line x1='" << on.x(from) << "' y1='" << on.y(from * with.network) << "' x2='"
              << on.x(to) << "' y2='" << on.y(to * with.network)
              << "' stroke='#222' stroke-width='2.4'/>\n<line x1='" << on.x(to) << "' y1='"
              << on.y(with.arithmetic) << "' x2='" << on.left + on.width << "' y2='"
              << on.y(with.arithmetic) << "' stroke='#222' stroke-width='2.4'/>\n";
  }
  double y = 92;
  const double side = on.left + on.width + 34;
  out.text(side, y, "arithmetic: " + flops(with.arithmetic));
  out.raw() << "<line x1='" << side - 24 << "' y1='" << y - 4 << "' x2='" << side - 6 << "' y2='"
            << y - 4 << "' stroke='#222' stroke-width='2.4'/>\n";
  for (std::size_t p = 0; p < all.size(); ++p) {
    const problem& of = all[p];
    const std::string colour = colours[p % std::size(colours)];
    const double roof = local_roof(of, with);
    // Its roof begins where the network's slope meets it.
    const double meets = with.network > 0 ? roof / with.network : on.least_x;
    dashed(out, on.x(std::clamp(meets, on.least_x, on.most_x)), on.y(roof), on.left + on.width,
           on.y(roof), colour, "7 4");
    y += 30;
    std::string name = std::string(name_of(of.kind)) + ", " + toolkit::grouped(of.shape_a.rows) +
                       " x " + toolkit::grouped(of.shape_a.columns) + " by " +
                       toolkit::grouped(of.shape_b.columns) + " columns";
    out.text(side, y, name, "font-weight='bold'");
    y += 20;
    out.text(side, y,
             "local roof: " + flops(roof) + ", " + printed("%.2g", of.local_intensity()) +
                 " flops a byte of memory");
    dashed(out, side - 24, y - 4, side - 6, y - 4, colour, "7 4");
    std::size_t n = 0;
    for (const point& one : points) {
      if (one.problem != p) continue;
      const double limit =
          one.x > 0 && with.network > 0 ? std::min(roof, one.x * with.network) : roof;
      const double x = one.x > 0 ? on.x(one.x) : on.left + on.width;
      if (one.x > 0) dashed(out, x, on.top + on.height, x, on.y(limit), colour, "2 3");
      out.raw() << "<circle cx='" << x << "' cy='" << on.y(one.y) << "' r='4.5' fill='" << colour
                << "'/>\n";
      out.text(x + (n % 2 == 0 ? 8 : -8), on.y(one.y) + 4, one.name,
               n % 2 == 0 ? "font-size='11'" : "font-size='11' text-anchor='end'");
      ++n;
      y += 20;
      out.text(side, y,
               one.name + ": " + flops(one.y) + ", " + printed("%.0f", 100 * one.y / limit) +
                   " % of " +
                   (one.x > 0 && limit < roof ? "the network's roof" : "the local roof") +
                   (one.x > 0 ? "" : "; it moves nothing"));
      out.raw() << "<circle cx='" << side - 15 << "' cy='" << y - 4 << "' r='4.5' fill='" << colour
                << "'/>\n";
    }
  }
  return out.finish();
}

}  // namespace multiply_program

#include "plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace far::app {

namespace {

constexpr double height = 460;
constexpr double left = 84, right = 610, top = 52, bottom = 400;
constexpr double legend = right + 48;              ///< where its words begin
constexpr double least_width = 860, letter = 7.8;  ///< a wide one

/// Colours that colour-blind people can tell apart.
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                "#e69f00", "#56b4e9", "#000000"};

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string printed(const char* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string bytes_text(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int i = 0;
  for (; bytes >= 1024 && i < 3; ++i) bytes /= 1024;
  return printed("%g ", bytes) + units[i];
}

std::string time_text(double nanoseconds) {
  const char* units[] = {"ns", "µs", "ms", "s"};
  int i = 0;
  for (; nanoseconds >= 1000 && i < 3; ++i) nanoseconds /= 1000;
  return printed("%g ", nanoseconds) + units[i];
}

std::string rate_text(double gigabytes) {
  const char* units[] = {"GB/s", "MB/s", "kB/s", "B/s"};
  int i = 0;
  for (; gigabytes > 0 && gigabytes < 0.9999 && i < 3; ++i) gigabytes *= 1000;
  return printed("%g ", gigabytes) + units[i];
}

/// One axis: which values it has, where they lie between two edges of the picture.
class axis {
 public:
  axis(double least, double most, double begin, double end) : begin_(begin), end_(end) {
    logarithmic_ = least > 0 && most / least > 40;
    if (logarithmic_) {
      first_ = std::floor(std::log10(least) + 1e-9);
      last_ = std::max(first_ + 1, std::ceil(std::log10(most) - 1e-9));
    } else {
      last_ = most > 0 ? most : 1;
    }
  }

  double place(double value) const {
    double at = logarithmic_ ? std::log10(value) : value;
    return begin_ + (at - first_) / (last_ - first_) * (end_ - begin_);
  }

  /// Values that get a line and a text.
  std::vector<double> marks() const {
    std::vector<double> result;
    if (logarithmic_) {
      for (double power = first_; power <= last_; ++power) result.push_back(std::pow(10, power));
      return result;
    }
    double step = std::pow(10, std::floor(std::log10(last_)));
    if (last_ / step < 3) step /= 5;
    for (double value = 0; value <= last_ * 1.0001; value += step) result.push_back(value);
    return result;
  }

 private:
  bool logarithmic_ = false;
  double first_ = 0, last_ = 1, begin_, end_;
};

struct range {
  double least = INFINITY, most = -INFINITY;
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

class canvas {
 public:
  explicit canvas(double width) {
    out_ << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << width << " " << height
         << "' width='" << width << "' height='" << height
         << "' font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' "
            "fill='white'/>\n";
  }
  void text(double x, double y, const std::string& words, const char* more = "") {
    out_ << "<text x='" << x << "' y='" << y << "' fill='#222' " << more << ">" << escaped(words)
         << "</text>\n";
  }
  void line(double x0, double y0, double x1, double y1, const std::string& colour) {
    out_ << "<line x1='" << x0 << "' y1='" << y0 << "' x2='" << x1 << "' y2='" << y1 << "' stroke='"
         << colour << "'/>\n";
  }
  /// The colour of the i-th line; where there are more than colours, lines have gaps.
  void path(const std::vector<std::pair<double, double>>& points, std::size_t i) {
    const char* colour = colours[i % colours.size()];
    out_ << "<polyline fill='none' stroke-width='2' stroke='" << colour
         << (i < colours.size() ? "' points='" : "' stroke-dasharray='6 4' points='");
    for (auto [x, y] : points) out_ << x << "," << y << " ";
    out_ << "'/>\n";
    for (auto [x, y] : points)
      out_ << "<circle cx='" << x << "' cy='" << y << "' r='3' fill='" << colour << "'/>\n";
  }
  std::string finish() { return out_.str() + "</svg>\n"; }

 private:
  std::ostringstream out_;
};

}  // namespace

std::string figure::file_name() const {
  std::string name;
  for (char c : title)
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  return name + ".svg";
}

std::string figure::svg() const {
  range xs, ys;
  for (const series& line : lines)
    for (auto [x, y] : line.points) xs.take(x), ys.take(y);
  const bool sizes = x_label == "bytes";
  // Sizes are powers of two, which lie evenly by their logarithms.
  axis across(sizes ? 0 : xs.least, sizes ? std::log2(xs.most / xs.least) : xs.most, left, right);
  axis up(ys.least, ys.most, bottom, top);
  auto x_of = [&](double x) { return across.place(sizes ? std::log2(x / xs.least) : x); };

  std::size_t longest = 0;
  for (const series& line : lines) longest = std::max(longest, line.name.size());
  canvas c(std::max(least_width, legend + letter * static_cast<double>(longest)));
  c.text(left, 26, title, "font-size='16' font-weight='bold'");
  for (double mark : up.marks()) {
    double y = up.place(mark);
    c.line(left, y, right, y, "#ddd");
    c.text(left - 8, y + 4, unit == "ns" ? time_text(mark) : rate_text(mark), "text-anchor='end'");
  }
  std::vector<double> below = across.marks();
  if (sizes) {
    below.clear();
    for (double size = xs.least; size <= xs.most; size *= 16) below.push_back(size);
  }
  for (double mark : below) {
    c.line(x_of(mark), bottom, x_of(mark), bottom + 5, "#222");
    c.text(x_of(mark), bottom + 20, sizes ? bytes_text(mark) : printed("%g", mark),
           "text-anchor='middle'");
  }
  c.line(left, bottom, right, bottom, "#222");
  c.text((left + right) / 2, bottom + 42, x_label, "text-anchor='middle'");

  // The legend has the order of the lines at their right ends.
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!lines[i].points.empty()) order.push_back({-lines[i].points.back().second, i});
  std::sort(order.begin(), order.end());
  double y = top + 8;
  for (auto [last, i] : order) {
    std::vector<std::pair<double, double>> points;
    for (auto [x, value] : lines[i].points) points.push_back({x_of(x), up.place(value)});
    c.path(points, i);
    c.path({{right + 16, y}, {right + 40, y}}, i);
    c.text(legend, y + 4, lines[i].name);
    y += 22;
  }
  return c.finish();
}

void add_points(std::vector<figure>& to, const std::string& text) {
  std::istringstream in(text);
  std::string title, label, name, unit, x, y;
  auto cell = [&](std::string& word, char end) {
    return static_cast<bool>(std::getline(in, word, end));
  };
  auto named = [](auto& list, auto member, const std::string& wanted) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& one) { return one.*member == wanted; });
  };
  while (cell(title, '\t') && cell(label, '\t') && cell(name, '\t') && cell(unit, '\t') &&
         cell(x, '\t') && cell(y, '\n')) {
    auto one = named(to, &figure::title, title);
    if (one == to.end()) one = to.insert(to.end(), figure{title, label, unit, {}});
    auto line = named(one->lines, &figure::series::name, name);
    if (line == one->lines.end()) line = one->lines.insert(one->lines.end(), {name, {}});
    const std::pair<double, double> point{std::stod(x), std::stod(y)};
    auto& points = line->points;  // from left to right, in whichever order they were measured
    points.insert(std::upper_bound(points.begin(), points.end(), point), point);
  }
}

}  // namespace far::app

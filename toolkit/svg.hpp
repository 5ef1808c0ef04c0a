// What drawings have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string>

namespace toolkit {

/// Text as it stands in SVG.
inline std::string svg_escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (static_cast<unsigned char>(c) >= ' ')
      result += c;
  }
  return result;
}

inline std::string printed(const char* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

/// A colour between stops, of which 0 is the first and 1 the last.
template <std::size_t N>
std::string colour_between(const std::array<std::array<int, 3>, N>& stops, double shade) {
  double at = std::clamp(shade, 0.0, 1.0) * (N - 1);
  auto i = std::min<std::size_t>(static_cast<std::size_t>(at), N - 2);
  char text[8];
  auto mixed = [&](std::size_t k) {
    return static_cast<int>(
        std::lround(stops[i][k] + (at - static_cast<double>(i)) * (stops[i + 1][k] - stops[i][k])));
  };
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mixed(0), mixed(1), mixed(2));
  return text;
}

/// From light (0) to dark (1), by lightness alone: nobody needs to tell hues.
inline std::string lightness_colour(double shade) {
  constexpr std::array<std::array<int, 3>, 4> stops = {
      {{188, 214, 240}, {88, 150, 205}, {25, 85, 155}, {5, 30, 75}}};
  return colour_between(stops, shade);
}

/// A drawing of so many pixels, on white.
class canvas {
 public:
  canvas(double width, double height) {
    out_.precision(6);
    out_ << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << width << " " << height
         << "' width='" << width << "' height='" << height
         << "' font-family='sans-serif' font-size='13'>\n<rect width='100%' height='100%' "
            "fill='white'/>\n";
  }
  void text(double x, double y, const std::string& words, const char* more = "") {
    out_ << "<text x='" << x << "' y='" << y << "' fill='#222' " << more << ">"
         << toolkit::svg_escaped(words) << "</text>\n";
  }
  void line(double x0, double y0, double x1, double y1, const char* stroke) {
    out_ << "<line x1='" << x0 << "' y1='" << y0 << "' x2='" << x1 << "' y2='" << y1 << "' stroke='"
         << stroke << "'/>\n";
  }
  void rect(double x, double y, double width, double height, const std::string& fill,
            const char* more = "") {
    out_ << "<rect x='" << x << "' y='" << y << "' width='" << width << "' height='" << height
         << "' fill='" << fill << "' " << more << "/>\n";
  }
  std::ostringstream& raw() { return out_; }
  std::string finish() {
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  std::ostringstream out_;
};

}  // namespace toolkit

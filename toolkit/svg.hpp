// What drawings have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
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

}  // namespace toolkit

// A histogram of k-mers, drawn with characters.
#pragma once

#include <common/genome/histogram.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace demo {

/// What was seen less often than this is most likely wrong: counts fall from those of errors to a
/// valley, and rise again to what is in the genome.
inline std::uint32_t valley_of(const genome::histogram& seen, std::uint32_t longest) {
  std::uint32_t count = 1;
  while (count < longest && seen.at(count + 1) <= seen.at(count)) ++count;
  return count;
}

/// A column for each count up to `longest`, with the height of the genome's peak; what is taller is
/// cut off.
inline std::string plot(const genome::histogram& seen, std::uint32_t valley,
                        std::uint32_t longest) {
  constexpr std::uint64_t rows = 12;
  std::uint64_t peak = 1;
  for (std::uint32_t i = valley; i <= longest; ++i) peak = std::max(peak, seen.at(i));
  std::string text;
  for (std::uint64_t row = rows; row > 0; --row) {
    char label[32];
    std::snprintf(label, sizeof label, "%8llu |",
                  static_cast<unsigned long long>(peak * row / rows));
    text += row == rows || row == rows / 2 ? label : "         |";
    for (std::uint32_t i = 1; i <= longest; ++i) {
      std::uint64_t halves = (seen.at(i) * 2 * rows + peak / 2) / peak;
      bool cut_off = row == rows && seen.at(i) > peak;
      text += cut_off ? '^' : halves >= 2 * row ? '#' : halves + 1 >= 2 * row ? '.' : ' ';
    }
    text += '\n';
  }
  std::string axis(longest + 1, '-'), numbers(longest + 1, ' ');
  for (std::uint32_t i = 10; i <= longest; i += 10) {
    axis[i] = '+';
    std::string number = std::to_string(i);
    numbers.replace(i + 1 - number.size(), number.size(), number);
  }
  axis[valley] = '|';
  return text + "         " + axis + "\n         " + numbers + " times\n";
}

}  // namespace demo

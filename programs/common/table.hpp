// Figures in columns, on a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace programs {

/// Columns as wide as their widest cell: the first to the left, the others to the right.
class table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& cells : rows_) {
      widths.resize(std::max(widths.size(), cells.size()));
      for (std::size_t i = 0; i < cells.size(); ++i)
        widths[i] = std::max(widths[i], cells[i].size());
    }
    std::string result;
    for (const auto& cells : rows_) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        std::string room(widths[i] - cells[i].size(), ' ');
        result += i == 0 ? "  " + cells[i] + room : "  " + room + cells[i];
      }
      result.erase(result.find_last_not_of(' ') + 1);
      result += '\n';
    }
    return result;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

inline std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 1e3 * seconds);
  return text;
}

}  // namespace programs

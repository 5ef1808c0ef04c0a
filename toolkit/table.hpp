// Text in columns, for a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace toolkit {

/// words: all columns begin at the left. figures: the first does, and the others end at the right.
enum class columns { words, figures };

/// Columns as wide as their widest cell, with two blanks between them, and no blanks at the end of a line.
class table {
 public:
  explicit table(columns kind = columns::words) : kind_(kind) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text(std::string_view indent = "") const {
    std::vector<std::size_t> widths;
    for (const auto& cells : rows_) {
      widths.resize(std::max(widths.size(), cells.size()));
      // The last word of a line is never padded, so it makes no column wider.
      std::size_t counted =
          kind_ == columns::words && !cells.empty() ? cells.size() - 1 : cells.size();
      for (std::size_t i = 0; i < counted; ++i) widths[i] = std::max(widths[i], cells[i].size());
    }
    std::string result;
    for (const auto& cells : rows_) {
      std::string line(indent);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        std::string room(widths[i] - std::min(widths[i], cells[i].size()), ' ');
        bool to_the_right = kind_ == columns::figures && i > 0;
        line += (i > 0 ? "  " : "") + (to_the_right ? room + cells[i] : cells[i] + room);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      result += line + '\n';
    }
    return result;
  }

 private:
  columns kind_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace toolkit

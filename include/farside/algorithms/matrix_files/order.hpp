// Entries in the order of rows, and of columns within a row. Local.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <farside/backend/select.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// Sorts entries by `before`, which compares rows first. Where there are about as many rows as
/// entries, each row gets its place by counting, and is sorted by itself: that costs two passes and
/// takes the memory of the entries once more.
template <class Entry, class Before>
void sort_entries(std::vector<Entry>& entries, Before before) {
  if (std::is_sorted(entries.begin(), entries.end(), before)) return;
  auto [least, most] = std::minmax_element(
      entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.row < b.row; });
  const std::size_t first = least->row, rows = most->row - first;
  if (rows >= 4 * entries.size()) {
    std::sort(entries.begin(), entries.end(), before);
    return;
  }
  std::vector<std::size_t> next(rows + 2);
  for (const Entry& e : entries) ++next[e.row - first + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<Entry> sorted(entries.size());
  for (const Entry& e : entries) sorted[next[e.row - first]++] = e;
  auto begin = sorted.begin();
  for (std::size_t i = 0; i <= rows; ++i) {
    auto end = sorted.begin() + static_cast<std::ptrdiff_t>(next[i]);
    if (!std::is_sorted(begin, end, before)) std::sort(begin, end, before);
    begin = end;
  }
  entries = std::move(sorted);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

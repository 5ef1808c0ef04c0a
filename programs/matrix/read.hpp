// convert, show and check: what begins with a file that is read.
#pragma once

#include "figures.hpp"
#include "make.hpp"
#include "spy.hpp"

#include <common/files.hpp>
#include <toolkit/table.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace matrix_program {

template <class T>
struct loaded {
  far::matrix_entries<T> all;
  far::index_range rows;
};

/// Collective.
template <class T>
loaded<T> load(const request& asked) {
  const std::string& path = asked.words[0];
  std::error_code none;
  auto bytes = std::filesystem::file_size(path, none);
  if (none || path.ends_with(".gz")) bytes = 0;
  programs::progress_bar bar("reading", bytes);
  far::matrix_read_options options = read_options(asked);
  options.progress = [&](std::uint64_t some) { bar.add(some); };
  loaded<T> result;
  result.all = far::read_matrix<T>(path, by_rows, options, far::world(), asked.format);
  result.rows = far::even_part(result.all.shape.rows, far::rank(), far::nprocs());
  return result;
}

template <class T>
void convert(const request& asked) {
  const auto [all, rows] = load<T>(asked);
  far::matrix_write_options how;
  how.symmetry = asked.symmetry;
  how.gzip = matrices::pack_gzip;
  how.first_vertex = asked.one_based ? 1 : 0;
  far::write_matrix<T>(asked.words[1], all.shape, rows, all.entries, how, far::world(), asked.to);
  const std::uint64_t entries = far::all_reduce(std::uint64_t{all.entries.size()});
  if (far::rank() == 0)
    std::printf("%s: %zu x %zu, %s entries\n", asked.words[1].c_str(), all.shape.rows,
                all.shape.columns, toolkit::grouped(entries).c_str());
}

/// "Matrix Market, real, symmetric"
inline std::string words_of(const far::matrix_file_info& file) {
  if (file.format == far::matrix_format::edge_list)
    return file.values == far::matrix_values::pattern ? "edge list without weights"
                                                      : "edge list with weights";
  const std::string values = to_text(file.values);
  if (file.format == far::matrix_format::binary) return "binary, " + values;
  return std::string("Matrix Market, ") + (file.array ? "array, " : "coordinate, ") + values +
         ", " + to_text(file.symmetry);
}

template <class T>
void check(const request& asked) {
  const auto [all, rows] = load<T>(asked);
  const matrix_figures f = figures_of<T>(all.shape, rows, all.entries);
  if (far::rank() != 0) return;
  std::printf("%s: good: %s; %zu x %zu, %s entries\n", asked.words[0].c_str(),
              words_of(all.file).c_str(), all.shape.rows, all.shape.columns,
              toolkit::grouped(f.entries).c_str());
  auto note = [](std::uint64_t n, const char* what) {
    if (n != 0) std::printf("  note: %s %s\n", toolkit::grouped(n).c_str(), what);
  };
  note(f.not_finite, "values are infinite or no numbers");
  note(f.zeros, "entries hold zero");
  if (all.file.format == far::matrix_format::market && f.symmetric && f.entries > 0 &&
      all.file.symmetry == far::matrix_symmetry::general)
    std::printf("  note: the matrix is symmetric; --symmetry symmetric writes half of it\n");
}

inline std::string symmetry_of(const matrix_figures& f, const far::matrix_shape& shape) {
  if (shape.rows != shape.columns) return "no: not square";
  if (f.entries == 0) return "yes: no entries";
  std::string words;
  if (f.symmetric) words = "symmetric";
  if (f.hermitian && !f.symmetric) words = "hermitian";
  if (f.skew_symmetric) words = words.empty() ? "skew-symmetric" : words + ", skew-symmetric";
  if (!words.empty()) return words;
  return f.pattern_symmetric ? "places only, not values" : "no";
}

/// A line for each power of two: how many rows have so many entries.
inline std::string degree_picture(const matrix_figures& f) {
  std::uint64_t most = 1;
  std::size_t first = f.degrees.size(), last = 0;
  for (std::size_t i = 0; i < f.degrees.size(); ++i)
    if (f.degrees[i] != 0) {
      most = std::max(most, f.degrees[i]);
      first = std::min(first, i), last = i;
    }
  toolkit::table table(toolkit::columns::figures);
  for (std::size_t i = first; i <= last && first < f.degrees.size(); ++i) {
    std::uint64_t low = i == 0 ? 0 : std::uint64_t{1} << (i - 1);
    std::uint64_t high = i == 0 ? 0 : low + (low - 1);
    std::string range = toolkit::grouped(low) + (high > low ? " - " + toolkit::grouped(high) : "");
    auto ink = static_cast<std::size_t>(
        std::ceil(40.0 * static_cast<double>(f.degrees[i]) / static_cast<double>(most)));
    table.row({range, toolkit::grouped(f.degrees[i]),
               std::string(ink, '#') + std::string(40 - ink, ' ')});
  }
  return table.text("  ");
}

/// What each block of a grid of ranks would hold.
inline std::string grid_table(const raster& grid) {
  toolkit::table table(toolkit::columns::figures);
  std::vector<std::string> head{""};
  for (std::size_t c = 0; c < grid.columns; ++c) head.push_back("column " + std::to_string(c));
  table.row(head);
  for (std::size_t r = 0; r < grid.rows; ++r) {
    std::vector<std::string> cells{"row " + std::to_string(r)};
    for (std::size_t c = 0; c < grid.columns; ++c) cells.push_back(toolkit::grouped(grid.at(r, c)));
    table.row(cells);
  }
  return table.text("  ");
}

inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// How many cells a side of a drawing has: cells of one size, if that can be.
inline std::size_t cells_of(std::size_t n) {
  constexpr std::size_t most = 320;
  const std::size_t each = n / most + (n % most != 0 ? 1 : 0);
  return n <= most ? n : n / each + (n % each != 0 ? 1 : 0);
}

template <class T>
void show(const request& asked) {
  const auto [all, rows] = load<T>(asked);
  const matrix_figures f = figures_of<T>(all.shape, rows, all.entries);
  // The grid that is nearest to a square, unless one is asked for.
  std::size_t grid_rows = asked.grid_rows, grid_columns = asked.grid_columns;
  if (grid_rows == 0) {
    grid_rows = static_cast<std::size_t>(std::sqrt(far::nprocs()));
    while (far::nprocs() % grid_rows != 0) --grid_rows;
    grid_columns = far::nprocs() / grid_rows;
  }
  const bool tall = all.shape.rows > 4 * all.shape.columns;
  raster grid(all.shape, grid_rows, grid_columns), picture(all.shape, 24, tall ? 24 : 64),
      fine(all.shape, asked.plot.empty() ? 1 : cells_of(all.shape.rows),
           asked.plot.empty() ? 1 : cells_of(all.shape.columns));
  for (const auto& e : all.entries) {
    for (raster* one : {&grid, &picture, &fine}) one->add(e.row, e.column);
  }
  for (raster* one : {&grid, &picture, &fine}) one->finish();
  if (!asked.plot.empty())
    programs::write_whole(
        "matrix", asked.plot,
        svg_picture(fine, grid, std::filesystem::path(asked.words[0]).filename().string(),
                    f.entries));
  if (far::rank() != 0) return;

  using toolkit::grouped;
  const double n = static_cast<double>(all.shape.rows);
  const double mean = n > 0 ? static_cast<double>(f.entries) / n : 0;
  toolkit::table table(toolkit::columns::figures);
  auto line = [&](const char* name, const std::string& words) {
    std::printf("%-16s%s\n", name, words.c_str());
  };
  line("file", asked.words[0]);
  line("format", words_of(all.file));
  line("shape", grouped(all.shape.rows) + " x " + grouped(all.shape.columns));
  line("entries", grouped(f.entries) + (all.file.entries != f.entries
                                            ? ", of which the file has " + grouped(all.file.entries)
                                            : ""));
  if constexpr (!far::is_complex<T> && !std::is_same_v<T, bool>)
    if (f.entries != 0) line("values", number(f.low) + " to " + number(f.high));
  if (f.zeros != 0) line("zeros", grouped(f.zeros) + " entries hold zero");
  if (f.not_finite != 0) line("not finite", grouped(f.not_finite) + " values");
  line("symmetric", symmetry_of(f, all.shape));
  line("diagonal",
       grouped(f.on_diagonal) + " of " + grouped(std::min(all.shape.rows, all.shape.columns)));
  line("bandwidth", grouped(f.below) + " below the diagonal, " + grouped(f.above) + " above");
  line("entries a row",
       "at least " + grouped(f.least) + ", mean " + number(mean) + ", at most " + grouped(f.most));
  std::printf("\nRows by how many entries they have:\n\n%s", degree_picture(f).c_str());
  const std::uint64_t fullest =
      grid.counts.empty() ? 0 : *std::max_element(grid.counts.begin(), grid.counts.end());
  const double share = grid.counts.empty() ? 0
                                           : static_cast<double>(f.entries) /
                                                 static_cast<double>(grid.counts.size());
  std::printf(
      "\nEntries on a grid of %zu x %zu ranks, in even blocks; the fullest has %s times the "
      "mean:\n\n",
      grid.rows, grid.columns,
      share > 0 ? number(static_cast<double>(fullest) / share).c_str() : "0");
  if (grid.rows <= 8 && grid.columns <= 8)
    std::fputs(grid_table(grid).c_str(), stdout);
  else
    std::printf(
        "  %s blocks are empty\n",
        grouped(static_cast<std::uint64_t>(std::count(grid.counts.begin(), grid.counts.end(), 0)))
            .c_str());
  if (asked.picture) std::printf("\n%s", text_picture(picture).c_str());
}

}  // namespace matrix_program

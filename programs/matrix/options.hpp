// What `farside matrix` is asked to do.
#pragma once

#include <farside/algorithms/matrix_files/format.hpp>
#include <farside/algorithms/matrix_generators.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace matrix_program {

struct request {
  bool help = false;
  std::string command;             ///< make, convert, show, check
  std::vector<std::string> words;  ///< behind it: the kind, the files
  std::string output;              ///< of make
  std::optional<far::matrix_format> format, to;
  std::optional<far::matrix_values> type;
  far::matrix_symmetry symmetry = far::matrix_symmetry::general;
  far::duplicate_entries duplicates = far::duplicate_entries::refuse;
  bool one_based = false, undirected = false, permuted = true, picture = true;
  std::size_t vertices = 0;
  std::string plot;  ///< a file for the spy plot
  std::size_t grid_rows = 0, grid_columns = 0;

  // Of generators
  unsigned scale = 14;
  double edge_factor = 16, a = 0.57, b = 0.19, c = 0.19, degree = 16;
  std::size_t n = 0, rows = 0, columns = 0, entries = 0, per_row = 0, lower = 1, upper = 1;
  std::size_t nx = 0, ny = 0, nz = 0;
  double value = 1, low = 0, high = 1;
  std::string values = "ones";
  std::uint64_t seed = 1;
  std::vector<std::string> given;  ///< options of generators that were given
};

/// Throws far::app::error if they make no sense.
request parse_request(const std::vector<std::string>& words);

}  // namespace matrix_program

// What `farside matrix` is asked to do.
#pragma once

#include <common/matrices/generator_options.hpp>
#include <farside/algorithms/matrix_files/format.hpp>

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
  bool one_based = false, undirected = false, picture = true;
  std::size_t vertices = 0;
  std::string plot;                       ///< a file for the spy plot
  matrices::generator_request generator;  ///< of make
  std::size_t grid_rows = 0, grid_columns = 0;
};

/// Throws toolkit::wrong_option if they make no sense.
request parse_request(const std::vector<std::string>& words);

}  // namespace matrix_program

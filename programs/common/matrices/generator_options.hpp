// Which generator of matrices is asked for, and with which options: of a command line, or in one word.
#pragma once

#include <toolkit/option_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace matrices {

struct generator_request {
  std::string kind;
  unsigned scale = 14;
  double edge_factor = 16, a = 0.57, b = 0.19, c = 0.19, degree = 16;
  std::size_t n = 0, rows = 0, columns = 0, entries = 0, per_row = 0, lower = 1, upper = 1;
  std::size_t nx = 0, ny = 0, nz = 0;
  bool permuted = true, undirected = false;
  double value = 1, low = 0, high = 1;
  std::string values = "ones";
  std::uint64_t seed = 1;
  std::vector<std::string> given;  ///< options of generators that were given
};

/// The names of options that say what a generator makes.
const std::vector<std::string>& generator_option_names();

/// Takes an option, if it is one of a generator's. Throws toolkit::wrong_option if its value is none.
bool read_generator_option(toolkit::option_reader& in, generator_request& to);

/// Throws toolkit::wrong_option if there is no such generator, or it cannot make such a matrix.
/// `what` is how messages begin: "make er".
void check_generator(generator_request& asked, const std::string& what);

/// A generator in one word, `rmat:scale=10,edge-factor=8`; none if that word names a file.
bool is_generator(const std::string& word);
generator_request parse_generator(const std::string& word);

}  // namespace matrices

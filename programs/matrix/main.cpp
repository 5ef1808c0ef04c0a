// Makes, converts, shows and checks files of matrices.
#include "job.hpp"

#include <common/matrices/gzip.hpp>
#include <farside/algorithms/matrix_files.hpp>
#include <farside/core/runtime.hpp>
#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <complex>
#include <cstdio>
#include <string>
#include <vector>

namespace matrix_program {

namespace {

constexpr const char* help = R"(usage: farside matrix [-n RANKS] make KIND [options] -o FILE
       farside matrix [-n RANKS] convert [options] FILE FILE
       farside matrix [-n RANKS] show [options] FILE
       farside matrix [-n RANKS] check [options] FILE

Makes, converts, shows and checks files of matrices. A name ends in .mtx or .mtx.gz (Matrix Market), in .el, .edges,
.txt or .tsv, perhaps with .gz (edge lists), or in .fsm (binary: mapped, with checksums). The file that make and convert
write is the same for any number of ranks.

Kinds of make, and their options:

  rmat         --scale 14 --edge-factor 16 --a 0.57 --b 0.19 --c 0.19 --no-permute --undirected
  er           --n N --degree 16: G(n, p)
  random       --rows M --columns N --entries K: so many, at different places
  rows         --rows M --columns N --per-row K
  banded       --rows M --columns N --lower 1 --upper 1
  dense        --rows M --columns N
  diagonal     --n N --value 1
  laplacian2d  --nx X --ny Y: five points
  laplacian3d  --nx X --ny Y --nz Z: seven points

Options of make:

  -o, --output FILE    where it goes
  --n N                rows and columns, or points of each side of a grid
  --values ones|uniform|whole    what entries hold (ones): 1, --low to --high (0 to 1), or whole numbers (1 to 9)
  --seed N             of everything random (1)

Options of all:

  --type pattern|integer|real|complex    what values are read or made as (what the file says)
  --symmetry general|symmetric|skew-symmetric|hermitian    written files have one triangle; the matrix must be so
  --format mtx|el|fsm  what the file that is read is, whatever its name
  --to mtx|el|fsm      what the file that is written is, whatever its name
  --duplicates refuse|sum|first    what becomes of entries with the same place (refuse)
  --one-based          vertices of edge lists count from 1, not from 0
  --undirected         an edge stands for its reverse, too
  --vertices N         how many vertices an edge list has (as its largest number needs)
  --plot FILE.svg      show: draw where the entries are
  --grid RxC           show: the grid of ranks that is looked at (one of as many as there are)
  --no-picture         show: no picture of characters
)";

far::matrix_values type_of(const request& asked) {
  if (asked.type) return *asked.type;
  if (asked.command != "make")
    return far::look_at_matrix(asked.words[0], read_options(asked), far::world(), asked.format)
        .values;
  const std::string& kind = asked.words[0];
  if (kind.starts_with("laplacian") || kind == "diagonal" || asked.generator.values == "uniform")
    return far::matrix_values::real;
  return asked.generator.values == "whole" ? far::matrix_values::integer
                                           : far::matrix_values::pattern;
}

template <class T>
void run_as(const request& asked) {
  if (asked.command == "make") make<T>(asked);
  if (asked.command == "convert") convert<T>(asked);
  if (asked.command == "show") show<T>(asked);
  if (asked.command == "check") check<T>(asked);
}

int run(const std::vector<std::string>& words) {
  const request asked = parse_request(words);
  if (asked.help) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  switch (type_of(asked)) {
    case far::matrix_values::pattern:
      run_as<bool>(asked);
      break;
    case far::matrix_values::integer:
      run_as<std::int64_t>(asked);
      break;
    case far::matrix_values::real:
      run_as<double>(asked);
      break;
    case far::matrix_values::complex:
      run_as<std::complex<double>>(asked);
      break;
  }
  return 0;
}

}  // namespace

far::matrix_read_options read_options(const request& asked) {
  far::matrix_read_options options;
  options.duplicates = asked.duplicates;
  options.gzip = matrices::open_gzip;
  options.first_vertex = asked.one_based ? 1 : 0;
  options.vertices = asked.vertices;
  options.both_directions = asked.undirected;
  return options;
}

}  // namespace matrix_program

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** arguments) {
    auto refuse = [](std::string_view words) {
      if (words.starts_with("farside: ")) words.remove_prefix(9);
      far::barrier();
      throw far::refusal(far::text("farside matrix: ", words));
    };
    try {
      return matrix_program::run({arguments + 1, arguments + count});
    } catch (const toolkit::wrong_option& e) {
      refuse(e.what());
    } catch (const far::matrix_file_error& e) {
      refuse(e.what());
    }
    return 1;
  });
}

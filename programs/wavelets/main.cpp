// Functions as trees of multiwavelets.
#include "expression.hpp"
#include "options.hpp"

#include <common/run_program.hpp>
#include <farside/algorithms/wavelets/tree_files.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace wavelets_program {

namespace {

constexpr const char* help = R"(usage: farside wavelets [-n RANKS] [options] [STAGE...]

Projects a function on [0, 1]^D onto multiwavelets, in a tree over all ranks that is as deep as it needs to be, and does
one stage after another with it.

Stages:

  compress             to details, from the leaves to the root
  reconstruct          and back
  truncate EPS         drops details below EPS
  differentiate AXIS   x, y or z: the tree becomes that of the derivative
  norm                 the square root of the integral of f^2
  inner FUNCTION       the integral of f times another function, in a tree that is made alike
  evaluate POINT       the value at a point, such as 0.5,0.25; @FILE: at points of a file, a line each
  plot FILE.svg        draws the function and the leaves of its tree; of three dimensions a slice
  save FILE            the tree as it is; the same bytes for any number of ranks
  balance              divides subtrees among ranks by the time they have cost

Options:

  -f, --function F     a name or an expression of x, y, z (gauss); -f=-x for one that begins with a sign
  -d, --dimensions D   1, 2 or 3 (2)
  -k, --k K            polynomials of degree K - 1 in each box, 1 to 30 (9)
  -e, --threshold EPS  boxes whose details are larger are split (1e-6); 0 with a --max-level: all
      --mode absolute|level    level: EPS 2^-min(n, 20) for boxes of level n
      --initial-level N        boxes above are split without a look (2)
      --max-level N            boxes of this level are not split (30)
      --load FILE      a tree that was saved, instead of a function
      --placement subtrees|hash    where nodes lie: subtrees together, or each by itself (subtrees)
      --slice AXIS=AT  where plot cuts three dimensions (z=0.5)
      --times          how long each stage took, and each rank's CPU time
      --json           prints all results as JSON

)";

int run_program(const std::vector<std::string>& words) {
  request asked = parse_request(words);
  if (asked.help) {
    if (far::rank() == 0)
      std::printf("%sFunctions with names: %s.\n", help, named_functions().c_str());
    return 0;
  }
  if (!asked.load.empty())
    asked.dimensions = far::wavelets::read_tree_header(asked.load).dimensions;
  if (asked.dimensions == 1)
    run<1>(asked);
  else if (asked.dimensions == 2)
    run<2>(asked);
  else
    run<3>(asked);
  return 0;
}

}  // namespace

}  // namespace wavelets_program

int main(int argc, char** argv) {
  return programs::run_program("wavelets", argc, argv, wavelets_program::run_program);
}

// Multiplies matrices on all ranks, by each algorithm, and says where the time went.
#include "job.hpp"
#include "study.hpp"

#include <common/files.hpp>
#include <common/run_program.hpp>
#include <toolkit/svg.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace multiply_program {

namespace {

constexpr const char* help = R"(usage: farside multiply [-n RANKS] --spgemm [options] A [B]
       farside multiply [-n RANKS] --spmm [options] A [B]
       farside multiply [-n RANKS] --gemm [options] A [B]
       farside multiply [-n RANKS] --study

Multiplies matrices in tiles that are spread over all ranks, C = A B, and prints what each rank did.

  --spgemm   sparse by sparse; without B: A A
  --spmm     sparse by dense; without B: one of random numbers, of --columns
  --gemm     dense by dense; without B: A A

A factor is a file of any form that `farside matrix` knows, or a generator of `farside matrix make` with its options
in one word: rmat:scale=14,edge-factor=8 or laplacian2d:n=512 or dense:n=2048,values=uniform.

Options:

  -a, --algorithm LIST  automatic, c, a, b (which matrix stays where it is), layers (2.5-D), summa, slices; several
                        with commas between them, or all (automatic)
      --stealing LIST   none, random, near: what ranks do that have nothing left, with c and a (none)
      --ordered         sums come out the same, to the last bit, in every run
      --grid RxC        of ranks (the squarest)
      --tiles MxN[xK]   how many tiles C has, and A in a row (one a rank; with stealing 16 a rank)
      --columns N,...   of a dense B that is made; several products are made of several numbers (128)
      --semiring plus_times|min_plus|max_times|or_and|plus_first    (plus_times)
      --seed N          of a dense B that is made (1)
      --repeats N       multiplies N times, all that is compared in turns, and shows the run of median time (1)
      --verify          compares C with a serial product
  -o, --output FILE     writes C: .mtx, .fsm, .el, and with .gz
      --duplicates refuse|sum|first    what becomes of entries of a file with the same place (refuse)
      --update-memory SIZE  partial tiles that a rank may have under way (a sixteenth of a segment)
      --slow RANK:FACTOR    this rank sleeps after each piece, as if it computed so much slower
      --heat-map FILE.svg   products of each tile of C, of all stages and of each
      --roofline FILE.svg   what was reached, below the roofs of memory, arithmetic and network, measured here
      --device          multiplies in the memory of GPUs, by cuSPARSE and cuBLAS, over plus_times. Algorithms are c,
                        a, b and layers. Needs a build with CUDA (docs/gpu.md)
      --json            prints all figures as JSON
      --study           many small products by each algorithm: how good is the choice of automatic?
      --cpu-time        of the study: compares CPU times, for machines that are not quiet
)";

int run_program(const std::vector<std::string>& words) {
  const request asked = parse_request(words);
  if (asked.help) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  if (asked.slow_rank && *asked.slow_rank >= far::nprocs())
    throw toolkit::wrong_option(far::text("--slow ", *asked.slow_rank, ":",
                                          toolkit::printed("%g", asked.slow_factor),
                                          ": ranks are 0 to ", far::nprocs() - 1));
  if (asked.study) {
    run_study(asked);
    return 0;
  }
  const std::vector<problem> all = asked.kind == product_kind::gemm   ? run_gemm(asked)
                                   : asked.kind == product_kind::spmm ? run_spmm(asked)
                                                                      : run_spgemm(asked);
  bandwidths with;
  if ((asked.json && !asked.device) || !asked.roofline.empty()) with = measure_bandwidths();
  if (!asked.heat_map.empty())
    programs::write_whole("multiply", asked.heat_map, heat_map_svg(all.front()));
  if (!asked.roofline.empty())
    programs::write_whole("multiply", asked.roofline, roofline_svg(all, with));
  bool wrong = false;
  for (const problem& of : all)
    for (const outcome& by : of.outcomes) wrong = wrong || by.verified.starts_with("WRONG");
  if (far::rank() == 0) {
    if (asked.json)
      std::printf("%s\n", json_of(all, with, asked).c_str());
    else
      for (const problem& of : all) print(of, asked);
  }
  return wrong ? 1 : 0;
}

}  // namespace

}  // namespace multiply_program

int main(int argc, char** argv) {
  return programs::run_program<far::matrix_file_error>("multiply", argc, argv,
                                                       multiply_program::run_program);
}

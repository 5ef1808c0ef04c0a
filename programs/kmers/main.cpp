// Counts the k-mers of FASTA and FASTQ files.
#include <common/genome/command_line.hpp>
#include <common/genome/kmer.hpp>
#include "job.hpp"

#include <cstdio>

namespace {

constexpr const char* help = R"(usage: farside kmers [-n RANKS] [options] FILE...

Counts the k-mers of FASTA and FASTQ files, plain or compressed by gzip; - is standard input. A k-mer
and its reverse complement are the same. Anything but acgtACGT ends a k-mer. One of the files that are
written may be -, standard output; then nothing else is printed.

  -k N                 length of k-mers, 1 to 127 (31)
  --min-count N        keep those seen at least so often (1)
  --max-count N        keep those seen at most so often
  -o, --output FILE    write k-mers and counts, sorted, in binary
  --tsv FILE           write k-mers and counts as text
  --histogram FILE     write how many k-mers were seen how often
  --histogram-max N    its last line is for all that were seen more often (10000)
  --extensions         also count which bases come before and after each k-mer, for --output
  --ufx FILE           write k-mers and the bases around them as text, as Meraculous has it
  --min-extension N    a base around a k-mer counts if it was seen so often (2), for --ufx
  --bloom              keep most of those seen once out of memory; --min-count is at least 2
  --memory SIZE        what all ranks together may use, such as 4G
  --passes N           read the files N times, and keep one Nth of the k-mers in memory each time (1 to 16)
  --device             count on GPUs, in a map in their memory; -k is at most 31, and of the files there is
                       --histogram alone. Needs a build with CUDA (docs/gpu.md)
  --times              print how long reading and counting took; with --device one waits for the other then
)";

int run(int argc, char** argv) {
  genome::command_line given(argc, argv,
                             {"k", "min-count", "max-count", "output", "tsv", "histogram",
                              "histogram-max", "ufx", "min-extension", "memory", "passes"},
                             {"help", "extensions", "bloom", "device", "times"});
  if (given.has("help")) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  count_job job;
  job.k = static_cast<unsigned>(given.number("k", 31, 1, genome::longest_k));
  job.bloom = given.has("bloom");
  job.least = static_cast<std::uint32_t>(
      given.number("min-count", job.bloom ? 2 : 1, job.bloom ? 2 : 1, job.most));
  job.most = static_cast<std::uint32_t>(given.number("max-count", job.most, job.least, job.most));
  job.longest_histogram =
      static_cast<std::uint32_t>(given.number("histogram-max", job.longest_histogram, 1, 1 << 24));
  job.passes = static_cast<unsigned>(given.number("passes", 1, 1, 16));
  job.memory = given.bytes("memory", 0);
  job.histogram = given.text("histogram");
  job.tsv = given.text("tsv");
  job.ufx = given.text("ufx");
  job.output = given.text("output");
  job.extensions = given.has("extensions") || !job.ufx.empty();
  job.least_extension = static_cast<std::uint32_t>(given.number("min-extension", 2, 1, 65535));
  if (job.to_standard_output() > 1)
    genome::fail(
        "only one of --output, --tsv, --histogram and --ufx can go to standard output (-)");
  if (given.files().empty()) genome::fail("no file is given; --help says how");
  job.device = given.has("device");
  job.times = given.has("times");
  if (job.device && job.k > 31)
    genome::fail("--device counts k-mers of at most 31 bases, and -k is ", job.k,
                 "; count them without --device");
  if (job.device && (job.bloom || job.extensions || job.passes > 1 || job.memory != 0 ||
                     !job.tsv.empty() || !job.output.empty()))
    genome::fail(
        "--device goes with -k, --min-count, --max-count, --histogram and --histogram-max alone; "
        "count "
        "without --device for the other options");
  job.files = genome::look_at_all(given.files());
  for (const auto& file : job.files)
    if (file.kind == genome::input_kind::stream && job.passes > 1)
      genome::fail(file.name, ": cannot be read ", job.passes, " times, as --passes asks");

  if (job.device) {
    count_kmers_on_device(job);
  } else if (job.k <= 32) {
    job.extensions ? count_kmers<1, true>(job) : count_kmers<1, false>(job);
  } else if (job.k <= 64) {
    job.extensions ? count_kmers<2, true>(job) : count_kmers<2, false>(job);
  } else {
    job.extensions ? count_kmers<4, true>(job) : count_kmers<4, false>(job);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return genome::run_program("farside kmers", argc, argv, run); }

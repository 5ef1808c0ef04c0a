// Makes contigs of reads, or of k-mers.
#include <common/genome/command_line.hpp>
#include <common/genome/kmer.hpp>
#include "job.hpp"
#include "kmer_files.hpp"

#include <cstdio>

namespace {

constexpr const char* help = R"(usage: farside contigs [-n RANKS] [options] -o FILE FILE...

Makes contigs: the maximal paths without branches of the de Bruijn graph, written as FASTA in an
order that does not depend on the number of ranks.

  -o, --output FILE    write contigs here; - is standard output, where nothing else is printed then
  -k N                 length of k-mers, 1 to 127 (31); files of k-mers know theirs, and -k may only agree
  --min-count N        leave out k-mers seen less often: of reads 2 if nothing is said, as what was seen once
                       is mostly errors; of --from kmers the file's own --min-count, so all that it
                       holds; UFX files have no counts to go by
  --min-length N       leave out contigs of fewer bases
  --from reads         the files are FASTA or FASTQ, plain or compressed; - is standard input (this is meant if
                       nothing is said)
  --from kmers         the files are those of 'farside kmers --output'
  --from ufx           the files have lines 'KMER tab two of ACGTFX', as Meraculous has it
  --from ufx-binary    the same in binary; -k must be given
  --table map|store    keep the graph in a far::hash_map, or in a far::store; the output is the same (map)
  --collisions         also print how many k-mers lie in the table where another one's place was
  --memory SIZE        what k-mers of reads may take on all ranks together, such as 4G
)";

int run(int argc, char** argv) {
  genome::command_line given(argc, argv,
                             {"output", "k", "min-count", "min-length", "from", "table", "memory"},
                             {"collisions", "help"});
  if (given.has("help")) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  contig_job job;
  std::string from = given.text("from", "reads");
  if (from == "reads")
    job.from = origin::reads;
  else if (from == "kmers")
    job.from = origin::kmers;
  else if (from == "ufx")
    job.from = origin::ufx_text;
  else if (from == "ufx-binary")
    job.from = origin::ufx_binary;
  else
    genome::fail("option --from: '", from, "' is none of reads, kmers, ufx, ufx-binary");
  const std::string table = given.text("table", "map");
  if (table != "map" && table != "store")
    genome::fail("option --table: '", table, "' is neither map nor store");
  job.in_store = table == "store";
  job.collisions = given.has("collisions");
  job.k = static_cast<unsigned>(given.number("k", 31, 1, genome::longest_k));
  job.least = static_cast<std::uint32_t>(
      given.number("min-count", job.from == origin::reads ? 2 : 1, 1, 0xffff'ffff));
  job.shortest = given.number("min-length", 0, 0, ~std::uint64_t{0});
  job.memory = given.bytes("memory", 0);
  job.output = given.text("output");
  if (given.has("min-count") && (job.from == origin::ufx_text || job.from == origin::ufx_binary))
    genome::fail("--min-count: of --from ", from,
                 " it is not known how often k-mers were seen; leave it out");
  if (job.output.empty()) genome::fail("-o FILE is needed: where to write contigs");
  if (given.files().empty()) genome::fail("no file is given; --help says how");
  if (job.from == origin::reads) {
    job.files = genome::look_at_all(given.files());
  } else {
    job.names = given.files();
    genome::together([&] {
      for (const std::string& name : job.names) graph::size_of_file(name);
      if (job.from == origin::kmers) {
        auto header = graph::header_of(job.names.front());
        if (given.has("k") && job.k != header.k)
          genome::fail("-k ", job.k, ": ", job.names.front(), " holds k-mers of length ", header.k,
                       "; leave -k out, or count k-mers of that length");
        job.k = header.k;
        if (given.has("min-count")) graph::require_counts(job.names, job.least);
      }
      if (job.from == origin::ufx_text && !given.has("k"))
        job.k = graph::k_of_ufx(job.names.front());
    });
  }
  if (job.k <= 32)
    make_contigs<1>(job);
  else if (job.k <= 64)
    make_contigs<2>(job);
  else
    make_contigs<4>(job);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return genome::run_program("farside contigs", argc, argv, run); }

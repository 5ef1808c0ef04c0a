// Makes genomes with repeats, and reads of them with errors: the same from the same seed, on any
// number of ranks.
#include <common/genome/command_line.hpp>
#include <common/genome/kmer.hpp>
#include <common/genome/output_file.hpp>
#include <common/genome/scan.hpp>
#include <common/genome/simulation.hpp>

#include <cmath>
#include <cstdio>
#include <optional>

namespace {

constexpr const char* help = R"(usage: farside simulate [-n RANKS] [options] NAME

Makes a random genome and reads of it, from both strands and with errors (wrong bases). Writes
NAME.genome.fa and NAME.reads.fq, the same bytes for the same options, whatever the number of ranks.

  --length N           bases of the genome (100000)
  --repeats N          how many pieces of it are copies of others, on either strand (10)
  --repeat-length N    how long these are (500)
  --genome FILE        take this FASTA file as the genome instead (only reads are written)
  --circular           reads also run over the end of the genome to its beginning
  --coverage X         how often a base is read, on average (30)
  --read-length N      bases of a read (150)
  --error X            share of wrong bases (0.01)
  --seed N             (1)
)";

/// All sequences of a FASTA file, one after another.
std::string read_genome(const std::string& name) {
  std::string result;
  try {
    genome::text_source source(name);
    genome::text_window text(source);
    if (text.more() && *text.begin() != '>') genome::fail("is no FASTA file");
    for (genome::line l; (l = genome::line_at(text, 0)).size != genome::no_line;) {
      if (l.size > 0 && *l.begin != '>')
        for (std::size_t i = 0; i < l.size; ++i) {
          unsigned code = genome::code_of[static_cast<unsigned char>(l.begin[i])];
          result.push_back(code < 4 ? "ACGT"[code] : 'N');
        }
      text.skip(l.next);
    }
  } catch (const genome::failure& e) {
    genome::fail(name, ": ", e.what());
  }
  return result;
}

std::string fasta_of(const std::string& bases) {
  std::string text = ">genome\n";
  for (std::size_t i = 0; i < bases.size(); i += 70) text += bases.substr(i, 70) += '\n';
  return text;
}

int run(int argc, char** argv) {
  genome::command_line given(
      argc, argv,
      {"length", "repeats", "repeat-length", "genome", "coverage", "read-length", "error", "seed"},
      {"help", "circular"});
  if (given.has("help")) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  if (given.files().size() != 1) genome::fail("give one NAME; --help says how");
  const std::string& name = given.files()[0];
  std::uint64_t seed = given.number("seed", 1, 0, ~std::uint64_t{0});
  std::uint64_t length = given.number("length", 100000, 1, std::uint64_t{1} << 36);
  std::uint64_t repeats = given.number("repeats", 10, 0, length);
  std::uint64_t repeat_length = given.number("repeat-length", 500, 1, length);
  std::uint64_t read_length = given.number("read-length", 150, 1, 1 << 24);
  double coverage = given.real("coverage", 30, 0, 1e6);
  double error = given.real("error", 0.01, 0, 1);

  std::string bases;
  genome::together([&] {
    bases = given.has("genome") ? read_genome(given.text("genome"))
                                : genome::make_genome(length, repeats, repeat_length, seed);
    if (bases.size() < read_length)
      genome::fail("reads of ", read_length, " bases are longer than the genome of ", bases.size());
  });
  std::optional<genome::output_file> genome_file;
  if (!given.has("genome")) {
    genome_file.emplace(name + ".genome.fa");
    genome_file->write_in_order(0, far::rank() == 0 ? fasta_of(bases) : std::string());
  }
  genome::output_file file(name + ".reads.fq");
  genome::read_maker maker{bases, read_length, error, given.has("circular"), seed};
  auto reads = static_cast<std::uint64_t>(std::llround(
      coverage * static_cast<double>(bases.size()) / static_cast<double>(read_length)));
  genome::together([&] {
    std::uint64_t first = reads * far::rank() / far::nprocs(),
                  end = reads * (far::rank() + 1) / far::nprocs();
    std::uint64_t at = reads == 0 ? 0 : first * maker.record(0).size();
    std::string text;
    for (std::uint64_t i = first; i < end; ++i) {
      text += maker.record(i);
      if (text.size() < std::size_t{1} << 20 && i + 1 < end) continue;
      file.write_at(at, text);
      at += text.size();
      text.clear();
    }
  });
  if (genome_file) genome_file->publish();
  file.publish();
  if (far::rank() == 0)
    std::printf("genome           %12zu\nreads            %12llu\n", bases.size(),
                static_cast<unsigned long long>(reads));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return genome::run_program("farside simulate", argc, argv, run); }

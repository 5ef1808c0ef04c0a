// From a genome to reads of it and back, by all ranks together: what `simulate`, `kmers` and
// `contigs` do with files, in memory, and compared with the truth.
#include <common/genome/collector.hpp>
#include <common/genome/count_table.hpp>
#include <common/genome/histogram.hpp>
#include <common/genome/simulation.hpp>
#include <common/stopwatch.hpp>
#include <contigs/nodes.hpp>
#include <contigs/walk.hpp>
#include "compare.hpp"
#include "plot.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr const char* help =
    R"(usage: farside demo [-n RANKS] [--backend smp|mpi|openmpi|mpich|shmem]

Makes a genome with repeats and reads of it with errors, counts their k-mers, assembles contigs, and
compares these with the genome; then shows where communication went. On 4 ranks unless -n says
otherwise. Ends with status 1 if a contig is wrong.
)";

constexpr std::uint64_t genome_length = 500'000, repeats = 60, repeat_length = 700, seed = 2019;
constexpr std::uint64_t read_length = 150, coverage = 40;
constexpr double error = 0.01;
constexpr unsigned k = 31;
constexpr std::uint64_t read_count = coverage * genome_length / read_length;
constexpr std::uint32_t longest_column = 60;

/// Collective: this rank's reads, cut into super-k-mers, and what others sent to this one.
genome::superkmer_store make_reads(const std::string& bases) {
  genome::read_maker maker{bases, read_length, error, false, seed};
  genome::collector collector(k);
  std::uint64_t end = read_count * (far::rank() + 1) / far::nprocs();
  for (std::uint64_t i = read_count * far::rank() / far::nprocs(); i < end; ++i) {
    collector.add(maker.make(i).sequence.data(), read_length);
    if (i % 256 == 0) collector.receive();
  }
  collector.finish();
  return collector.take();
}

/// Collective.
genome::histogram count(const genome::superkmer_store& store) {
  genome::histogram seen(longest_column);
  genome::count_table<1, false> table(k);
  for (unsigned p = 0; p < genome::partitioning::count; ++p) {
    if (genome::partitioning::owner(p, far::nprocs()) != far::rank()) continue;
    table.count(store, p, false);
    table.for_each_count([&](std::uint32_t times) { seen.add(times); });
  }
  seen.gather();
  return seen;
}

/// Collective: the contigs that this rank has got, of k-mers seen at least so often.
std::vector<graph::contig> assemble(const genome::superkmer_store& store, std::uint32_t least) {
  auto nodes = graph::counted_nodes<1>(store, k, least);
  using graph_type = graph::debruijn_graph<1, graph::map_table<1>>;
  graph_type graph(k, far::all_reduce<std::uint64_t>(nodes.size()));
  graph.add(nodes);
  graph.find_neighbours();
  graph.find_links();
  return graph::walker<graph_type>(graph).walk_all();
}

void print(const genome::histogram& seen, std::uint32_t least, const demo::comparison& result,
           const programs::stopwatch& watch) {
  std::printf(
      "A genome of %llu bases with %llu repeats; %llu reads of %llu bases, %.0f %% of them "
      "wrong; %u ranks.\n\n",
      static_cast<unsigned long long>(genome_length), static_cast<unsigned long long>(repeats),
      static_cast<unsigned long long>(read_count), static_cast<unsigned long long>(read_length),
      100 * error, far::nprocs());
  std::printf("%llu different k-mers (k = %u), by how often they were seen:\n\n%s\n",
              static_cast<unsigned long long>(seen.different()), k,
              demo::plot(seen, least, longest_column).c_str());
  std::printf(
      "Those seen less than %u times (left of |) are taken for errors; the others make\n"
      "%llu contigs: %llu bases, the longest %llu, half of all in those of %llu and more.\n\n",
      least, static_cast<unsigned long long>(result.contigs),
      static_cast<unsigned long long>(result.bases),
      static_cast<unsigned long long>(result.longest), static_cast<unsigned long long>(result.n50));
  std::printf("Seconds:");
  for (const auto& lap : watch.laps()) std::printf("  %s %.2f", lap.name.c_str(), lap.seconds);
  std::printf("\n\n");
}

/// Collective: what was promised is so. Rank 0 says what is not.
bool verify(const genome::histogram& seen, const demo::comparison& result) {
  std::uint64_t kmers = read_count * (read_length - k + 1);
  bool counted = seen.total() == kmers, exact = result.wrong == 0 && result.contigs > 0;
  bool enough = result.covered >= genome_length / 100 * 99;
  if (far::rank() != 0) return counted && exact && enough;
  if (!counted)
    std::printf("WRONG: the reads have %llu k-mers, but %llu were counted.\n",
                static_cast<unsigned long long>(kmers),
                static_cast<unsigned long long>(seen.total()));
  if (!exact)
    std::printf("WRONG: %llu of %llu contigs are nowhere in the genome.\n",
                static_cast<unsigned long long>(result.wrong),
                static_cast<unsigned long long>(result.contigs));
  double share = 100 * static_cast<double>(result.covered) / static_cast<double>(genome_length);
  if (!enough) std::printf("WRONG: contigs cover %.2f %% of the genome, not 99.\n", share);
  if (counted && exact && enough)
    std::printf(
        "Every contig is, base for base, a piece of the genome or of its other strand.\n"
        "Together they cover %.2f %% of it.\n",
        share);
  return counted && exact && enough;
}

int run() {
  programs::stopwatch watch;
  auto lap = [&](const char* name) { far::barrier(), watch.lap(name); };
  std::string bases = genome::make_genome(genome_length, repeats, repeat_length, seed);
  genome::superkmer_store store = make_reads(bases);
  lap("simulate");
  genome::histogram seen = count(store);
  lap("count");
  std::uint32_t least = demo::valley_of(seen, longest_column);
  std::vector<graph::contig> contigs = assemble(store, least);
  lap("assemble");
  demo::comparison result = demo::compare(bases, contigs);
  lap("compare");
  if (far::rank() == 0) print(seen, least, result, watch);
  return verify(seen, result) ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--help") return std::fputs(help, stdout) < 0;
  if (argc > 1) {
    std::fprintf(stderr, "farside demo: it takes no arguments, but was given '%s'\n", argv[1]);
    return 2;
  }
  setenv("FARSIDE_STATS", "1", 0);  // where the communication went, at the end
  return far::run(argc, argv, run);
}

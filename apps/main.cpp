// The program `farside`: finds the sub-command and prints its errors.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "job.hpp"
#include "run.hpp"
#include "support.hpp"
#include "toolkit/option_reader.hpp"

#ifndef FARSIDE_VERSION
#define FARSIDE_VERSION "0.1.0"
#endif

namespace {

constexpr const char* usage =
    R"(usage: farside command [options]

  run -n N program...   starts a program built for any back end on N ranks
  sim program...        runs a program built for sim under many seeds of an adversary
  sort                  sorts a file on many ranks, or runs the ISx benchmark
  kmers                 counts the k-mers of reads (FASTA, FASTQ)
  contigs               assembles contigs from reads or k-mers
  simulate              makes genomes and reads to try them on
  matrix                makes, converts, shows and checks files of matrices
  multiply              multiplies matrices, dense and sparse, by many algorithms
  wavelets              functions of 1 to 3 dimensions as trees of multiwavelets
  triangles             counts the triangles of a graph
  spmv                  multiplies the Laplacian of a grid with a vector
  scf                   the energy of a small molecule, by the self-consistent field
  demo [-n N]           simulates a genome and reads, counts, assembles, compares
  bench core            measures put, get, atomics and collectives of each back end
  bench containers      measures hash maps, queues and so on beside their floors
  bench messages        measures messages beside one-sided operations, and draws the figures
  bench arrays          measures patches of global arrays, and draws the figures
  doctor                says what this machine has, and what to install for the rest
  --version             prints the version

farside COMMAND --help says more about one of them.
)";

using far::app::arguments;

const std::map<std::string, int (*)(const arguments&)> commands = {
    {"run", far::app::run_command},
    {"bench", far::app::bench_command},
    {"demo", [](const arguments& words) { return far::app::program_command("demo", words, 4); }},
    {"doctor", far::app::doctor_command},
    {"sim", far::app::sim_command},
    {"__rank", far::app::supervise_command},
    {"sort", [](const arguments& words) { return far::app::program_command("sort", words); }},
    {"kmers", [](const arguments& words) { return far::app::program_command("kmers", words); }},
    {"contigs", [](const arguments& words) { return far::app::program_command("contigs", words); }},
    {"matrix", [](const arguments& words) { return far::app::program_command("matrix", words); }},
    {"multiply",
     [](const arguments& words) { return far::app::program_command("multiply", words); }},
    {"wavelets",
     [](const arguments& words) { return far::app::program_command("wavelets", words); }},
    {"triangles",
     [](const arguments& words) { return far::app::program_command("triangles", words); }},
    {"spmv", [](const arguments& words) { return far::app::program_command("spmv", words); }},
    {"scf", [](const arguments& words) { return far::app::program_command("scf", words); }},
    {"simulate",
     [](const arguments& words) { return far::app::program_command("simulate", words); }},
};

int unknown(const std::string& name) {
  arguments names;
  for (const auto& command : commands) names.push_back(command.first);
  std::string meant = far::app::nearest(name, names);
  std::fprintf(stderr, "farside: there is no command '%s'%s; farside --help lists them\n",
               name.c_str(), meant.empty() ? "" : ("; did you mean '" + meant + "'?").c_str());
  return far::app::usage_error;
}

/// Whether all that was printed has been written. Says so, for `command`, if not.
bool written(const std::string& command) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return true;
  std::fprintf(stderr, "farside%s: cannot write to standard output: %s\n", command.c_str(),
               std::strerror(errno));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  arguments words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fputs(usage, stderr);
    return far::app::usage_error;
  }
  std::string name = words[0];
  const bool helps = name == "--help" || name == "-h" || name == "help";
  if (helps || name == "--version") {
    std::fputs(helps ? usage : "farside " FARSIDE_VERSION "\n", stdout);
    return written("") ? far::app::success : far::app::failure;
  }
  auto command = commands.find(name);
  if (command == commands.end()) return unknown(name);
  std::string shown = name == "__rank" ? "run" : name;
  far::app::open_standard_streams();
  try {
    int status = command->second({words.begin() + 1, words.end()});
    if (written(" " + shown)) return status;
    return status == far::app::success ? far::app::failure : status;
  } catch (const far::app::error& refused) {
    std::fprintf(stderr, "farside %s: %s\n", shown.c_str(), refused.what());
    return refused.status;
  } catch (const toolkit::wrong_option& problem) {
    std::fprintf(stderr, "farside %s: %s\n", shown.c_str(), problem.what());
    return far::app::usage_error;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "farside %s: %s\n", shown.c_str(), failed.what());
    return far::app::failure;
  }
}

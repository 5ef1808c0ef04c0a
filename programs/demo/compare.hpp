// Contigs beside the genome that the reads were made of.
#pragma once

#include <common/genome/simulation.hpp>
#include <contigs/walk.hpp>

#include <farside/core/collectives.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace demo {

struct comparison {
  std::uint64_t contigs = 0, wrong = 0;  ///< wrong: found nowhere in the genome, on neither strand
  std::uint64_t bases = 0, longest = 0, n50 = 0;
  std::uint64_t covered = 0;  ///< bases of the genome that a contig has
};

inline std::string other_strand(std::string bases) {
  std::reverse(bases.begin(), bases.end());
  for (char& base : bases) base = genome::complement(base);
  return bases;
}

/// Marks wherever a contig lies; whether it lies anywhere.
inline bool mark(const std::string& genome, const std::string& contig,
                 std::vector<std::uint8_t>& covered) {
  bool found = false;
  for (std::size_t at = 0; (at = genome.find(contig, at)) != genome.npos; ++at) {
    std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(at), contig.size(), 1);
    found = true;
  }
  return found;
}

/// Collective: each rank looks for those that it has made.
inline comparison compare(const std::string& genome, const std::vector<graph::contig>& mine) {
  std::vector<std::uint8_t> covered(genome.size());
  std::vector<std::uint64_t> lengths;
  comparison result;
  for (const graph::contig& c : mine) {
    bool forward = mark(genome, c.bases, covered);
    bool backward = mark(genome, other_strand(c.bases), covered);
    result.wrong += !forward && !backward;
    lengths.push_back(c.bases.size());
  }
  far::all_reduce(std::span(covered), far::maximum());
  for (std::uint8_t one : covered) result.covered += one;
  result.wrong = far::all_reduce(result.wrong);

  std::vector<std::uint64_t> all;
  for (const auto& some : far::all_gather(lengths)) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end(), std::greater<>());
  result.contigs = all.size();
  for (std::uint64_t length : all) result.bases += length;
  std::uint64_t sum = 0;
  for (std::uint64_t length : all) {
    result.longest = all.front();
    result.n50 = length;
    if (2 * (sum += length) >= result.bases) break;
  }
  return result;
}

}  // namespace demo

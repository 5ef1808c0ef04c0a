// Genomes with repeats, and reads of them with errors, from a seed. Read number n is the same on
// whatever rank it is made.
#pragma once

#include "kmer.hpp"

#include <farside/base/random.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

namespace genome {

inline char complement(char base) {
  unsigned code = code_of[static_cast<unsigned char>(base)];
  return code < 4 ? "ACGT"[3 - code] : 'N';
}

/// `repeats` pieces of it are copies of others, on either strand.
inline std::string make_genome(std::uint64_t length, std::uint64_t repeats,
                               std::uint64_t repeat_length, std::uint64_t seed) {
  std::string result(length, 'A');
  far::random_stream random(seed, 0);
  for (char& base : result) base = "ACGT"[random.below(4)];
  repeat_length = std::min(repeat_length, length);
  for (std::uint64_t i = 0; i < repeats; ++i) {
    std::string piece = result.substr(random.below(length - repeat_length + 1), repeat_length);
    if (random.below(2) == 1) {
      std::reverse(piece.begin(), piece.end());
      for (char& base : piece) base = complement(base);
    }
    result.replace(random.below(length - repeat_length + 1), repeat_length, piece);
  }
  return result;
}

/// Reads of a genome, from both strands, with wrong bases.
struct read_maker {
  const std::string& bases;
  std::size_t length;
  double error;
  bool circular;
  std::uint64_t seed;

  struct read {
    std::string sequence, quality;
  };
  read make(std::uint64_t number) const {
    far::random_stream random(seed, number + 1);
    std::size_t places = circular ? bases.size() : bases.size() - length + 1;
    std::size_t at = random.below(places);
    bool reverse = random.below(2) == 1;
    read result{std::string(length, 'N'), std::string(length, 'I')};
    for (std::size_t i = 0; i < length; ++i) {
      std::size_t place = at + (reverse ? length - 1 - i : i);
      char base = bases[place < bases.size() ? place : place - bases.size()];
      if (reverse) base = complement(base);
      if (random.real() < error && base != 'N') {
        base = "ACGT"[(code_of[static_cast<unsigned char>(base)] + 1 + random.below(3)) % 4];
        result.quality[i] = '5';
      }
      result.sequence[i] = base;
    }
    return result;
  }

  /// In FASTQ. All records have the same size: names have the same number of digits.
  std::string record(std::uint64_t number) const {
    char name[32];
    std::snprintf(name, sizeof name, "@read%012llu\n", static_cast<unsigned long long>(number));
    read made = make(number);
    return name + made.sequence + "\n+\n" + made.quality + "\n";
  }
};

}  // namespace genome

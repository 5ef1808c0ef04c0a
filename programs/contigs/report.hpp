// Contigs in an order that does not depend on the ranks that have found them, and their statistics.
#pragma once

#include <common/genome/output_file.hpp>
#include "walk.hpp"

#include <farside/algorithms/exchange.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace graph {

/// Collective: contigs go to ranks by their first bases, so that those of rank 0 come before those
/// of rank 1, and all have about as many bases.
inline std::vector<contig> in_order(std::vector<contig> mine) {
  constexpr std::size_t letters = 6, groups = std::size_t{1} << 2 * letters;
  auto group_of = [](const contig& c) {
    std::size_t group = 0;
    for (std::size_t i = 0; i < letters; ++i)
      group = group << 2 |
              (i < c.bases.size() ? genome::code_of[static_cast<unsigned char>(c.bases[i])] : 0u);
    return group;
  };
  std::vector<std::uint64_t> bases(groups);
  for (const contig& c : mine) bases[group_of(c)] += c.bases.size();
  far::all_reduce(std::span(bases));
  std::uint64_t total = std::accumulate(bases.begin(), bases.end(), std::uint64_t{0}), before = 0;
  std::vector<far::rank_t> owner(groups);
  for (std::size_t i = 0; i < groups; before += bases[i++])
    owner[i] = total == 0 ? 0 : static_cast<far::rank_t>(before * far::nprocs() / total);

  using parcel = std::tuple<std::string, std::uint64_t, bool>;
  std::vector<contig> result;
  auto take = [&](std::span<const parcel> some) {
    for (const auto& [text, count, circular] : some) result.push_back({text, count, circular});
  };
  far::exchange<parcel> mail;
  for (contig& c : mine) {
    far::rank_t to = owner[group_of(c)];
    if (to == far::rank())
      result.push_back(std::move(c));
    else
      mail.send(to, parcel(c.bases, c.count, c.circular), take);
  }
  mail.finish(take);
  std::sort(result.begin(), result.end(),
            [](const contig& a, const contig& b) { return a.bases < b.bases; });
  return result;
}

/// Collective: FASTA, numbered from 0. LN: bases, KC: sum of counts, km: mean count.
inline void write_fasta(genome::output_file& file, const std::vector<contig>& contigs, unsigned k) {
  std::uint64_t number = far::exclusive_scan<std::uint64_t>(contigs.size());
  std::string text;
  for (const contig& c : contigs) {
    char header[128];
    double mean = static_cast<double>(c.count) / static_cast<double>(c.bases.size() - k + 1);
    std::snprintf(header, sizeof header, ">%" PRIu64 " LN:i:%zu", number++, c.bases.size());
    text += header;
    if (c.count != 0) {
      std::snprintf(header, sizeof header, " KC:i:%" PRIu64 " km:f:%.1f", c.count, mean);
      text += header;
    }
    if (c.circular) text += " circular";
    text += '\n';
    text += c.bases;
    text += '\n';
  }
  file.write_in_order(0, text);
  file.publish();
}

/// Collective: rank 0 prints it.
inline void print_statistics(const std::vector<contig>& contigs) {
  std::vector<std::uint64_t> lengths;
  std::uint64_t circular = 0;
  for (const contig& c : contigs) lengths.push_back(c.bases.size()), circular += c.circular;
  circular = far::all_reduce(circular);
  std::vector<std::uint64_t> all;
  for (const auto& some : far::gather(lengths, 0)) all.insert(all.end(), some.begin(), some.end());
  if (far::rank() != 0) return;
  std::sort(all.begin(), all.end(), std::greater<>());
  std::uint64_t total = std::accumulate(all.begin(), all.end(), std::uint64_t{0}), sum = 0, n50 = 0;
  for (std::uint64_t length : all) {
    sum += length;
    n50 = length;
    if (2 * sum >= total) break;
  }
  std::printf("contigs          %12zu\n", all.size());
  std::printf("circular         %12" PRIu64 "\n", circular);
  std::printf("bases            %12" PRIu64 "\n", total);
  std::printf("longest          %12" PRIu64 "\n", all.empty() ? 0 : all.front());
  std::printf("N50              %12" PRIu64 "\n", n50);
}

/// Rank 0 prints it.
inline void print_collisions(const collisions& of) {
  if (far::rank() != 0) return;
  const double keys = of.keys == 0 ? 1 : static_cast<double>(of.keys);
  std::printf("home is another's%11.2f %%\n", 100 * static_cast<double>(of.displaced) / keys);
  std::printf("further gets a key%11.4f\n", static_cast<double>(of.further_gets) / keys);
  std::printf("equal hashes     %12" PRIu64 "\n", of.equal_hashes);
}

}  // namespace graph

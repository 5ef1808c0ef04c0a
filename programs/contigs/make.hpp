// Contigs, written once for all lengths of k-mers; make_*.cpp make it for some.
#pragma once

#include "origins.hpp"
#include "report.hpp"

template <unsigned Words>
void make_contigs(const contig_job& job) {
  genome::output_file file(job.output);
  graph::node_list<Words> nodes;
  if (job.from == origin::reads)
    nodes = graph::nodes_from_reads<Words>(job);
  else
    genome::together([&] {
      nodes = job.from == origin::kmers      ? graph::nodes_from_kmer_file<Words>(job)
              : job.from == origin::ufx_text ? graph::nodes_from_ufx_text<Words>(job)
                                             : graph::nodes_from_ufx_binary<Words>(job);
    });

  graph::debruijn_graph<Words> graph(job.k, far::all_reduce<std::uint64_t>(nodes.size()));
  graph.add(nodes);
  nodes = {};
  if (job.from == origin::reads || job.from == origin::kmers) graph.find_neighbours();
  graph.find_links();
  std::vector<graph::contig> contigs = graph::walker<Words>(graph).walk_all();
  std::erase_if(contigs, [&](const graph::contig& c) { return c.bases.size() < job.shortest; });
  contigs = graph::in_order(std::move(contigs));
  graph::write_fasta(file, contigs, job.k);
  if (!programs::is_standard_output(job.output)) graph::print_statistics(contigs);
}

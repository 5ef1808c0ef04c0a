// Contigs, written once for all lengths of k-mers; make_*.cpp make it for some.
#pragma once

#include "origins.hpp"
#include "report.hpp"

/// Collective: those that this rank has got, of a graph in a table of that kind.
template <unsigned Words, class Table>
std::vector<graph::contig> contigs_of(const contig_job& job, graph::node_list<Words> nodes,
                                      graph::collisions& collisions) {
  using graph_type = graph::debruijn_graph<Words, Table>;
  graph_type graph(job.k, far::all_reduce<std::uint64_t>(nodes.size()));
  graph.add(nodes);
  nodes = {};
  if (job.from == origin::reads || job.from == origin::kmers) graph.find_neighbours();
  graph.find_links();
  if (job.collisions) collisions = graph.nodes().count_collisions();
  return graph::walker<graph_type>(graph).walk_all();
}

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

  std::vector<graph::contig> contigs;
  graph::collisions collisions;
  if (job.in_store)
    contigs = contigs_of<Words, graph::store_table<Words>>(job, std::move(nodes), collisions);
  else
    contigs = contigs_of<Words, graph::map_table<Words>>(job, std::move(nodes), collisions);
  std::erase_if(contigs, [&](const graph::contig& c) { return c.bases.size() < job.shortest; });
  contigs = graph::in_order(std::move(contigs));
  graph::write_fasta(file, contigs, job.k);
  if (!programs::is_standard_output(job.output)) {
    graph::print_statistics(contigs);
    if (job.collisions) graph::print_collisions(collisions);
  }
}

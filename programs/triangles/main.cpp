// Counts the triangles of a graph.
#include "count.hpp"

#include <common/run_program.hpp>
#include <farside/algorithms/matrix_files.hpp>
#include <farside/algorithms/matrix_generators.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace triangles_program {

namespace {

constexpr const char* help = R"(usage: farside triangles [-n RANKS] [options] [FILE]

Counts the triangles of an undirected graph: an R-MAT graph, or that of FILE, which is Matrix Market (.mtx), an edge
list (.el, .edges, .txt, .tsv) or binary (.fsm). The edges are one global array in compressed rows. Each rank has an even
part of the vertices, and gets the neighbour lists that others have, one at a time. Directions of edges do not count;
edges from a vertex to itself are left out, and repeated ones count once.

Options:

      --scale S        an R-MAT graph of 2^S vertices (14)
      --edge-factor F  and F edges for each of them (16)
      --seed N         of the R-MAT graph (1)
      --one-based      vertices of edge lists count from 1, not from 0
      --verify         rank 0 counts once more, alone and in another way
      --json           prints all figures as JSON

)";

struct request {
  unsigned scale = 14;
  double edge_factor = 16;
  std::uint64_t seed = 1;
  std::string file;
  bool one_based = false, verify = false, json = false, help = false, of_rmat = false;
};

request parse(const std::vector<std::string>& words) {
  request result;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (in.is_operand()) {
      if (!result.file.empty())
        throw toolkit::wrong_option("two files, " + result.file + " and " + in.text() +
                                    ": give one graph");
      result.file = in.text();
    } else if (in.is("-h", "--help")) {
      in.no_value(), result.help = true;
    } else if (in.is("--scale")) {
      result.scale = static_cast<unsigned>(toolkit::whole_number(in.name(), in.value(), 0, 30));
      result.of_rmat = true;
    } else if (in.is("--edge-factor")) {
      result.edge_factor = toolkit::real_number(in.name(), in.value(), 0, 1e6);
      result.of_rmat = true;
    } else if (in.is("--seed")) {
      result.seed = toolkit::whole_number(in.name(), in.value(), 0, ~std::uint64_t{0});
      result.of_rmat = true;
    } else if (in.is("--one-based")) {
      in.no_value(), result.one_based = true;
    } else if (in.is("--verify")) {
      in.no_value(), result.verify = true;
    } else if (in.is("--json")) {
      in.no_value(), result.json = true;
    } else {
      programs::refuse_option(in.name(), {"--scale", "--edge-factor", "--seed", "--one-based",
                                          "--verify", "--json", "--help"});
    }
  }
  if (!result.file.empty() && result.of_rmat)
    throw toolkit::wrong_option(result.file +
                                " is a graph already; leave out the options of R-MAT graphs");
  if (result.file.empty() && result.one_based)
    throw toolkit::wrong_option("--one-based is for edge lists; give one");
  return result;
}

struct input {
  std::size_t vertices = 0;
  std::uint64_t in_file = 0;  ///< entries that were given, before those of one place are one
  std::vector<edge> edges;
};

/// Collective over a team: entries at the owners of their rows, each place once.
input edges_of(const request& asked, const far::team& over) {
  input result;
  std::vector<far::triplet<bool>> entries;
  auto by_rows = [&](const far::matrix_shape& shape) {
    return [rows = shape.rows, members = over.size()](std::size_t row, std::size_t) {
      return static_cast<far::rank_t>(far::even_part_of(rows, row, members));
    };
  };
  if (asked.file.empty()) {
    const auto graph =
        far::rmat({.scale = asked.scale, .edge_factor = asked.edge_factor, .seed = asked.seed});
    entries = far::generate<bool>(graph, by_rows(graph.shape()), over);
    result.vertices = graph.shape().rows;
    result.in_file = graph.entries();
  } else {
    far::matrix_read_options how;
    how.duplicates = far::duplicate_entries::first;
    how.first_vertex = asked.one_based ? 1 : 0;
    auto all = far::read_matrix<bool>(asked.file, by_rows, how, over);
    if (all.shape.rows != all.shape.columns)
      throw far::error(far::text("farside: ", asked.file, " is a matrix of ", all.shape,
                                 ": only a square one is a graph"));
    if (all.shape.rows > std::size_t{1} << 32)
      throw far::error(
          far::text("farside: ", asked.file, " has ", all.shape.rows,
                    " vertices; this program has 32 bits for each, 4294967296 at most"));
    entries = std::move(all.entries);
    result.vertices = all.shape.rows;
    result.in_file = all.file.entries;
  }
  for (const auto& e : entries)
    result.edges.push_back({static_cast<vertex>(e.row), static_cast<vertex>(e.column)});
  return result;
}

int run(const std::vector<std::string>& words) {
  const request asked = parse(words);
  if (asked.help) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  input given;
  graph g;
  const double reading = programs::timed([&] {
    given = edges_of(asked, far::world());
    far::barrier();
  });
  const double building =
      programs::timed([&] { g = make_graph(given.vertices, std::move(given.edges)); });
  const std::uint64_t places = g.loops + g.repeated + g.edges,
                      twice = given.in_file > places ? given.in_file - places : 0;
  const counted mine = count(g);
  const double waiting = programs::timed([] { far::barrier(); });
  const std::uint64_t triangles = far::all_reduce(mine.triangles);

  programs::rank_figures figures;
  figures.seconds(asked.file.empty() ? "making" : "reading", reading);
  figures.seconds("building", building);
  figures.seconds("counting", mine.seconds);
  figures.seconds("gets", mine.in_gets);
  figures.seconds("waiting", waiting);
  figures.count("lists", mine.lists);
  figures.count("bytes", mine.bytes);
  figures.count("triangles", mine.triangles);

  bool same = true;
  std::uint64_t serial = 0;
  if (asked.verify) {
    far::team alone = far::world().split(far::rank() == 0 ? 0 : -1);
    if (far::rank() == 0) {
      const input all = edges_of(asked, alone);
      serial = count_serially(all.vertices, all.edges);
      same = serial == triangles;
    }
    same = far::broadcast(same, 0);
    serial = far::broadcast(serial, 0);
  }
  if (asked.json) {
    far::json_writer out;
    out.begin_object();
    out.key("vertices").value(g.vertices).key("edges").value(g.edges);
    out.key("entries").value(given.in_file).key("loops").value(g.loops);
    out.key("repeated").value(g.repeated + twice).key("triangles").value(triangles);
    if (asked.verify) out.key("serial").value(serial);
    programs::write_json(out, figures);
    out.end_object();
    if (far::rank() == 0) std::printf("%s\n", out.text().c_str());
  } else {
    const std::string table = programs::table_of(figures);
    if (far::rank() == 0) {
      using toolkit::grouped;
      std::printf("%s vertices, %s edges: %s triangles\n", grouped(g.vertices).c_str(),
                  grouped(g.edges).c_str(), grouped(triangles).c_str());
      if (g.loops != 0)
        std::printf("entries left out: %s, from a vertex to itself\n", grouped(g.loops).c_str());
      if (g.repeated + twice != 0)
        std::printf("entries counted once: %s given again, %s in the other direction\n",
                    grouped(twice).c_str(), grouped(g.repeated).c_str());
      std::printf("%s", table.c_str());
      if (asked.verify && same) std::printf("verified: a serial count finds as many\n");
    }
  }
  if (!same)
    throw far::refusal(far::text("farside triangles: WRONG: ", far::nprocs(), " ranks count ",
                                 triangles, " triangles, and one rank alone ", serial));
  return 0;
}

}  // namespace

}  // namespace triangles_program

int main(int argc, char** argv) {
  return programs::run_program("triangles", argc, argv, triangles_program::run);
}

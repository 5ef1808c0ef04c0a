// An undirected graph over all ranks, whose edges are one far::global_array: for each vertex the
// neighbours that come behind it, by degree and then by number, in ascending numbers. Each triangle
// has one first vertex, so that it is counted once; and few vertices have many behind them.
//
//   edges   | 3 7 9 | 7 | 2 9 | ...      the lists of one vertex after another
//   begins  0       3   4     6          where each begins, in a second global array
//
// A rank has an even part of the vertices, and their lists.
#pragma once

#include <farside/algorithms/exchange.hpp>
#include <farside/containers/global_array.hpp>
#include <farside/containers/matrix_part.hpp>
#include <farside/core/collectives.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace triangles_program {

using vertex = std::uint32_t;

struct edge {
  vertex a, b;
  auto operator<=>(const edge&) const = default;
};

struct graph {
  std::size_t vertices = 0;
  std::uint64_t edges = 0, loops = 0, repeated = 0;
  far::index_range mine;              ///< vertices of this rank
  std::vector<std::uint64_t> begins;  ///< of their lists in `lists`, and where the last one ends
  std::optional<far::global_array<vertex, 1>> lists;
  std::optional<far::global_array<std::uint64_t, 1>> where;  ///< begins of all
};

inline far::rank_t owner_of(std::size_t vertices, vertex v) {
  return static_cast<far::rank_t>(far::even_part_of(vertices, v, far::nprocs()));
}

/// Collective: sends each edge to an owner, and returns those that came here, in order.
template <class Owner>
std::vector<edge> at_owners(std::span<const edge> edges, Owner owner) {
  far::exchange<edge> mail;
  std::vector<edge> result;
  auto take = [&](std::span<const edge> some) {
    result.insert(result.end(), some.begin(), some.end());
  };
  for (const edge& e : edges) mail.send(owner(e), e, take);
  mail.finish(take);
  std::sort(result.begin(), result.end());
  return result;
}

/// Where blocks begin that are those of the ranks: this rank's has n elements. Collective.
inline std::vector<std::vector<std::size_t>> starts_of(std::uint64_t n) {
  std::vector<std::uint64_t> each = far::all_gather(n);
  std::vector<std::size_t> starts{0};
  for (std::size_t r = 0; r + 1 < each.size(); ++r) starts.push_back(starts.back() + each[r]);
  return {starts};
}

/// Collective: how many edges the vertices have at which this rank's edges end, in their order:
/// first both ends of the first edge.
inline std::vector<std::uint32_t> degrees_of(std::size_t vertices, std::span<const edge> edges) {
  far::global_array<std::uint32_t, 1> degrees(vertices);
  std::vector<far::array_index<1>> ends;
  for (const edge& e : edges) ends.push_back(e.a), ends.push_back(e.b);
  degrees.scatter_add(ends, std::vector<std::uint32_t>(ends.size(), 1));
  far::barrier();
  std::vector<std::uint32_t> result(ends.size());
  degrees.gather(ends, result);
  return result;
}

/// Collective: of edges that ranks have in any way, in both directions or in one.
inline graph make_graph(std::size_t vertices, std::vector<edge> given) {
  graph g;
  g.vertices = vertices;
  g.mine = far::even_part(vertices, far::rank(), far::nprocs());
  const std::uint64_t all = far::all_reduce(std::uint64_t{given.size()});
  std::erase_if(given, [](const edge& e) { return e.a == e.b; });
  g.loops = all - far::all_reduce(std::uint64_t{given.size()});
  for (edge& e : given)
    if (e.a > e.b) std::swap(e.a, e.b);
  auto of_first = [&](const edge& e) { return owner_of(vertices, e.a); };
  std::vector<edge> edges = at_owners(given, of_first);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  g.edges = far::all_reduce(std::uint64_t{edges.size()});
  g.repeated = all - g.loops - g.edges;

  const std::vector<std::uint32_t> degrees = degrees_of(vertices, edges);
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (degrees[2 * i] > degrees[2 * i + 1]) std::swap(edges[i].a, edges[i].b);
  edges = at_owners(edges, of_first);

  g.lists.emplace(
      g.edges, far::global_array_options<1>{.distribution = far::irregular(starts_of(edges.size())),
                                            .name = "the edges"});
  g.where.emplace(vertices, far::global_array_options<1>{
                                .distribution = far::irregular(starts_of(g.mine.size())),
                                .name = "where lists begin"});
  auto own = g.lists->local();
  const auto first = static_cast<std::uint64_t>(own.block().first[0]);
  g.begins.assign(g.mine.size() + 1, first + edges.size());
  for (std::size_t i = edges.size(); i-- > 0;) {
    own.data()[i] = edges[i].b;
    g.begins[edges[i].a - g.mine.first] = first + i;
  }
  for (std::size_t v = g.mine.size(); v-- > 0;)  // those without a list
    g.begins[v] = std::min(g.begins[v], g.begins[v + 1]);
  std::copy_n(g.begins.begin(), g.mine.size(), g.where->local().data());
  far::barrier();
  return g;
}

}  // namespace triangles_program

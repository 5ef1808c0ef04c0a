// Counting triangles: for each vertex u of this rank, and each neighbour v behind it, the common
// ones of their lists. The list of v comes by a get into a buffer that is used again.
#pragma once

#include "graph.hpp"

#include <common/rank_figures.hpp>

namespace triangles_program {

struct counted {
  std::uint64_t triangles = 0;  ///< of this rank's vertices
  std::uint64_t lists = 0, bytes = 0;
  double seconds = 0, in_gets = 0;
};

inline std::uint64_t common(std::span<const vertex> a, std::span<const vertex> b) {
  std::uint64_t result = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const vertex x = a[i], y = b[j];
    result += x == y;
    i += x <= y, j += y <= x;
  }
  return result;
}

/// Where the lists of some vertices begin and end.
class list_places {
 public:
  /// One-sided: gets them all together.
  list_places(const graph& g, std::span<const vertex> of) : known_(of.begin(), of.end()) {
    std::sort(known_.begin(), known_.end());
    known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
    std::vector<far::array_index<1>> wanted;
    for (vertex v : known_) {
      wanted.push_back(v);
      if (v + std::size_t{1} < g.vertices) wanted.push_back(v + std::size_t{1});
    }
    std::vector<std::uint64_t> read(wanted.size());
    g.where->gather(wanted, read);
    if (read.size() < 2 * known_.size()) read.push_back(g.edges);  // the last vertex of all
    begins_ = std::move(read);
  }
  std::pair<std::uint64_t, std::uint64_t> operator[](vertex v) const {
    auto at = static_cast<std::size_t>(std::lower_bound(known_.begin(), known_.end(), v) -
                                       known_.begin());
    return {begins_[2 * at], begins_[2 * at + 1]};
  }

 private:
  std::vector<vertex> known_;
  std::vector<std::uint64_t> begins_;  ///< where the list of known_[i] begins, and where it ends
};

/// Counts those whose first vertex this rank has. One-sided; all ranks do so at the same time.
inline counted count(const graph& g) {
  using clock = std::chrono::steady_clock;
  counted result;
  const auto begin = clock::now();
  auto own = g.lists->local();
  const std::span<const vertex> mine(own.data(), own.size());
  const auto first = static_cast<std::uint64_t>(own.block().first[0]);
  const list_places places(g, mine);
  std::vector<vertex> buffer;
  for (std::size_t u = 0; u < g.mine.size(); ++u) {
    const auto list = mine.subspan(g.begins[u] - first, g.begins[u + 1] - g.begins[u]);
    for (vertex v : list) {
      const auto [from, to] = places[v];
      if (from == to) continue;
      std::span<const vertex> theirs;
      if (from >= first && to <= first + mine.size()) {
        theirs = mine.subspan(from - first, to - from);
      } else {
        buffer.resize(std::max<std::size_t>(buffer.size(), to - from));
        const auto before = clock::now();
        g.lists->get({from, to}, std::span(buffer).first(to - from));
        result.in_gets += std::chrono::duration<double>(clock::now() - before).count();
        ++result.lists, result.bytes += (to - from) * sizeof(vertex);
        theirs = std::span(buffer).first(to - from);
      }
      result.triangles += common(list, theirs);
    }
  }
  result.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  return result;
}

/// On one rank, of all edges as they were given, in another way: neighbours behind a vertex by
/// number alone, marked in an array.
inline std::uint64_t count_serially(std::size_t vertices, std::span<const edge> given) {
  std::vector<std::vector<vertex>> behind(vertices);
  for (const edge& e : given)
    if (e.a != e.b) behind[std::min(e.a, e.b)].push_back(std::max(e.a, e.b));
  for (auto& list : behind) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::vector<bool> marked(vertices);
  std::uint64_t result = 0;
  for (const auto& list : behind) {
    for (vertex v : list) marked[v] = true;
    for (vertex v : list)
      for (vertex w : behind[v]) result += marked[w];
    for (vertex v : list) marked[v] = false;
  }
  return result;
}

}  // namespace triangles_program

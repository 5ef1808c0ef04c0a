// How long a distributed multiplication takes, as far as one can tell beforehand: for the choice of
// an algorithm, and to be compared with what was measured.
//
// Of each piece C(i, j) += A(i, k) B(k, j) the model knows the tiles' shapes and counts of entries,
// which all members have in their directories. So all of them come to the same result without
// communication.
//
//   products of a piece    dense: m k n; a sparse A and a dense B: nnz(A) n; both sparse:
//                          nnz(A) nnz(B) / k, as if the entries of A and B were independent
//   bytes fetched          of tiles of A and B that another member has; a tile that is needed for
//                          several pieces one after another is fetched for each. Of SUMMA those that
//                          a member is sent by broadcasts, of slices what a slice takes of each tile
//   bytes sent             of partial tiles of C for other members. A sparse one of e products in
//                          m n places has m n (1 - exp(-e / (m n))) entries
//   time of a member       products / rate + bytes fetched and sent / bandwidth
//                          + bytes of partial tiles that it makes and adds up / bandwidth of memory
//   time of all            that of the slowest member; with stealing the mean, and a piece more; where
//                          members share cores no less than the sum of all times / cores
//
// Rates are measured once a job (rates.hpp).
//
// The formulas of the thesis' model (inter-node roofline) are these for square grids of equal tiles.
#pragma once

#include <farside/algorithms/detail/multiply/operand.hpp>
#include <farside/algorithms/detail/multiply/rates.hpp>
#include <farside/algorithms/detail/multiply/tasks.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What the model says of one algorithm.
struct multiply_estimate {
  struct member {
    double products = 0;
    double bytes_fetched = 0;    ///< of tiles of A and B
    double bytes_broadcast = 0;  ///< of SUMMA: what its broadcasts move, also where it is the root
    double bytes_sent = 0;       ///< of partial tiles, to other members
    double bytes_added = 0;      ///< of partial tiles, from other members and own ones
  };
  std::vector<member> members;
  double largest_piece = 0;  ///< products

  /// What all members move between each other. Local; no communication.
  double bytes() const {
    double sum = 0;
    for (const auto& m : members) sum += m.bytes_fetched + m.bytes_sent;
    return sum;
  }
};

/// "c", "near" and so on, as options of programs have them. Local; no communication.
inline std::string to_text(stationary algorithm) {
  constexpr const char* names[] = {"automatic", "c", "a", "b", "layers", "summa", "slices"};
  return names[static_cast<int>(algorithm)];
}
inline std::string to_text(stealing how) {
  constexpr const char* names[] = {"none", "random", "near"};
  return names[static_cast<int>(how)];
}

namespace detail {

inline const char* name_of(stationary algorithm) {
  constexpr const char* names[] = {"automatic",           "stationary C", "stationary A",
                                   "stationary B",        "2.5-D",        "SUMMA",
                                   "slices, stationary C"};
  return names[static_cast<int>(algorithm)];
}

/// How many products a piece takes, whose tiles have entries.
template <class A, class B, class C>
double products_of_piece(const A& a, const B& b, const C& c, matrix_index tile, std::size_t k) {
  const matrix_shape of_c = c.layout().tile_shape(tile);
  const std::size_t deep = a.tile_shape().columns;
  const auto depth = static_cast<double>(
      std::min(deep, a.shape().columns - std::min(k * deep, a.shape().columns)));
  if constexpr (!A::is_sparse)
    return static_cast<double>(of_c.size()) * depth;
  else if constexpr (!B::is_sparse)
    return static_cast<double>(a.entries({tile.row, k}) * of_c.columns);
  else
    return static_cast<double>(a.entries({tile.row, k})) *
           static_cast<double>(b.entries({k, tile.column})) / std::max(1.0, depth);
}

/// Bytes of a partial tile that sums up so many products. 0: there is none.
template <class C>
double bytes_of_part(const C& c, matrix_index tile, double products) {
  const matrix_shape of = c.layout().tile_shape(tile);
  const auto places = static_cast<double>(of.size());
  if constexpr (is_dense_matrix<C>) {
    return places * sizeof(typename C::value_type);
  } else {
    if (products == 0) return 0;
    const double entries = -places * std::expm1(-products / std::max(1.0, places));
    return entries * (sizeof(typename C::value_type) + sizeof(typename C::index_type)) +
           8 * static_cast<double>(of.rows + 1);
  }
}

/// Calls visit(member, tile of C, k, whether it is the last one of its partial tile) for all pieces, by
/// the member that an algorithm has it multiplied by; those of a partial tile one after another.
template <class A, class B, class C, class Visit>
void for_each_piece(stationary algorithm, const A& a, const B& b, const C& c, Visit visit) {
  const tile_counts tiles{c.grid_shape().rows, c.grid_shape().columns, a.grid_shape().columns};
  if (algorithm == stationary::layers) {
    for (rank_t member = 0; member < c.members().size(); ++member) {
      auto source = layered_tasks(member, c.members().size(), c.shape(), tiles);
      while (auto task = source())
        for (std::size_t k : task->ks) visit(member, task->c, k, k == task->ks.back());
    }
    return;
  }
  for (std::size_t i = 0; i < tiles.m; ++i)
    for (std::size_t j = 0; j < tiles.n; ++j)
      for (std::size_t k = 0; k < tiles.k; ++k) {
        rank_t member = algorithm == stationary::a   ? a.owner({i, k})
                        : algorithm == stationary::b ? b.owner({k, j})
                                                     : c.layout().owner({i, j});
        visit(member, matrix_index{i, j}, k,
              algorithm == stationary::a || algorithm == stationary::b || k + 1 == tiles.k);
      }
}

/// Bytes of the tiles of SUMMA: each goes to all other members of a row or a column of the grid.
template <class A, class B, class C>
void add_broadcasts(multiply_estimate& to, const A& a, const B& b, const C& c) {
  const matrix_shape grid = c.layout().process_grid();
  auto deliver = [&](rank_t from, rank_t member, double bytes) {
    to.members[member].bytes_broadcast += bytes;
    if (member != from) to.members[member].bytes_fetched += bytes;
  };
  for (std::size_t k = 0; k < a.grid_shape().columns; ++k) {
    for (std::size_t i = 0; i < a.grid_shape().rows; ++i)
      for (std::size_t j = 0; j < grid.columns; ++j)
        deliver(a.owner({i, k}), static_cast<rank_t>(i % grid.rows * grid.columns + j),
                static_cast<double>(a.bytes({i, k})));
    for (std::size_t j = 0; j < b.grid_shape().columns; ++j)
      for (std::size_t i = 0; i < grid.rows; ++i)
        deliver(b.owner({k, j}), static_cast<rank_t>(i * grid.columns + j % grid.columns),
                static_cast<double>(b.bytes({k, j})));
  }
}

/// How many entries a factor has.
template <class Operand>
double entries_of(const Operand& of) {
  double sum = 0;
  for (std::size_t i = 0; i < of.grid_shape().rows; ++i)
    for (std::size_t j = 0; j < of.grid_shape().columns; ++j)
      sum += static_cast<double>(of.entries({i, j}));
  return sum;
}

/// Bytes of the slices that owners of C fetch. Products as if they were spread evenly over C.
template <class A, class B, class C>
void add_slices(multiply_estimate& to, const A& a, const B& b, const C& c) {
  const std::size_t deep = a.tile_shape().columns;
  const auto depth_of_all = static_cast<double>(std::max<std::size_t>(1, a.shape().columns));
  const double for_each_place = entries_of(a) * entries_of(b) / depth_of_all /
                                static_cast<double>(std::max<std::size_t>(1, c.shape().size()));
  for (std::size_t i = 0; i < c.grid_shape().rows; ++i)
    for (std::size_t j = 0; j < c.grid_shape().columns; ++j) {
      const matrix_index first = c.layout().first_of({i, j});
      const matrix_shape of = c.layout().tile_shape({i, j});
      const rank_t owner = c.layout().owner({i, j});
      const index_range rows{first.row, first.row + of.rows},
          columns{first.column, first.column + of.columns};
      for (std::size_t k = 0; k < a.grid_shape().columns; ++k) {
        const index_range depth{k * deep, std::min((k + 1) * deep, a.shape().columns)};
        to.members[owner].bytes_fetched += static_cast<double>(
            a.slice_bytes(rows, depth, owner) + b.slice_bytes(depth, columns, owner));
      }
      to.members[owner].products += static_cast<double>(of.size()) * for_each_place;
    }
}

template <class A, class B, class C>
multiply_estimate estimate(stationary algorithm, const A& a, const B& b, const C& c) {
  multiply_estimate result;
  result.members.resize(c.members().size());
  if (algorithm == stationary::slices) {
    add_slices(result, a, b, c);
    return result;
  }
  const bool in_step = algorithm == stationary::summa;
  if (in_step) add_broadcasts(result, a, b, c);
  double in_part = 0;  // products of a partial tile so far
  auto visit = [&](rank_t member, matrix_index tile, std::size_t k, bool completes) {
    auto& m = result.members[member];
    if (!a.is_empty({tile.row, k}) && !b.is_empty({k, tile.column})) {
      const double products = products_of_piece(a, b, c, tile, k);
      in_part += products;
      m.products += products;
      result.largest_piece = std::max(result.largest_piece, products);
      if (!in_step && a.owner({tile.row, k}) != member)
        m.bytes_fetched += static_cast<double>(a.bytes({tile.row, k}));
      if (!in_step && b.owner({k, tile.column}) != member)
        m.bytes_fetched += static_cast<double>(b.bytes({k, tile.column}));
    }
    if (!completes) return;
    const rank_t owner = c.layout().owner(tile);
    const double bytes = bytes_of_part(c, tile, std::exchange(in_part, 0));
    if (owner != member) m.bytes_sent += bytes;
    // A sparse partial tile is merged with others wherever it was made, a dense one is not.
    if (owner != member || is_sparse_matrix<C>) result.members[owner].bytes_added += bytes;
  };
  for_each_piece(algorithm, a, b, c, visit);
  return result;
}

/// Seconds. `cores`: how many of them the members share.
template <class A, class B>
double predict(const multiply_estimate& of, const multiply_rates& rates, stealing how,
               double cores) {
  const double rate = A::is_sparse ? (B::is_sparse ? rates.sparse : rates.mixed) : rates.dense;
  const double network = rates.all_loadable ? HUGE_VAL : rates.network;
  double most = 0, sum = 0;
  for (const auto& m : of.members) {
    const double time = m.products / rate + (m.bytes_fetched + m.bytes_sent) / network +
                        m.bytes_added / rates.memory;
    most = std::max(most, time);
    sum += time;
  }
  if (how != stealing::none)
    most = std::min(most, sum / static_cast<double>(of.members.size()) + of.largest_piece / rate);
  return std::max(most, sum / cores);
}

/// How many cores the members of a team have, if each has one of its own at most.
inline double cores_of(const team& over) {
  const double members = over.size();
  return here().oversubscribed ? std::min<double>(members, usable_cores()) : members;
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND

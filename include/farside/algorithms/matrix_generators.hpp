// Generators of matrices: the same matrix for any number of ranks and any back end.
//
//   far::generate_rows<double>(far::laplacian_3d{96, 96, 96}, far::even_part(n, me, ranks));
//
//   // This rank makes all, and keeps a part.
//   far::generate_part<double>(far::rmat({.scale = 14}), part);
//
//   // Every rank makes its share of the edges.
//   far::generate<double>(far::rmat({.scale = 14}), owner_of);
//
// All return entries in order, one for a place.
#pragma once

#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/matrix_generators/numbered.hpp>
#include <farside/algorithms/matrix_generators/rows.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/matrix_part.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What makes a matrix row by row; see matrix_generators/rows.hpp.
template <class G>
concept row_generator = requires(const G& g, void (&emit)(std::size_t, double)) {
  { g.shape() } -> std::same_as<matrix_shape>;
  { g.row_bound() } -> std::same_as<std::size_t>;
  g.template row<double>(std::size_t{}, emit);
};

/// What makes a matrix by the numbers of its entries; see matrix_generators/numbered.hpp.
template <class G>
concept numbered_generator = requires(const G& g) {
  { g.shape() } -> std::same_as<matrix_shape>;
  { g.entries() } -> std::same_as<std::size_t>;
  { g.index(std::size_t{}) } -> std::same_as<matrix_index>;
  { g.values } -> std::convertible_to<entry_values>;
  { G::distinct } -> std::convertible_to<bool>;
};

template <class G>
concept matrix_generator = row_generator<G> || numbered_generator<G>;

namespace detail {

/// Row by row, and within a row column by column.
template <class T>
bool before(const triplet<T>& a, const triplet<T>& b) {
  return a.row != b.row ? a.row < b.row : a.column < b.column;
}

/// Brings places into order, and those that are the same one into one.
inline void sort_places(std::vector<matrix_index>& places, bool distinct) {
  std::sort(places.begin(), places.end());
  if (!distinct) places.erase(std::unique(places.begin(), places.end()), places.end());
}

template <class T>
std::vector<triplet<T>> with_values(const std::vector<matrix_index>& places,
                                    const entry_values& values) {
  std::vector<triplet<T>> result;
  result.reserve(places.size());
  for (const matrix_index& at : places)
    result.push_back({at.row, at.column, values.at<T>(at.row, at.column)});
  return result;
}

}  // namespace detail

/// Calls `emit(row, column, value)` for the entries in `rows`, in order. Local: no communication,
/// time for the entries of these rows alone.
template <class T, row_generator G, class Emit>
void for_each_generated(const G& generator, index_range rows, Emit&& emit) {
  for (std::size_t r = rows.first; r < rows.last; ++r)
    generator.template row<T>(r, [&](std::size_t c, T value) { emit(r, c, value); });
}

/// The entries in a part of the matrix. Local: no communication. A row generator takes time for the
/// entries of the part's rows; a numbered one for all entries of the matrix, on each rank that
/// calls it, and memory for those of the part.
template <class T, matrix_generator G>
std::vector<triplet<T>> generate_part(const G& generator, const matrix_part& part) {
  std::vector<triplet<T>> result;
  if constexpr (row_generator<G>) {
    for_each_generated<T>(generator, part.rows, [&](std::size_t r, std::size_t c, T value) {
      if (part.columns.contains(c)) result.push_back({r, c, value});
    });
    return result;
  } else {
    std::vector<matrix_index> places;
    for (std::size_t e = 0, n = generator.entries(); e < n; ++e) {
      matrix_index at = generator.index(e);
      if (part.contains(at)) places.push_back(at);
    }
    detail::sort_places(places, G::distinct);
    return detail::with_values<T>(places, generator.values);
  }
}

/// The entries in these rows. Local; costs what generate_part does.
template <class T, matrix_generator G>
std::vector<triplet<T>> generate_rows(const G& generator, index_range rows) {
  return generate_part<T>(generator, {rows, {0, generator.shape().columns}});
}

/// Collective. Each member gets the entries that it owns, in order: `owner(row, column)` is a
/// member's position in the team, and the same on all members. They make equal shares of the
/// numbers, or of the rows, and send them to their owners, where values are made. Costs an exchange,
/// 16 bytes a place. Time for entries / members, and memory for those owned, before and after
/// duplicates are combined.
template <class T, matrix_generator G, class Owner>
std::vector<triplet<T>> generate(const G& generator, Owner&& owner, const team& over = world()) {
  if constexpr (row_generator<G>) {
    exchange<triplet<T>> mail({.over = over});
    std::vector<triplet<T>> mine;
    auto take = [&](std::span<const triplet<T>> some) {
      mine.insert(mine.end(), some.begin(), some.end());
    };
    for_each_generated<T>(generator, even_part(generator.shape().rows, over.rank(), over.size()),
                          [&](std::size_t r, std::size_t c, T value) {
                            mail.send(owner(r, c), {r, c, value}, take);
                          });
    mail.finish(take);
    std::sort(mine.begin(), mine.end(), detail::before<T>);
    return mine;
  } else {
    exchange<matrix_index> mail({.over = over});
    std::vector<matrix_index> mine;
    auto take = [&](std::span<const matrix_index> some) {
      mine.insert(mine.end(), some.begin(), some.end());
    };
    index_range numbers = even_part(generator.entries(), over.rank(), over.size());
    for (std::size_t e = numbers.first; e < numbers.last; ++e) {
      matrix_index at = generator.index(e);
      mail.send(owner(at.row, at.column), at, take);
    }
    mail.finish(take);
    detail::sort_places(mine, G::distinct);
    return detail::with_values<T>(mine, generator.values);
  }
}

}  // namespace far::inline FARSIDE_BACKEND

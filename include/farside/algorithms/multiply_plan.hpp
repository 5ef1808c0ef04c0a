// far::multiply_inspect and far::multiply_fill: what a sparse product will take, before memory is spent
// on it; and the same product again, when values have changed but the places of entries have not.
//
//   far::multiply_plan plan = far::multiply_inspect(a, b);      // collective
//   if (plan.most_entries * 12 > much) ...                       // flops, entries and bytes
//   far::multiply_fill(plan, a, b, c);                           // collective: C = A B
//   a.apply(...);                                                // other values at the same places
//   far::multiply_fill(plan, a, b, c);                           // counts no more, allocates no more
#pragma once

#include <farside/algorithms/multiply.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What a sparse product takes. The same on all members, but for `own`.
struct multiply_plan {
  std::uint64_t products = 0;       ///< of two entries: half the flops
  std::uint64_t most_entries = 0;   ///< of C, at most
  std::uint64_t bytes_fetched = 0;  ///< of tiles of A and B, by all members, by stationary C
  /// Products of this member's tiles of C, and at most how many entries each has.
  struct tile {
    matrix_index at;
    std::uint64_t products = 0, most_entries = 0;
  };
  std::vector<tile> own;
  /// Entries of A, B and C when C was last filled, and whether it was.
  std::uint64_t a_entries = 0, b_entries = 0, c_entries = 0;
  bool filled = false;

  /// Bytes that C takes at most, with values and column indices of these sizes. Local; no
  /// communication.
  std::uint64_t most_bytes(std::size_t value_bytes, std::size_t index_bytes) const {
    return most_entries * (value_bytes + index_bytes);
  }
};

/// Counts the products of A B, without making them. Collective. 1 barrier, 1 all_reduce; fetches the
/// column indices of A and the row pointers of B that a product fetches, and no values.
template <class T, class I>
multiply_plan multiply_inspect(const sparse_matrix<T, I>& a, const sparse_matrix<T, I>& b,
                               const matrix_layout& c) {
  if (a.shape().columns != b.shape().rows || c.shape().rows != a.shape().rows ||
      c.shape().columns != b.shape().columns)
    detail::raise("multiply_inspect: a matrix of ", a.shape(), " and one of ", b.shape(),
                  " have no product of ", c.shape(),
                  ". With A of m x k and B of k x n, C is m x n.");
  if (a.tile_shape().rows != c.tile_shape().rows || a.tile_shape().columns != b.tile_shape().rows ||
      b.tile_shape().columns != c.tile_shape().columns)
    detail::raise("multiply_inspect: tiles of ", a.tile_shape(), ", ", b.tile_shape(), " and ",
                  c.tile_shape(), " do not fit each other. Cut the matrices alike.");
  barrier(a.members());
  multiply_plan plan;
  const rank_t me = a.members().rank();
  c.for_each_tile(me, [&](matrix_index at) {
    multiply_plan::tile tile{at};
    const matrix_shape of = c.tile_shape(at);
    std::vector<std::uint64_t> in_row(of.rows);
    for (std::size_t n = 0; n < a.grid_shape().columns; ++n) {
      const std::size_t k = (n + at.row + at.column) % a.grid_shape().columns;
      if (a.tile_nnz({at.row, k}) == 0 || b.tile_nnz({k, at.column}) == 0) continue;
      auto left = a.async_tile({at.row, k});
      auto right = b.async_tile({k, at.column});
      if (a.owner({at.row, k}) != me) plan.bytes_fetched += a.tile_bytes({at.row, k});
      if (b.owner({k, at.column}) != me) plan.bytes_fetched += b.tile_bytes({k, at.column});
      const auto one = left.get(), other = right.get();
      for (std::size_t i = 0; i < of.rows; ++i) {
        const auto columns = one.view().row(i).columns();
        for (I column : columns)
          in_row[i] += other.view().row_size(static_cast<std::size_t>(column));
      }
    }
    for (std::uint64_t products : in_row) {
      tile.products += products;
      tile.most_entries += std::min<std::uint64_t>(products, of.columns);
    }
    plan.products += tile.products;
    plan.most_entries += tile.most_entries;
    plan.own.push_back(tile);
  });
  std::array<std::uint64_t, 3> sums{plan.products, plan.most_entries, plan.bytes_fetched};
  all_reduce(std::span<std::uint64_t>(sums), std::plus<>(), a.members());
  plan.products = sums[0], plan.most_entries = sums[1], plan.bytes_fetched = sums[2];
  return plan;
}
/// Likewise, of a C that is laid out by far::block_rect.
template <class T, class I>
multiply_plan multiply_inspect(const sparse_matrix<T, I>& a, const sparse_matrix<T, I>& b,
                               const sparse_matrix<T, I>& c) {
  return multiply_inspect(a, b, c.layout());
}

namespace detail {

/// Adds A B to the values of a tile of C whose entries are where those of the product are.
template <class T, class I, class Over>
class value_filler {
 public:
  explicit value_filler(const Over& over) : over_(over) {}

  void fill(const csr_view<T, I>& a, const csr_view<T, I>& b, const csr_view<T, I>& c, T* values) {
    place_.resize(std::max(place_.size(), c.shape().columns));
    for (std::size_t i = 0; i < c.rows(); ++i) {
      if (a.row_size(i) == 0) continue;
      // Where each column of this row stands. A column that the row lacks is left as another row
      // had it: its entry then has another column, which tells.
      const std::size_t first = c.entries_before(i);
      const auto columns = c.row(i).columns();
      for (std::size_t e = 0; e < columns.size(); ++e)
        place_[static_cast<std::size_t>(columns[e])] = e;
      for (auto [k, x] : a.row(i))
        for (auto [column, y] : b.row(static_cast<std::size_t>(k))) {
          const std::size_t e = place_[static_cast<std::size_t>(column)];
          if (e >= columns.size() || columns[e] != column)
            raise("multiply_fill: the product has an entry in column ", column, " of row ", i,
                  " of a tile where it had none when the plan was made. Entries must stay at their "
                  "places; make another plan.");
          T& to = values[first + e];
          to = over_.add(to, over_.multiply(x, y));
        }
    }
  }

 private:
  Over over_;
  std::vector<std::size_t> place_;
};

}  // namespace detail

/// C = A B. The first time with a plan as far::multiply does it; later, for the same matrices with
/// other values, into the memory of C, without looking for places or allocating. Collective; C is
/// complete on return. 2 barriers, and the tiles that stationary C fetches. Throws on all members if
/// an entry has come to a place where there was none.
template <class T, class I, class Over>
void multiply_fill(multiply_plan& plan, const sparse_matrix<T, I>& a, const sparse_matrix<T, I>& b,
                   sparse_matrix<T, I>& c, const Over& over) {
  const bool same = plan.filled && plan.a_entries == a.nnz() && plan.b_entries == b.nnz() &&
                    plan.c_entries == c.nnz();
  if (!same) {
    multiply(a, b, c, over, {.algorithm = stationary::c});
    plan.a_entries = a.nnz(), plan.b_entries = b.nnz(), plan.c_entries = c.nnz();
    plan.filled = true;
    return;
  }
  barrier(a.members());
  detail::do_together(
      a.members(), "multiply_fill into '" + c.name() + "'",
      [&] {
        detail::value_filler<T, I, Over> filler(over);
        for (const multiply_plan::tile& tile : plan.own) {
          const csr_view<T, I> of = c.my_tile(tile.at);
          auto* values = const_cast<T*>(of.values().data());  // this member's own memory
          std::fill(values, values + of.nnz(), over.zero());
          for (std::size_t n = 0; n < a.grid_shape().columns; ++n) {
            const std::size_t k = (n + tile.at.row + tile.at.column) % a.grid_shape().columns;
            auto left = a.async_tile({tile.at.row, k});
            auto right = b.async_tile({k, tile.at.column});
            const auto one = left.get(), other = right.get();
            if (one.nnz() != 0 && other.nnz() != 0)
              filler.fill(one.view(), other.view(), of, values);
          }
        }
      },
      [] {});
  barrier(a.members());
}
template <class T, class I>
void multiply_fill(multiply_plan& plan, const sparse_matrix<T, I>& a, const sparse_matrix<T, I>& b,
                   sparse_matrix<T, I>& c) {
  multiply_fill(plan, a, b, c, plus_times<T>());
}

}  // namespace far::inline FARSIDE_BACKEND

// far::matrix<T>: a dense matrix that is spread over a team in tiles. Every member reads and writes
// every part of it at any time: elements, tiles, and slices, which are any submatrices.
//
//   far::matrix<double> c({m, n}, far::block_rect());           // collective
//   c[{i, j}] = 1.0;                                            // a put
//   auto t = c.tile({0, 1});                                    // a view, or a copy by one get
//   auto s = c.slice({r0, r1}, {c0, c1});                       // a copy of any submatrix
//   c.apply([](double& x) { x *= 2; });                         // collective
//
// containers/matrix_layout.hpp says how a matrix is cut. A tile lies densely in the segment of its
// owner, row by row. All members know where each begins, so that reading or writing a part of it is
// one get or put for each run of elements that lie side by side.
//
// Order. Reading and writing are those of far memory (docs/memory_model.md): what is put is
// complete at the owner after a flush or barrier. A view shows the memory itself: what others have
// put is in it after a barrier, and two ranks must not change one element at the same time. The
// collectives here begin and end with a barrier, so that they see what was done before, and all see
// what they have done.
#pragma once

#include <farside/containers/detail/matrix/state.hpp>
#include <farside/containers/detail/matrix/tiled.hpp>
#include <farside/containers/matrix_memory.hpp>
#include <farside/containers/matrix_tile.hpp>
#include <farside/core/future.hpp>
#include <farside/core/print.hpp>
#include <farside/core/strided.hpp>

#include <cmath>
#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

template <class T>
struct dense_state : matrix_state {
  template <class Descriptor>
  dense_state(matrix_shape shape, const Descriptor& blocks, const container_options& with)
      : matrix_state("matrix", shape, blocks, with) {
    // Tiles at the edges take as much as others, so that a tile's place is its number.
    const std::size_t each = layout.tile_shape().size();
    require_possible(full_name() + ", elements", layout.shape().size(), sizeof(T),
                     layout.holders());
    const std::size_t mine = layout.tiles_of(members.rank());
    require_possible(full_name() + ", elements of a member", mine == 0 ? 0 : mine * each,
                     sizeof(T));
    parts = alloc_together<T>(members, full_name(), mine * each);
    if (mine != 0) {
      T* first = parts[members.rank()].local();
      std::fill(first, first + mine * each, T{});
    }
    detail::barrier(members.members());
  }
  ~dense_state() override {
    if (!constructed && !parts.empty()) dealloc(parts[members.rank()]);
  }
  void release() override { dealloc(parts[members.rank()]); }

  ptr<T> tile_at(matrix_index tile) const {
    return parts[layout.owner(tile)] +
           static_cast<std::ptrdiff_t>(layout.number_of(tile) * layout.tile_shape().size());
  }
  ptr<T> element(matrix_index at) const {
    const matrix_index tile = layout.tile_of(at), first = layout.first_of(tile);
    return tile_at(tile) +
           static_cast<std::ptrdiff_t>((at.row - first.row) * layout.tile_shape(tile).columns +
                                       at.column - first.column);
  }
  /// Where a part of a tile begins, and how its rows lie there and in memory `leading` wide.
  struct part {
    ptr<T> where;
    std::size_t local;
    strided shape;
  };
  part part_of(matrix_index tile, index_range rows, index_range columns, matrix_index at,
               std::size_t leading) const {
    const auto wide = static_cast<std::ptrdiff_t>(layout.tile_shape(tile).columns);
    return {tile_at(tile) + static_cast<std::ptrdiff_t>(rows.first) * wide +
                static_cast<std::ptrdiff_t>(columns.first),
            at.row * leading + at.column,
            {.counts = {static_cast<std::ptrdiff_t>(columns.size()),
                        static_cast<std::ptrdiff_t>(rows.size())},
             .far_strides = {wide},
             .local_strides = {static_cast<std::ptrdiff_t>(leading)}}};
  }

  std::vector<ptr<T>> parts;  ///< the tiles of each member
};

}  // namespace detail

template <class T>
class matrix<T, host_memory> : public detail::tiled<detail::dense_state<T>> {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>,
                "far::matrix holds elements that are moved as bytes: numbers, complex numbers, "
                "enums, structures of such. For bool take char.");
  using base = detail::tiled<detail::dense_state<T>>;

 public:
  using value_type = T;

  /// Collective: all members give the same. Elements are T{}. 1 all_reduce, 1 all_gather, 1
  /// barrier.
  explicit matrix(matrix_shape shape, const container_options& with = {})
      : matrix(shape, block_rect(), with) {}
  template <block_descriptor Descriptor>
  matrix(matrix_shape shape, const Descriptor& blocks, const container_options& with = {})
      : base(detail::container_handle(new detail::dense_state<T>(shape, blocks, with))) {}

  using base::name, base::members;
  using base::shape, base::layout, base::grid_shape, base::tile_shape, base::owner, base::my_tiles;

  // --- elements ---

  /// Reading it is a get, assigning to it a put. One-sided.
  ref<T> operator[](matrix_index at) const { return ref<T>(element_ptr(at)); }
  /// Where an element lies. Local; no communication.
  ptr<T> element_ptr(matrix_index at) const {
    state_->require_element("operator[]", at);
    return state_->element(at);
  }

  // --- tiles ---

  /// Where a tile begins; its rows lie one after another. Local; no communication.
  ptr<T> tile_ptr(matrix_index tile) const {
    state_->require_tile("tile_ptr", tile);
    return state_->tile_at(tile);
  }
  /// A tile to read. One-sided. No communication where this process can load it, else 1 get.
  matrix_tile<T> tile(matrix_index tile) const { return async_tile(tile).get(); }
  /// Likewise, not waited for.
  future<matrix_tile<T>> async_tile(matrix_index tile) const {
    state_->require_tile("tile", tile);
    const matrix_shape of = state_->layout.tile_shape(tile);
    ptr<T> from = state_->tile_at(tile);
    if (const T* here = from.local()) {
      detail::note_viewed(from.rank(), of.size() * sizeof(T));
      return future<matrix_tile<T>>::ready(matrix_tile<T>(matrix_view<const T>(here, of)));
    }
    auto copy = std::make_shared<dense<T>>(of);
    return async_get(from, copy->data(), of.size()).then([copy] {
      return matrix_tile<T>(std::move(*copy));
    });
  }
  /// A tile of this member, to read and to write. Local; no communication.
  matrix_view<T> my_tile(matrix_index tile) const {
    state_->require_mine("my_tile", tile);
    return {state_->tile_at(tile).local(), state_->layout.tile_shape(tile)};
  }
  /// Replaces a tile. One-sided; complete after flush or barrier. 1 put.
  void put_tile(matrix_index tile, matrix_view<const T> from) {
    state_->require_tile("put_tile", tile);
    require_shape("put_tile", state_->layout.tile_shape(tile), from.shape());
    const matrix_index first = state_->layout.first_of(tile);
    put_slice(first, from);
  }

  // --- any submatrix ---

  /// A copy of rows [rows.first, rows.last) and columns likewise. One-sided. A get for each run of
  /// elements that lie side by side, all in flight together.
  dense<T> slice(index_range rows, index_range columns) const {
    return async_slice(rows, columns).get();
  }
  /// Likewise, not waited for.
  future<dense<T>> async_slice(index_range rows, index_range columns) const;
  /// Replaces the submatrix that begins at `first`. One-sided; complete after flush or barrier. A
  /// put for each run of elements that lie side by side.
  void put_slice(matrix_index first, matrix_view<const T> from);
  /// All of it. One-sided; costs what slice does.
  dense<T> to_local() const { return slice({0, shape().rows}, {0, shape().columns}); }

  // --- all elements; collective, with a barrier at the beginning and the end ---

  /// Calls f(element), or f(index, element), for each, at its owner. Collective. 2 barriers.
  template <class F>
  void apply(F f);
  /// Collective. 2 barriers.
  void fill(const T& value) {
    apply([&](T& element) { element = value; });
  }
  /// Each element becomes op(it, that of `other`), which has the same shape and any layout.
  /// Collective. 2 barriers, and a slice of `other` for each tile.
  template <class Op>
  void combine(const matrix& other, Op op);
  /// Becomes a copy of `other`, which has the same shape and any layout. Collective. 2 barriers,
  /// and a slice of `other` for each tile.
  void copy_from(const matrix& other) {
    combine(other, [](const T&, const T& theirs) { return theirs; });
  }
  /// Becomes the transpose of `other`, of any layout. Collective. 2 barriers, and a slice of
  /// `other` for each tile.
  void transpose_from(const matrix& other);
  /// op over all elements and `start`, in an order that depends on the layout alone. Collective. 1
  /// barrier, 1 all_reduce.
  template <class U, class Op>
  U reduce(U start, Op op) const;
  /// Collective. 1 barrier, 1 all_reduce.
  T sum() const { return reduce(T{}, std::plus<>()); }
  /// The sum of all products of elements with those of `other`, which has the same shape and any
  /// layout. Collective. 2 barriers, 1 all_reduce, and a slice of `other` for each tile.
  T dot(const matrix& other) const;
  /// The root of the sum of all squares (of absolute values). Collective. 1 barrier, 1 all_reduce.
  double norm() const;
  /// Rank 0 of the team prints it, for matrices that a reader can read. Collective; costs 2
  /// barriers and a to_local there.
  void print() const;

 private:
  friend struct detail::handle_access;
  explicit matrix(detail::container_handle<detail::dense_state<T>> state)
      : base(std::move(state)) {}

  using base::require_shape, base::state_;

  template <class Work>
  void with_own_tiles(const char* what, Work work) const;
};

template <class T>
future<dense<T>> matrix<T>::async_slice(index_range rows, index_range columns) const {
  state_->require_slice("slice", rows, columns);
  auto copy = std::make_shared<dense<T>>(matrix_shape{rows.size(), columns.size()});
  std::vector<future<void>> parts;
  state_->for_each_part(rows, columns, [&](auto tile, auto in_rows, auto in_columns, auto at) {
    auto part = state_->part_of(tile, in_rows, in_columns, at, columns.size());
    parts.push_back(async_get_strided(part.where, copy->data() + part.local, part.shape));
  });
  return when_all(std::move(parts)).then([copy] { return std::move(*copy); });
}

template <class T>
void matrix<T>::put_slice(matrix_index first, matrix_view<const T> from) {
  const index_range rows{first.row, first.row + from.rows()},
      columns{first.column, first.column + from.columns()};
  state_->require_slice("put_slice", rows, columns);
  state_->for_each_part(rows, columns, [&](auto tile, auto in_rows, auto in_columns, auto at) {
    auto part = state_->part_of(tile, in_rows, in_columns, at, from.leading_dimension());
    put_strided(part.where, from.data() + part.local, part.shape);
  });
}

/// Between two barriers: work(tile, first element of it in the matrix, elements).
template <class T>
template <class Work>
void matrix<T>::with_own_tiles(const char* what, Work work) const {
  static_cast<void>(what);
  barrier(members());
  for (matrix_index tile : my_tiles()) work(state_->layout.first_of(tile), my_tile(tile));
  barrier(members());
}

template <class T>
template <class F>
void matrix<T>::apply(F f) {
  with_own_tiles("apply", [&](matrix_index first, matrix_view<T> of) {
    for (std::size_t i = 0; i < of.rows(); ++i) {
      std::span<T> row = of.row(i);
      for (std::size_t j = 0; j < row.size(); ++j) {
        if constexpr (std::is_invocable_v<F&, matrix_index, T&>)
          f(matrix_index{first.row + i, first.column + j}, row[j]);
        else
          f(row[j]);
      }
    }
  });
}

template <class T>
template <class Op>
void matrix<T>::combine(const matrix& other, Op op) {
  require_shape("combine", shape(), other.shape());
  with_own_tiles("combine", [&](matrix_index first, matrix_view<T> of) {
    dense<T> theirs = other.slice({first.row, first.row + of.rows()},
                                  {first.column, first.column + of.columns()});
    for (std::size_t i = 0; i < of.rows(); ++i)
      for (std::size_t j = 0; j < of.columns(); ++j)
        of.row(i)[j] = op(of.row(i)[j], theirs.row(i)[j]);
  });
}

template <class T>
void matrix<T>::transpose_from(const matrix& other) {
  require_shape("transpose_from", {shape().columns, shape().rows}, other.shape());
  with_own_tiles("transpose_from", [&](matrix_index first, matrix_view<T> of) {
    dense<T> theirs =
        other.slice({first.column, first.column + of.columns()}, {first.row, first.row + of.rows()})
            .transposed();
    for (std::size_t i = 0; i < of.rows(); ++i) std::ranges::copy(theirs.row(i), of.row(i).begin());
  });
}

template <class T>
template <class U, class Op>
U matrix<T>::reduce(U start, Op op) const {
  barrier(members());
  struct partial {
    U value;
    bool any = false;
  } mine{start};
  for (matrix_index tile : my_tiles()) {
    matrix_view<T> of = my_tile(tile);
    for (std::size_t i = 0; i < of.rows(); ++i)
      for (const T& element : of.row(i)) {
        mine.value = mine.any ? op(mine.value, element) : U(element);
        mine.any = true;
      }
  }
  partial all = all_reduce(
      mine,
      [&](const partial& a, const partial& b) {
        return !a.any ? b : !b.any ? a : partial{op(a.value, b.value), true};
      },
      members());
  return all.any ? op(start, all.value) : start;
}

template <class T>
T matrix<T>::dot(const matrix& other) const {
  require_shape("dot", shape(), other.shape());
  T mine{};
  with_own_tiles("dot", [&](matrix_index first, matrix_view<T> of) {
    dense<T> theirs = other.slice({first.row, first.row + of.rows()},
                                  {first.column, first.column + of.columns()});
    for (std::size_t i = 0; i < of.rows(); ++i)
      for (std::size_t j = 0; j < of.columns(); ++j) mine = mine + of.row(i)[j] * theirs.row(i)[j];
  });
  return all_reduce(mine, std::plus<>(), members());
}

template <class T>
double matrix<T>::norm() const {
  barrier(members());
  double mine = 0;
  for (matrix_index tile : my_tiles()) {
    matrix_view<T> of = my_tile(tile);
    for (std::size_t i = 0; i < of.rows(); ++i)
      for (const T& element : of.row(i)) {
        auto size = static_cast<double>(std::abs(element));
        mine += size * size;
      }
  }
  return std::sqrt(all_reduce(mine, std::plus<>(), members()));
}

template <class T>
void matrix<T>::print() const {
  barrier(members());
  if (members().rank() == 0) {
    dense<T> all = to_local();
    std::string lines = text("matrix '", name(), "', ", shape(), "\n");
    for (std::size_t i = 0; i < all.rows(); ++i) {
      for (const T& element : all.row(i)) lines += text(" ", element);
      lines += "\n";
    }
    print_here(lines);
  }
  barrier(members());
}

}  // namespace far::inline FARSIDE_BACKEND

// far::sparse_matrix<T, I>: a sparse matrix that is spread over a team in tiles of compressed rows.
// Every member reads every tile and every slice at any time; owners replace their tiles.
//
//   far::sparse_matrix<double> a({m, k}, far::block_opt());     // collective
//   a.insert({i, j}, v);                                        // any member, any element
//   a.assemble(std::plus<>());                                  // collective: merges what came
//   auto t = a.tile({0, 1});                                    // a view, or a copy by one get
//   for (auto [index, value] : t.view()) ...
//   a.set_tile({i, j}, csr);  a.publish();                      // owners; collective
//
// containers/matrix_layout.hpp says how a matrix is cut, containers/csr_view.hpp what compressed
// rows are. Column indices of a tile count from the tile's first column, so that 32 bits suffice for
// tiles of 2^31 columns; indices of the matrix have 64 bits. Every member has a directory of all
// tiles: where each lies, and how many entries it has.
//
// Order. A tile that is set is seen by nobody before publish, which replaces all that were set, on
// all members at once. Views of tiles that were replaced end there.
#pragma once

#include <farside/containers/detail/matrix/sparse_state.hpp>
#include <farside/containers/detail/matrix/tiled.hpp>
#include <farside/containers/matrix_memory.hpp>
#include <farside/core/future.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

template <class T, class I>
class sparse_matrix<T, I, host_memory> : public detail::tiled<detail::sparse_state<T, I>> {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>,
                "far::sparse_matrix holds values that are moved as bytes: numbers, complex "
                "numbers, enums, structures of such. For bool take char.");
  using state = detail::sparse_state<T, I>;
  using base = detail::tiled<state>;

 public:
  using value_type = T;
  using index_type = I;

  /// Collective: all members give the same. It has no entries. 1 synchronisation.
  explicit sparse_matrix(matrix_shape shape, const container_options& with = {})
      : sparse_matrix(shape, block_rect(), with) {}
  template <block_descriptor Descriptor>
  sparse_matrix(matrix_shape shape, const Descriptor& blocks, const container_options& with = {})
      : base(detail::container_handle(new state(shape, blocks, with))) {}

  using base::name, base::members;
  using base::shape, base::layout, base::grid_shape, base::tile_shape, base::owner, base::my_tiles;

  /// How many entries a tile has, as last published. Local; no communication.
  std::size_t tile_nnz(matrix_index tile) const {
    state_->require_tile("tile_nnz", tile);
    return state_->entry(tile).nnz;
  }
  /// Whether the rows of a tile are sorted. Local; no communication.
  bool tile_is_sorted(matrix_index tile) const {
    state_->require_tile("tile_is_sorted", tile);
    return state_->entry(tile).sorted;
  }
  /// How many bytes a tile takes, which is what fetching it moves. Local; no communication.
  std::size_t tile_bytes(matrix_index tile) const {
    return tile_nnz(tile) == 0 ? 0 : state_->block_of(tile).bytes();
  }
  /// How many entries there are, as last published. Local; no communication.
  std::size_t nnz() const {
    std::size_t sum = 0;
    for (const auto& tile : state_->directory) sum += tile.nnz;
    return sum;
  }
  // --- reading ---

  /// A tile to read. One-sided. No communication where this process can load it, else 1 get.
  sparse_tile<T, I> tile(matrix_index tile) const { return async_tile(tile).get(); }
  /// Likewise, not waited for.
  future<sparse_tile<T, I>> async_tile(matrix_index tile) const;
  /// A tile of this member. Local; no communication.
  csr_view<T, I> my_tile(matrix_index tile) const {
    state_->require_mine("my_tile", tile);
    return *state_->loadable(tile);
  }
  /// The value at a place, if there is an entry. One-sided. No communication where this process can
  /// load the tile; else 3 gets, one after another.
  std::optional<T> find(matrix_index at) const;
  /// A copy of rows [rows.first, rows.last) and columns likewise, with sorted rows. Column indices
  /// count from columns.first. One-sided. A get for each tile that is not loaded, or 3 for its row
  /// pointers, columns and values where only some of its rows are wanted and that moves less.
  csr<T, I> slice(index_range rows, index_range columns) const {
    return async_slice(rows, columns).get();
  }
  /// Likewise, not waited for.
  future<csr<T, I>> async_slice(index_range rows, index_range columns) const;
  /// All of it. One-sided; costs what slice does.
  csr<T, I> to_local() const { return slice({0, shape().rows}, {0, shape().columns}); }

  // --- changing ---

  /// What a tile of this member will be from the next publish on. Local; no communication: the
  /// entries are copied to far memory. Throws far::allocation_error if there is no room, and
  /// nothing has changed then.
  void set_tile(matrix_index tile, csr_view<T, I> of);
  /// Likewise, written in place: fill(row_begin, columns, values) writes rows + 1 words that begin
  /// with 0 and end with `nnz`, and `nnz` entries.
  template <class Fill>
  void set_tile(matrix_index tile, std::size_t nnz, bool sorted, Fill fill) {
    state_->require_mine("set_tile", tile);
    state_->stage(tile, nnz, sorted, fill);
  }
  /// Likewise, where it is only known that there are `most` entries at most: write(row_begin, columns,
  /// values) returns how many there are. Room that is left is given back. Local; no communication.
  /// False, and nothing has been written, where there is no room for so many.
  template <class Write>
  [[nodiscard]] bool try_set_tile(matrix_index tile, std::size_t most, bool sorted, Write write) {
    state_->require_mine("try_set_tile", tile);
    return state_->try_stage(tile, most, sorted, write);
  }
  /// What this member has set since the last publish will not be published. Local; no communication.
  void forget_set_tiles() { state_->unstage({}); }
  /// All members see the tiles that were set. Views of tiles that are replaced end. Collective. 1
  /// barrier, 1 all_gather.
  void publish() {
    auto note = detail::calling<"sparse_matrix::publish">(*state_);
    state_->publish();
  }
  /// An entry for the next assemble, from any member, for any place. One-sided: travels to the owner
  /// with 511 others, and waits there. W + A for 512 entries.
  void insert(matrix_index at, const T& value) {
    state_->require_element("insert", at);
    state_->insert(at, value);
  }
  /// Merges what was inserted with what is there: entries at one place become one by op(one,
  /// next), first what was there, then what was inserted, by rank and in the order of each rank's
  /// calls. Collective. 1 all_to_all and a publish.
  template <class Op = std::plus<>>
  void assemble(Op op = {});

  // --- all entries; collective, with a barrier at the beginning and the end ---

  /// Calls f(value), or f(index, value), for each entry, at its owner. Collective. 2 barriers.
  template <class F>
  void apply(F f);
  /// Becomes a copy of `other`, which has the same shape and any layout. Collective: 1 barrier, a
  /// slice of `other` for each tile, and a publish.
  void copy_from(const sparse_matrix& other) {
    require_shape("copy_from", shape(), other.shape());
    replace_tiles(
        [&](index_range rows, index_range columns) { return other.slice(rows, columns); });
  }
  /// Becomes the transpose of `other`, of any layout. Collective; costs what copy_from does.
  void transpose_from(const sparse_matrix& other) {
    require_shape("transpose_from", {shape().columns, shape().rows}, other.shape());
    replace_tiles([&](index_range rows, index_range columns) {
      return other.slice(columns, rows).transposed();
    });
  }
  /// op over all values and `start`, in an order that depends on the layout alone. Collective. 1
  /// barrier, 1 all_reduce.
  template <class U, class Op>
  U reduce(U start, Op op) const;
  /// The sum of all values. Collective. 1 barrier, 1 all_reduce.
  T sum() const { return reduce(T{}, std::plus<>()); }

 private:
  friend struct detail::handle_access;
  explicit sparse_matrix(detail::container_handle<state> of) : base(std::move(of)) {}

  using base::require_shape, base::state_;

  template <class Make>
  void replace_tiles(Make make);
};

template <class T, class I>
future<sparse_tile<T, I>> sparse_matrix<T, I>::async_tile(matrix_index tile) const {
  state_->require_tile("tile", tile);
  if (auto here = state_->loadable(tile)) {
    if (here->nnz() != 0) detail::note_viewed(state_->entry(tile).where.rank(), tile_bytes(tile));
    return future<sparse_tile<T, I>>::ready(sparse_tile<T, I>(*here));
  }
  const auto& of = state_->entry(tile);
  const auto block = state_->block_of(tile);
  auto copy = std::make_shared<detail::plain_array<typename state::unit>>(block.units());
  return async_get(of.where, copy->data(), block.units())
      .then([copy, block, shape = state_->layout.tile_shape(tile), sorted = of.sorted] {
        auto view = block.view(copy->data(), shape, sorted);
        return sparse_tile<T, I>(std::move(*copy), view);
      });
}

template <class T, class I>
std::optional<T> sparse_matrix<T, I>::find(matrix_index at) const {
  state_->require_element("find", at);
  const matrix_index tile = state_->layout.tile_of(at), first = state_->layout.first_of(tile);
  auto part = state_->rows_of(tile, {at.row - first.row, at.row - first.row + 1}).get();
  for (auto [column, value] : part.view().row(0))
    if (static_cast<std::size_t>(column) == at.column - first.column) return value;
  return std::nullopt;
}

template <class T, class I>
future<csr<T, I>> sparse_matrix<T, I>::async_slice(index_range rows, index_range columns) const {
  state_->require_slice("slice", rows, columns);
  using part = detail::slice_part<T, I>;
  std::vector<future<part>> parts;
  state_->for_each_part(rows, columns, [&](auto tile, auto in_rows, auto in_columns, auto at) {
    if (tile_nnz(tile) == 0) return;
    const std::size_t tile_rows = tile_shape(tile).rows;
    auto cut = [in_rows, in_columns, at, tile_rows](sparse_tile<T, I> from) {
      const bool whole = from.shape().rows == tile_rows;
      auto view = whole ? from.view().row_range(in_rows.first, in_rows.size()) : from.view();
      return part{std::move(from), view, in_columns, at};
    };
    if (2 * in_rows.size() <= tile_rows)
      parts.push_back(state_->rows_of(tile, in_rows).then(cut));
    else
      parts.push_back(async_tile(tile).then(cut));
  });
  return when_all(std::move(parts))
      .then([shape = matrix_shape{rows.size(), columns.size()}](std::vector<part> all) {
        return detail::join_parts<T, I>(shape, all);
      });
}

template <class T, class I>
void sparse_matrix<T, I>::set_tile(matrix_index tile, csr_view<T, I> of) {
  require_shape("set_tile", tile_shape(tile), of.shape());
  set_tile(tile, of.nnz(), of.sorted(), [&](std::int64_t* row_begin, I* columns, T* values) {
    for (std::size_t i = 0; i <= of.rows(); ++i)
      row_begin[i] = static_cast<std::int64_t>(of.entries_before(i));
    std::ranges::copy(of.columns(), columns);
    std::ranges::copy(of.values(), values);
  });
}

template <class T, class I>
template <class Op>
void sparse_matrix<T, I>::assemble(Op op) {
  state& s = *state_;
  auto note = detail::calling<"sparse_matrix::assemble">(s);
  s.await_arrivals();
  std::map<std::uint64_t, typename state::tile_entry> before = s.staged;
  s.staged.clear();
  detail::do_together(
      s.members, s.full_name() + ": assemble",
      [&] {
        try {
          s.merge_arrivals([&](matrix_index tile, const std::vector<triplet<T>>& entries) {
            set_tile(tile, csr<T, I>::from_triplets(tile_shape(tile), entries, op));
          });
        } catch (...) {
          s.unstage(before);
          throw;
        }
      },
      [&] { s.unstage(before); });
  s.forget_arrivals();
  // What was set before and not published is, too; what was merged counts.
  for (auto& [tile, entry] : before)
    if (!s.staged.try_emplace(tile, entry).second) dealloc(entry.where);
  s.publish();
}

template <class T, class I>
template <class F>
void sparse_matrix<T, I>::apply(F f) {
  barrier(members());
  for (matrix_index tile : my_tiles()) {
    const matrix_index first = state_->layout.first_of(tile);
    const csr_view<T, I> of = my_tile(tile);
    // The memory is this rank's own and not constant: views are, so that others do not write it.
    auto* values = const_cast<T*>(of.values().data());
    for (std::size_t i = 0, e = 0; i < of.rows(); ++i) {
      const auto columns = of.row(i).columns();
      for (I column : columns) {
        if constexpr (std::is_invocable_v<F&, matrix_index, T&>)
          f(matrix_index{first.row + i, first.column + static_cast<std::size_t>(column)},
            values[e++]);
        else
          f(values[e++]);
      }
    }
  }
  barrier(members());
}

/// Between a barrier and a publish: each tile becomes make(rows of the matrix, columns of it).
template <class T, class I>
template <class Make>
void sparse_matrix<T, I>::replace_tiles(Make make) {
  barrier(members());
  detail::do_together(
      members(), state_->full_name() + ": a copy",
      [&] {
        for (matrix_index tile : my_tiles()) {
          const matrix_index first = state_->layout.first_of(tile);
          const matrix_shape of = tile_shape(tile);
          auto made = make(index_range{first.row, first.row + of.rows},
                           index_range{first.column, first.column + of.columns});
          set_tile(tile, made.view());
        }
      },
      [] {});
  state_->publish();
}

template <class T, class I>
template <class U, class Op>
U sparse_matrix<T, I>::reduce(U start, Op op) const {
  barrier(members());
  struct partial {
    U value;
    bool any = false;
  } mine{start};
  for (matrix_index tile : my_tiles())
    for (const T& value : my_tile(tile).values()) {
      mine.value = mine.any ? op(mine.value, value) : U(value);
      mine.any = true;
    }
  partial all = all_reduce(
      mine,
      [&](const partial& a, const partial& b) {
        return !a.any ? b : !b.any ? a : partial{op(a.value, b.value), true};
      },
      members());
  return all.any ? op(start, all.value) : start;
}

}  // namespace far::inline FARSIDE_BACKEND

// The algorithms of distributed multiplication: what each member does next.
#pragma once

#include <farside/algorithms/detail/multiply/product.hpp>
#include <farside/core/collectives.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

/// Stationary C, A, B and 2.5-D, with and without stealing. Tiles fit each other.
template <class A, class B, class C, class Over>
class tiled_product final : public product<A, B, C, Over> {
  using base = product<A, B, C, Over>;

 public:
  tiled_product(const A& a, const B& b, C& c, const Over& over, const multiply_options& how,
                stationary chosen)
      : base(a, b, c, over, how, chosen) {
    const tile_counts tiles{c.grid_shape().rows, c.grid_shape().columns, a.grid_shape().columns};
    const rank_t me = c.members().rank();
    const bool of_c = chosen == stationary::c;
    if (how.stealing != stealing::none) {
      const matrix_shape still = of_c ? c.grid_shape() : a.grid_shape();
      const std::size_t pieces = of_c ? tiles.k : tiles.n;
      base::or_abandon([&] {
        grid_.emplace(c.members(), still, std::max<std::size_t>(1, pieces), [&](matrix_index tile) {
          return of_c ? c.layout().owner(tile) : a.owner(tile);
        });
      });
      // Sums of several pieces have no place in the order of ordered mode.
      const bool together = of_c && !how.ordered;
      auto is_wanted = [this, me, any = how.stealing == stealing::random](matrix_index tile,
                                                                          std::size_t k) {
        return any || base::c_.layout().owner(tile) == me || base::a_.owner({tile.row, k}) == me ||
               base::b_.owner({k, tile.column}) == me;
      };
      source_ = stealing_tasks(*grid_, of_c, tiles, me, together, is_wanted);
    } else if (of_c) {
      source_ = stationary_c_tasks(c.my_tiles(), tiles);
    } else if (chosen == stationary::a) {
      source_ = stationary_a_tasks(own_tiles(a), tiles);
    } else if (chosen == stationary::b) {
      source_ = stationary_b_tasks(own_tiles(b), tiles);
    } else {
      source_ = layered_tasks(me, c.members().size(), c.shape(), tiles);
    }
  }

 private:
  template <class Operand>
  static std::vector<matrix_index> own_tiles(const Operand& of) {
    std::vector<matrix_index> own;
    const matrix_shape grid = of.grid_shape();
    for (std::size_t i = 0; i < grid.rows; ++i)
      for (std::size_t j = 0; j < grid.columns; ++j)
        if (of.owner({i, j}) == of.members().rank()) own.push_back({i, j});
    return own;
  }
  std::optional<multiply_task> next_task() override { return source_(); }
  void release() override {
    if (grid_) grid_->release();
  }

  std::optional<work_grid> grid_;
  task_source source_;
};

/// Tiles do not fit each other: owners of C fetch those rows of A and columns of B that they need,
/// as slices, a tile of A wide at a time.
template <class A, class B, class C, class Over>
class sliced_product final : public product<A, B, C, Over> {
  using base = product<A, B, C, Over>;

 public:
  sliced_product(const A& a, const B& b, C& c, const Over& over, const multiply_options& how)
      : base(a, b, c, over, how, stationary::slices),
        depth_(a.tile_shape().columns),
        source_(stationary_c_tasks(
            c.my_tiles(), {c.grid_shape().rows, c.grid_shape().columns, a.grid_shape().columns})) {}

 private:
  using typename base::fetched;
  using typename base::tile_a;
  using typename base::tile_b;

  std::optional<multiply_task> next_task() override { return source_(); }
  bool is_empty(const multiply_task&, std::size_t) const override { return false; }
  void fetch(fetched& piece) override {
    const matrix_index first = base::c_.layout().first_of(piece.task->c);
    const matrix_shape of = base::c_.layout().tile_shape(piece.task->c);
    const index_range rows{first.row, first.row + of.rows},
        columns{first.column, first.column + of.columns},
        depth{piece.k * depth_, std::min((piece.k + 1) * depth_, base::a_.shape().columns)};
    piece.a = base::a_.async_slice(rows, depth);
    piece.b = base::b_.async_slice(depth, columns);
    base::times_.bytes_fetched += base::a_.slice_bytes(rows, depth, base::members_.rank()) +
                                  base::b_.slice_bytes(depth, columns, base::members_.rank());
  }

  std::size_t depth_;
  task_source source_;
};

/// Bulk-synchronous. For each k, in step, tiles of A are broadcast along the rows of the grid of
/// members, tiles of B along its columns. C, A and B are laid out on the same grid.
template <class A, class B, class C, class Over>
class summa_product final : public product<A, B, C, Over> {
  using base = product<A, B, C, Over>;

 public:
  summa_product(const A& a, const B& b, C& c, const Over& over, const multiply_options& how)
      : base(a, b, c, over, how, stationary::summa), grid_(c.layout().process_grid()) {
    const rank_t me = c.members().rank();
    const bool takes_part = me < c.layout().holders();
    base::or_abandon([&] {
      row_ = c.members().split(takes_part ? static_cast<int>(me / grid_.columns) : -1,
                               static_cast<int>(me));
      try {
        column_ = c.members().split(takes_part ? static_cast<int>(me % grid_.columns) : -1,
                                    static_cast<int>(me));
      } catch (const allocation_error&) {
        row_ = {};  // here, as a team that ends while an exception flies keeps its memory
        throw;
      }
    });
    own_ = c.my_tiles();
  }

 private:
  using typename base::fetched;
  using typename base::tile_a;
  using typename base::tile_b;

  /// All own tiles of C for one k, then for the next.
  std::optional<multiply_task> next_task() override {
    while (row_ && k_ < base::a_.grid_shape().columns) {
      if (at_ == 0) exchange();
      if (at_ < own_.size()) {
        multiply_task task{own_[at_], {k_}, k_};
        if (++at_ == own_.size()) at_ = 0, ++k_;
        return task;
      }
      ++k_;  // this member has no tile of C, but tiles of A and B that others need
    }
    return std::nullopt;
  }
  /// Before an exception flies: teams that end while it does give no memory back.
  void release() override {
    row_ = {};
    column_ = {};
  }
  /// This member cannot go on, but the others wait for its tiles.
  void after_failure() override {
    while (row_ && k_ < base::a_.grid_shape().columns) {
      if (at_ == 0) exchange();
      ++k_, at_ = 0;
    }
  }
  bool is_empty(const multiply_task&, std::size_t) const override { return false; }
  void fetch(fetched& piece) override {
    piece.a = future<tile_a>::ready(tile_a(in_row_.at(piece.task->c.row).view()));
    piece.b = future<tile_b>::ready(tile_b(in_column_.at(piece.task->c.column).view()));
  }

  /// The tiles of this k that are needed in this member's row and column of the grid. Those of the
  /// k before stay: their last piece may not have been multiplied yet.
  void exchange() {
    stopwatch until_here(base::times_.communicate);
    before_row_ = std::exchange(in_row_, {});
    before_column_ = std::exchange(in_column_, {});
    const rank_t me = base::members_.rank();
    const auto a_root = static_cast<rank_t>(k_ % grid_.columns),
               b_root = static_cast<rank_t>(k_ % grid_.rows);
    for (std::size_t i = me / grid_.columns; i < base::a_.grid_shape().rows; i += grid_.rows)
      in_row_.emplace(i, broadcast_tile(base::a_, {i, k_}, a_root, row_));
    for (std::size_t j = me % grid_.columns; j < base::b_.grid_shape().columns; j += grid_.columns)
      in_column_.emplace(j, broadcast_tile(base::b_, {k_, j}, b_root, column_));
  }

  template <class Operand>
  typename Operand::tile_type broadcast_tile(const Operand& of, matrix_index at, rank_t root,
                                             const team& over) {
    using T = typename Operand::value_type;
    if (over.rank() != root) base::count_fetch(of, at);
    if constexpr (!Operand::is_sparse) {
      const matrix_shape shape = of.matrix().layout().tile_shape(at);
      if (over.rank() == root) {
        auto own = of.matrix().my_tile(at);
        broadcast(std::span<T>(own.data(), shape.size()), root, over);
        return typename Operand::tile_type(matrix_view<const T>(own));
      }
      dense<T> copy(shape);
      broadcast(std::span<T>(copy.data(), shape.size()), root, over);
      return typename Operand::tile_type(std::move(copy));
    } else {
      using I = typename Operand::matrix_type::index_type;
      using unit = typename csr_block<T, I>::unit;
      const matrix_shape shape = of.matrix().layout().tile_shape(at);
      const csr_block<T, I> block{shape.rows, of.matrix().tile_nnz(at)};
      if (block.nnz == 0)
        return typename Operand::tile_type(csr_view<T, I>(shape, nullptr, nullptr, nullptr, true));
      plain_array<unit> copy(block.units());
      const bool sorted = of.matrix().tile_is_sorted(at);
      if (over.rank() == root)
        std::memcpy(copy.data(), of.matrix().my_tile(at).row_begin().data(), block.bytes());
      broadcast(std::span<unit>(copy.data(), copy.size()), root, over);
      const auto view = block.view(copy.data(), shape, sorted);
      return typename Operand::tile_type(std::move(copy), view);
    }
  }

  matrix_shape grid_;
  team row_, column_;
  std::vector<matrix_index> own_;
  std::size_t k_ = 0, at_ = 0;
  std::map<std::size_t, tile_a> in_row_, before_row_;
  std::map<std::size_t, tile_b> in_column_, before_column_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

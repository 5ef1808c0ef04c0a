// Where products of tiles go: the tiles of C that this member has, or partial tiles that are
// sent to the members that have them.
//
//   start(task)  piece(A tile, B tile) ...  end(task)      what this member multiplies
//     piece may hold tiles back: then multiply_held(task) comes before end(task)
//   take(header, data)                                     partial tiles that have come
//   finish()                                               C is what it will be
//
// In ordered mode the parts of a tile are added in the order of their numbers: what comes too early
// waits.
#pragma once

#include <farside/algorithms/detail/multiply/operand.hpp>
#include <farside/algorithms/detail/multiply/report.hpp>
#include <farside/algorithms/detail/multiply/tasks.hpp>
#include <farside/algorithms/detail/multiply/update_box.hpp>
#include <farside/algorithms/local/local_kernels.hpp>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Hands out parts of one tile in the order of their numbers, from 0 on.
template <class Part>
class in_order {
 public:
  template <class Add>
  void arrive(std::uint64_t number, Part part, Add add) {
    if (FARSIDE_MUTANT(parts_in_any_order)) return add(part);
    waiting_.emplace(number, std::move(part));
    for (auto next = waiting_.find(next_); next != waiting_.end(); next = waiting_.find(++next_)) {
      add(next->second);
      waiting_.erase(next);
    }
  }

 private:
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Part> waiting_;
};

/// What both kinds of targets know.
template <class C, class Over>
struct target_base {
  C& c;
  Over over;
  const multiply_options& how;
  update_box& box;
  multiply_times& times;
  std::function<void()> drain;  ///< takes what has come

  bool is_mine(matrix_index tile) const { return c.layout().owner(tile) == c.members().rank(); }
  /// Memory for a partial tile of another member.
  update_box::outgoing room(std::size_t bytes) {
    stopwatch until_return(times.communicate);
    return box.room(bytes, drain);
  }
  void send(matrix_index tile, const update_box::outgoing& part, update_box::header with) {
    stopwatch until_return(times.communicate);
    with.row = tile.row, with.column = tile.column;
    times.bytes_sent += part.bytes;
    box.push(c.layout().owner(tile), part, with);
    times.most_waiting = box.most_out();
  }
};

template <class Tile>
inline constexpr bool is_sparse_tile = false;
template <class T, class I>
inline constexpr bool is_sparse_tile<sparse_tile<T, I>> = true;

template <class C, class Over>
class dense_target : target_base<C, Over> {
  using base = target_base<C, Over>;
  using T = typename C::value_type;
  using base::c, base::over, base::how, base::box, base::times, base::drain;

 public:
  dense_target(base known) : base(std::move(known)), kernels_(over) {
    if (how.accumulate) return;
    for (matrix_index tile : c.my_tiles()) {
      matrix_view<T> of = c.my_tile(tile);
      std::fill(of.data(), of.data() + of.shape().size(), over.zero());
    }
  }

  void start(const multiply_task& task) {
    const matrix_shape shape = c.layout().tile_shape(task.c);
    if (base::is_mine(task.c) && !how.ordered) {
      to_ = c.my_tile(task.c);
      return;
    }
    if (base::is_mine(task.c)) {
      aside_ = dense<T>(shape);
      to_ = aside_;
    } else {
      leaving_ = base::room(shape.size() * sizeof(T));
      to_ = {reinterpret_cast<T*>(leaving_.data()), shape};
    }
    std::fill(to_.data(), to_.data() + shape.size(), over.zero());
  }
  template <class TileA, class TileB>
  void piece(const multiply_task&, TileA a, TileB b) {
    const kernel_options serving{.between_blocks = drain};
    if constexpr (is_sparse_tile<TileA>)
      spmm(a.view(), b.view(), to_, over, serving);  // whatever type its column indices have
    else
      kernels_.gemm(a.view(), b.view(), to_, serving);
  }
  void end(const multiply_task& task) {
    if (leaving_.where)
      base::send(task.c, std::exchange(leaving_, {}), {.order = task.part});
    else if (how.ordered)
      arrive(task.c, task.part, std::move(aside_));
  }
  /// The task cannot be done.
  void give_up() {
    if (leaving_.where) box.give_up(std::exchange(leaving_, {}));
  }

  void take(const update_box::header& of, const std::byte* data) {
    const matrix_index tile{of.row, of.column};
    const matrix_view<const T> part(reinterpret_cast<const T*>(data), c.layout().tile_shape(tile));
    if (how.ordered)
      arrive(tile, of.order, dense<T>(part));
    else
      add(tile, part);
  }
  void finish() {}

 private:
  void add(matrix_index tile, matrix_view<const T> part) { kernels_.add(part, c.my_tile(tile)); }
  void arrive(matrix_index tile, std::uint64_t number, dense<T> part) {
    waiting_[tile].arrive(number, std::move(part),
                          [&](const dense<T>& next) { add(tile, next.view()); });
  }

  cpu_kernels<T, std::int32_t, Over> kernels_;
  matrix_view<T> to_;
  dense<T> aside_;
  update_box::outgoing leaving_;
  std::map<matrix_index, in_order<dense<T>>> waiting_;
};

template <class C, class Over>
class sparse_target : target_base<C, Over> {
  using base = target_base<C, Over>;
  using T = typename C::value_type;
  using I = typename C::index_type;
  using kernels = cpu_kernels<T, I, Over>;
  using sum = decltype(std::declval<const kernels&>().accumulator({}));
  using base::c, base::over, base::how, base::box, base::times, base::drain;

 public:
  sparse_target(base known) : base(std::move(known)), kernels_(over) {
    for (matrix_index tile : c.my_tiles()) {
      auto& own =
          own_.emplace(tile, kernels_.accumulator(c.layout().tile_shape(tile))).first->second;
      if (how.accumulate) own.accumulate(csr<T, I>(c.my_tile(tile)));
    }
  }
  /// A product that is left by an exception publishes nothing.
  ~sparse_target() {
    if (unfinished_) c.forget_set_tiles();
  }
  sparse_target(const sparse_target&) = delete;

  void start(const multiply_task& task) {
    in_place_ = false;
    part_ = std::make_unique<sum>(kernels_.accumulator(c.layout().tile_shape(task.c)));
  }
  /// Whether the piece waits for the others of its task. Tiles that are views take no memory, so that
  /// they wait, and the task becomes one sum of products. Copies are multiplied at once.
  bool piece(const multiply_task&, sparse_tile<T, I> a, sparse_tile<T, I> b) {
    if (a.nnz() == 0 || b.nnz() == 0) return false;
    if (!a.is_copy() && !b.is_copy()) {
      held_.emplace_back(std::move(a), std::move(b));
      return true;
    }
    part_->accumulate(kernels_.spgemm(a.view(), b.view(), serving()));
    has_part_ = true;
    return false;
  }
  void multiply_held(const multiply_task& task) {
    std::vector<sparse_factors<T, I>> terms;
    for (const auto& [a, b] : held_) terms.push_back({a.view(), b.view()});
    const std::span<const sparse_factors<T, I>> all(terms);
    // Nothing else comes to such a tile: it is written where it will stay, if there is room.
    in_place_ = task.whole && base::is_mine(task.c) && !has_part_ && !how.accumulate &&
                c.try_set_tile(task.c, most_entries(all), true,
                               [&](std::int64_t* row_begin, I* columns, T* values) {
                                 rows_in_place<T, I> rows(row_begin, columns, values);
                                 kernels_.spgemm_into(all, rows, serving());
                                 return rows.entries();
                               });
    if (in_place_)
      unfinished_ = true;
    else
      part_->accumulate(kernels_.spgemm(all, serving()));
    held_.clear();
  }
  void end(const multiply_task& task) {
    has_part_ = false;
    if (in_place_) {
      own_.erase(task.c);
      return;
    }
    csr<T, I> part = part_->result();
    part_.reset();
    if (base::is_mine(task.c)) {
      arrive(task.c, task.part, std::move(part));
    } else if (part.nnz() != 0 || how.ordered) {
      const csr_block<T, I> shape{part.rows(), part.nnz()};
      auto leaving = base::room(shape.bytes());
      write(shape, part.view(), leaving.data());
      base::send(task.c, leaving, {.nnz = part.nnz(), .sorted = part.sorted(), .order = task.part});
    }
  }
  void give_up() {
    held_.clear();
    part_.reset();
  }

  void take(const update_box::header& of, const std::byte* data) {
    const matrix_index tile{of.row, of.column};
    const matrix_shape shape = c.layout().tile_shape(tile);
    const csr_block<T, I> block{shape.rows, of.nnz};
    auto* units = reinterpret_cast<const typename csr_block<T, I>::unit*>(data);
    arrive(tile, of.order, csr<T, I>(block.view(units, shape, of.sorted != 0)));
  }
  void finish() {
    for (auto& [tile, own] : own_) {
      csr<T, I> result = own.result();
      c.set_tile(tile, result.view());
    }
    unfinished_ = false;
  }

 private:
  static void write(const csr_block<T, I>& shape, csr_view<T, I> from, std::byte* to) {
    auto* row_begin = reinterpret_cast<std::int64_t*>(to);
    for (std::size_t i = 0; i <= from.rows(); ++i)
      row_begin[i] = static_cast<std::int64_t>(from.entries_before(i));
    std::ranges::copy(from.values(), reinterpret_cast<T*>(to + shape.values_at()));
    std::ranges::copy(from.columns(), reinterpret_cast<I*>(to + shape.columns_at()));
  }
  void arrive(matrix_index tile, std::uint64_t number, csr<T, I> part) {
    sum& own = own_.at(tile);
    if (!how.ordered) return own.accumulate(std::move(part));
    waiting_[tile].arrive(number, std::move(part),
                          [&](csr<T, I>& next) { own.accumulate(std::move(next)); });
  }

  kernel_options serving() const { return {.between_blocks = drain}; }

  kernels kernels_;
  std::map<matrix_index, sum> own_;  ///< but tiles that have been set in place
  std::vector<std::pair<sparse_tile<T, I>, sparse_tile<T, I>>> held_;
  bool has_part_ = false;  ///< of the task, some pieces have been multiplied
  bool in_place_ = false;
  bool unfinished_ = false;  ///< tiles have been set in place, but not all
  std::unique_ptr<sum> part_;
  std::map<matrix_index, in_order<csr<T, I>>> waiting_;
};

/// Which target a product of this kind has, and how much of it may be under way unless told
/// otherwise.
template <class C, class Over>
struct target_of {
  using type =
      std::conditional_t<is_dense_matrix<C>, dense_target<C, Over>, sparse_target<C, Over>>;
  static std::size_t update_memory(const C&) { return here().link.segment_size() / 16; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail

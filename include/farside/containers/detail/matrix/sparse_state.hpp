// The state of a far::sparse_matrix: which block of far memory each tile has, and how that changes.
//
//   owner            set_tile: a new block, which nobody else knows        staged
//   all members      publish:  barrier, after which it is complete
//                              all_gather: all learn of staged blocks      in the directory
//                              owners free what they replaced
//
// Invariant. A block in a member's directory is not freed before that member has entered a publish,
// after which it reads by that directory no more: both the barrier and the all_gather wait for it.
//
// Entries that are inserted travel in batches to the owner of their tile, as messages, and wait there
// for assemble.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/detail/matrix/state.hpp>
#include <farside/containers/sparse_tile.hpp>
#include <farside/core/rpc.hpp>

#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T, class I>
struct sparse_state : matrix_state {
  using block = csr_block<T, I>;
  using unit = typename block::unit;

  struct tile_entry {
    ptr<unit> where;  ///< null: no entries
    std::uint64_t nnz = 0;
    bool sorted = true;
  };
  struct change {
    std::uint64_t tile;
    tile_entry now;
  };
  /// An entry on its way to the owner of its tile.
  struct inserted {
    std::uint64_t row, column;
    T value;
  };

  template <class Descriptor>
  sparse_state(matrix_shape shape, const Descriptor& blocks, const container_options& with)
      : matrix_state("sparse_matrix", shape, blocks, with),
        directory(layout.grid_shape().size()),
        leaving(members.size()),
        sent(members.size()),
        arrived(members.size()) {
    if (layout.tile_shape().columns - 1 > static_cast<std::size_t>(std::numeric_limits<I>::max()))
      raise(full_name(), ": tiles of ", layout.tile_shape(), " do not fit column indices of ",
            8 * sizeof(I), " bits. Cut it into tiles of fewer columns, or take ",
            "far::sparse_matrix<T, std::int64_t>.");
  }
  ~sparse_state() override {
    if (!constructed) free_own();
  }
  void release() override { free_own(); }

  std::size_t number(matrix_index tile) const {
    return tile.row * layout.grid_shape().columns + tile.column;
  }
  const tile_entry& entry(matrix_index tile) const { return directory[number(tile)]; }
  block block_of(matrix_index tile) const {
    return {layout.tile_shape(tile).rows, entry(tile).nnz};
  }

  /// The tile, if this process can load it.
  std::optional<csr_view<T, I>> loadable(matrix_index tile) const {
    const tile_entry& of = entry(tile);
    const matrix_shape shape = layout.tile_shape(tile);
    if (!of.where) return csr_view<T, I>(shape, nullptr, nullptr, nullptr, true);
    if (const unit* here = of.where.local()) return block_of(tile).view(here, shape, of.sorted);
    return std::nullopt;
  }

  /// Some rows of a tile: a view, or a copy by 3 gets, of which the last two are in flight together.
  future<sparse_tile<T, I>> rows_of(matrix_index tile, index_range rows) const {
    if (auto here = loadable(tile)) {
      const auto some = here->row_range(rows.first, rows.size());
      if (some.nnz() != 0)
        note_viewed(entry(tile).where.rank(), block{rows.size(), some.nnz()}.bytes());
      return future<sparse_tile<T, I>>::ready(sparse_tile<T, I>(some));
    }
    const tile_entry& of = entry(tile);
    const block whole = block_of(tile);
    auto at = [where = pointer_cast<std::byte>(of.where)](std::size_t bytes) {
      return where + static_cast<std::ptrdiff_t>(bytes);
    };
    auto begins = std::make_shared<std::vector<std::int64_t>>(rows.size() + 1);
    auto from = pointer_cast<std::int64_t>(of.where) + static_cast<std::ptrdiff_t>(rows.first);
    const matrix_shape shape{rows.size(), layout.tile_shape(tile).columns};
    return async_get(from, begins->data(), begins->size())
        .then([begins, at, whole, shape, sorted = of.sorted] {
          const auto first = static_cast<std::size_t>(begins->front());
          const block part{shape.rows, static_cast<std::size_t>(begins->back()) - first};
          auto copy = std::make_shared<plain_array<unit>>(part.units());
          auto* to = reinterpret_cast<std::byte*>(copy->data());
          std::memcpy(to, begins->data(), begins->size() * sizeof(std::int64_t));
          std::vector<future<void>> both;
          both.push_back(async_get(pointer_cast<T>(at(whole.values_at() + first * sizeof(T))),
                                   reinterpret_cast<T*>(to + part.values_at()), part.nnz));
          both.push_back(async_get(pointer_cast<I>(at(whole.columns_at() + first * sizeof(I))),
                                   reinterpret_cast<I*>(to + part.columns_at()), part.nnz));
          return when_all(std::move(both)).then([copy, part, shape, sorted] {
            auto view = part.view(copy->data(), shape, sorted);
            return sparse_tile<T, I>(std::move(*copy), view);
          });
        });
  }

  /// Room for a tile of this member with `nnz` entries: written by fill(row_begin, columns, values)
  /// before anybody else hears of it. Replaces what was staged for the tile before.
  template <class Fill>
  void stage(matrix_index tile, std::size_t nnz, bool sorted, Fill fill) {
    const block shape{layout.tile_shape(tile).rows, nnz};
    tile_entry made{{}, nnz, sorted};
    if (nnz != 0) {
      require_possible(full_name() + ", entries of a tile", nnz, sizeof(T) + sizeof(I));
      made.where = alloc<unit>(shape.units());
      auto* begin = reinterpret_cast<std::byte*>(made.where.local());
      fill(reinterpret_cast<std::int64_t*>(begin), reinterpret_cast<I*>(begin + shape.columns_at()),
           reinterpret_cast<T*>(begin + shape.values_at()));
    }
    keep_staged(tile, made);
  }
  /// Likewise, where no more is known than that there are `most` entries at most:
  /// write(row_begin, columns, values) returns how many there are. Room that is left is given back.
  /// False, and nothing has been written, where there is no room for so many.
  template <class Write>
  bool try_stage(matrix_index tile, std::size_t most, bool sorted, Write write) {
    const block room{layout.tile_shape(tile).rows, most};
    tile_entry made{{}, 0, sorted};
    try {
      made.where = alloc<unit>(room.units());
    } catch (const allocation_error&) {
      return false;
    }
    auto* begin = reinterpret_cast<std::byte*>(made.where.local());
    try {
      made.nnz = write(reinterpret_cast<std::int64_t*>(begin),
                       reinterpret_cast<I*>(begin + room.columns_at()),
                       reinterpret_cast<T*>(begin + room.values_at()));
    } catch (...) {
      dealloc(made.where);
      throw;
    }
    const block shape{room.rows, made.nnz};
    if (made.nnz == 0) {
      dealloc(std::exchange(made.where, {}));
    } else {  // columns follow values, of which there are fewer than there was room for
      std::memmove(begin + shape.columns_at(), begin + room.columns_at(), made.nnz * sizeof(I));
      const bool too_short = FARSIDE_MUTANT(tile_trimmed_too_short);
      trim_own(*where, made.where.offset(), too_short ? shape.columns_at() : shape.bytes());
    }
    keep_staged(tile, made);
    return true;
  }

  /// Collective.
  void publish() {
    std::vector<change> mine;
    for (const auto& [tile, made] : staged) mine.push_back({tile, made});
    staged.clear();
    if (FARSIDE_MUTANT(tile_freed_too_early))
      for (const change& one : mine) dealloc(directory[one.tile].where);
    barrier(members.members());  // what was staged is complete
    std::vector<ptr<unit>> replaced;
    for (const auto& changes : all_gather(mine, members))
      for (const change& one : changes) {
        tile_entry& known = directory[one.tile];
        if (known.where && known.where.rank() == where->link.rank())
          replaced.push_back(known.where);
        known = one.now;
      }
    if (FARSIDE_MUTANT(tile_freed_too_early)) return;
    for (ptr<unit> old : replaced) dealloc(old);
  }

  // --- entries on their way ---

  static constexpr std::size_t batch = 512;

  void insert(matrix_index at, const T& value) {
    const rank_t to = layout.owner(layout.tile_of(at));
    leaving[to].push_back({at.row, at.column, value});
    if (leaving[to].size() == batch) send(to);
  }
  /// Serialized as bytes: a batch, and who sent it.
  void send(rank_t to) {
    std::vector<inserted>& entries = leaving[to];
    if (entries.empty()) return;
    if (to == members.rank()) {
      take(to, entries);
    } else {
      auto* handler = +[](object_name name, rank_t from, const std::vector<inserted>& entries) {
        find_object<sparse_state, sparse_state>(name).take(from, entries);
      };
      rpc_ff(members.world_rank(to), handler, id, members.rank(), entries);
    }
    sent[to] += entries.size();
    entries.clear();
  }
  void take(rank_t from, const std::vector<inserted>& entries) {
    std::lock_guard lock(mutex);  // of a thread that serves messages, and of this rank's own
    arrived[from].insert(arrived[from].end(), entries.begin(), entries.end());
    arrivals += entries.size();
  }
  /// Collective: until all that was inserted for this member has come.
  void await_arrivals() {
    do_together(
        members, full_name() + ": assemble",
        [&] {  // a message may find no room; what it has carried stays here then
          for (rank_t to = 0; to < members.size(); ++to) send(to);
        },
        [] {});
    for (std::uint64_t n : all_to_all(sent, members)) expected += n;
    std::fill(sent.begin(), sent.end(), 0);
    auto here_yet = [&] {
      std::lock_guard lock(mutex);
      return arrivals == expected;
    };
    while (!here_yet()) where->wait_round();
  }
  /// Calls merge(tile, entries) for each tile for which something came: what is there, then what
  /// came, by the rank that inserted it and in the order of its calls.
  template <class Merge>
  void merge_arrivals(Merge merge) const {
    std::map<matrix_index, std::vector<triplet<T>>> by_tile;
    for (const auto& from : arrived)
      for (const auto& [row, column, value] : from) {
        const matrix_index tile = layout.tile_of({row, column}), first = layout.first_of(tile);
        std::vector<triplet<T>>& entries = by_tile[tile];
        if (entries.empty()) {
          const csr_view<T, I> before = *loadable(tile);
          for (auto [at, old] : before) entries.push_back({at.row, at.column, old});
        }
        entries.push_back({row - first.row, column - first.column, value});
      }
    for (auto& [tile, entries] : by_tile) {
      merge(tile, entries);
      entries = {};
    }
  }
  void forget_arrivals() {
    for (auto& from : arrived) from = {};
    arrivals = expected = 0;
  }
  /// Gives back what was staged, and has `before` staged instead.
  void unstage(const std::map<std::uint64_t, tile_entry>& before) {
    for (const auto& [tile, made] : staged) dealloc(made.where);
    staged = before;
  }

  std::vector<tile_entry> directory;           ///< of all tiles, row by row; what was published
  std::map<std::uint64_t, tile_entry> staged;  ///< of this member; not published yet
  std::vector<std::vector<inserted>> leaving;  ///< to each member
  std::vector<std::uint64_t> sent;             ///< to each member since the last assemble
  std::mutex mutex;                            ///< of what has arrived
  std::vector<std::vector<inserted>> arrived;  ///< from each member
  std::uint64_t arrivals = 0, expected = 0;

 private:
  void keep_staged(matrix_index tile, const tile_entry& made) {
    auto [at, is_new] = staged.try_emplace(number(tile), made);
    if (!is_new) dealloc(std::exchange(at->second, made).where);
  }
  void free_own() {
    layout.for_each_tile(members.rank(), [&](matrix_index tile) { dealloc(entry(tile).where); });
    for (const auto& [tile, made] : staged) dealloc(made.where);
    staged.clear();
  }
};

/// The part of one tile that a slice covers: of `rows` the columns in `columns`, for the place `at`
/// in the slice.
template <class T, class I>
struct slice_part {
  sparse_tile<T, I> keeps;
  csr_view<T, I> rows;
  index_range columns;
  matrix_index at;

  template <class Visit>
  void for_each_in_row(std::size_t i, Visit visit) const {
    for (auto [column, value] : rows.row(i)) {
      auto c = static_cast<std::size_t>(column);
      if (c >= columns.first && c < columns.last) visit(c - columns.first + at.column, value);
    }
  }
};

/// A slice of its parts, which come by rows of tiles, and in each from left to right.
template <class T, class I>
csr<T, I> join_parts(matrix_shape shape, const std::vector<slice_part<T, I>>& parts) {
  csr<T, I> result(shape);
  bool sorted = true;
  auto begins = result.row_begin();
  for (const auto& part : parts) {
    sorted = sorted && part.rows.sorted();
    for (std::size_t i = 0; i < part.rows.rows(); ++i)
      part.for_each_in_row(i, [&](std::size_t, const T&) { ++begins[part.at.row + i + 1]; });
  }
  counts_to_offsets(begins);
  result.resize(static_cast<std::size_t>(begins[shape.rows]));
  std::vector<std::int64_t> next(begins.begin(), begins.end());
  for (const auto& part : parts)
    for (std::size_t i = 0; i < part.rows.rows(); ++i)
      part.for_each_in_row(i, [&](std::size_t column, const T& value) {
        auto to = static_cast<std::size_t>(next[part.at.row + i]++);
        result.columns()[to] = static_cast<I>(column);
        result.values()[to] = value;
      });
  if (!sorted) result.sort_rows();
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail

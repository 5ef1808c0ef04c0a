// far::sparse_matrix<T, I, far::device_memory>: a sparse matrix whose tiles lie in the device
// memory of a team.
//
//   using on_device = far::sparse_matrix<double, std::int32_t, far::device_memory>;
//   far::sparse_matrix<double> h({m, n}, blocks);                  // assembled, or read from a file
//   on_device a({m, n}, blocks);                                   // collective
//   a.copy_from(h);                                                // collective; any layout
//   far::multiply(a, b, c);                                        // algorithms/device_multiply.hpp
//   c.copy_to(h);                                                  // collective
//
// Every member has a directory of all tiles: where each lies, and how many entries it has. Owners replace
// their tiles; nobody sees that before publish, which replaces all that were set, on all members at once, as
// in host memory (containers/sparse_matrix.hpp). A tile has at most as many entries as I counts: offsets of
// rows have this type too, as libraries for GPUs ask for. Entries are inserted and changed in host memory.
#pragma once

#include <farside/containers/device_matrix.hpp>
#include <farside/containers/sparse_matrix.hpp>

#include <limits>
#include <map>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

template <class T, class I>
struct device_sparse_state : device_matrix_state {
  using block = device_csr_block<T, I>;

  struct tile_entry {
    device_ptr<std::byte> where{};  ///< null: no entries
    std::uint64_t nnz = 0;
    std::uint64_t sorted = 1;
  };
  struct change {
    std::uint64_t tile;
    tile_entry now;
  };

  template <class Descriptor>
  device_sparse_state(matrix_shape shape, const Descriptor& blocks, const container_options& with)
      : device_matrix_state("device sparse_matrix", shape, blocks, with),
        directory(layout.grid_shape().size()) {
    if (layout.tile_shape().columns - 1 > static_cast<std::size_t>(std::numeric_limits<I>::max()))
      raise(full_name(), ": tiles of ", layout.tile_shape(), " do not fit column indices of ",
            8 * sizeof(I), " bits. Cut it into tiles of fewer columns.");
  }
  ~device_sparse_state() override {
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

  /// What a tile of this member will be from the next publish on.
  void stage(matrix_index tile, device_csr<T, I> of) {
    tile_entry made{{}, of.nnz(), of.view().sorted};
    if (of.nnz() != 0) made.where = of.take_memory().release();
    auto [at, is_new] = staged.try_emplace(number(tile), made);
    if (!is_new) gpu.dealloc(std::exchange(at->second, made).where);
  }
  /// Collective.
  void publish() {
    std::vector<change> mine;
    for (const auto& [tile, made] : staged) mine.push_back({tile, made});
    staged.clear();
    barrier(members.members());
    std::vector<device_ptr<std::byte>> replaced;
    for (const auto& changes : all_gather(mine, members))
      for (const change& one : changes) {
        tile_entry& known = directory[one.tile];
        if (known.where && known.where.rank() == where->link.rank())
          replaced.push_back(known.where);
        known = one.now;
      }
    for (auto old : replaced) gpu.dealloc(old);
  }
  void unstage() {
    for (const auto& [tile, made] : staged) gpu.dealloc(made.where);
    staged.clear();
  }

  std::vector<tile_entry> directory;           ///< of all tiles, row by row; what was published
  std::map<std::uint64_t, tile_entry> staged;  ///< of this member; not published yet

 private:
  void free_own() {
    layout.for_each_tile(members.rank(),
                         [&](matrix_index tile) { gpu.dealloc(entry(tile).where); });
    unstage();
  }
};

}  // namespace detail

template <class T, class I>
class sparse_matrix<T, I, device_memory> : public detail::tiled<detail::device_sparse_state<T, I>> {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                "far::sparse_matrix in device memory holds numbers");
  using state = detail::device_sparse_state<T, I>;
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
  /// How many bytes a tile takes. Local; no communication.
  std::size_t tile_bytes(matrix_index tile) const {
    return tile_nnz(tile) == 0 ? 0 : state_->block_of(tile).bytes();
  }
  /// How many entries there are, as last published. Local; no communication.
  std::size_t nnz() const {
    std::size_t sum = 0;
    for (const auto& tile : state_->directory) sum += tile.nnz;
    return sum;
  }
  /// Where its memory comes from. Local; no communication.
  const far::device& gpu() const { return state_->gpu; }

  /// A tile of this member. Local; no communication.
  device_csr_view<T, I> my_tile(matrix_index tile) const {
    state_->require_mine("my_tile", tile);
    return view_of(tile, state_->entry(tile).where);
  }
  /// A tile for kernels to read. One-sided. No communication where this rank's device reaches it,
  /// else 1 copy.
  device_sparse_tile<T, I> tile(matrix_index tile) const { return async_tile(tile).get(); }
  /// Likewise, not waited for: the copy is under way beside kernels of other streams.
  future<device_sparse_tile<T, I>> async_tile(matrix_index tile) const {
    state_->require_tile("tile", tile);
    return state_->fetch(state_->entry(tile).where, tile_bytes(tile),
                         [view = view_of(tile, {}), block = state_->block_of(tile)](
                             device_ptr<std::byte> at, std::shared_ptr<device_block> copy) {
                           auto of = at ? block.view(at, view.shape, view.sorted) : view;
                           return device_sparse_tile<T, I>(of, std::move(copy));
                         });
  }
  /// A copy of a tile on the host. One-sided; costs 1 copy.
  csr<T, I> tile_to_host(matrix_index tile) const;
  /// All of it, on the host. One-sided; costs a copy of each tile.
  csr<T, I> to_local() const;

  /// What a tile of this member will be from the next publish on: a copy of one in host memory, or what is
  /// already there. Local; 1 copy. Throws far::allocation_error if there is no room, and nothing has changed
  /// then.
  void set_tile(matrix_index tile, csr_view<T, I> of);
  void set_tile(matrix_index tile, device_csr<T, I> of) {
    state_->require_mine("set_tile", tile);
    require_shape("set_tile", state_->layout.tile_shape(tile), of.shape());
    state_->stage(tile, std::move(of));
  }
  /// What this member has set since the last publish will not be published. Local; no
  /// communication.
  void forget_set_tiles() { state_->unstage(); }
  /// All members see the tiles that were set. Views of tiles that are replaced end. Collective. 1 barrier, 1
  /// all_gather.
  void publish() {
    auto note = detail::calling<"sparse_matrix::publish">(*state_);
    state_->publish();
  }
  /// Becomes a copy of a matrix in host memory, which has the same shape and any layout. Collective: 1
  /// barrier, for each tile a slice of `other` and 1 copy to the device, and a publish.
  void copy_from(const sparse_matrix<T, I>& other) {
    require_shape("copy_from", shape(), other.shape());
    barrier(members());
    detail::do_together(
        members(), state_->full_name() + ": a copy",
        [&] {
          for (matrix_index tile : my_tiles()) {
            const matrix_index first = layout().first_of(tile);
            const matrix_shape of = layout().tile_shape(tile);
            auto from = other.slice({first.row, first.row + of.rows},
                                    {first.column, first.column + of.columns});
            set_tile(tile, from.view());
          }
        },
        [] {});
    publish();
  }
  /// A matrix in host memory, of the same layout, becomes a copy of it. Collective: 1 barrier, 1 copy for
  /// each tile, and a publish.
  void copy_to(sparse_matrix<T, I>& other) const {
    if (!(other.layout() == layout()))
      detail::raise(
          state_->full_name(), ": copy_to of '", other.name(),
          "', which is cut in another way. Give one that is cut alike, and copy_from that.");
    barrier(members());
    detail::do_together(
        members(), state_->full_name() + ": a copy",
        [&] {
          for (matrix_index tile : my_tiles()) other.set_tile(tile, tile_to_host(tile).view());
        },
        [] {});
    other.publish();
  }

 private:
  using base::require_shape, base::state_;

  device_csr_view<T, I> view_of(matrix_index tile, device_ptr<std::byte> at) const {
    const auto& of = state_->entry(tile);
    if (!at) return {state_->layout.tile_shape(tile), 0, of.sorted != 0};
    return state_->block_of(tile).view(at, state_->layout.tile_shape(tile), of.sorted != 0);
  }
};

template <class T, class I>
void sparse_matrix<T, I, device_memory>::set_tile(matrix_index tile, csr_view<T, I> of) {
  state_->require_mine("set_tile", tile);
  require_shape("set_tile", state_->layout.tile_shape(tile), of.shape());
  if (of.nnz() > static_cast<std::size_t>(std::numeric_limits<I>::max()))
    detail::raise(state_->full_name(), ": set_tile was given ", of.nnz(),
                  " entries, more than offsets of ", 8 * sizeof(I),
                  " bits count. Cut the matrix into smaller tiles.");
  if (of.nnz() == 0) return state_->stage(tile, device_csr<T, I>(of.shape()));
  device_csr<T, I> made(state_->gpu, of.shape(), of.nnz(), of.sorted());
  std::vector<I> offsets(of.rows() + 1);
  for (std::size_t i = 0; i <= of.rows(); ++i) offsets[i] = static_cast<I>(of.entries_before(i));
  const auto to = made.view();
  state_->stream.put(to.row_begin, offsets.data(), offsets.size());
  state_->stream.put(to.columns, of.columns().data(), of.nnz());
  state_->stream.put(to.values, of.values().data(), of.nnz());
  state_->stream.synchronize();
  state_->stage(tile, std::move(made));
}

template <class T, class I>
csr<T, I> sparse_matrix<T, I, device_memory>::tile_to_host(matrix_index tile) const {
  state_->require_tile("tile_to_host", tile);
  const auto& of = state_->entry(tile);
  const matrix_shape shape = state_->layout.tile_shape(tile);
  if (of.nnz == 0) return csr<T, I>(shape);
  const auto block = state_->block_of(tile);
  std::vector<std::byte> copy(block.bytes());
  state_->read(of.where, copy.data(), copy.size());
  csr<T, I> result(shape, of.nnz);
  result.set_sorted(of.sorted != 0);
  auto* offsets = reinterpret_cast<const I*>(copy.data());
  std::copy_n(offsets, shape.rows + 1, result.row_begin().begin());
  std::memcpy(result.columns().data(), copy.data() + block.columns_at(), of.nnz * sizeof(I));
  std::memcpy(result.values().data(), copy.data() + block.values_at(), of.nnz * sizeof(T));
  return result;
}

template <class T, class I>
csr<T, I> sparse_matrix<T, I, device_memory>::to_local() const {
  std::vector<triplet<T>> entries;
  for (std::size_t i = 0; i < grid_shape().rows; ++i)
    for (std::size_t j = 0; j < grid_shape().columns; ++j) {
      const matrix_index first = layout().first_of({i, j});
      const csr<T, I> tile = tile_to_host({i, j});
      for (auto [at, value] : tile.view())
        entries.push_back({first.row + at.row, first.column + at.column, value});
    }
  return csr<T, I>::from_triplets(shape(), entries);
}

}  // namespace far::inline FARSIDE_BACKEND

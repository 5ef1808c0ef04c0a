// far::matrix<T, far::device_memory>: a dense matrix whose tiles lie in the device memory of a
// team.
//
//   far::matrix<double> h({m, n}, blocks);                         // filled, or read from a file
//   far::matrix<double, far::device_memory> a({m, n}, blocks);     // collective
//   a.copy_from(h);                                                // collective; any layout
//   far::multiply(a, b, c);                                        // algorithms/device_multiply.hpp
//   c.copy_to(h);                                                  // collective
//
// containers/matrix_layout.hpp says how a matrix is cut. A tile lies densely, row by row, in the device
// segment of its owner; all members know where each begins. The first far::device of the job is made by the
// first such matrix, if the program has made none before; a matrix of a part of the ranks cannot make it.
//
// Order. What a stream does to a tile is seen by others after it was waited for, and a barrier. The
// collectives here begin and end with a barrier.
#pragma once

#include <farside/containers/device_tile.hpp>
#include <farside/containers/matrix.hpp>

#include <type_traits>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// The device of a matrix. The first one of a job is made by all ranks: members of a part of them would wait for
/// the others.
inline device device_for(const team& members, const std::string& what) {
  if ((*device_of_rank).state == nullptr && members.size() != here().link.nprocs())
    raise(what, ": its team has ", members.size(), " of ", here().link.nprocs(),
          " ranks, and there is no device memory yet. Make a far::device on all ranks first.");
  return device();
}

/// What matrices in device memory have in common.
struct device_matrix_state : matrix_state {
  template <class Descriptor>
  device_matrix_state(const char* kind, matrix_shape shape, const Descriptor& blocks,
                      const container_options& with)
      : matrix_state(kind, shape, blocks, with) {}

  /// Whether this rank's kernels read tiles of `rank` where they lie.
  bool views(rank_t rank) const {
    return rank == here().link.rank() || (!gpu.copies_tiles() && gpu.reaches(rank));
  }
  /// A tile of bytes, or a copy of it on the stream for communication: make(where, what keeps it).
  template <class Make>
  auto fetch(device_ptr<std::byte> from, std::size_t bytes, Make make) {
    using tile = decltype(make(from, std::shared_ptr<device_block>()));
    if (bytes == 0 || views(from.rank())) return future<tile>::ready(make(from, nullptr));
    auto copy = std::make_shared<device_block>(gpu, bytes);
    stream.copy(copy->get(), device_ptr<const std::byte>(from), bytes);
    return stream.done().then([copy, make] { return make(copy->get(), copy); });
  }
  /// To the host, from any member.
  void read(device_ptr<std::byte> from, void* to, std::size_t bytes) {
    if (bytes == 0) return;
    device_block copy;
    if (!gpu.reaches(from.rank())) {
      copy = device_block(gpu, bytes);
      stream.copy(copy.get(), device_ptr<const std::byte>(from), bytes);
      from = copy.get();
    }
    stream.get(from, static_cast<std::byte*>(to), bytes);
    stream.synchronize();
  }

  device gpu = device_for(members, full_name());
  device_stream stream{gpu};  ///< for communication
};

template <class T>
struct device_fill {
  device_ptr<T> to;
  T value;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    d.put(to + static_cast<std::ptrdiff_t>(i), value);
  }
};

template <class T>
struct device_dense_state : device_matrix_state {
  template <class Descriptor>
  device_dense_state(matrix_shape shape, const Descriptor& blocks, const container_options& with)
      : device_matrix_state("device matrix", shape, blocks, with) {
    const std::size_t mine = layout.tiles_of(members.rank()) * layout.tile_shape().size();
    device_ptr<T> own{};
    do_together(
        members, full_name(),
        [&] {
          if (mine != 0) own = gpu.alloc<T>(mine);
        },
        [&] { gpu.dealloc(own); });
    parts = all_gather(own, members);
    stream.fill(own, 0, mine);
    stream.synchronize();
    detail::barrier(members.members());
  }
  ~device_dense_state() override {
    if (!constructed && !parts.empty()) gpu.dealloc(parts[members.rank()]);
  }
  void release() override { gpu.dealloc(parts[members.rank()]); }

  device_ptr<T> tile_at(matrix_index tile) const {
    return parts[layout.owner(tile)] +
           static_cast<std::ptrdiff_t>(layout.number_of(tile) * layout.tile_shape().size());
  }

  std::vector<device_ptr<T>> parts;  ///< the tiles of each member
};

}  // namespace detail

template <class T>
class matrix<T, device_memory> : public detail::tiled<detail::device_dense_state<T>> {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>,
                "far::matrix in device memory holds numbers");
  using base = detail::tiled<detail::device_dense_state<T>>;

 public:
  using value_type = T;

  /// Collective: all members give the same. Elements are zero. 1 all_reduce, 1 all_gather, 1 barrier. Throws
  /// far::allocation_error on all members if one has no room in its device segment.
  explicit matrix(matrix_shape shape, const container_options& with = {})
      : matrix(shape, block_rect(), with) {}
  template <block_descriptor Descriptor>
  matrix(matrix_shape shape, const Descriptor& blocks, const container_options& with = {})
      : base(detail::container_handle(new detail::device_dense_state<T>(shape, blocks, with))) {}

  using base::name, base::members;
  using base::shape, base::layout, base::grid_shape, base::tile_shape, base::owner, base::my_tiles;

  /// Where its memory comes from. Local; no communication.
  const far::device& gpu() const { return state_->gpu; }

  /// Where a tile begins; its rows lie one after another. Local; no communication.
  device_ptr<T> tile_ptr(matrix_index tile) const {
    state_->require_tile("tile_ptr", tile);
    return state_->tile_at(tile);
  }
  /// A tile of this member, for kernels to read and to write. Local; no communication.
  device_matrix_view<T> my_tile(matrix_index tile) const {
    state_->require_mine("my_tile", tile);
    return {state_->tile_at(tile), state_->layout.tile_shape(tile)};
  }
  /// A tile for kernels to read. One-sided. No communication where this rank's device reaches it,
  /// else 1 copy.
  device_matrix_tile<T> tile(matrix_index tile) const { return async_tile(tile).get(); }
  /// Likewise, not waited for: the copy is under way beside kernels of other streams.
  future<device_matrix_tile<T>> async_tile(matrix_index tile) const {
    state_->require_tile("tile", tile);
    const matrix_shape of = state_->layout.tile_shape(tile);
    return state_->fetch(pointer_cast<std::byte>(state_->tile_at(tile)), of.size() * sizeof(T),
                         [of](device_ptr<std::byte> at, std::shared_ptr<device_block> copy) {
                           return device_matrix_tile<T>({pointer_cast<T>(at), of}, std::move(copy));
                         });
  }

  /// A copy on the host of rows [rows.first, rows.last) and columns likewise. One-sided; costs a copy of
  /// whole rows of each tile that it touches.
  dense<T> slice(index_range rows, index_range columns) const {
    state_->require_slice("slice", rows, columns);
    dense<T> result(matrix_shape{rows.size(), columns.size()});
    std::vector<T> buffer;
    state_->for_each_part(rows, columns, [&](auto tile, auto in_rows, auto in_columns, auto at) {
      const std::size_t wide = state_->layout.tile_shape(tile).columns;
      buffer.resize(in_rows.size() * wide);
      auto from = state_->tile_at(tile) + static_cast<std::ptrdiff_t>(in_rows.first * wide);
      state_->read(pointer_cast<std::byte>(from), buffer.data(), buffer.size() * sizeof(T));
      for (std::size_t i = 0; i < in_rows.size(); ++i)
        std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(i * wide + in_columns.first),
                    in_columns.size(),
                    result.row(at.row + i).begin() + static_cast<std::ptrdiff_t>(at.column));
    });
    return result;
  }
  /// All of it, on the host. One-sided; costs what slice does.
  dense<T> to_local() const { return slice({0, shape().rows}, {0, shape().columns}); }

  /// Each element becomes `value`. Collective. 2 barriers, 1 kernel for each tile.
  void fill(T value) {
    barrier(members());
    for (matrix_index tile : my_tiles()) {
      auto of = my_tile(tile);
      state_->stream.launch(of.shape.size(), detail::device_fill<T>{of.data, value});
    }
    state_->stream.synchronize();
    barrier(members());
  }
  /// Becomes a copy of a matrix in host memory, which has the same shape and any layout. Collective. 2
  /// barriers, and for each tile a slice of `other` and 1 copy to the device.
  void copy_from(const matrix<T>& other) {
    require_shape("copy_from", shape(), other.shape());
    barrier(members());
    for (matrix_index tile : my_tiles()) {
      const matrix_index first = layout().first_of(tile);
      auto to = my_tile(tile);
      dense<T> from = other.slice({first.row, first.row + to.shape.rows},
                                  {first.column, first.column + to.shape.columns});
      state_->stream.put(to.data, from.data(), to.shape.size());
      state_->stream.synchronize();
    }
    barrier(members());
  }
  /// A matrix in host memory, of the same shape and any layout, becomes a copy of it. Collective. 2 barriers,
  /// and for each tile 1 copy from the device and a put_slice.
  void copy_to(matrix<T>& other) const {
    require_shape("copy_to", shape(), other.shape());
    barrier(members());
    for (matrix_index tile : my_tiles()) {
      const matrix_index first = layout().first_of(tile);
      const matrix_shape of = layout().tile_shape(tile);
      dense<T> copy =
          slice({first.row, first.row + of.rows}, {first.column, first.column + of.columns});
      other.put_slice(first, copy.view());
    }
    barrier(members());
  }

 private:
  using base::require_shape, base::state_;
};

}  // namespace far::inline FARSIDE_BACKEND

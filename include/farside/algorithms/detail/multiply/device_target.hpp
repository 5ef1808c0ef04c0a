// Where products of tiles in device memory go: as in target.hpp, but that tiles and partial tiles lie in
// device memory. The list of updates and the grid of work stay in host memory: an atomic there costs far less
// than a kernel.
//
//   stream for communication    copies of tiles that this device does not reach        matrices have it
//   stream for computing        products, sums                                          targets have it
//
//   update:   | header | far pointer of the partial tile in its sender's device memory |
//
// Kernels of dense products run behind each other and beside this rank: the tiles of the last two are kept
// meanwhile. Sparse ones are waited for, as the size of a product is not known before.
#pragma once

#include <farside/algorithms/detail/device/sparse_sum.hpp>
#include <farside/algorithms/detail/multiply/target.hpp>
#include <farside/containers/device_sparse_matrix.hpp>
#if defined(FARSIDE_USE_CUDA)
#include <farside/algorithms/detail/device/cuda_library.hpp>
#else
#include <farside/algorithms/detail/device/stand_in_kernels.hpp>
#endif

#include <any>
#include <deque>
#include <map>
#include <memory>

namespace far::inline FARSIDE_BACKEND::detail {

/// What both kinds of targets in device memory know.
template <class C, class Over>
struct device_target_base : target_base<C, Over> {
  using base = target_base<C, Over>;

  explicit device_target_base(base known)
      : base(std::move(known)), gpu(base::c.gpu()), stream(gpu), library(gpu, stream) {}

  /// Sends memory of this rank's device, which has been waited for, and keeps it until the owner
  /// has taken it.
  void send_block(matrix_index tile, update_box::outgoing part, device_ptr<std::byte> where,
                  update_box::header with) {
    const std::uint64_t raw = where.raw();
    std::memcpy(part.data(), &raw, sizeof raw);
    base::send(tile, part, with);
    base::times.bytes_sent += part.beside - part.bytes;
  }
  /// Memory for a partial tile: `take` gets it, and returns what gives it back.
  template <class Take>
  update_box::outgoing room(std::size_t bytes, Take take) {
    stopwatch until_return(base::times.communicate);
    return base::box.room(sizeof(std::uint64_t), bytes, take, base::drain);
  }
  /// A partial tile of another member for this one's kernels: where it lies, or a copy of it in
  /// `copy`.
  device_ptr<std::byte> arrived(const std::byte* data, std::size_t bytes, device_block& copy) {
    std::uint64_t raw = 0;
    std::memcpy(&raw, data, sizeof raw);
    auto at = device_ptr<std::byte>::from_raw(raw);
    if (gpu.reaches(at.rank()) && !gpu.copies_tiles()) return at;
    copy = device_block(gpu, bytes);
    stream.copy(copy.get(), device_ptr<const std::byte>(at), bytes);
    return copy.get();
  }

  device gpu;
  device_stream stream;  ///< for computing
  device_library library;
};

template <class C, class Over>
class device_dense_target : device_target_base<C, Over> {
  using base = device_target_base<C, Over>;
  using T = typename C::value_type;
  using base::c, base::how, base::box, base::times, base::gpu, base::stream, base::library;

 public:
  explicit device_dense_target(target_base<C, Over> known) : base(std::move(known)) {
    if (how.accumulate) return;
    for (matrix_index tile : c.my_tiles()) clear(c.my_tile(tile));
  }

  void start(const multiply_task& task) {
    const matrix_shape shape = c.layout().tile_shape(task.c);
    if (base::is_mine(task.c) && !how.ordered) {
      to_ = c.my_tile(task.c);
      return;
    }
    if (base::is_mine(task.c)) {
      aside_ = std::make_shared<device_block>(gpu, shape.size() * sizeof(T));
      to_ = {pointer_cast<T>(aside_->get()), shape};
    } else {
      leaving_ = base::room(shape.size() * sizeof(T), [&] {
        auto block = std::make_shared<device_block>(gpu, shape.size() * sizeof(T));
        to_ = {pointer_cast<T>(block->get()), shape};
        return std::function<void()>([block]() mutable { block.reset(); });
      });
    }
    clear(to_);
  }
  template <class TileA, class TileB>
  void piece(const multiply_task&, TileA a, TileB b) {
    if constexpr (requires { a.nnz(); })
      library.spmm(a.view(), b.view(), to_);
    else
      library.gemm(a.view(), b.view(), to_);
    running_.push_back({std::pair(std::move(a), std::move(b)), stream.done()});
    if (running_.size() > 2) {
      running_.front().end.get();
      running_.pop_front();
    }
  }
  void end(const multiply_task& task) {
    if (leaving_.where) {
      settle();
      base::send_block(task.c, std::exchange(leaving_, {}), pointer_cast<std::byte>(to_.data),
                       {.order = task.part});
    } else if (how.ordered) {
      arrive(task.c, task.part, std::move(aside_));
    }
  }
  void give_up() {
    stream.synchronize();
    running_.clear();
    if (leaving_.where) box.give_up(std::exchange(leaving_, {}));
  }

  void take(const update_box::header& of, const std::byte* data) {
    const matrix_index tile{of.row, of.column};
    const std::size_t bytes = c.layout().tile_shape(tile).size() * sizeof(T);
    auto copy = std::make_shared<device_block>();
    auto at = base::arrived(data, bytes, *copy);
    if (how.ordered) {
      if (!copy->get()) {  // it is kept after its sender's has gone
        *copy = device_block(gpu, bytes);
        stream.copy(copy->get(), device_ptr<const std::byte>(at), bytes);
      }
      stream.synchronize();
      arrive(tile, of.order, std::move(copy));
    } else {
      add(tile, pointer_cast<T>(at));
      stream.synchronize();  // the sender gives its memory back
    }
  }
  void finish() { settle(); }

 private:
  struct piece_under_way {
    std::any tiles;
    future<void> end;
  };

  void clear(device_matrix_view<T> of) { stream.fill(of.data, 0, of.shape.size()); }
  void settle() {
    stopwatch until_done(times.compute);
    stream.synchronize();
    running_.clear();
  }
  void add(matrix_index tile, device_ptr<T> part) {
    auto to = c.my_tile(tile);
    stream.launch(to.shape.size(), add_elements<T>{part, to.data});
  }
  void arrive(matrix_index tile, std::uint64_t number, std::shared_ptr<device_block> part) {
    waiting_[tile].arrive(number, std::move(part), [&](const std::shared_ptr<device_block>& next) {
      add(tile, pointer_cast<T>(next->get()));
      stream.synchronize();
    });
  }

  device_matrix_view<T> to_;
  std::shared_ptr<device_block> aside_;
  update_box::outgoing leaving_;
  std::deque<piece_under_way> running_;
  std::map<matrix_index, in_order<std::shared_ptr<device_block>>> waiting_;
};

template <class C, class Over>
class device_sparse_target : device_target_base<C, Over> {
  using base = device_target_base<C, Over>;
  using T = typename C::value_type;
  using I = typename C::index_type;
  using part = std::shared_ptr<device_csr<T, I>>;
  using base::c, base::how, base::box, base::times, base::gpu, base::stream, base::library;

 public:
  explicit device_sparse_target(target_base<C, Over> known) : base(std::move(known)) {}

  void start(const multiply_task& task) {
    part_ = std::make_shared<device_csr<T, I>>(c.layout().tile_shape(task.c));
  }
  template <class TileA, class TileB>
  void piece(const multiply_task&, TileA a, TileB b) {
    if (a.nnz() == 0 || b.nnz() == 0) return;
    auto made = std::make_shared<device_csr<T, I>>(library.spgemm(a.view(), b.view()));
    stopwatch until_added(times.accumulate);
    join(part_, std::move(made));
  }
  void end(const multiply_task& task) {
    part made = std::exchange(part_, nullptr);
    if (base::is_mine(task.c)) {
      arrive(task.c, task.part, std::move(made));
    } else if (made->nnz() != 0 || how.ordered) {
      const auto view = made->view();
      auto leaving = base::room(
          made->bytes(), [&] { return std::function<void()>([made]() mutable { made.reset(); }); });
      const auto at = pointer_cast<std::byte>(view.row_begin);
      base::send_block(task.c, std::move(leaving), at,
                       {.nnz = view.nnz, .sorted = view.sorted, .order = task.part});
    }
  }
  void give_up() { part_.reset(); }

  void take(const update_box::header& of, const std::byte* data) {
    const matrix_index tile{of.row, of.column};
    const matrix_shape shape = c.layout().tile_shape(tile);
    const device_csr_block<T, I> block{shape.rows, of.nnz};
    if (of.nnz == 0) return arrive(tile, of.order, std::make_shared<device_csr<T, I>>(shape));
    device_block copy;
    const auto view = block.view(base::arrived(data, block.bytes(), copy), shape, of.sorted != 0);
    part& own = owned(tile);
    if (!how.ordered && own->nnz() != 0) {
      own = std::make_shared<device_csr<T, I>>(sparse_sum(gpu, stream, own->view(), view));
      return;
    }
    auto kept = std::make_shared<device_csr<T, I>>(gpu, shape, view.nnz, view.sorted);
    stream.copy(pointer_cast<std::byte>(kept->view().row_begin),
                device_ptr<const std::byte>(pointer_cast<std::byte>(view.row_begin)),
                block.bytes());
    stream.synchronize();
    arrive(tile, of.order, std::move(kept));
  }
  void finish() {
    for (matrix_index tile : c.my_tiles()) {
      part own = owned(tile);
      if (how.accumulate) {
        const auto before = c.my_tile(tile);
        if (before.nnz != 0 && own->nnz() != 0)
          own = std::make_shared<device_csr<T, I>>(sparse_sum(gpu, stream, before, own->view()));
        else if (before.nnz != 0)
          continue;  // it stays as it is
      }
      c.set_tile(tile, std::move(*own));
    }
  }

 private:
  part& owned(matrix_index tile) {
    part& own = own_[tile];
    if (own == nullptr) own = std::make_shared<device_csr<T, I>>(c.layout().tile_shape(tile));
    return own;
  }
  /// to = to + more.
  void join(part& to, part more) {
    if (to->nnz() == 0)
      to = std::move(more);
    else if (more->nnz() != 0)
      to = std::make_shared<device_csr<T, I>>(sparse_sum(gpu, stream, to->view(), more->view()));
  }
  void arrive(matrix_index tile, std::uint64_t number, part made) {
    if (!how.ordered) return join(owned(tile), std::move(made));
    waiting_[tile].arrive(number, std::move(made),
                          [&](part& next) { join(owned(tile), std::move(next)); });
  }

  std::map<matrix_index, part> own_;
  part part_;
  std::map<matrix_index, in_order<part>> waiting_;
};

template <class T, class Over>
struct target_of<matrix<T, device_memory>, Over> {
  using type = device_dense_target<matrix<T, device_memory>, Over>;
  static std::size_t update_memory(const matrix<T, device_memory>& c) {
    return c.gpu().segment_size() / 16;
  }
};
template <class T, class I, class Over>
struct target_of<sparse_matrix<T, I, device_memory>, Over> {
  using type = device_sparse_target<sparse_matrix<T, I, device_memory>, Over>;
  static std::size_t update_memory(const sparse_matrix<T, I, device_memory>& c) {
    return c.gpu().segment_size() / 16;
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail

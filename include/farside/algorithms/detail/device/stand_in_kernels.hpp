// Products of tiles in the stand-in's device memory: the library's own kernels for a core, called
// by the stream.
#pragma once

#include <farside/algorithms/local/local_kernels.hpp>
#include <farside/containers/device_tile.hpp>

#include <memory>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class device_library {
 public:
  device_library(const device& gpu, device_stream& on) : gpu_(gpu), on_(on), state_(&gpu.state()) {}

  /// c = c + a b. Issued.
  template <class T>
  void gemm(device_matrix_view<const T> a, device_matrix_view<const T> b, device_matrix_view<T> c) {
    on_.perform([s = state_, a, b, c] { far::gemm(host(s, a), host(s, b), host(s, c)); });
  }
  template <class T, class I>
  void spmm(const device_csr_view<T, I>& a, device_matrix_view<const T> b,
            device_matrix_view<T> c) {
    if (a.nnz == 0) return;
    on_.perform([s = state_, a, b, c] {
      const auto offsets = row_begin_of(s, a);
      far::spmm(host(s, a, offsets), host(s, b), host(s, c));
    });
  }
  /// a b in new memory. Waits for the stream.
  template <class T, class I>
  device_csr<T, I> spgemm(const device_csr_view<T, I>& a, const device_csr_view<T, I>& b) {
    csr<T, I> made;
    on_.perform([&] {
      const auto of_a = row_begin_of(state_, a), of_b = row_begin_of(state_, b);
      made = sparse_multiplier<T, I, plus_times<T>>(plus_times<T>())
                 .multiply(host(state_, a, of_a), host(state_, b, of_b));
    });
    on_.synchronize();
    if (made.nnz() == 0) return device_csr<T, I>(made.shape());
    require_offsets<I>(made.nnz());
    device_csr<T, I> result(gpu_, made.shape(), made.nnz(), made.sorted());
    std::vector<I> offsets(made.row_begin().begin(), made.row_begin().end());
    const auto to = result.view();
    on_.put(to.row_begin, offsets.data(), offsets.size());
    on_.put(to.columns, made.columns().data(), made.nnz());
    on_.put(to.values, made.values().data(), made.nnz());
    on_.synchronize();
    return result;
  }

 private:
  template <class T>
  static T* address(device_state* s, device_ptr<T> p) {
    return reinterpret_cast<T*>(s->runtime.kernel_address(p.rank(), p.offset()));
  }
  template <class T>
  static matrix_view<T> host(device_state* s, device_matrix_view<T> of) {
    return {address(s, of.data), of.shape};
  }
  template <class T, class I>
  static std::vector<std::int64_t> row_begin_of(device_state* s, const device_csr_view<T, I>& of) {
    const I* first = address(s, of.row_begin);
    return {first, first + of.shape.rows + 1};
  }
  template <class T, class I>
  static csr_view<T, I> host(device_state* s, const device_csr_view<T, I>& of,
                             const std::vector<std::int64_t>& row_begin) {
    return {of.shape, row_begin.data(), address(s, of.columns), address(s, of.values), of.sorted};
  }

  device gpu_;
  device_stream& on_;
  device_state* state_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail

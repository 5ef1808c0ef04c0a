// Compiled by nvcc where the build is for GPUs.
#include "on_device.hpp"

#include <farside/device.hpp>

namespace multiply_program {

namespace {

template <class M>
struct counterpart;
template <class T>
struct counterpart<far::matrix<T>> {
  using type = far::matrix<T, far::device_memory>;
};
template <class T, class I>
struct counterpart<far::sparse_matrix<T, I>> {
  using type = far::sparse_matrix<T, I, far::device_memory>;
};

/// Cuts a matrix as another one is.
template <class M>
auto blocks_of(const M& of) {
  return [blocks = far::matrix_blocks{of.layout().tile_shape(), of.layout().process_grid()}](
             far::matrix_shape, far::rank_t) { return blocks; };
}

}  // namespace

const char* device_kind() { return far::device::kind(); }

template <class A, class B, class C>
struct device_product<A, B, C>::matrices {
  typename counterpart<A>::type a;
  typename counterpart<B>::type b;
  typename counterpart<C>::type c;
};

template <class A, class B, class C>
device_product<A, B, C>::device_product(const A& a, const B& b, const C& c)
    : on_device_(new matrices{{a.shape(), blocks_of(a), {.name = a.name()}},
                              {b.shape(), blocks_of(b), {.name = b.name()}},
                              {c.shape(), blocks_of(c), {.name = c.name()}}}) {
  on_device_->a.copy_from(a);
  on_device_->b.copy_from(b);
}

template <class A, class B, class C>
device_product<A, B, C>::~device_product() = default;

template <class A, class B, class C>
far::multiplication device_product<A, B, C>::begin(const far::multiply_options& how) {
  return far::async_multiply(on_device_->a, on_device_->b, on_device_->c, how);
}

template <class A, class B, class C>
void device_product<A, B, C>::copy_to(C& c) const {
  on_device_->c.copy_to(c);
}

using dense = far::matrix<double>;
using sparse = far::sparse_matrix<double>;
template class device_product<dense, dense, dense>;
template class device_product<sparse, dense, dense>;
template class device_product<sparse, sparse, sparse>;

}  // namespace multiply_program

// Strided put, get and accumulate: blocks of arrays of up to nine dimensions, one element to whole
// rows wide.
//
//   // Rows of a far matrix with `width` columns: a block of 10 x 4, which lies densely here.
//   far::put_strided(matrix + 20 * width + 8, block.data(),
//                    {.counts = {4, 10}, .far_strides = {width}});
//
// `counts[0]` elements lie side by side. There are `counts[1]` such runs, `far_strides[0]` elements
// apart in far memory and `local_strides[0]` here; `counts[2]` such planes, `far_strides[1]` and
// `local_strides[1]` apart; and so on, up to eight strides. A side without strides is dense.
// Strides may be negative, and those of a source also zero; an accumulate may add several times to
// one element, also by a stride of zero. Pieces of a put must not overlap at the target, nor those
// of a get here.
//
// Levels that lie densely on both sides are joined. Where ranks share memory each piece that is left
// is a copy. By messages, and by MPI's one-sided calls, short pieces (up to 8 KiB, 4 KiB) go
// together: one request carries as many as it has room for (puts 16 KiB with what says where they
// go, gets 64 KiB), so most calls cost 1 put or get. Elsewhere, and for longer pieces, each costs 1
// put or get, or what an accumulate costs; up to 64 operations are in flight together. Completion is
// that of put, get and accumulate.
//
// All are one-sided: the target takes no part.
#pragma once

#include <farside/core/accumulate.hpp>
#include <farside/core/detail/many_pieces.hpp>
#include <farside/core/strides.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

template <class T, class Local>
auto strided_pieces(ptr<T> there, Local* here, const stride_levels& levels) {
  return [there, here, levels](auto&& visit) {
    levels.for_each([&](std::ptrdiff_t far_place, std::ptrdiff_t local_place, std::size_t n) {
      visit(there + far_place, here + local_place, n);
    });
  };
}

/// The products of a strided accumulate, densely; then `shape` says that they are.
template <class T>
std::vector<T> strided_products(const T* from, strided& shape, const T& scale) {
  std::vector<T> products(stride_levels("accumulate_strided", shape).elements());
  strided source{.counts = shape.counts, .far_strides = shape.local_strides};
  stride_levels("accumulate_strided", source)
      .for_each([&](std::ptrdiff_t place, std::ptrdiff_t dense, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
          products[static_cast<std::size_t>(dense) + i] =
              scaled(scale, from[place + static_cast<std::ptrdiff_t>(i)]);
      });
  shape.local_strides = {};
  return products;
}

}  // namespace detail

/// Writes a block. One-sided; `from` may be reused on return; complete at the target after flush or
/// barrier. 1 put a piece.
template <class T>
void put_strided(ptr<T> to, const std::type_identity_t<T>* from, const strided& shape) {
  static_assert(!std::is_const_v<T>,
                "far::put_strided through a far::ptr<const T>: the target is read-only");
  detail::stride_levels levels("put_strided", shape);
  detail::all_pieces<detail::begins_put, T>(detail::strided_pieces(to, from, levels));
}

/// Reads a block. One-sided; complete on return; sees this rank's own earlier puts. 1 get a piece.
template <class T>
void get_strided(ptr<T> from, std::remove_const_t<T>* to, const strided& shape) {
  detail::stride_levels levels("get_strided", shape);
  detail::all_pieces<detail::begins_get, T>(detail::strided_pieces(from, to, levels));
}

/// Adds `scale` times a block. One-sided; `from` may be reused on return; complete at the target
/// after flush or barrier. 1 put a piece, see core/accumulate.hpp.
template <class T>
void accumulate_strided(ptr<T> to, const std::type_identity_t<T>* from, const strided& shape,
                        std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  if (scale != T(1)) {
    strided dense = shape;
    auto products = detail::strided_products(from, dense, T(scale));
    return accumulate_strided(to, products.data(), dense);
  }
  detail::stride_levels levels("accumulate_strided", shape);
  detail::all_pieces<detail::begins_accumulate, T>(detail::strided_pieces(to, from, levels));
}

/// Begins to write a block, which must not change until the future is ready.
template <class T>
future<void> async_put_strided(ptr<T> to, const std::type_identity_t<T>* from,
                               const strided& shape) {
  static_assert(!std::is_const_v<T>,
                "far::async_put_strided through a far::ptr<const T>: the target is read-only");
  detail::stride_levels levels("async_put_strided", shape);
  return detail::async_all_pieces<detail::begins_put, T>(detail::strided_pieces(to, from, levels));
}

/// Begins to read a block; `to` must live until the future is ready.
template <class T>
future<void> async_get_strided(ptr<T> from, std::remove_const_t<T>* to, const strided& shape) {
  detail::stride_levels levels("async_get_strided", shape);
  return detail::async_all_pieces<detail::begins_get, T>(detail::strided_pieces(from, to, levels));
}

/// Begins to add a block, which must not change until the future is ready; complete at the target
/// after a flush or barrier that follows that.
template <class T>
future<void> async_accumulate_strided(ptr<T> to, const std::type_identity_t<T>* from,
                                      const strided& shape, std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  if (scale != T(1)) {
    strided dense = shape;
    auto products =
        std::make_shared<std::vector<T>>(detail::strided_products(from, dense, T(scale)));
    return async_accumulate_strided(to, products->data(), dense).then([products] {});
  }
  detail::stride_levels levels("async_accumulate_strided", shape);
  return detail::async_all_pieces<detail::begins_accumulate, T>(
      detail::strided_pieces(to, from, levels));
}

}  // namespace far::inline FARSIDE_BACKEND

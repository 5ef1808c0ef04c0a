// Vector forms of put, get and accumulate: a list of pieces, of any lengths, on any ranks.
//
//   std::vector<far::get_piece<double>> wanted;
//   for (auto row : rows) wanted.push_back({matrix[row.owner] + row.place, row.here, row.length});
//   far::get_pieces<double>(wanted);
//
// Each piece costs 1 put or get, or what an accumulate costs, but short ones on one rank go together
// as in strided forms (core/strided.hpp); up to 64 operations are in flight together.
// Completion is that of put, get and accumulate. Pieces of a put must not overlap at the target,
// nor those of a get here. The list itself may go when the call returns.
//
// All are one-sided: the targets take no part.
#pragma once

#include <farside/core/accumulate.hpp>
#include <farside/core/detail/many_pieces.hpp>

#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// `n` elements that go from here to far memory.
template <class T>
struct put_piece {
  ptr<T> to;
  const T* from;
  std::size_t n = 1;
};

/// `n` elements that come from far memory.
template <class T>
struct get_piece {
  ptr<const T> from;
  T* to;
  std::size_t n = 1;
};

namespace detail {

template <class T>
auto listed_pieces(std::span<const put_piece<T>> pieces) {
  return [pieces](auto&& visit) {
    for (const auto& piece : pieces) visit(piece.to, piece.from, piece.n);
  };
}
template <class T>
auto listed_pieces(std::span<const get_piece<T>> pieces) {
  return [pieces](auto&& visit) {
    for (const auto& piece : pieces) visit(piece.from, piece.to, piece.n);
  };
}

/// The products of an accumulate of pieces, one after another, and pieces that name them.
template <class T>
struct piece_products {
  std::vector<T> values;
  std::vector<put_piece<T>> pieces;

  piece_products(std::span<const put_piece<T>> of, const T& scale) : pieces(of.begin(), of.end()) {
    for (const auto& piece : of)
      for (std::size_t i = 0; i < piece.n; ++i) values.push_back(scaled(scale, piece.from[i]));
    const T* at = values.data();
    for (auto& piece : pieces) piece.from = at, at += piece.n;
  }
};

}  // namespace detail

/// Writes all pieces. One-sided; the sources may be reused on return; complete at the targets after
/// flush or barrier. 1 put a piece.
template <class T>
void put_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces) {
  detail::all_pieces<detail::begins_put, T>(detail::listed_pieces<T>(pieces));
}

/// Reads all pieces. One-sided; complete on return; sees this rank's own earlier puts. 1 get a
/// piece.
template <class T>
void get_pieces(std::span<const std::type_identity_t<get_piece<T>>> pieces) {
  detail::all_pieces<detail::begins_get, const T>(detail::listed_pieces<T>(pieces));
}

/// Adds `scale` times each piece. One-sided; the sources may be reused on return; complete at the
/// targets after flush or barrier. 1 put a piece, see core/accumulate.hpp.
template <class T>
void accumulate_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces,
                       std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  if (scale != T(1)) return accumulate_pieces<T>(detail::piece_products<T>(pieces, scale).pieces);
  detail::all_pieces<detail::begins_accumulate, T>(detail::listed_pieces<T>(pieces));
}

/// Begins to write all pieces; the sources must not change until the future is ready.
template <class T>
future<void> async_put_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces) {
  return detail::async_all_pieces<detail::begins_put, T>(detail::listed_pieces<T>(pieces));
}

/// Begins to read all pieces; their targets must live until the future is ready.
template <class T>
future<void> async_get_pieces(std::span<const std::type_identity_t<get_piece<T>>> pieces) {
  return detail::async_all_pieces<detail::begins_get, const T>(detail::listed_pieces<T>(pieces));
}

/// Begins to add all pieces; the sources must not change until the future is ready; complete at the
/// targets after a flush or barrier that follows that.
template <class T>
future<void> async_accumulate_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces,
                                     std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  if (scale != T(1)) {
    auto products = std::make_shared<detail::piece_products<T>>(pieces, scale);
    return async_accumulate_pieces<T>(products->pieces).then([products] {});
  }
  return detail::async_all_pieces<detail::begins_accumulate, T>(detail::listed_pieces<T>(pieces));
}

}  // namespace far::inline FARSIDE_BACKEND

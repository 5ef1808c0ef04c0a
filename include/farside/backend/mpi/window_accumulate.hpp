// Accumulate on the window of window.hpp: MPI's own, of the component's datatype.
//
// Legality. MPI promises that accumulates of one datatype and one operation are atomic, element by
// element. Floating-point elements meet nothing else at that time, as far::accumulate says.
// Integers use the datatype of the far atomics, so they may meet those, under the assumption on
// atomics of several kinds (window.hpp). In strict mode there is none of this: a rank may get what
// others accumulate, and MPI_NO_OP of words next to MPI_SUM of doubles is undefined; so accumulates
// are compare-and-swaps there (core/accumulate.hpp).
#pragma once

#include <farside/backend/mpi/window.hpp>

#include <algorithm>
#include <concepts>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

template <component C>
inline MPI_Datatype component_type() {
  if constexpr (std::same_as<C, float>) return MPI_FLOAT;
  if constexpr (std::same_as<C, double>) return MPI_DOUBLE;
  if constexpr (std::integral<C>) return word_type<C>();
}

template <component C>
void window::start_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  serve_before_own(rank);
  for (std::size_t begin = 0, length; begin < n; begin += length) {
    length = std::min(n - begin, longest_block / sizeof(C));
    int count = static_cast<int>(length);
    MPI_Accumulate(from + begin, count, component_type<C>(), static_cast<int>(rank),
                   place(rank, offset + begin * sizeof(C)), count, component_type<C>(), MPI_SUM,
                   win_);
  }
  mark(rank);
}

/// A small one copies its source, as a put does. One to this rank itself is complete on return:
/// its gets load.
template <component C>
void window::accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  if (single_ && n * sizeof(C) <= small && rank != rank_) {
    start_accumulate(rank, offset, static_cast<C*>(std::memcpy(room_, from, n * sizeof(C))), n);
    return use_room(n * sizeof(C));
  }
  start_accumulate(rank, offset, from, n);
  rank == rank_ ? complete(rank) : complete_local(rank);
}

template <component C>
pending window::async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  if (rank == rank_ || (single_ && n * sizeof(C) <= small)) {
    accumulate(rank, offset, from, n);
    return {};
  }
  if (!use_request_forms || n > longest_block / sizeof(C)) {
    start_accumulate(rank, offset, from, n);
    return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
  }
  MPI_Request handle;
  int count = static_cast<int>(n);
  MPI_Raccumulate(from, count, component_type<C>(), static_cast<int>(rank), place(rank, offset),
                  count, component_type<C>(), MPI_SUM, win_, &handle);
  mark(rank);
  return {this, handle, nullptr, 0, rank};
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

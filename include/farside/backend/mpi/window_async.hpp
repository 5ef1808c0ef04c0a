// Operations on a window that are begun, and completed later (request.hpp).
#pragma once

#include <farside/backend/mpi/window.hpp>

#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

[[gnu::noinline]] inline bool complete_now(pending operation) {
  if (operation.handle == MPI_REQUEST_NULL) {
    complete(operation);
    return true;
  }
  const bool done = is_done(operation.handle);
  if (done) delete operation.own;
  return done;
}

[[gnu::noinline]] inline void complete(pending operation) {
  if (operation.handle != MPI_REQUEST_NULL)
    wait_politely(operation.handle);
  else
    operation.owner->complete_local(operation.rank, operation.number);
  delete operation.own;
}

inline pending window::async_put(rank_t rank, std::size_t offset, const void* from,
                                 std::size_t bytes) {
  if (own(rank) || (single_ && bytes <= small) || out_of_phase(from, offset, bytes)) {
    put(rank, offset, from, bytes);
    return {};
  }
  if (!use_request_forms || strict_ || !one_block(offset, bytes)) {
    start_put(rank, offset, from, bytes);
    return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
  }
  MPI_Request handle;
  int count = static_cast<int>(bytes);
  MPI_Rput(from, count, MPI_BYTE, static_cast<int>(rank), place(rank, offset), count, MPI_BYTE,
           win_, &handle);
  mark(rank);
  return {this, handle, nullptr, 0, rank};
}

inline pending window::async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
  if (own(rank)) {
    get(rank, offset, to, bytes);
    return {};
  }
  if (out_of_phase(to, offset, bytes)) [[unlikely]] {
    get_by_copies(rank, offset, to, bytes);
    return {};
  }
  if (!use_request_forms || strict_ || !one_block(offset, bytes)) {
    start_get(rank, offset, to, bytes);
    return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
  }
  if (dirty(rank)) complete(rank);
  MPI_Request handle;
  int count = static_cast<int>(bytes);
  MPI_Rget(to, count, MPI_BYTE, static_cast<int>(rank), place(rank, offset), count, MPI_BYTE, win_,
           &handle);
  return {this, handle, nullptr, 0, rank};
}

template <atomic_op Op, atomic_word T>
pending window::async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
  if constexpr (needs_loop<Op>) {
    old = fetch_op<Op>(rank, offset, value);
    return {};
  } else {
    if (strict_) {
      old = fetch_by_swaps<Op>(*this, rank, offset, value);
      return {};
    }
    auto [kept, own] = place_operands();
    std::memcpy(&kept->value, &value, sizeof value);
    int to = static_cast<int>(rank);
    MPI_Datatype type = word_type<T>();
    MPI_Request handle = MPI_REQUEST_NULL;
    if constexpr (use_request_forms)
      MPI_Rget_accumulate(&kept->value, 1, type, &old, 1, type, to, place(rank, offset), 1, type,
                          mpi_op<Op>(), win_, &handle);
    else
      MPI_Fetch_and_op(&kept->value, &old, type, to, place(rank, offset), mpi_op<Op>(), win_);
    mark(rank);
    use_operands();
    return {this, handle, own, number(rank), rank};
  }
}

template <atomic_word T>
pending window::async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
  auto [kept, own] = place_operands();
  std::memcpy(&kept->value, &desired, sizeof desired);
  std::memcpy(&kept->expected, &expected, sizeof expected);
  MPI_Compare_and_swap(&kept->value, &kept->expected, &old, word_type<T>(), static_cast<int>(rank),
                       place(rank, offset), win_);
  mark(rank);
  use_operands();
  return {this, MPI_REQUEST_NULL, own, number(rank), rank};
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

// Accumulates, and many pieces of one segment, by messages: of the latter one request carries as many
// as a message holds.
#pragma once

#include <farside/backend/mpi/served/memory.hpp>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

template <component C>
void memory::accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  if (reach_[rank] < 0) return put_pieces(rank, offset, from, n * sizeof(C), addend_of<C>);
  patience rounds(oversubscribed_);
  for (;;) {
    auto now = near_.accumulate(local(rank), offset, from, n, mpi_->rank());
    from += now.elements, n -= now.elements, offset += now.elements * sizeof(C);
    if (n == 0) return now_and_then();
    if (!progress()) rounds.rest();
    check_lost();
  }
}

/// A piece of more than half of a message would leave the rest of it empty: it goes alone.
inline run_limits memory::limits_of_runs() const {
  constexpr std::size_t least = 1024;
  if (limit_.inline_put < least) return {};
  return {.put = limit_.inline_put / 8 * 8,
          .get = limit_.copied_get,
          .piece = limit_.inline_put / 2,
          .whole_words = false};
}

inline void memory::put_runs(rank_t rank, std::span<const run> where, const void* from,
                             std::size_t bytes) {
  if (reach_[rank] >= 0) {
    auto* source = static_cast<const char*>(from);
    for_each_piece(where, [&](std::uint64_t offset, std::size_t length) {
      near_.put(local(rank), offset, source, length);
      source += length;
      return true;
    });
  } else {
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.ready(targets_[rank].server); });
    client_.put_runs(targets_[rank], where, from, bytes);
  }
  now_and_then();
}

inline pending memory::async_get_runs(rank_t rank, std::span<const run> where, void* to,
                                      std::size_t bytes) {
  if (reach_[rank] >= 0) {
    auto* place = static_cast<char*>(to);
    for_each_piece(where, [&](std::uint64_t offset, std::size_t length) {
      near_.get(local(rank), offset, place, length);
      place += length;
      return true;
    });
    now_and_then();
    return {};
  }
  std::unique_lock lock(gate_);
  wait_until(lock, [&] { return client_.ready_to_get(targets_[rank].server); });
  return handle(client_.get_runs(targets_[rank], where, to, bytes));
}

template <component C>
void memory::accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                             std::size_t n) {
  if (reach_[rank] >= 0) {
    for_each_piece(where, [&](std::uint64_t offset, std::size_t length) {
      accumulate(rank, offset, from, length / sizeof(C));
      from += length / sizeof(C);
      return true;
    });
    return;
  }
  {
    std::unique_lock lock(gate_);
    wait_until(lock, [&] { return client_.ready(targets_[rank].server); });
    client_.put_runs(targets_[rank], where, from, n * sizeof(C), kind::accumulate_runs,
                     addend_of<C>);
  }
  now_and_then();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served

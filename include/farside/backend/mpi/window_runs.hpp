// Many pieces of one segment on a window: one call of MPI, with a datatype that says where they
// are.
//
// MPI copies each piece of a datatype by itself, so pieces of whole aligned words stay whole as
// blocks of one call do (window.hpp). Others are left to calls of their own.
#pragma once

#include <farside/backend/mpi/window_accumulate.hpp>

#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Where pieces of one segment are, from the first one on. Free it at any time after its use.
class runs_type {
 public:
  runs_type(std::span<const run> where, MPI_Datatype element, std::size_t size) {
    auto elements = [&](std::size_t bytes) { return static_cast<int>(bytes / size); };
    if (where.size() == 1) {
      const run& r = where.front();
      MPI_Type_create_hvector(static_cast<int>(r.count), elements(r.bytes),
                              static_cast<MPI_Aint>(r.stride), element, &type_);
    } else {
      std::vector<int> lengths;
      std::vector<MPI_Aint> places;
      for_each_piece(where, [&](std::uint64_t offset, std::size_t bytes) {
        lengths.push_back(elements(bytes));
        places.push_back(static_cast<MPI_Aint>(offset - where.front().offset));
        return true;
      });
      MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(),
                               element, &type_);
    }
    MPI_Type_commit(&type_);
  }
  ~runs_type() { MPI_Type_free(&type_); }
  runs_type(const runs_type&) = delete;

  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_;
};

/// Where a put is a copy by this CPU (Open MPI's `osc sm`) a datatype only costs.
inline run_limits window::limits_of_runs() const {
  if (strict_ || flush_is_a_fence_) return {};
  constexpr std::size_t most = std::size_t{256} << 10;
  return {.put = most, .get = most, .piece = 4096, .whole_words = true};
}

inline pending window::async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                                      std::size_t bytes) {
  auto* source = static_cast<const char*>(from);
  if (own(rank)) {
    for_each_piece(where, [&](std::uint64_t offset, std::size_t length) {
      copy_words<false>(base_ + offset, source, offset, length);
      source += length;
      return true;
    });
    return {};
  }
  runs_type type(where, MPI_BYTE, 1);
  MPI_Put(from, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(rank),
          place(rank, where.front().offset), 1, type.get(), win_);
  mark(rank);
  return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
}

inline pending window::async_get_runs(rank_t rank, std::span<const run> where, void* to,
                                      std::size_t bytes) {
  auto* target = static_cast<char*>(to);
  if (own(rank)) {
    for_each_piece(where, [&](std::uint64_t offset, std::size_t length) {
      copy_words<true>(target, base_ + offset, offset, length);
      target += length;
      return true;
    });
    acquire_fence();
    return {};
  }
  if (dirty(rank)) complete(rank);  // a rank sees its own puts
  runs_type type(where, MPI_BYTE, 1);
  MPI_Get(to, static_cast<int>(bytes), MPI_BYTE, static_cast<int>(rank),
          place(rank, where.front().offset), 1, type.get(), win_);
  return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
}

/// Whether no element comes twice, for certain.
inline bool is_ascending(std::span<const run> where) {
  std::uint64_t end = 0;
  return for_each_piece(where, [&](std::uint64_t offset, std::size_t bytes) {
    bool after = offset >= end;
    end = offset + bytes;
    return after;
  });
}

/// One to this rank itself is complete on return, as an accumulate of one piece is. Open MPI's `osc
/// ucx` loses sums of elements that come twice in a datatype, so these are calls of their own.
template <component C>
pending window::async_accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                                      std::size_t n) {
  if (is_ascending(where)) {
    serve_before_own(rank);
    runs_type type(where, component_type<C>(), sizeof(C));
    MPI_Accumulate(from, static_cast<int>(n), component_type<C>(), static_cast<int>(rank),
                   place(rank, where.front().offset), 1, type.get(), MPI_SUM, win_);
    mark(rank);
  } else {
    for_each_piece(where, [&](std::uint64_t offset, std::size_t bytes) {
      start_accumulate(rank, offset, from, bytes / sizeof(C));
      from += bytes / sizeof(C);
      return true;
    });
  }
  if (rank == rank_) {
    complete(rank);
    return {};
  }
  return {this, MPI_REQUEST_NULL, nullptr, number(rank), rank};
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend

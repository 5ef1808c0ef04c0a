// Whether the MPI that is preloaded is as late as late_mpi.cpp says, or else it would test nothing.
// Two ranks, by MPI's calls alone.
#include <farside/core.hpp>

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <memory>

namespace {

using word = std::uint64_t;

int wrong = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "lateness: rank %u: it does not hold that %s\n", far::rank(), what);
  ++wrong;
}

/// What there is in `memory` once all ranks are here.
word seen_by_all(const word& memory, MPI_Win win) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  word value = *const_cast<const volatile word*>(&memory);
  MPI_Barrier(MPI_COMM_WORLD);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    int mpi_rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    const bool writes = mpi_rank == 0;
    // Not MPI_Win_allocate: MPICH 4.0 puts into windows of 8 bytes of other ranks than it shall.
    auto memory = std::make_unique<word>(0);
    MPI_Win win;
    MPI_Win_create(memory.get(), sizeof(word), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    expect(seen_by_all(*memory, win) == 0, "memory is zero");

    word source = 1;
    if (writes) MPI_Put(&source, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
    expect(seen_by_all(*memory, win) == 0, "a put is not done before a flush");
    source = 2;
    if (writes) MPI_Win_flush_local(1, win);
    source = 3;
    expect(seen_by_all(*memory, win) == 0, "a put is not done by a local flush");
    if (writes) MPI_Win_flush(1, win);
    expect(seen_by_all(*memory, win) == (writes ? 0 : 2), "a source is read by a local flush");

    word got = 0, old = 0, one = 1;
    if (writes) {
      MPI_Get(&got, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
      expect(got != 2, "a get is not done before a flush");
      MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 1, 0, MPI_SUM, win);
      expect(old != 2, "an atomic is not done before a flush");
    }
    expect(seen_by_all(*memory, win) == (writes ? 0 : 2), "an atomic is not done there, either");
    if (writes) MPI_Win_flush(1, win);
    expect(seen_by_all(*memory, win) == (writes ? 0 : 3), "a flush does it");
    if (writes) expect(got == 2 && old == 2, "a flush brings results");

    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return wrong == 0 ? 0 : 1;
  });
}

// An MPI program that uses Farside in one part: the even ranks run it on a communicator of their
// own, while the odd ranks go on with plain MPI. The program starts and ends MPI itself. Its
// argument is the number of ranks there should be.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <farside/core.hpp>

namespace {

/// The sum over `comm` of what its ranks add to a number on rank 0, by Farside.
long sum_with_farside(MPI_Comm comm, long mine) {
  far::runtime world(comm);
  far::ptr<long> sum;
  if (far::rank() == 0) sum = far::make<long>(0);
  sum = far::broadcast(sum, 0);
  far::fetch_add(sum, mine);
  far::barrier();
  return far::get(sum);
}

/// The same by MPI.
long sum_with_mpi(MPI_Comm comm, long mine) {
  long sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);

  const long expected = sum_with_mpi(half, rank + 1);
  const long first = rank % 2 == 0 ? sum_with_farside(half, rank + 1) : expected;
  // Farside has gone, MPI must be as it was; and Farside can come back.
  const long world = sum_with_mpi(MPI_COMM_WORLD, 1);
  const long second = rank % 2 == 0 ? sum_with_farside(half, rank + 1) : expected;

  const int size = argc == 2 ? std::atoi(argv[1]) : 0;
  int wrong = first != expected || second != expected || world != size;
  if (wrong) {
    std::fprintf(stderr, "rank %d: sums %ld and %ld, not %ld; %ld ranks, not %d\n", rank, first,
                 second, expected, world, size);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) std::printf("embedded: right on %d ranks\n", size);
  MPI_Comm_free(&half);
  MPI_Finalize();
  return wrong;
}

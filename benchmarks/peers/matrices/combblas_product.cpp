// The square of a sparse matrix by CombBLAS, on a square number of ranks, each with OMP_NUM_THREADS.
//
//   combblas_product FILE.mtx REPEATS
//
// Prints for each repeat a line: seconds, entries of the result, their sum.

#include <CombBLAS/CombBLAS.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

using sparse = combblas::SpParMat<std::int64_t, double, combblas::SpDCCols<std::int64_t, double>>;

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (argc < 3) {
    std::fprintf(stderr, "%s: FILE.mtx REPEATS are wanted\n", argv[0]);
    return 1;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    auto grid = std::make_shared<combblas::CommGrid>(MPI_COMM_WORLD, 0, 0);
    sparse a(grid);
    a.ParallelReadMM(argv[1], true, combblas::maximum<double>());
    using plus_times = combblas::PlusTimesSRing<double, double>;
    for (int repeat = 0; repeat < std::atoi(argv[2]); ++repeat) {
      sparse left = a, right = a;
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      sparse c =
          combblas::Mult_AnXBn_Synch<plus_times, double, combblas::SpDCCols<std::int64_t, double>>(
              left, right);
      MPI_Barrier(MPI_COMM_WORLD);
      const double seconds = MPI_Wtime() - start;
      const std::int64_t entries = c.getnnz();
      combblas::FullyDistVec<std::int64_t, double> sums(grid);
      c.Reduce(sums, combblas::Column, std::plus<double>(), 0.0);
      const double sum = sums.Reduce(std::plus<double>(), 0.0);
      if (rank == 0) std::printf("%.6f %lld %.17g\n", seconds, (long long)entries, sum);
    }
  }
  MPI_Finalize();
}

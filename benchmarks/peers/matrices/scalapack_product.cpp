// A dense product of N x N by ScaLAPACK on a row of ranks.
//
//   scalapack_product N BLOCK REPEATS
//
// Prints for each repeat a line: seconds, elements of the result, their sum.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
void Cblacs_get(int, int, int*);
void Cblacs_gridinit(int*, const char*, int, int);
void Cblacs_gridinfo(int, int*, int*, int*, int*);
int numroc_(const int*, const int*, const int*, const int*, const int*);
void descinit_(int*, const int*, const int*, const int*, const int*, const int*, const int*,
               const int*, const int*, int*);
void pdgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
             const double*, const int*, const int*, const int*, const double*, const int*,
             const int*, const int*, const double*, double*, const int*, const int*, const int*);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) {
    std::fprintf(stderr, "%s: N BLOCK REPEATS are wanted\n", argv[0]);
    return 1;
  }
  const int n = std::atoi(argv[1]), block = std::atoi(argv[2]), zero = 0, one = 1;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int context = 0, grid_rows = 0, grid_columns = 0, my_row = 0, my_column = 0, info = 0;
  Cblacs_get(0, 0, &context);
  Cblacs_gridinit(&context, "Row", 1, ranks);
  Cblacs_gridinfo(context, &grid_rows, &grid_columns, &my_row, &my_column);
  const int rows = numroc_(&n, &block, &my_row, &zero, &grid_rows);
  const int columns = numroc_(&n, &block, &my_column, &zero, &grid_columns);
  int layout[9];
  const int leading = rows > 0 ? rows : 1;
  descinit_(layout, &n, &n, &block, &block, &zero, &zero, &context, &leading, &info);
  const std::size_t mine = static_cast<std::size_t>(rows) * columns;
  std::vector<double> a(mine), b(mine), c(mine);
  for (std::size_t i = 0; i < mine; ++i) {
    a[i] = 1.0 + static_cast<double>(i % 7);
    b[i] = 1.0 / (1.0 + static_cast<double>(i % 5));
  }
  const double factor = 1, nothing = 0;
  for (int repeat = 0; repeat < std::atoi(argv[3]); ++repeat) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    pdgemm_("N", "N", &n, &n, &n, &factor, a.data(), &one, &one, layout, b.data(), &one, &one,
            layout, &nothing, c.data(), &one, &one, layout);
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - start;
    double own = 0, sum = 0;
    for (double x : c) own += x;
    MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%.6f %lld %.17g\n", seconds, static_cast<long long>(n) * n, sum);
  }
  MPI_Finalize();
}

// A product by PETSc: the square of a sparse matrix, or a sparse matrix times a dense one of ones.
//
//   petsc_product FILE.mtx COLUMNS REPEATS [-matmatmult_via seqmpi]     COLUMNS 0: the square
//
// Prints for each repeat a line: seconds, entries of the result, their sum.

#include "triplets.hpp"

#include <petscmat.h>

#include <vector>

int main(int argc, char** argv) {
  PetscCall(PetscInitialize(&argc, &argv, nullptr, nullptr));
  if (argc < 4) peers::die("FILE.mtx COLUMNS REPEATS are wanted", argv[0]);
  const long columns = std::atol(argv[2]);
  const int repeats = std::atoi(argv[3]);
  PetscMPIInt rank = 0, ranks = 1;
  MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
  MPI_Comm_size(PETSC_COMM_WORLD, &ranks);

  struct rows_of_rank {
    long from, to;
  };
  rows_of_rank mine{};
  const peers::matrix input = peers::read(
      argv[1], [&](long rows) { return mine = {rows * rank / ranks, rows * (rank + 1) / ranks}; });
  const long local_rows = mine.to - mine.from;
  const long first_column = input.columns * rank / ranks;
  const long local_columns = input.columns * (rank + 1) / ranks - first_column;

  std::vector<PetscInt> inside(local_rows, 0), outside(local_rows, 0);
  for (const auto& e : input.entries) {
    const bool own = e.column >= first_column && e.column < first_column + local_columns;
    ++(own ? inside : outside)[e.row - mine.from];
  }
  Mat a;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, local_rows, local_columns, input.rows, input.columns, 0,
                         inside.data(), 0, outside.data(), &a));
  for (const auto& e : input.entries)
    PetscCall(MatSetValue(a, e.row, e.column, e.value, ADD_VALUES));
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));

  Mat b = a;
  if (columns > 0) {
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, local_columns, PETSC_DECIDE, input.columns, columns,
                             nullptr, &b));
    PetscScalar* values = nullptr;
    PetscCall(MatDenseGetArray(b, &values));
    for (long i = 0; i < local_columns * columns; ++i) values[i] = 1.0;
    PetscCall(MatDenseRestoreArray(b, &values));
    PetscCall(MatAssemblyBegin(b, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(b, MAT_FINAL_ASSEMBLY));
  }

  for (int repeat = 0; repeat < repeats; ++repeat) {
    Mat c;
    MPI_Barrier(PETSC_COMM_WORLD);
    const double start = MPI_Wtime();
    PetscCall(MatMatMult(a, b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &c));
    MPI_Barrier(PETSC_COMM_WORLD);
    const double seconds = MPI_Wtime() - start;

    MatInfo info;
    PetscCall(MatGetInfo(c, MAT_GLOBAL_SUM, &info));
    Vec ones, sums;
    PetscCall(MatCreateVecs(c, &ones, &sums));
    PetscCall(VecSet(ones, 1.0));
    PetscCall(MatMult(c, ones, sums));
    PetscScalar sum = 0;
    PetscCall(VecSum(sums, &sum));
    if (rank == 0) std::printf("%.6f %.0f %.17g\n", seconds, info.nz_used, (double)sum);
    PetscCall(VecDestroy(&ones));
    PetscCall(VecDestroy(&sums));
    PetscCall(MatDestroy(&c));
  }
  if (b != a) PetscCall(MatDestroy(&b));
  PetscCall(MatDestroy(&a));
  PetscCall(PetscFinalize());
}

/* Checks of programs in C: the first that fails says where, and ends the job. */
#ifndef FARSIDE_TESTS_ARMCI_CHECK_H
#define FARSIDE_TESTS_ARMCI_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      int rank_;                                                                  \
      MPI_Comm_rank(MPI_COMM_WORLD, &rank_);                                      \
      fprintf(stderr, "process %d: %s:%d: %s\n", rank_, __FILE__, __LINE__, #condition); \
      fflush(NULL);                                                               \
      MPI_Abort(MPI_COMM_WORLD, 1);                                               \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

#endif

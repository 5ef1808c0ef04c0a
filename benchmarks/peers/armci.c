/* What ARMCI's calls take from one process to another, on any ARMCI: a name and microseconds a line.
 * With the argument `busy` the other process computes for a second, and this one asks for tasks. */
#include <armci.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 4 << 20 };

static int me, n;
static char *memory[64];
static double *buffer;
static double scale = 1.0;
static int there[1] = {4096}, here[1] = {8};

static void get8(void) { ARMCI_Get(memory[1], buffer, 8, 1); }
static void put8(void) { ARMCI_Put(buffer, memory[1], 8, 1); }
static void put8_fence(void) { ARMCI_Put(buffer, memory[1], 8, 1), ARMCI_Fence(1); }
static void fetch_add8(void) {
  long old;
  ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, memory[1], 1, 1);
}
static void get_strided(void) {
  int count[2] = {8, 100};
  ARMCI_GetS(memory[1], there, buffer, here, count, 1, 1);
}
static void put_strided(void) {
  int count[2] = {8, 100};
  ARMCI_PutS(buffer, here, memory[1], there, count, 1, 1);
}
static void acc_strided(void) {
  int count[2] = {8, 100};
  ARMCI_AccS(ARMCI_ACC_DBL, &scale, buffer, here, memory[1], there, count, 1, 1);
}
static void acc_rows(void) {
  int count[2] = {512, 100}, rows[1] = {512};
  ARMCI_AccS(ARMCI_ACC_DBL, &scale, buffer, rows, memory[1], there, count, 1, 1);
}
static int bytes;
static void get_bytes(void) { ARMCI_Get(memory[1], buffer, bytes, 1); }
static void put_bytes(void) { ARMCI_Put(buffer, memory[1], bytes, 1), ARMCI_Fence(1); }
static void acc_bytes(void) { ARMCI_Acc(ARMCI_ACC_DBL, &scale, buffer, memory[1], bytes, 1); }
static void all_fence(void) { ARMCI_Put(buffer, memory[1], 8, 1), ARMCI_AllFence(); }
static void malloc_free(void) {
  void *some[64];
  ARMCI_Malloc(some, 4096);
  ARMCI_Free(some[me]);
}

/* The other process waits in a barrier of ARMCI, or takes part if `together`. */
static void measure(const char *name, void (*work)(void), int times, int together) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    ARMCI_Barrier();
    if (me == 0 || together) {
      double begin = MPI_Wtime();
      for (int i = 0; i < times; ++i) work();
      if (!together) ARMCI_Fence(1);
      double one = 1e6 * (MPI_Wtime() - begin) / times;
      best = one < best ? one : best;
    }
  }
  ARMCI_Barrier();
  if (me == 0) printf("%s %.4f\n", name, best), fflush(stdout);
}

static void busy(void) {
  ARMCI_Barrier();
  if (me == 1) {
    volatile double x = 0;
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < 1;) x = x + 1;
  } else if (me == 0) {
    double worst = 0, start = MPI_Wtime();
    int tasks = 0;
    while (MPI_Wtime() - start < 0.9) {
      double begin = MPI_Wtime(), took;
      fetch_add8();
      took = MPI_Wtime() - begin;
      worst = took > worst ? took : worst, ++tasks;
      for (begin = MPI_Wtime(); MPI_Wtime() - begin < 0.01;) {}
    }
    printf("next_task_worst_ms %.3f (%d tasks)\n", 1e3 * worst, tasks);
  }
  ARMCI_Barrier();
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  ARMCI_Init();
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  me = armci_msg_me(), n = armci_msg_nproc();
  ARMCI_Malloc((void **)memory, most);
  memset(memory[me], 0, most);
  buffer = malloc(most);
  memset(buffer, 0, most);
  if (argc > 1) {
    busy();
  } else {
    measure("get_8", get8, 20000, 0);
    measure("put_8", put8, 20000, 0);
    measure("put_8_and_fence", put8_fence, 20000, 0);
    measure("fetch_add_8", fetch_add8, 20000, 0);
    measure("get_strided_100x8", get_strided, 1000, 0);
    measure("put_strided_100x8", put_strided, 1000, 0);
    measure("acc_strided_100x8", acc_strided, 1000, 0);
    measure("acc_strided_100x512", acc_rows, 300, 0);
    for (bytes = 64; bytes <= most; bytes *= 4) {
      char name[40];
      int times = bytes < 65536 ? 2000 : 100 + (most / bytes);
      snprintf(name, sizeof name, "get_%d", bytes), measure(name, get_bytes, times, 0);
      snprintf(name, sizeof name, "put_%d_and_fence", bytes), measure(name, put_bytes, times, 0);
      snprintf(name, sizeof name, "acc_%d", bytes), measure(name, acc_bytes, times, 0);
    }
    measure("put_8_and_fence_all", all_fence, 2000, 0);
    measure("malloc_free", malloc_free, 50, 1);
  }
  ARMCI_Free(memory[me]);
  ARMCI_Finalize();
  MPI_Finalize();
  return 0;
}
